//! Control over the node's process: SHUTDOWN.

/// Access to the node's shutdown.
pub trait Control {
    /// Asks the node to stop. It sends no further replies.
    fn shut_down(&mut self);
}

//! The node's own life: SHUTDOWN.

/// Whoever can end the node.
pub trait Control {
    /// Asks the node to stop. It replies to nobody any more.
    fn shut_down(&mut self);
}

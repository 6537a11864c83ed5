//! What DEBUG asks of a node.

use core::time::Duration;

/// Whoever can wait, and whoever takes expired keys away.
pub trait Debugging {
    /// Serves nobody on this thread for a while.
    fn sleep(&mut self, pause: Duration);

    fn set_active_expiry(&mut self, active: ActiveExpiry);
}

/// Whether expired keys are taken away when they are due, or only when somebody asks for them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ActiveExpiry {
    #[default]
    On,
    Off,
}

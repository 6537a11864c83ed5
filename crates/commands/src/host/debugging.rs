//! The node's interface for DEBUG.

use core::time::Duration;

/// Control over this thread (sleep) and over active expiry.
pub trait Debugging {
    /// Blocks this thread for a while, so that it serves no client.
    fn sleep(&mut self, pause: Duration);

    fn set_active_expiry(&mut self, active: ActiveExpiry);
}

/// The mode of expiry: expired keys are removed when they are due, or only on access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ActiveExpiry {
    #[default]
    On,
    Off,
}

//! The timers of the cluster, as TIMER.* accesses them.

use timers::{TimerAnswer, Wish};

/// Access to the timers.
pub trait TimerKeeper {
    /// Sends a request for this connection; if its command runs again after that, returns the answer.
    fn ask_timers(&mut self, wish: Wish) -> Asked;
}

/// The state of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Nothing is replied; the command runs again when the answer has arrived.
    Waiting,
    Answered(TimerAnswer),
    /// The request was not sent: its callback target is not allowed.
    Forbidden(String),
}

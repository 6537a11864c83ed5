//! The timers of the cluster, as TIMER.* asks for them.

use timers::{Answer, Wish};

/// Whoever keeps timers.
pub trait TimerKeeper {
    /// Asks on behalf of this connection, or, if it has asked before and its command is run again,
    /// gives the answer.
    fn ask_timers(&mut self, wish: Wish) -> Asked;
}

/// What became of a question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Nothing is replied; the command is run again when the answer is there.
    Waiting,
    Answered(Answer),
    /// It was not asked at all: callbacks may not go there.
    Forbidden(String),
}

//! A question to the timers that a client's connection waits for (TIMER.*). Kept by the connection;
//! asked and answered in `host/timers.rs`, looked at by its worker while the command waits.

use timers::{Answer, Refusal};
use tokio::sync::oneshot::{Receiver, error::TryRecvError};

pub(crate) enum Question {
    Open(Receiver<Answer>),
    Answered(Answer),
}

impl Question {
    /// Looks whether the answer has come.
    pub(crate) fn is_open(&mut self) -> bool {
        if let Question::Open(answer) = self {
            match answer.try_recv() {
                Ok(answer) => *self = Question::Answered(answer),
                Err(TryRecvError::Empty) => return true,
                // The node stops. What it was doing, others may have begun.
                Err(TryRecvError::Closed) => {
                    *self = Question::Answered(Answer::Refused(Refusal::Unknown));
                }
            }
        }
        false
    }

    /// The answer, or the question again.
    pub(crate) fn answer(mut self) -> Result<Answer, Question> {
        if self.is_open() {
            return Err(self);
        }
        match self {
            Question::Answered(answer) => Ok(answer),
            Question::Open(_) => unreachable!("looked at above"),
        }
    }
}

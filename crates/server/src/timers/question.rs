//! A question to the timers that a client's connection waits for (TIMER.*). Kept by the connection; asked and
//! answered in `host/timers.rs`. The answer wakes the connection's worker.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::future::Future;
use std::sync::Arc;
use std::task::Wake;

use timers::{Answer, Refusal};
use tokio::sync::oneshot::Receiver;

use crate::mailbox::{Mail, Mailbox};

pub(crate) struct Question(pub Receiver<Answer>);

impl Question {
    /// Asks for the answer. If it has not come, `waker` is told when it does.
    pub(crate) fn answer(self, waker: &Waker) -> Result<Answer, Question> {
        let Question(mut receiver) = self;
        match Pin::new(&mut receiver).poll(&mut Context::from_waker(waker)) {
            Poll::Ready(Ok(answer)) => Ok(answer),
            // The node stops. What it was doing, others may have begun.
            Poll::Ready(Err(_)) => Ok(Answer::Refused(Refusal::Unknown)),
            Poll::Pending => Err(Question(receiver)),
        }
    }
}

/// Resumes a connection when its answer has come.
pub(crate) struct Resume {
    pub mailbox: Arc<Mailbox>,
    pub id: u64,
    pub index: usize,
}

impl Wake for Resume {
    fn wake(self: Arc<Self>) {
        self.mailbox.send(Mail::Resume { id: self.id, index: self.index });
    }
}

//! A request to the timers that a client's connection waits for (TIMER.*). The connection keeps it;
//! `host/timers.rs` sends it and takes the answer. The answer wakes the connection's worker.

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
    /// Returns the answer if it is there. Otherwise `waker` is called when it arrives.
    pub(crate) fn answer(self, waker: &Waker) -> Result<Answer, Question> {
        let Question(mut receiver) = self;
        match Pin::new(&mut receiver).poll(&mut Context::from_waker(waker)) {
            Poll::Ready(Ok(answer)) => Ok(answer),
            // The node stops. Other nodes may have begun to carry the request out.
            Poll::Ready(Err(_)) => Ok(Answer::Refused(Refusal::Unknown)),
            Poll::Pending => Err(Question(receiver)),
        }
    }
}

/// Resumes a connection when its answer has arrived.
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

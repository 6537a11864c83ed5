//! A request to the timers that a client's connection waits for (TIMER.*). The connection keeps it;
//! `host.rs` sends it and takes the answer. The answer wakes the connection's worker.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::future::Future;
use std::sync::Arc;
use std::task::Wake;

use timers::{TimerAnswer, TimerRefusal};
use tokio::sync::oneshot::Receiver;

use crate::mailbox::{Mail, Mailbox};

pub(crate) struct PendingAnswer(pub Receiver<TimerAnswer>);

impl PendingAnswer {
    /// Returns the answer if it is there. Otherwise `waker` is called when it arrives.
    pub(crate) fn answer(self, waker: &Waker) -> Result<TimerAnswer, PendingAnswer> {
        let PendingAnswer(mut receiver) = self;
        match Pin::new(&mut receiver).poll(&mut Context::from_waker(waker)) {
            Poll::Ready(Ok(answer)) => Ok(answer),
            // The node stops. Other nodes may have begun to carry the request out.
            Poll::Ready(Err(_)) => Ok(TimerAnswer::Refused(TimerRefusal::Unknown)),
            Poll::Pending => Err(PendingAnswer(receiver)),
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

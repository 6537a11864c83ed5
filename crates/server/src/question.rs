//! A question whose answer a client's command waits for: to the timers (TIMER.*), or to the cluster (CONFIG SET of a
//! setting of all nodes). The connection keeps it; `host.rs` asks it and takes the answer. The answer wakes the
//! connection's worker, which runs the command again.

use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::future::Future;
use std::sync::Arc;
use std::task::Wake;

use cluster::control::Answer;
use settings::ValidChanges;
use timers::TimerAnswer;
use tokio::sync::oneshot::Receiver;

use crate::mailbox::{Mail, WorkerMailbox};

pub(crate) enum Question {
    Timers(PendingAnswer<TimerAnswer>),
    Cluster(PendingChange),
    /// Documents that are being written.
    Documents(PendingAnswer<Answer>),
}

/// A change of settings that the cluster has yet to agree on.
pub(crate) struct PendingChange {
    pub answer: PendingAnswer<Answer>,
    /// Changes of this node's own settings in the same command: made when the cluster has agreed.
    pub own: ValidChanges,
}

pub(crate) struct PendingAnswer<T>(pub Receiver<T>);

impl<T> PendingAnswer<T> {
    /// Returns the answer if it is there, and `None` if there will be none because the node stops. Otherwise `waker`
    /// is called when it arrives.
    pub(crate) fn answer(self, waker: &Waker) -> Result<Option<T>, PendingAnswer<T>> {
        let PendingAnswer(mut receiver) = self;
        match Pin::new(&mut receiver).poll(&mut Context::from_waker(waker)) {
            Poll::Ready(answer) => Ok(answer.ok()),
            Poll::Pending => Err(PendingAnswer(receiver)),
        }
    }
}

/// Resumes a connection when its answer has arrived.
pub(crate) struct Resume {
    pub mailbox: Arc<WorkerMailbox>,
    pub id: u64,
    pub index: usize,
}

impl Wake for Resume {
    fn wake(self: Arc<Self>) {
        self.mailbox.send(Mail::Resume { id: self.id, index: self.index });
    }
}

//! The channel to the control thread: other threads queue an event and wake it up.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use cluster::control::{Answer, Control, Input, OperatorRequest};
use cluster::map::Peer;
use mio::Waker;

use super::dialer::Dialed;
use super::dials::DialTarget;

pub(super) enum ControlEvent {
    Input(Input),
    OperatorRequest {
        ask: OperatorRequest,
        then: Box<dyn FnOnce(Answer) + Send>,
    },
    Look(Box<dyn FnOnce(&Control) + Send>),
    /// Another process has made a control link to this one.
    Accepted {
        peer: Peer,
        stream: TcpStream,
    },
    Dialed {
        target: DialTarget,
        dialed: Dialed,
    },
    /// A data link that this node has made is broken.
    DataLost(Peer),
    Stop,
}

/// A sender to the control thread. Clones lead to the same one.
#[derive(Clone)]
pub(crate) struct ControlHandle {
    events: Sender<ControlEvent>,
    waker: Arc<Waker>,
}

impl ControlHandle {
    pub(super) fn new(waker: Waker) -> (ControlHandle, Receiver<ControlEvent>) {
        let (events, receiver) = mpsc::channel();
        (ControlHandle { events, waker: Arc::new(waker) }, receiver)
    }

    pub(super) fn send(&self, event: ControlEvent) {
        // The thread is gone only when the node stops; then nothing matters any more.
        if self.events.send(event).is_ok() {
            let _ = self.waker.wake();
        }
    }

    pub(crate) fn tell(&self, input: Input) {
        self.send(ControlEvent::Input(input));
    }

    /// Asks for something; `then` is called with the answer, on the applier's thread. It is not called
    /// if the node stops before.
    pub(crate) fn ask(&self, ask: OperatorRequest, then: impl FnOnce(Answer) + Send + 'static) {
        self.send(ControlEvent::OperatorRequest { ask, then: Box::new(then) });
    }

    /// Asks, and waits for the answer.
    pub(crate) fn ask_and_wait(&self, ask: OperatorRequest, limit: Duration) -> Option<Answer> {
        let (answer, answered) = mpsc::channel();
        self.ask(ask, move |it| {
            let _ = answer.send(it); // The caller may have given up.
        });
        answered.recv_timeout(limit).ok()
    }

    /// Runs `look` on the control thread, with the state of the control plane.
    pub(crate) fn look(&self, look: impl FnOnce(&Control) + Send + 'static) {
        self.send(ControlEvent::Look(Box::new(look)));
    }

    pub(crate) fn data_link_lost(&self, peer: Peer) {
        self.send(ControlEvent::DataLost(peer));
    }

    pub(crate) fn stop(&self) {
        self.send(ControlEvent::Stop);
    }
}

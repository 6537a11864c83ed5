//! The peer port. A dialer has a few seconds for the handshake, on a thread of its own, of which there is
//! a limited number; then the link goes to the thread that its purpose names. Any error closes that link
//! and nothing else.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cluster::control::Input;
use mio::net::TcpListener;
use mio::{Events, Interest, Waker};
use net::{LISTENER, Poller, WAKER};

use super::handle::ControlEvent;
use super::handshake_places::HandshakePlaces;
use super::hello::{AcceptorState, HandshakeRefusal, Hello, HelloError, Purpose};
use super::{PeerContext, dialer, handshake, joining, merging};

/// Back-off after a failed accept, mostly for want of file descriptors: an immediate retry would spin.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// The thread that accepts links, ready to run.
pub(super) struct Doorkeeper {
    poller: Poller,
    listener: TcpListener,
    context: Arc<PeerContext>,
    places: Arc<HandshakePlaces>,
}

impl Doorkeeper {
    /// Creates the thread's state, and the waker that stops it.
    pub(super) fn new(
        mut listener: TcpListener,
        context: Arc<PeerContext>,
    ) -> io::Result<(Doorkeeper, Waker)> {
        let (poller, waker) = Poller::new()?;
        poller.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok((Doorkeeper { poller, listener, context, places: Arc::default() }, waker))
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(8);
        loop {
            self.poller.wait(&mut events, None);
            if events.iter().any(|event| event.token() == WAKER) {
                return;
            }
            self.accept_all();
        }
    }

    fn accept_all(&self) {
        loop {
            match self.listener.accept() {
                Ok((stream, from)) => self.receive(stream, from),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let line = format!("cannot accept a connection on the peer port: {error}");
                    self.context.complaints.say(&line);
                    thread::sleep(ACCEPT_AGAIN_AFTER);
                }
            }
        }
    }

    fn receive(&self, stream: mio::net::TcpStream, from: SocketAddr) {
        let roster = self.context.roster.load_full();
        let is_member = roster.is_some_and(|roster| roster.has_host(from.ip()));
        let Some(place) = HandshakePlaces::take(&self.places, from.ip(), is_member) else {
            let line = format!("refused a connection from {from}: too many handshakes in progress");
            return self.context.complaints.say(&line);
        };
        let context = Arc::clone(&self.context);
        let greet = move || {
            let _place = place;
            if let Err(error) = greet(&context, stream.into()) {
                context.complain(from, &error);
            }
        };
        // Without a thread there is no link; the dialer will dial again.
        let _ = thread::Builder::new().name("peer-hello".to_owned()).spawn(greet);
    }
}

/// Does the handshake, and passes the link to the thread that its purpose names.
fn greet(context: &PeerContext, stream: TcpStream) -> Result<(), HelloError> {
    stream.set_nonblocking(false)?;
    dialer::configure(&stream)?;
    let (hello, standing) =
        handshake::receive(&stream, &context.secret, |hello| judge(context, hello))?;
    let peer = hello.from;
    match hello.purpose {
        Purpose::Control => context.control_handle.send(ControlEvent::Accepted { peer, stream }),
        Purpose::Data => {
            // Refused only if another link of the same process was quicker: it dials again.
            let _ = context.data.incoming(peer, stream, standing.expects);
        }
        Purpose::Timers => context.data.timers_link(peer, stream),
        Purpose::Join => joining::answer(context, peer, &stream)?,
        Purpose::Merge => merging::answer(context, &stream)?,
        // The handshake was all.
        Purpose::Meet => {}
    }
    Ok(())
}

fn judge(context: &PeerContext, hello: &Hello) -> Result<AcceptorState, HandshakeRefusal> {
    let roster = context.roster.load_full().ok_or(HandshakeRefusal::NotJoined)?;
    let judged = roster.judge(hello);
    if let (Err(HandshakeRefusal::OtherGeneration(_)), Some(theirs)) = (&judged, hello.generation) {
        // Perhaps this is the losing side, which has to hand its data over there.
        if let Some(at) = hello.at.clone() {
            context.data.met(at);
        }
        context.control_handle.tell(Input::Met(theirs));
    }
    let standing = judged?;
    let expects = match hello.purpose {
        Purpose::Data => context.data.expected_from(hello.from),
        Purpose::Control | Purpose::Timers | Purpose::Join | Purpose::Meet | Purpose::Merge => 0,
    };
    Ok(AcceptorState { expects, ..standing })
}

impl PeerContext {
    fn complain(&self, from: SocketAddr, error: &HelloError) {
        match error {
            HelloError::Refused(refusal) if refusal.is_passing() => {}
            HelloError::Io(_)
            | HelloError::NoNode
            | HelloError::Version { .. }
            | HelloError::Refused(_)
            | HelloError::Unproven(_) => {
                self.complaints.say(&format!("cannot link with {from}: {error}"));
            }
        }
    }
}

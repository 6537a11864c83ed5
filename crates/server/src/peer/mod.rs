//! The other nodes: how processes find each other, prove who they are, and talk.
//!
//! Every pair of processes has one control link (Raft, leases, balancing) and, in each direction, one
//! data link (effects, fills, acknowledgements), so that a fill can delay no lease. `listener.rs` and
//! `dialer.rs` make links, each with a handshake (`handshake.rs`); control links go to the control
//! thread (`control.rs`), which runs `cluster::control::Control`; data links go to the data plane.
//!
//! Started by `node.rs` through [`start`]. Other threads reach the control thread by [`ControlLine`].
mod control; //    Start here: the thread that decides, and carries out what was decided.
mod carry; //      Its effects, one by one.
mod applier; //    Those that concern slots, on a thread of their own.
mod links; //      Its sockets.
mod dials; //      Whom to dial when.
mod dialer; //     Dialing.
mod listener; //   Being dialed.
mod joining; //    Becoming a member: both ends of the question.
mod merging; //    Handing over what another side of the cluster lacks.
mod directory; //  Where the peer ports are, asked at a client port.
mod hello; //      The first words on a link, and every way in which they can end.
mod handshake; //  Saying them, from both ends.
mod proof; //      Proving to know the secret.
mod frame; //      Messages in frames.
pub mod stranger; // What one who does not know the secret can say, for those who try.
mod roster; //     Who is who.
mod line; //       The way to the control thread.
mod outlook; //    How far this node has come, for whoever waits.
mod complaints; // What is wrong with links, one line a second.
mod chance; //     Ids, boots and nonces.
#[cfg(test)]
mod tests;

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use cluster::balance::Attempt;
use cluster::consensus::Saved;
use cluster::control::{Gone, MapChanged, Start};
use cluster::map::{Endpoints, Epoch, Generation, NodeId, Peer};
use cluster::merge::{Question, Reply, Taker};
use commands::settings::Secret;
use mio::Waker;
use mio::net::TcpListener;
use placement::Hashmask;

pub(crate) use chance::number as draw_number;
pub(crate) use directory::is_unknown_at;
pub(crate) use joining::{Candidate, JoinError, Joined, Patience, announce_loading, join};
pub(crate) use line::ControlLine;
pub(crate) use merging::MergeLink;
pub(crate) use outlook::{Outlook, Progress};
pub(crate) use roster::Roster;

use crate::data::report_to;
use crate::disk::SharedDirectory;
use crate::shared::Shared;
use applier::Applier;
use complaints::Complaints;
use control::ControlThread;
use hello::{HelloError, Purpose, Refusal};
use listener::Doorkeeper;

/// The connection was not taken: the two ends do not agree on where they are.
#[derive(Debug)]
pub(crate) struct Unwanted;

/// The part of a node that moves data, as the control thread and the peer port see it.
pub(crate) trait DataPlane: Send + Sync {
    /// The number of the frame that is wanted next from a process.
    fn expected_from(&self, peer: Peer) -> u64;
    /// A connection that this node has made to a process, which wants frame `next` first.
    fn outgoing(&self, peer: Peer, stream: TcpStream, next: u64) -> Result<(), Unwanted>;
    /// A connection that a process has made, which was told that `announced` is wanted next.
    fn incoming(&self, peer: Peer, stream: TcpStream, announced: u64) -> Result<(), Unwanted>;
    /// Called for one map after the other, before anything that was decided after it. May wait for slots.
    fn map_changed(&self, changed: &MapChanged);
    fn lease_until(&self, until: Duration);
    /// A connection on which a process will say what it has to say about timers.
    fn timers_link(&self, peer: Peer, stream: TcpStream);
    fn start_fill(&self, attempt: Attempt, bucket: Hashmask, taker: NodeId);
    fn cancel_fill(&self, attempt: Attempt);
    fn pause(&self, bucket: Hashmask, epoch: Epoch, to: NodeId);
    fn take_over(&self, bucket: Hashmask, epoch: Epoch, from: NodeId);
    fn serving(&self, bucket: Hashmask, node: NodeId);
    /// A node of another side of the cluster is reached there.
    fn met(&self, at: Endpoints);
    /// What this process has that the other side lacks is to be handed over; then `Input::Merged`.
    fn yield_to(&self, to: Generation);
    /// What was kept of these buckets is to be handed over.
    fn bring(&self, buckets: Vec<Hashmask>);
    /// A node of another side hands something over. `None` if it makes no sense.
    fn merge(&self, question: Question, taker: &mut Taker) -> Option<Reply>;
    /// By this primary so many bytes are still to come.
    fn beat(&self, from: NodeId, left: u64);
    /// Ends the lease at once, whatever is still to be applied.
    fn fence(&self);
    /// This process is no member any more.
    fn gone(&self, gone: &Gone);
}

/// What those share who make links.
pub(crate) struct Meeting {
    secret: Secret,
    /// None until this node is in a cluster.
    roster: ArcSwapOption<Roster>,
    line: ControlLine,
    data: Arc<dyn DataPlane>,
    complaints: Complaints,
}

/// What the threads begin with.
pub(crate) struct Beginning {
    pub start: Start,
    pub roster: Roster,
    pub secret: Secret,
    pub directory: Option<SharedDirectory>,
    /// None for a node that stays alone.
    pub listener: Option<TcpListener>,
    pub outlook: Arc<Outlook>,
}

/// The threads of this module, once they run.
pub(crate) struct Running {
    meeting: Arc<Meeting>,
    stop_listening: Option<Waker>,
    line: ControlLine,
    threads: Vec<JoinHandle<()>>,
    control: Option<JoinHandle<Saved>>,
}

/// The way to a control thread that does not run yet, so that others can be given it first.
pub(crate) struct Prepared {
    pub line: ControlLine,
    thread: control::Prepared,
}

pub(crate) fn prepare() -> io::Result<Prepared> {
    let (line, thread) = control::prepare()?;
    Ok(Prepared { line, thread })
}

/// Starts the control thread and, with a listener, the one that accepts links.
pub(crate) fn start(
    prepared: Prepared,
    beginning: Beginning,
    data: Arc<dyn DataPlane>,
) -> io::Result<Running> {
    let Prepared { line, thread } = prepared;
    let Beginning { start, roster, secret, directory, listener, outlook } = beginning;
    let roster = ArcSwapOption::from_pointee(roster);
    let complaints = Complaints::default();
    let meeting = Arc::new(Meeting { secret, roster, line: line.clone(), data, complaints });
    let threads = Vec::new();
    let (stop_listening, control) = (None, None);
    let mut running =
        Running { meeting: Arc::clone(&meeting), stop_listening, line, threads, control };
    if let Some(listener) = listener {
        let (doorkeeper, waker) = Doorkeeper::new(listener, Arc::clone(&meeting))?;
        running.stop_listening = Some(waker);
        let thread = running.spawn("peers", move || doorkeeper.run())?;
        running.threads.push(thread);
    }
    let applier = Applier::start(Arc::clone(&meeting.data)).inspect_err(|_| running.stop())?;
    let control = ControlThread::new(thread, start, meeting, (applier, directory), outlook);
    running.control = Some(running.spawn("control", move || control.run())?);
    Ok(running)
}

/// Makes links for others than the control thread.
#[derive(Clone)]
pub(crate) struct LinkMaker(Arc<Meeting>);

impl LinkMaker {
    /// A link to say what there is to say about timers. Takes its time, on the calling thread.
    pub(crate) fn for_timers(&self, to: Peer) -> Result<TcpStream, HelloError> {
        let roster = self.0.roster.load_full().ok_or(HelloError::Refused(Refusal::NotJoined))?;
        let known = roster.neighbours().find(|neighbour| neighbour.peer == to);
        let at = known.ok_or(HelloError::Refused(Refusal::OtherBoot))?.at;
        let stream = dialer::connect(&at.host, at.peer).map_err(HelloError::Io)?;
        let hello = roster.hello(Purpose::Timers, to.id);
        let (standing, stream) = dialer::introduce(stream, &self.0.secret, hello)?;
        if standing.me == to { Ok(stream) } else { Err(HelloError::Refused(Refusal::OtherBoot)) }
    }
}

/// [`start`], for a real node.
pub(crate) fn start_node(
    prepared: Prepared,
    beginning: Beginning,
    shared: &Arc<Shared>,
) -> io::Result<Running> {
    report_to(shared, prepared.line.clone());
    start(prepared, beginning, Arc::clone(shared) as Arc<dyn DataPlane>)
}

impl Running {
    fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        run: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run);
        thread.inspect_err(|_| self.stop())
    }

    /// For those who make their own links.
    pub(crate) fn link_maker(&self) -> LinkMaker {
        LinkMaker(Arc::clone(&self.meeting))
    }

    /// Asks the threads to end.
    pub(crate) fn stop(&self) {
        self.line.stop();
        if let Some(waker) = &self.stop_listening {
            // It fails only when nobody is there to be woken.
            let _ = waker.wake();
        }
    }

    /// Waits until they have ended. Returns what the control plane knew then, if it ever ran.
    pub(crate) fn wait(&mut self) -> Option<Saved> {
        for thread in self.threads.drain(..) {
            thread.join().expect("a thread of the control plane panicked");
        }
        let control = self.control.take()?;
        Some(control.join().expect("the control thread panicked"))
    }
}

//! The other nodes: how processes find each other, authenticate, and talk.
//!
//! Every pair of processes has one control link (Raft, leases, balancing) and, in each direction, one
//! data link (effects, fills, acknowledgements), so that a fill can delay no lease. `listener.rs` and
//! `dialer.rs` make links, each with a handshake (`handshake.rs`); control links go to the control
//! thread (`control.rs`), which runs `cluster::control::Control`; data links go to the data plane.
//!
//! Started by `node.rs` through [`start`]. Other threads reach the control thread by [`ControlHandle`].
mod control; //    Start here: the thread that decides, and carries out its decisions.
mod carry; //      Its effects, one by one.
mod applier; //    Effects that concern slots, on a thread of their own.
mod links; //      Its sockets.
mod dials; //      The schedule of dialing.
mod dialer; //     Dialing.
mod listener; //   Accepting links.
mod handshake_places; // Limits on concurrent handshakes.
mod joining; //    Becoming a member: both ends of the question.
mod merging; //    Handing over data that another side of the cluster lacks.
mod directory; //  Finds the peer ports of a cluster by asking a client port.
mod hello; //      The handshake's messages, and every way in which it can fail.
mod handshake; //  The handshake, from both ends.
mod proof; //      Proof of knowing the secret.
mod frame; //      Messages in frames.
pub mod stranger; // A peer port as seen without the secret, for fuzzing.
mod roster; //     The members, as links need them.
mod handle; //       The channel to the control thread.
mod startup; //    The node's progress towards being ready.
mod complaints; // Log lines about bad links, one a second.
mod random; //     Ids, boots and nonces.
#[cfg(test)]
mod tests;

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use arc_swap::ArcSwapOption;
use cluster::Moment;
use cluster::consensus::Saved;
use cluster::control::{Gone, MapChanged, Start};
use cluster::data::{BucketLag, Order};
use cluster::map::{Endpoints, Generation, Map, NodeId, Peer};
use cluster::merge::{MergeReply, MergeRequest, MergeTaker};
use mio::Waker;
use mio::net::TcpListener;
use placement::Hashmask;
use settings::Secret;

pub(crate) use directory::is_unknown_at;
pub(crate) use handle::ControlHandle;
pub(crate) use joining::{JoinError, Joined, Joiner, Patience, announce_loading, join};
pub(crate) use merging::MergeLink;
pub(crate) use random::number as draw_number;
pub(crate) use roster::Roster;
pub(crate) use startup::{StartupPhase, StartupState};

use crate::data::Unwanted;
use crate::disk::SharedDirectory;
use applier::Applier;
use complaints::Complaints;
use control::ControlThread;
use hello::{HandshakeRefusal, HelloError, Purpose};
use listener::Doorkeeper;

/// The part of a node that moves data, as the control thread and the peer port see it.
pub(crate) trait DataPlane: Send + Sync {
    /// Returns the number of the frame that is expected next from a process.
    fn expected_from(&self, peer: Peer) -> u64;
    /// Takes over a connection that this node has made to a process, which expects frame `next` first.
    fn outgoing(&self, peer: Peer, stream: TcpStream, next: u64) -> Result<(), Unwanted>;
    /// Takes over a connection that a process has made, after it was told that `announced` is expected next.
    fn incoming(&self, peer: Peer, stream: TcpStream, announced: u64) -> Result<(), Unwanted>;
    /// Applies a map. Called for one map after the other, before anything that was decided after it. May wait for
    /// slots.
    fn map_changed(&self, changed: &MapChanged);
    /// Applies the settings that all nodes share, as this process. Called before `map_changed`, on the control
    /// thread: takes no slot.
    fn follow_settings(&self, me: Peer, map: &Map);
    fn lease_until(&self, until: Moment);
    /// Takes over a connection on which a process will send its messages about timers.
    fn timers_link(&self, peer: Peer, stream: TcpStream);
    fn order(&self, order: Order);
    /// Records an address where a node of another side of the cluster is reached.
    fn met(&self, at: Endpoints);
    /// Starts handing over the data that the other side lacks; then `Input::Merged`.
    fn yield_to(&self, to: Generation);
    /// Starts handing over the kept copies of these buckets.
    fn bring(&self, buckets: Vec<Hashmask>);
    /// Merges data that a node of another side hands over. `None` if it makes no sense.
    fn merge(&self, question: MergeRequest, taker: &mut MergeTaker) -> Option<MergeReply>;
    /// Reports that so many bytes from this primary are still outstanding, and the buckets they are of.
    fn note_backup_lag(&self, from: NodeId, remaining_bytes: u64, lags: Vec<BucketLag>);
    /// Reports that a node's memory is full and that so many bytes should be evicted for it.
    fn make_room(&self, node: NodeId, bytes: u64);
    /// Counts the beginning and the end of each write to the disk.
    fn count_disk_pulse(&self);
    /// Ends the lease at once and for good: this process serves no more. Does not wait for steps that are still to be
    /// applied.
    fn end_lease_for_good(&self);
    /// Handles the end of this process's membership.
    fn gone(&self, gone: &Gone);
}

/// The state shared by the threads that make links.
pub(crate) struct PeerContext {
    secret: Secret,
    /// None until this node is in a cluster.
    roster: ArcSwapOption<Roster>,
    control_handle: ControlHandle,
    data: Arc<dyn DataPlane>,
    complaints: Complaints,
}

/// The initial state of the threads.
pub(crate) struct PeerStart {
    pub start: Start,
    pub roster: Roster,
    pub secret: Secret,
    pub directory: Option<SharedDirectory>,
    /// None for a node that stays alone.
    pub listener: Option<TcpListener>,
    pub startup: Arc<StartupState>,
}

/// The threads of this module, once they run.
pub(crate) struct Running {
    context: Arc<PeerContext>,
    stop_listening: Option<Waker>,
    control_handle: ControlHandle,
    threads: Vec<JoinHandle<()>>,
    control: Option<JoinHandle<Saved>>,
}

/// The channel to a control thread that does not run yet, so that other threads can be given it first.
pub(crate) struct Prepared {
    pub control_handle: ControlHandle,
    thread: control::PreparedThread,
}

pub(crate) fn prepare() -> io::Result<Prepared> {
    let (control_handle, thread) = control::prepare()?;
    Ok(Prepared { control_handle, thread })
}

/// Starts the control thread and, with a listener, the one that accepts links.
pub(crate) fn start(
    prepared: Prepared,
    beginning: PeerStart,
    data: Arc<dyn DataPlane>,
) -> io::Result<Running> {
    let Prepared { control_handle, thread } = prepared;
    let PeerStart { start, roster, secret, directory, listener, startup } = beginning;
    let roster = ArcSwapOption::from_pointee(roster);
    let complaints = Complaints::default();
    let context = Arc::new(PeerContext {
        secret,
        roster,
        control_handle: control_handle.clone(),
        data,
        complaints,
    });
    let threads = Vec::new();
    let (stop_listening, control) = (None, None);
    let mut running =
        Running { context: Arc::clone(&context), stop_listening, control_handle, threads, control };
    if let Some(listener) = listener {
        let (doorkeeper, waker) = Doorkeeper::new(listener, Arc::clone(&context))?;
        running.stop_listening = Some(waker);
        let thread = running.spawn("peers", move || doorkeeper.run())?;
        running.threads.push(thread);
    }
    let applier = Applier::start(Arc::clone(&context.data)).inspect_err(|_| running.stop())?;
    let control = ControlThread::new(thread, start, context, applier, directory, startup);
    running.control = Some(running.spawn("control", move || control.run())?);
    Ok(running)
}

/// Makes links for other threads than the control thread.
#[derive(Clone)]
pub(crate) struct LinkMaker(Arc<PeerContext>);

impl LinkMaker {
    /// Makes a link for messages about timers. Blocks the calling thread.
    pub(crate) fn for_timers(&self, to: Peer) -> Result<TcpStream, HelloError> {
        let roster =
            self.0.roster.load_full().ok_or(HelloError::Refused(HandshakeRefusal::NotJoined))?;
        let known = roster.neighbours().find(|neighbour| neighbour.peer == to);
        let at = known.ok_or(HelloError::Refused(HandshakeRefusal::OtherBoot))?.at;
        let stream = dialer::connect(&at.host, at.peer).map_err(HelloError::Io)?;
        let hello = roster.hello(Purpose::Timers, to.id);
        let (standing, stream) = dialer::introduce(stream, &self.0.secret, hello)?;
        if standing.me == to {
            Ok(stream)
        } else {
            Err(HelloError::Refused(HandshakeRefusal::OtherBoot))
        }
    }
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

    /// Returns the link maker for threads that make their own links.
    pub(crate) fn link_maker(&self) -> LinkMaker {
        LinkMaker(Arc::clone(&self.context))
    }

    /// Asks the threads to end.
    pub(crate) fn stop(&self) {
        self.control_handle.stop();
        if let Some(waker) = &self.stop_listening {
            // It fails only when there is no thread to be woken.
            let _ = waker.wake();
        }
    }

    /// Waits until the threads have ended. Returns the control plane's last state, if it ever ran.
    pub(crate) fn wait(&mut self) -> Option<Saved> {
        for thread in self.threads.drain(..) {
            thread.join().expect("a thread of the control plane panicked");
        }
        let control = self.control.take()?;
        Some(control.join().expect("the control thread panicked"))
    }
}

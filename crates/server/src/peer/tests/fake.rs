//! A node without data: its fills are done at once and its buckets have nothing to drain.

use std::net::TcpStream;
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use cluster::Moment;
use cluster::balance::{BucketSize, MoveId, SizeReport};
use cluster::consensus::{
    Ballot, Begin, Configuration, Entry, LogEntry, LogPlace, MessageBody, Payload, RaftMessage,
    SnapshotData, Term,
};
use cluster::control::{
    Gone, Input, JoinRequest, MapChanged, Message, ProtocolRange, Start, Welcome,
};
use cluster::map::{
    Boot, Change, ClusterId, ClusterSettings, Endpoints, Generation, LogIndex, Map, Member, NodeId,
    Peer, Zone,
};
use cluster::merge::{MergeReply, MergeRequest, MergeTaker};
use parking_lot::Mutex;
use placement::{Hashmask, Mask};
use settings::Secret;

use super::super::joining::ask_node;
use super::super::*;

pub(super) const SECRET: &str = "we all know it";
const WAIT: Duration = Duration::from_secs(20);

/// Waits until a condition becomes true; panics on a timeout.
pub(super) fn eventually(what: &str, is_true: impl Fn() -> bool) {
    let until = Instant::now() + WAIT;
    while !is_true() {
        assert!(Instant::now() < until, "not within {WAIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[derive(Default)]
struct FakeData {
    control_handle: OnceLock<ControlHandle>,
    state: Mutex<State>,
    /// Stands for the locks of slots: applying a map waits for it.
    slots: Mutex<()>,
}

#[derive(Default)]
struct State {
    map: Option<Arc<Map>>,
    lease: Moment,
    gone: Option<Gone>,
    outgoing: Vec<(Peer, TcpStream)>,
    incoming: Vec<(Peer, TcpStream)>,
    /// Number of data links ever made.
    made: usize,
}

impl FakeData {
    fn tell(&self, input: Input) {
        self.control_handle.get().expect("it was given one").tell(input);
    }
}

impl DataPlane for FakeData {
    fn expected_from(&self, _: Peer) -> u64 {
        1
    }
    fn outgoing(&self, peer: Peer, stream: TcpStream, next: u64) -> Result<(), Unwanted> {
        assert_eq!(next, 1);
        let mut state = self.state.lock();
        state.made += 1;
        state.outgoing.push((peer, stream));
        Ok(())
    }
    fn incoming(&self, peer: Peer, stream: TcpStream, announced: u64) -> Result<(), Unwanted> {
        assert_eq!(announced, 1);
        self.state.lock().incoming.push((peer, stream));
        Ok(())
    }
    fn map_changed(&self, changed: &MapChanged) {
        changed.map.check_invariants();
        let _slots = self.slots.lock();
        self.state.lock().map = Some(Arc::clone(&changed.map));
    }
    fn follow_settings(&self, _: Peer, _: &Map) {}
    fn make_room(&self, _: NodeId, _: u64) {}
    fn count_disk_pulse(&self) {}
    fn lease_until(&self, until: Moment) {
        self.state.lock().lease = until;
    }
    fn timers_link(&self, _: Peer, _: TcpStream) {}
    fn order(&self, order: Order) {
        match order {
            Order::Fill { move_id, buckets, .. } => {
                let map = self.state.lock().map.clone().expect("fills begin by a map");
                let epoch = |bucket| map.bucket(bucket).expect("it is there").epoch;
                let filled = buckets.into_iter().map(|bucket| (bucket, epoch(bucket))).collect();
                self.tell(Input::FillDone { move_id, filled });
            }
            Order::Pause { buckets, .. } => self.tell(Input::Drained { buckets }),
            Order::Cancel { .. } | Order::Narrow { .. } => {}
        }
    }
    fn met(&self, _: Endpoints) {}
    fn bring(&self, _: Vec<Hashmask>) {
        unreachable!("nobody comes back late here")
    }

    fn yield_to(&self, _: Generation) {
        self.tell(Input::Merged);
    }
    fn merge(&self, _: MergeRequest, _: &mut MergeTaker) -> Option<MergeReply> {
        Some(MergeReply::NotNow)
    }

    fn note_backup_lag(&self, _: NodeId, _: u64, _: Vec<BucketLag>) {}
    fn end_lease_for_good(&self) {
        self.state.lock().lease = Moment::START;
    }
    fn gone(&self, gone: &Gone) {
        self.state.lock().gone = Some(gone.clone());
    }
}

/// Returns samples of all messages that nodes send to each other.
pub(super) fn sample_messages(map: &Map) -> Vec<Message> {
    let bucket = map.bucket_at(3);
    let (hashmask, expected) = (bucket.hashmask, bucket.epoch);
    let node = map.members()[0].id;
    let changes = vec![
        Change::AddBackup { bucket: hashmask, node, expected },
        Change::Promote { bucket: hashmask, node, expected },
        Change::Join(map.members()[0].clone()),
        Change::Split(vec![(hashmask, expected)]),
    ];
    let entry = LogEntry { planned_at: None, changes };
    let move_id = MoveId { giver: node, number: 3 };
    let size = BucketSize { bucket: hashmask, bytes: 1 << 30, largest_slot_bytes: 1 << 20 };
    let sizes = SizeReport::new(1 << 20, [size].into_iter());
    let mut messages = vec![
        Message::LeaseAsk { number: 1, applied: LogIndex(2), is_cut_off: false },
        Message::LeaseGrant { number: 1, index: LogIndex(2), lease: Duration::from_secs(1) },
        Message::Propose(entry.clone()),
        Message::Engaged { move_id },
        Message::Sizes(sizes),
        Message::Balance(cluster::balance::BalanceMessage::AskLevels { round: 1 }),
    ];
    let generation = map.generation();
    let raft = |message| Message::Raft { generation, message };
    messages.extend(raft_messages(entry, map).map(raft));
    messages
}

fn raft_messages(changes: LogEntry, map: &Map) -> impl Iterator<Item = RaftMessage> {
    let place = |index, term| LogPlace { index: LogIndex(index), term: Term(term) };
    let (last, commit, ballot) = (place(4, 1), LogIndex(3), Ballot::Election);
    let payload = Payload::Changes(changes);
    let entries = vec![Entry { index: LogIndex(5), term: Term(1), payload }];
    let voters = map.members().iter().map(|member| member.id).collect();
    let configuration = Configuration { voters, ..Configuration::default() };
    let snapshot = SnapshotData { at: place(900, 1), configuration, map: map.clone() };
    let bodies = [
        MessageBody::Append { after: last, entries, commit },
        MessageBody::Appended { last: LogIndex(4), commit },
        MessageBody::NotAppended { after: LogIndex(4), hint: place(2, 1), commit },
        MessageBody::Vote { ballot, last, commit: place(3, 1) },
        MessageBody::Vote { ballot: Ballot::Poll, last, commit: place(3, 1) },
        MessageBody::VoteGranted { ballot },
        MessageBody::VoteRefused { ballot, commit: place(3, 1) },
        MessageBody::Heartbeat { commit, read: Some(1) },
        MessageBody::HeartbeatAnswer { commit, read: Some(1) },
        MessageBody::Snapshot(Box::new(snapshot)),
        MessageBody::TimeoutNow,
    ];
    bodies.into_iter().map(|body| RaftMessage { term: Term(1), body })
}

pub(super) struct FakeNode {
    me: Peer,
    cluster: ClusterId,
    pub(super) port: u16,
    pub(super) control_handle: ControlHandle,
    startup: Arc<StartupState>,
    data: Arc<FakeData>,
    running: Running,
}

/// A process that is in no cluster yet.
struct Process {
    me: Member,
    listener: TcpListener,
}

impl Process {
    fn new(name: &str) -> Process {
        let any = "127.0.0.1:0".parse().expect("an address");
        let listener = net::listen(any, 16).expect("a free port");
        let peer = listener.local_addr().expect("bound").port();
        let at = Endpoints { host: "127.0.0.1".to_owned(), client: 1, peer, http: 0, replica: 0 };
        let (id, boot) = (NodeId(draw_number()), Boot(draw_number()));
        let (name, zone) = (name.to_owned(), Zone::default());
        Process { me: Member { id, boot, name, weight: 1, zone, at }, listener }
    }

    fn run(self, begin: Begin, roster: Roster, welcome: Option<Welcome>) -> FakeNode {
        let Process { me, listener } = self;
        let (port, peer, cluster) = (me.at.peer, me.peer(), roster.cluster);
        let start = Start { me, cluster: roster.cluster, seed: 1, begin, welcome };
        let startup = Arc::new(StartupState::default());
        let beginning = PeerStart {
            start,
            roster,
            secret: Secret::new(SECRET),
            directory: None,
            listener: Some(listener),
            startup: Arc::clone(&startup),
        };
        let data = Arc::new(FakeData::default());
        let prepared = prepare().expect("a poll can be had");
        let control_handle = prepared.control_handle.clone();
        assert!(data.control_handle.set(control_handle.clone()).is_ok());
        let plane = Arc::clone(&data) as Arc<dyn DataPlane>;
        let running = start_threads(prepared, beginning, plane);
        FakeNode { me: peer, cluster, port, control_handle, startup, data, running }
    }
}

fn start_threads(prepared: Prepared, beginning: PeerStart, data: Arc<dyn DataPlane>) -> Running {
    super::super::start(prepared, beginning, data).expect("threads can be had")
}

impl FakeNode {
    pub(super) fn found(name: &str) -> FakeNode {
        let process = Process::new(name);
        let map = Map::found(process.me.clone(), Mask::M00FF, ClusterSettings::default());
        let cluster = ClusterId(draw_number());
        let roster = Roster::new(process.me.peer(), cluster, map.generation(), map.members());
        process.run(Begin::Found(map), roster, None)
    }

    pub(super) fn join(name: &str, at: &FakeNode) -> Result<FakeNode, String> {
        FakeNode::join_with(name, at, SECRET)
    }

    pub(super) fn join_with(name: &str, at: &FakeNode, secret: &str) -> Result<FakeNode, String> {
        let process = Process::new(name);
        let request = JoinRequest {
            versions: ProtocolRange::OURS,
            member: process.me.clone(),
            cluster: None,
            skew: Duration::ZERO,
            is_loading: false,
        };
        let (password, secret) = (&Secret::default(), &Secret::new(secret));
        let candidate =
            Joiner { addresses: &[], patience: Patience::Long, password, secret, request };
        let until = Instant::now() + WAIT;
        let joined = loop {
            match ask_node(&candidate, "127.0.0.1", at.port) {
                Ok(joined) => break joined,
                Err(why) if why.patience(Patience::Long).is_zero() => return Err(why.to_string()),
                Err(why) => assert!(Instant::now() < until, "{why}"),
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let welcome = joined.welcome;
        let me = process.me.peer();
        let roster = Roster::new(me, welcome.cluster, welcome.generation, &welcome.members);
        Ok(process.run(Begin::Join, roster, Some(welcome)))
    }

    pub(super) fn peer(&self) -> Peer {
        self.me
    }

    /// Returns the roster that this node's links go by.
    pub(super) fn roster(&self) -> Roster {
        let map = self.map().expect("it has one");
        Roster::new(self.me, self.cluster, map.generation(), map.members())
    }

    pub(super) fn is_ready(&self) {
        assert_eq!(self.startup.wait(WAIT), StartupPhase::Ready);
    }

    pub(super) fn map(&self) -> Option<Arc<Map>> {
        self.data.state.lock().map.clone()
    }

    /// Holds the locks of all slots while `run` runs, as a long command does.
    pub(super) fn while_slots_are_held(&self, run: impl FnOnce()) {
        let _slots = self.data.slots.lock();
        run();
    }

    pub(super) fn lease(&self) -> Moment {
        self.data.state.lock().lease
    }

    pub(super) fn gone(&self) -> Option<Gone> {
        self.data.state.lock().gone.clone()
    }

    /// Returns the number of data links ever made from here.
    pub(super) fn data_links(&self) -> usize {
        self.data.state.lock().made
    }

    pub(super) fn cut_data_links(&self) {
        let cut = std::mem::take(&mut self.data.state.lock().outgoing);
        for (peer, _) in cut {
            self.control_handle.data_link_lost(peer);
        }
    }

    pub(super) fn voters(&self) -> usize {
        let (tell, told) = mpsc::channel();
        self.control_handle.look(move |control| {
            let _ = tell.send(control.configuration().voters.len());
        });
        told.recv_timeout(WAIT).unwrap_or(0)
    }
}

impl Drop for FakeNode {
    fn drop(&mut self) {
        self.running.stop();
        self.running.wait();
    }
}

//! One node's part in keeping the log: its inputs, and `collect_ready`, which collects their consequences.
//!
//! After every input the node asks the library at once for all consequences, and tells it that they are
//! on disk; they are not yet, but nothing is visible outside before `ready` returns it, together with
//! the state to persist first. So between two inputs nothing is ever half done.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use placement::SplitMix64;
use raft::eraftpb::Snapshot;
use raft::{Config, ProgressState, RawNode, ReadOnlyOption, SnapshotStatus, StateRole};
use slog::{Discard, Logger, o};

use super::log::Log;
use super::message::{context_of_read, read_context};
use super::{
    AppliedEntry, Committed, Configuration, Entry, HardState, LogEntry, LogPlace, Payload,
    RaftMessage, Ready, Reconfiguration, Saved, SnapshotData, Term, check,
};
use crate::map::{LogIndex, Map, NodeId};

/// Interval between calls of `tick`. A leader sends a heartbeat with each.
pub const TICK: Duration = Duration::from_millis(100);

/// Ticks without a message from the leader after which a follower stands for election: from the first
/// number to below the second.
const ELECTION_TICKS: (u64, u64) = (5, 10);
/// Ticks after which an unacknowledged snapshot counts as lost and is sent again.
const SNAPSHOT_TICKS: u32 = 30;
/// Maximum size of the entries in one message. A larger entry is sent alone.
const MESSAGE_BYTES: u64 = 1 << 20;
/// Maximum size of uncommitted proposals. Beyond this, new ones are refused.
const UNDECIDED_BYTES: u64 = 16 << 20;
const MESSAGES_IN_FLIGHT: usize = 64;

/// The way a node starts.
#[derive(Clone, PartialEq, Debug)]
pub enum Begin {
    /// As the founder of a cluster with this map.
    Found(Map),
    /// As a joining node, to which the leader will send everything.
    Join,
    /// As a restarted node, with the state it had kept.
    Resume(Saved),
}

/// The reason nothing was proposed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProposeError {
    NotLeader {
        leader: Option<NodeId>,
    },
    /// Leadership is being handed over, or too many proposals are uncommitted.
    Busy,
}

/// The fate of a snapshot that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    Arrived,
    Lost,
}

pub struct Consensus {
    me: NodeId,
    seed: u64,
    raft: RawNode<Log>,
    /// Work that was not handed out yet.
    out: Ready,
    /// For each node with an unacknowledged snapshot, the ticks since it was sent.
    snapshots: BTreeMap<u64, u32>,
}

impl Consensus {
    /// Creates a node's part. `seed` only spreads election timeouts. If it is the same on all nodes of
    /// a cluster, no two of up to five voters have the same timeout.
    pub fn new(me: NodeId, seed: u64, begin: Begin) -> Consensus {
        let mut out = Ready::default();
        let saved = match begin {
            Begin::Found(map) => begun_with(Log::founded(me, map), &mut out),
            Begin::Join => Saved::default(),
            Begin::Resume(saved) => saved,
        };
        Consensus::start(me, seed, saved, out)
    }

    fn start(me: NodeId, seed: u64, saved: Saved, mut out: Ready) -> Consensus {
        let snapshot = saved.snapshot();
        out.snapshot = snapshot.map(|snapshot| (snapshot.at.index, snapshot.map.clone()));
        let log = Log::new(saved);
        let config = Config {
            id: me.0,
            applied: log.applied().0,
            election_tick: ELECTION_TICKS.0 as usize,
            max_election_tick: ELECTION_TICKS.1 as usize,
            heartbeat_tick: 1,
            check_quorum: true,
            pre_vote: true,
            read_only_option: ReadOnlyOption::Safe,
            max_size_per_msg: MESSAGE_BYTES,
            max_uncommitted_size: UNDECIDED_BYTES,
            max_inflight_msgs: MESSAGES_IN_FLIGHT,
            ..Config::default()
        };
        let raft = RawNode::new(&config, log, &Logger::root(Discard, o!()));
        let raft = raft.expect("the configuration above is a right one, and so is what was saved");
        let mut consensus = Consensus { me, seed, raft, out, snapshots: BTreeMap::new() };
        consensus.collect_ready();
        if consensus.is_only_voter() {
            // No other node could be elected: no need to wait for the timeout.
            consensus.raft.campaign().expect("standing for election never fails");
            consensus.collect_ready();
        }
        consensus
    }

    /// Advances time by one `TICK`.
    pub fn tick(&mut self) {
        self.raft.tick();
        self.give_up_snapshots();
        self.collect_ready();
    }

    /// Handles a message from another node. An invalid one is ignored.
    pub fn step(&mut self, from: NodeId, message: &RaftMessage) {
        if !check::is_sound(&self.raft, from, message) {
            return;
        }
        // A message that the library refuses (an answer from a stranger) is of no use here either.
        let _ = self.raft.step(message.to_raft(from, self.me));
        self.collect_ready();
    }

    /// Proposes changes. A proposal is not necessarily committed.
    pub fn propose(&mut self, entry: &LogEntry) -> Result<(), ProposeError> {
        if !self.is_leader() {
            return Err(ProposeError::NotLeader { leader: self.leader() });
        }
        let proposed = self.raft.propose(Vec::new(), entry.encode());
        self.collect_ready();
        proposed.map_err(|_| ProposeError::Busy)
    }

    /// Makes these the voters and learners, if this is the leader. Does nothing if they already are, or
    /// while an earlier change is in progress: the caller repeats the call until it has taken effect. A
    /// leader that will lose its vote first hands over to a node that will have one.
    pub fn reconfigure(&mut self, voters: &BTreeSet<NodeId>, learners: &BTreeSet<NodeId>) {
        let now = self.configuration();
        let change = change_between(now, voters, learners);
        let busy = now.is_joint() || self.raft.raft.has_pending_conf();
        if !self.is_leader() || busy || voters.is_empty() || change.is_empty() {
            return;
        }
        if voters.contains(&self.me) {
            // Refused only while leadership is handed over: the next leader will do it.
            let _ = self.raft.propose_conf_change(change.encode(), change.to_raft());
            self.collect_ready();
            return;
        }
        let candidates = voters.intersection(&now.voters);
        let transferee =
            candidates.max_by_key(|node| (self.matched(**node), std::cmp::Reverse(**node)));
        match transferee.copied() {
            Some(transferee) => self.transfer_leadership(transferee),
            // No node could take over yet: first with this node as a voter, then without.
            None => self.reconfigure(
                &voters.union(&BTreeSet::from([self.me])).copied().collect(),
                learners,
            ),
        }
    }

    /// Requests an index at or after everything committed before this call, and the proof that this
    /// node leads: see `Ready::reads`. `context` is a new number each time. The caller repeats a
    /// request that gets no answer (this node does not lead, or lost leadership too soon).
    pub fn read_index(&mut self, context: u64) {
        if self.is_leader() {
            self.raft.read_index(read_context(Some(context)));
            self.collect_ready();
        }
    }

    /// Hands leadership to a voter, if this is the leader. Proposals are refused until that is done or
    /// has failed, which takes at most the shortest election timeout.
    pub fn transfer_leadership(&mut self, to: NodeId) {
        if self.is_leader() {
            self.raft.transfer_leader(to.0);
            self.collect_ready();
        }
    }

    /// Returns the entries of the log that are not committed as far as this node knows.
    pub fn undecided(&self) -> impl Iterator<Item = Entry> + use<'_> {
        self.raft.store().undecided()
    }

    /// Returns this node's promises and knowledge, in the form `Begin::Resume` takes: for a process
    /// that continues under a new boot without having ended.
    pub fn to_saved(&self) -> Saved {
        self.raft.store().to_saved()
    }

    /// Performs a takeover: ends this log and begins another, with this node as the only voter and the
    /// only member of the map. Everything in the log counts as committed, because it may have been.
    /// From here on, nothing of the old log may be sent to this node, nor anything of the new one to
    /// the others.
    pub fn take_over(&mut self) {
        let Some(mut map) = self.map().cloned() else { return };
        for entry in self.undecided() {
            if let Payload::Changes(changes) = entry.payload {
                map.apply_entry(entry.index, changes.planned_at, &changes.changes);
            }
        }
        let at = LogPlace::new(self.last_index().0 + 1, self.term().0 + 1);
        map.take_over(at.index, self.me);
        let snapshot = SnapshotData { at, configuration: Configuration::of_voter(self.me), map };
        let mut out = Ready::default();
        out.persist = std::mem::take(&mut self.out.persist);
        let saved = begun_with(snapshot, &mut out);
        *self = Consensus::start(self.me, self.seed, saved, out);
    }

    /// Reports that a message to that node was lost.
    pub fn report_unreachable(&mut self, node: NodeId) {
        self.raft.report_unreachable(node.0);
        self.collect_ready();
    }

    /// Reports whether the last snapshot has reached that node.
    pub fn report_snapshot(&mut self, node: NodeId, delivery: Delivery) {
        let status = match delivery {
            Delivery::Arrived => SnapshotStatus::Finish,
            Delivery::Lost => SnapshotStatus::Failure,
        };
        self.raft.report_snapshot(node.0, status);
        self.collect_ready();
    }

    /// Returns all work to do now.
    pub fn ready(&mut self) -> Ready {
        if self.raft.store().is_long() {
            self.compact();
        }
        std::mem::take(&mut self.out)
    }

    /// Drops entries that the map includes. `ready` does it from time to time.
    pub fn compact(&mut self) {
        self.out.persist.snapshot = self.raft.store().to_snapshot();
        self.raft.mut_store().compact();
    }

    pub fn me(&self) -> NodeId {
        self.me
    }

    /// Returns whether this node believes that it leads. Only a read index proves it.
    pub fn is_leader(&self) -> bool {
        self.raft.raft.state == StateRole::Leader
    }

    pub fn leader(&self) -> Option<NodeId> {
        let leader = self.raft.raft.leader_id;
        (leader != raft::INVALID_ID).then_some(NodeId(leader))
    }

    pub fn term(&self) -> Term {
        Term(self.raft.raft.term)
    }

    /// Returns the map with everything applied that is committed as far as this node knows. `None`
    /// until a joining node has received it.
    pub fn map(&self) -> Option<&Map> {
        self.raft.store().map()
    }

    pub fn configuration(&self) -> &Configuration {
        self.raft.store().configuration()
    }

    pub fn voters(&self) -> &BTreeSet<NodeId> {
        &self.configuration().voters
    }

    pub fn learners(&self) -> &BTreeSet<NodeId> {
        &self.configuration().learners
    }

    /// Returns whether voters are being replaced, or a change of them is proposed.
    pub fn is_reconfiguring(&self) -> bool {
        self.configuration().is_joint() || self.has_proposed_voters()
    }

    /// Returns whether this leader's next commits may need other voters than `configuration` names.
    pub fn has_proposed_voters(&self) -> bool {
        self.is_leader() && self.raft.raft.has_pending_conf() && !self.configuration().is_joint()
    }

    pub fn applied(&self) -> LogIndex {
        self.raft.store().applied()
    }

    pub fn committed(&self) -> LogIndex {
        LogIndex(self.raft.raft.raft_log.committed)
    }

    pub fn last_index(&self) -> LogIndex {
        LogIndex(self.raft.raft.raft_log.last_index())
    }

    /// Returns the index up to which a node is known to have the log, if this is the leader.
    pub fn matched(&self, node: NodeId) -> Option<LogIndex> {
        let progress = self.raft.raft.prs().get(node.0)?;
        self.is_leader().then_some(LogIndex(progress.matched))
    }

    fn is_only_voter(&self) -> bool {
        *self.configuration()
            == Configuration {
                learners: self.learners().clone(),
                ..Configuration::of_voter(self.me)
            }
    }

    fn give_up_snapshots(&mut self) {
        let progress = self.raft.raft.prs().iter();
        let sent = progress.filter(|(_, progress)| progress.state == ProgressState::Snapshot);
        let ages = sent.map(|(node, _)| (*node, self.snapshots.get(node).unwrap_or(&0) + 1));
        self.snapshots = ages.collect();
        let lost = self.snapshots.extract_if(.., |_, age| *age > SNAPSHOT_TICKS);
        for (node, _) in lost.collect::<Vec<_>>() {
            self.raft.report_snapshot(node, SnapshotStatus::Failure);
        }
    }

    /// Collects from the library all consequences of the last input.
    fn collect_ready(&mut self) {
        while self.raft.has_ready() {
            let mut ready = self.raft.ready();
            self.send(ready.take_messages());
            self.send(ready.take_persisted_messages());
            self.install(ready.snapshot());
            self.append(ready.entries());
            if let Some(hard_state) = ready.hs() {
                self.keep(HardState::of_raft(hard_state));
            }
            for read in ready.take_read_states() {
                let context = context_of_read(&read.request_ctx).expect("a context is a number");
                self.out.reads.push((context, LogIndex(read.index)));
            }
            let mut committed = ready.take_committed_entries();
            let mut light = self.raft.advance_append(ready);
            self.send(light.take_messages());
            if let Some(commit) = light.commit_index() {
                let hard_state = self.raft.store().hard_state();
                self.keep(HardState { commit: LogIndex(commit), ..hard_state });
            }
            committed.append(&mut light.take_committed_entries());
            for entry in &committed {
                self.apply(Entry::of_raft(entry));
            }
            self.raft.advance_apply();
        }
        let timeout = self.election_timeout();
        self.raft.raft.set_randomized_election_timeout(timeout);
    }

    fn send(&mut self, messages: Vec<raft::eraftpb::Message>) {
        self.out.messages.extend(messages.into_iter().filter_map(RaftMessage::of_raft));
    }

    fn install(&mut self, snapshot: &Snapshot) {
        if snapshot.is_empty() {
            return;
        }
        let snapshot = SnapshotData::of_raft(snapshot);
        self.out.snapshot = Some((snapshot.at.index, snapshot.map.clone()));
        self.out.committed.clear();
        self.out.persist.install(snapshot.clone());
        self.raft.mut_store().install(snapshot);
    }

    fn append(&mut self, entries: &[raft::eraftpb::Entry]) {
        self.raft.mut_store().append(entries);
        self.out.persist.append(entries.iter().map(Entry::of_raft));
    }

    fn keep(&mut self, hard_state: HardState) {
        self.raft.mut_store().set_hard_state(hard_state);
        self.out.persist.hard_state = Some(hard_state);
    }

    fn apply(&mut self, entry: Entry) {
        let at = LogPlace { index: entry.index, term: entry.term };
        let committed = match entry.payload {
            Payload::Nothing => {
                self.raft.mut_store().apply_nothing(at);
                Committed::Nothing
            }
            Payload::Changes(entry) => {
                let outcomes = self.raft.mut_store().apply_changes(at, &entry);
                let map = self.map().expect("it was just changed").clone();
                Committed::Entry(AppliedEntry { entry, outcomes, map })
            }
            Payload::Reconfigure(change) => {
                self.apply_configuration(at, &change);
                Committed::Configuration(self.configuration().clone())
            }
        };
        self.out.committed.push((at.index, committed));
    }

    fn apply_configuration(&mut self, at: LogPlace, change: &Reconfiguration) {
        // While it switches, the library may send snapshots: the log still has the configuration before
        // this entry then, and its position is before it.
        let configuration = match self.raft.apply_conf_change(&change.to_raft()) {
            Ok(state) => Configuration::of_raft(&state),
            // The change is invalid, on all nodes alike: nothing changes on any of them.
            Err(_) => self.configuration().clone(),
        };
        let leads_without_vote = self.is_leader() && !configuration.is_voter(self.me);
        self.raft.mut_store().apply_configuration(at, configuration);
        if leads_without_vote {
            // An earlier leader had proposed to remove this one. The library would go on, and panic at
            // the first entry that is committed without it.
            let term = self.raft.raft.term;
            self.raft.raft.become_follower(term, raft::INVALID_ID);
        }
    }

    /// Returns the election timeout in ticks: different for each voter, and different in each term.
    pub(super) fn election_timeout(&self) -> usize {
        let (least, end) = ELECTION_TICKS;
        let rank = self.voters().range(..self.me).count() as u64;
        let turn = SplitMix64::new(self.seed ^ SplitMix64::new(self.term().0).draw()).draw()
            % (end - least);
        (least + (rank + turn) % (end - least)) as usize
    }
}

/// Returns a log that begins with this map. It is on disk before anything else is.
fn begun_with(snapshot: SnapshotData, out: &mut Ready) -> Saved {
    let hard_state = HardState { term: snapshot.at.term, vote: None, commit: snapshot.at.index };
    out.persist.install(snapshot.clone());
    out.persist.hard_state = Some(hard_state);
    Saved::new(hard_state, Some(snapshot), Vec::new()).expect("a snapshot alone has no gap")
}

fn change_between(
    now: &Configuration,
    voters: &BTreeSet<NodeId>,
    learners: &BTreeSet<NodeId>,
) -> Reconfiguration {
    let learners: BTreeSet<NodeId> = learners.difference(voters).copied().collect();
    let before = now.voters.union(&now.learners);
    let stays = |node: &&NodeId| voters.contains(node) || learners.contains(node);
    Reconfiguration {
        removed: before.filter(|node| !stays(node)).copied().collect(),
        voters: voters.difference(&now.voters).copied().collect(),
        learners: learners.difference(&now.learners).copied().collect(),
    }
}

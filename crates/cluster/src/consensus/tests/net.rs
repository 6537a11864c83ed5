//! A network of nodes in memory: messages arrive in the order they were sent, unless a test cuts a node
//! off. Everything a node wants to persist is on its disk before its messages are sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Index;

use placement::Mask;

use crate::consensus::{
    Begin, Committed, Consensus, Entry, LogEntry, MessageBody, Payload, RaftMessage, Ready, Saved,
};
use crate::map::{Boot, Change, ClusterSettings, Endpoints, LogIndex, Map, Member, NodeId, Zone};

pub(super) const A: NodeId = NodeId(1);
pub(super) const B: NodeId = NodeId(2);
pub(super) const C: NodeId = NodeId(3);
pub(super) const D: NodeId = NodeId(4);
pub(super) const E: NodeId = NodeId(5);

/// Contents of a node's `Ready`s since it started.
#[derive(Default)]
pub(super) struct Taken {
    pub(super) snapshots: usize,
    pub(super) reads: Vec<(u64, LogIndex)>,
    pub(super) committed: Vec<(LogIndex, Committed)>,
}

pub(super) struct Net {
    nodes: BTreeMap<NodeId, Consensus>,
    disks: BTreeMap<NodeId, Saved>,
    pub(super) taken: BTreeMap<NodeId, Taken>,
    pub(super) wire: VecDeque<(NodeId, NodeId, RaftMessage)>,
    cut_off: BTreeSet<NodeId>,
    pub(super) lose_snapshots: bool,
    pub(super) seed: u64,
}

impl Index<NodeId> for Net {
    type Output = Consensus;

    fn index(&self, node: NodeId) -> &Consensus {
        &self.nodes[&node]
    }
}

pub(super) fn founding_map(founder: NodeId) -> Map {
    Map::found(member(founder, "founder"), Mask::M000F, ClusterSettings::default())
}

fn member(id: NodeId, name: &str) -> Member {
    Member {
        id,
        boot: Boot(1),
        name: name.to_owned(),
        weight: 1,
        zone: Zone::default(),
        at: Endpoints::default(),
    }
}

/// Returns an entry that differs from others by its name: a member of that name joins.
pub(super) fn entry(name: &str) -> LogEntry {
    let join = Change::Join(member(NodeId(100), name));
    LogEntry { planned_at: None, changes: vec![join] }
}

fn name_of(entry: &LogEntry) -> Option<String> {
    entry.changes.iter().find_map(|change| match change {
        Change::Join(member) => Some(member.name.clone()),
        Change::Leave { .. }
        | Change::Away { .. }
        | Change::Forget(_)
        | Change::Dead(_)
        | Change::AddBackup { .. }
        | Change::Promote { .. }
        | Change::DropBackup { .. }
        | Change::Split(_)
        | Change::Recreate { .. }
        | Change::Set(_)
        | Change::Yield(_)
        | Change::KeptCopiesHandedOver { .. }
        | Change::Write { .. } => None,
    })
}

impl Net {
    pub(super) fn founded_by(founder: NodeId) -> Net {
        Net::seeded(founder, 42)
    }

    pub(super) fn seeded(founder: NodeId, seed: u64) -> Net {
        let mut net = Net {
            nodes: BTreeMap::new(),
            disks: BTreeMap::new(),
            taken: BTreeMap::new(),
            wire: VecDeque::new(),
            cut_off: BTreeSet::new(),
            lose_snapshots: false,
            seed,
        };
        net.start(founder, Begin::Found(founding_map(founder)));
        net
    }

    /// Creates a cluster with these voters, led by the first of them.
    pub(super) fn of<const N: usize>(nodes: [NodeId; N]) -> Net {
        let mut net = Net::founded_by(nodes[0]);
        for node in &nodes[1..] {
            net.start(*node, Begin::Join);
        }
        net.reconfigure(nodes[0], [nodes[0]], nodes);
        net.run(5);
        net.reconfigure(nodes[0], nodes, []);
        net.run(5);
        for node in nodes {
            assert_eq!(net[node].voters(), &nodes.into(), "{node} knows all voters");
            assert_eq!(net[node].leader(), Some(nodes[0]));
        }
        net
    }

    pub(super) fn start(&mut self, node: NodeId, begin: Begin) {
        self.nodes.insert(node, Consensus::new(node, self.seed, begin));
        self.disks.entry(node).or_default();
        self.taken.insert(node, Taken::default());
        self.take(node);
    }

    /// Ends a node's process; it restarts with the state on its disk.
    pub(super) fn restart(&mut self, node: NodeId) {
        let disk = &self.disks[&node];
        let parts = (disk.hard_state(), disk.snapshot().cloned(), disk.entries().to_vec());
        let saved =
            Saved::new(parts.0, parts.1, parts.2).expect("what was written belongs together");
        self.start(node, Begin::Resume(saved));
    }

    pub(super) fn node(&mut self, node: NodeId) -> &mut Consensus {
        self.nodes.get_mut(&node).unwrap()
    }

    pub(super) fn ids(&self) -> Vec<NodeId> {
        self.nodes.keys().copied().collect()
    }

    pub(super) fn disk(&self, node: NodeId) -> &Saved {
        &self.disks[&node]
    }

    pub(super) fn cut_off(&mut self, node: NodeId) {
        self.cut_off.insert(node);
    }

    pub(super) fn heal(&mut self) {
        self.cut_off.clear();
    }

    pub(super) fn propose(&mut self, node: NodeId, name: &str) {
        self.node(node).propose(&entry(name)).unwrap();
        self.take(node);
    }

    pub(super) fn reconfigure<const N: usize, const M: usize>(
        &mut self,
        leader: NodeId,
        voters: [NodeId; N],
        learners: [NodeId; M],
    ) {
        self.node(leader).reconfigure(&voters.into(), &learners.into());
        self.take(leader);
    }

    pub(super) fn leader_among<const N: usize>(&self, nodes: [NodeId; N]) -> Option<NodeId> {
        nodes.into_iter().find(|node| self[*node].is_leader())
    }

    /// Returns the names of the members in the committed entries a node knows, in their order, starting
    /// with its map at the start.
    pub(super) fn names(&self, node: NodeId) -> Vec<String> {
        let disk = &self.disks[&node];
        let decided = disk.entries().iter().filter(|entry| entry.index <= self[node].applied());
        let snapshot = disk.snapshot().and_then(|snapshot| snapshot.map.member(NodeId(100)));
        let earlier = snapshot.map(|member| member.name.clone());
        let named = decided.filter_map(|entry: &Entry| match &entry.payload {
            Payload::Changes(changes) => name_of(changes),
            Payload::Nothing | Payload::Reconfigure(_) => None,
        });
        earlier.into_iter().chain(named).collect()
    }

    /// Runs this many ticks of every node; after each, all messages arrive.
    pub(super) fn run(&mut self, ticks: usize) {
        for _ in 0..ticks {
            self.deliver();
            for node in self.ids() {
                self.node(node).tick();
            }
            self.deliver();
        }
        self.nodes.values().filter_map(Consensus::map).for_each(Map::check_invariants);
    }

    pub(super) fn deliver(&mut self) {
        for node in self.ids() {
            self.take(node);
        }
        while let Some((from, to, message)) = self.wire.pop_front() {
            self.arrive(from, to, &message);
        }
    }

    pub(super) fn arrive(&mut self, from: NodeId, to: NodeId, message: &RaftMessage) {
        let cut = self.cut_off.contains(&from) || self.cut_off.contains(&to);
        let lost = self.lose_snapshots && matches!(message.body, MessageBody::Snapshot(_));
        if cut || lost || !self.nodes.contains_key(&to) {
            return;
        }
        let bytes = postcard::to_allocvec(message).unwrap();
        let read: RaftMessage = postcard::from_bytes(&bytes).unwrap();
        assert_eq!(read, *message, "the wire changes nothing");
        self.node(to).step(from, &read);
        self.take(to);
    }

    /// Carries out a node's `Ready`.
    pub(super) fn take(&mut self, node: NodeId) {
        let Ready { persist, messages, snapshot, committed, reads } = self.node(node).ready();
        self.disks.get_mut(&node).unwrap().write(persist);
        self.wire.extend(messages.into_iter().map(|(to, message)| (node, to, message)));
        let taken = self.taken.get_mut(&node).unwrap();
        taken.snapshots += usize::from(snapshot.is_some());
        taken.reads.extend(reads);
        taken.committed.extend(committed);
    }
}

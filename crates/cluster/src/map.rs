//! The map: members, buckets, who holds them and the settings, at one epoch. The same on every node.
//!
//! It changes only by applying a `Change` from the log (`change.rs`, `apply.rs`), so nodes that have
//! applied the same entries have the same map. A clone is cheap: the parts are shared until one is
//! changed, so that a node can publish every epoch to its threads as an immutable snapshot.

mod ids; //      Ids, epochs and the like: small types that cannot be mixed up.
mod member; //   A node as the map knows it, and what it holds.
mod settings; // What is the same for the whole cluster and may be changed while it runs.
mod bucket; //   A bucket: its hashmask and its holders.
mod anew; //     Buckets that began again without what they had.
mod away; //     Nodes that are away for a while, and their places.
mod change; //   Every change there is.
mod apply; //    What each change does.
mod chunked; //  A list whose clones share what is equal.
mod written; //  The map written down, and read again.
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use placement::{Hashmask, Mask, Slot};
use serde::{Deserialize, Serialize};

pub use away::Away;
pub use bucket::{Bucket, Holders};
pub use change::{Change, DropReason, Outcome, Refusal, Source};
pub use ids::{Boot, ClusterId, Epoch, Generation, LogIndex, NodeId, Peer};
pub use member::{Endpoints, Load, Member, Zone};
pub use settings::{Ack, CrossSlot, Setting, Settings, SplitLargerThan};
pub use written::NoMap;

use chunked::Chunked;
use written::Written;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub struct Map {
    generation: Generation,
    /// The generation this one has ended in favour of. Nothing changes any more after that.
    yielded_to: Option<Generation>,
    /// Raised by every change that was not stale.
    epoch: Epoch,
    /// The epoch of the last change that was not a step of balancing. The planner makes its plan at a
    /// basis and keeps to it until the next one, so that all nodes follow one and the same plan.
    basis: Epoch,
    settings: Arc<Settings>,
    /// In the order of their ids.
    members: Arc<Vec<Member>>,
    /// What each member holds: as many as `members`, in the same order.
    loads: Vec<Load>,
    /// With which entry of the log each process came in, in the order of `members`. One that was
    /// taken off and, by a request that was under way for long, came in again is told apart by it.
    since: Vec<LogIndex>,
    /// In the order of their hashmasks.
    buckets: Chunked<Bucket>,
    /// For every slot, the place of its bucket in `buckets`.
    by_slot: Arc<Vec<u16>>,
    /// For every bucket without a holder, those that were in sync last.
    lost: Arc<BTreeMap<Hashmask, Holders>>,
    /// For every bucket that began again without it, those who may still bring what it had.
    anew: Arc<BTreeMap<Hashmask, Holders>>,
    /// Members before a takeover that have not come back. As long as there are any, another side of
    /// the cluster may have gone on as well.
    estranged: Arc<Vec<Member>>,
    /// Whose places are kept.
    away: Arc<BTreeMap<NodeId, Away>>,
}

impl Map {
    /// The first node of a cluster owns all buckets; there are no backups.
    pub fn found(founder: Member, mask: Mask, settings: Settings) -> Map {
        let holders = Holders::from_slice(&[founder.id]);
        let reign = LogIndex::FIRST;
        let bucket =
            |hashmask| Bucket { hashmask, epoch: Epoch::FIRST, reign, holders: holders.clone() };
        let mut map = Map {
            generation: Generation { counter: 1, founder: founder.id },
            yielded_to: None,
            epoch: Epoch::FIRST,
            basis: Epoch::FIRST,
            settings: Arc::new(settings),
            loads: vec![Load::default()],
            since: vec![LogIndex::FIRST],
            members: Arc::new(vec![founder]),
            buckets: Chunked::default(),
            by_slot: Arc::default(),
            lost: Arc::default(),
            anew: Arc::default(),
            estranged: Arc::default(),
            away: Arc::default(),
        };
        map.set_buckets(Hashmask::all(mask).map(bucket).collect());
        map
    }

    pub fn generation(&self) -> Generation {
        self.generation
    }

    pub fn yielded_to(&self) -> Option<Generation> {
        self.yielded_to
    }

    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub fn basis(&self) -> Epoch {
        self.basis
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// All members, in the order of their ids.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    pub fn member(&self, node: NodeId) -> Option<&Member> {
        self.place_of(node).map(|place| &self.members[place])
    }

    /// With which entry of the log this process became a member, if it is one.
    pub fn member_since(&self, peer: Peer) -> Option<LogIndex> {
        let place = self.place_of(peer.id)?;
        (self.members[place].boot == peer.boot).then(|| self.since[place])
    }

    /// What each member holds, in the order of `members`.
    pub fn loads(&self) -> &[Load] {
        &self.loads
    }

    /// What a node holds. Nothing, if it is no member.
    pub fn load(&self, node: NodeId) -> Load {
        self.place_of(node).map(|place| self.loads[place]).unwrap_or_default()
    }

    /// The place of a node in `members` and `loads`.
    pub fn place_of(&self, node: NodeId) -> Option<usize> {
        self.members.binary_search_by_key(&node, |member| member.id).ok()
    }

    /// All buckets, in the order of their hashmasks.
    pub fn buckets(&self) -> impl ExactSizeIterator<Item = &Bucket> {
        self.buckets.iter()
    }

    pub fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// The bucket at a place of `buckets`.
    pub fn bucket_at(&self, place: usize) -> &Bucket {
        self.buckets.get(place)
    }

    /// The bucket a slot belongs to. There is always exactly one.
    pub fn bucket_of(&self, slot: Slot) -> &Bucket {
        self.buckets.get(usize::from(self.by_slot[slot.index()]))
    }

    /// The bucket with exactly this hashmask, unless it was split or never was.
    pub fn bucket(&self, hashmask: Hashmask) -> Option<&Bucket> {
        self.place_of_bucket(hashmask).map(|place| self.buckets.get(place))
    }

    /// Where in `buckets` the bucket with exactly this hashmask is.
    pub fn place_of_bucket(&self, hashmask: Hashmask) -> Option<usize> {
        let place = usize::from(self.by_slot[usize::from(hashmask.slots().start)]);
        (self.buckets.get(place).hashmask == hashmask).then_some(place)
    }

    /// Who was in sync last with a bucket that has no holder left.
    pub fn lost(&self) -> impl Iterator<Item = (Hashmask, &[NodeId])> {
        self.lost.iter().map(|(hashmask, holders)| (*hashmask, holders.as_slice()))
    }

    /// Members before a takeover that have not come back since: where to look for another side of the
    /// cluster.
    pub fn estranged(&self) -> &[Member] {
        &self.estranged
    }

    /// Whether another side of the cluster may have gone on since this one took over.
    pub fn is_forked(&self) -> bool {
        !self.estranged.is_empty()
    }

    /// Whether there may be a history of the bucket elsewhere that parted from this one.
    pub fn is_apart(&self, bucket: Hashmask) -> bool {
        self.is_forked() || self.has_begun_anew(bucket)
    }

    /// Whether there is any such bucket.
    pub fn recalls_partings(&self) -> bool {
        self.is_forked() || !self.anew.is_empty()
    }

    /// How many copies of each bucket there should be: a node can hold only one.
    pub fn copies_wanted(&self) -> usize {
        let weighted = self.members.iter().filter(|member| member.weight > 0).count();
        weighted.min(1 + usize::from(self.settings.backups))
    }

    /// The mask of the largest buckets.
    pub fn coarsest_mask(&self) -> Mask {
        self.buckets.get(0).hashmask.mask()
    }

    fn set_buckets(&mut self, mut buckets: Vec<Bucket>) {
        buckets.sort_unstable_by_key(|bucket| bucket.hashmask);
        let mut by_slot = vec![0; usize::from(Slot::COUNT)];
        for (place, bucket) in (0..).zip(&buckets) {
            for number in bucket.hashmask.slots() {
                by_slot[usize::from(number)] = place;
            }
        }
        self.by_slot = Arc::new(by_slot);
        self.buckets = Chunked::new(&buckets);
        self.count_loads();
    }

    /// Counts again what every member holds.
    fn count_loads(&mut self) {
        for load in &mut self.loads {
            (load.primaries, load.backups) = (0, 0);
        }
        for place in 0..self.buckets.len() {
            let holders = self.buckets.get(place).holders.clone();
            for (rank, holder) in holders.iter().enumerate() {
                let member = self.place_of(*holder).expect("a holder is a member");
                let load = &mut self.loads[member];
                *(if rank == 0 { &mut load.primaries } else { &mut load.backups }) += 1;
            }
        }
    }

    /// What must be true of every map. For tests and the simulator: it looks at everything.
    pub fn check_invariants(&self) {
        assert_eq!(self.members.len(), self.loads.len());
        assert!(self.members.is_sorted_by(|a, b| a.id < b.id), "members are in order, each once");
        for slot in Slot::all() {
            let bucket = self.bucket_of(slot);
            assert!(bucket.hashmask.slots().contains(&slot.number()), "{slot} is in its bucket");
        }
        let slots: usize = self.buckets().map(|bucket| bucket.hashmask.slots().len()).sum();
        assert_eq!(slots, usize::from(Slot::COUNT), "a slot is covered by exactly one bucket");
        for bucket in self.buckets() {
            for (rank, holder) in bucket.holders.iter().enumerate() {
                assert!(self.member(*holder).is_some(), "{holder} holds {bucket:?} as a member");
                assert!(!bucket.holders[..rank].contains(holder), "{holder} holds {bucket:?} once");
            }
            assert_eq!(bucket.holders.is_empty(), self.lost.contains_key(&bucket.hashmask));
        }
        for bucket in self.anew.keys() {
            assert!(self.bucket(*bucket).is_some(), "{bucket} began again, which is none");
        }
        for bucket in self.away.values().flat_map(|away| &away.buckets) {
            assert!(self.bucket(*bucket).is_some(), "a place in {bucket} is kept, which is none");
        }
        let mut counted = self.clone();
        counted.count_loads();
        assert_eq!(counted.loads, self.loads, "loads are what is held");
    }
}

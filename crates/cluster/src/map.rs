//! The map: members, buckets, their holders and the settings, at one epoch. The same on every node.
//!
//! It changes only by applying a `Change` from the log (`change.rs`, `apply.rs`), so nodes that have
//! applied the same entries have the same map. A clone is cheap: the parts are shared until one is
//! changed, so that a node can publish every epoch to its threads as an immutable snapshot.

mod ids; //      Ids, epochs and the like: distinct small types that cannot be confused.
mod member; //   A member, and its load.
mod settings; // Cluster-wide settings that can change at run time.
mod documents; // Named documents, such as the settings of all nodes.
mod bucket; //   A bucket: its hashmask and its holders.
mod anew; //     Buckets that were recreated without their former data.
mod away; //     Nodes that are away for a while, and their reserved places.
mod change; //   All possible changes.
mod apply; //    The effect of each change.
mod journal; //  The differences between maps, for clients that follow them.
mod chunked; //  A list whose clones share equal chunks.
mod written; //  Serialization of the map.
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use placement::{Hashmask, Mask, Slot};
use serde::{Deserialize, Serialize};

pub use away::Away;
pub use bucket::{Bucket, Holders};
pub use change::{Change, ChangeOutcome, ChangeRefusal, DropReason, LeaveWay, RecreateSource};
pub use documents::{
    DOCUMENT_BYTES_MAX, DOCUMENT_NAME_BYTES_MAX, DOCUMENTS_BYTES_MAX, Document, DocumentError,
    DocumentWrite, Documents, SETTING_PREFIX,
};
pub use ids::{Boot, ClusterId, Epoch, Generation, LogIndex, NodeId, Peer};
pub use journal::{MapJournal, MapStep, StepError};
pub use member::{Endpoints, Load, Member, Zone};
pub use settings::{Ack, ClusterSettings, CrossSlot, Setting, SplitLargerThan};
pub use written::NoMap;

use chunked::Chunked;
use written::WrittenMap;

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(into = "WrittenMap", try_from = "WrittenMap")]
pub struct Map {
    generation: Generation,
    /// The generation in favour of which this one has ended. Nothing changes any more after that.
    yielded_to: Option<Generation>,
    /// Raised by every change that was not stale.
    epoch: Epoch,
    /// The epoch of the last change that was not a step of balancing. The planner makes its plan at a
    /// basis and keeps to it until the next one, so that all nodes follow one and the same plan.
    basis: Epoch,
    settings: Arc<ClusterSettings>,
    /// Ordered by id.
    members: Arc<Vec<Member>>,
    /// Load of each member: as many as `members`, in the same order.
    loads: Vec<Load>,
    /// Log index with which each process joined, in the order of `members`. It distinguishes a process
    /// that was removed and re-added by a delayed join request.
    since: Vec<LogIndex>,
    /// Ordered by hashmask.
    buckets: Chunked<Bucket>,
    /// For every slot, the place of its bucket in `buckets`.
    by_slot: Arc<Vec<u16>>,
    /// For every bucket without a holder, the nodes that were in sync last.
    lost: Arc<BTreeMap<Hashmask, Holders>>,
    /// For every bucket that was recreated without its data, the nodes that may still return with it.
    anew: Arc<BTreeMap<Hashmask, Holders>>,
    /// Members before a takeover that have not come back. As long as there are any, another side of the
    /// cluster may have gone on as well (split brain).
    partitioned_members: Arc<Vec<Member>>,
    /// Nodes that are away and have places reserved.
    away: Arc<BTreeMap<NodeId, Away>>,
    documents: Arc<Documents>,
}

impl Map {
    /// Creates the map of a new cluster: the first node owns all buckets; there are no backups.
    pub fn found(founder: Member, mask: Mask, settings: ClusterSettings) -> Map {
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
            partitioned_members: Arc::default(),
            away: Arc::default(),
            documents: Arc::default(),
        };
        map.set_buckets(Hashmask::all(mask).map(bucket).collect());
        map
    }

    /// Gives the map of a new cluster its first documents.
    #[must_use]
    pub fn with_documents(mut self, documents: Documents) -> Map {
        self.documents = Arc::new(documents);
        self
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

    pub fn settings(&self) -> &ClusterSettings {
        &self.settings
    }

    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Returns all members, ordered by id.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    pub fn member(&self, node: NodeId) -> Option<&Member> {
        self.place_of(node).map(|place| &self.members[place])
    }

    /// Returns the log index with which this process became a member, if it is one.
    pub fn member_since(&self, peer: Peer) -> Option<LogIndex> {
        let place = self.place_of(peer.id)?;
        (self.members[place].boot == peer.boot).then(|| self.since[place])
    }

    /// Returns the load of each member, in the order of `members`.
    pub fn loads(&self) -> &[Load] {
        &self.loads
    }

    /// Returns the load of a node; zero if it is not a member.
    pub fn load(&self, node: NodeId) -> Load {
        self.place_of(node).map(|place| self.loads[place]).unwrap_or_default()
    }

    /// Returns the place of a node in `members` and `loads`.
    pub fn place_of(&self, node: NodeId) -> Option<usize> {
        self.members.binary_search_by_key(&node, |member| member.id).ok()
    }

    /// Returns all buckets, ordered by hashmask.
    pub fn buckets(&self) -> impl ExactSizeIterator<Item = &Bucket> {
        self.buckets.iter()
    }

    /// Returns the places in `buckets` of all buckets, in the order of their slots.
    pub fn places_by_slot(&self) -> impl Iterator<Item = usize> {
        let mut previous = None;
        self.by_slot.iter().filter_map(move |place| {
            let is_next = previous.replace(*place) != Some(*place);
            is_next.then_some(usize::from(*place))
        })
    }

    pub fn bucket_count(&self) -> usize {
        self.buckets.len()
    }

    /// Returns the bucket at a place of `buckets`.
    pub fn bucket_at(&self, place: usize) -> &Bucket {
        self.buckets.get(place)
    }

    /// Returns the bucket a slot belongs to. There is always exactly one.
    pub fn bucket_of(&self, slot: Slot) -> &Bucket {
        self.buckets.get(usize::from(self.by_slot[slot.index()]))
    }

    /// Returns the bucket with exactly this hashmask, unless it was split or never existed.
    pub fn bucket(&self, hashmask: Hashmask) -> Option<&Bucket> {
        self.place_of_bucket(hashmask).map(|place| self.buckets.get(place))
    }

    /// Returns the place in `buckets` of the bucket with exactly this hashmask.
    pub fn place_of_bucket(&self, hashmask: Hashmask) -> Option<usize> {
        let place = usize::from(self.by_slot[usize::from(hashmask.slots().start)]);
        (self.buckets.get(place).hashmask == hashmask).then_some(place)
    }

    /// Returns the buckets without a holder, each with the nodes that were in sync last.
    pub fn lost(&self) -> impl Iterator<Item = (Hashmask, &[NodeId])> {
        self.lost.iter().map(|(hashmask, holders)| (*hashmask, holders.as_slice()))
    }

    /// Returns the members before a takeover that have not come back since: the addresses at which to
    /// look for another side of the cluster.
    pub fn partitioned_members(&self) -> &[Member] {
        &self.partitioned_members
    }

    /// Returns whether another side of the cluster may have gone on since this one took over.
    pub fn is_forked(&self) -> bool {
        !self.partitioned_members.is_empty()
    }

    /// Returns whether another node may have a history of the bucket that diverged from this one.
    pub fn is_apart(&self, bucket: Hashmask) -> bool {
        self.is_forked() || self.has_begun_anew(bucket)
    }

    /// Returns whether there is any such bucket.
    pub fn keeps_divergence(&self) -> bool {
        self.is_forked() || !self.anew.is_empty()
    }

    /// Returns the number of copies each bucket should have. A node can hold only one.
    pub fn copies_wanted(&self) -> usize {
        let weighted = self.members.iter().filter(|member| member.weight > 0).count();
        weighted.min(1 + usize::from(self.settings.backups))
    }

    /// Returns the mask of the largest buckets.
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

    /// Recounts the load of every member.
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

    /// Asserts the invariants of every map. Builds with debug assertions check each map that a node adopts.
    pub fn check_invariants(&self) {
        assert_eq!(self.members.len(), self.loads.len());
        assert!(self.members.is_sorted_by(|a, b| a.id < b.id), "members are in order, each once");
        for bucket in self.buckets() {
            let slots = bucket.hashmask.slots();
            for slot in [slots.start, slots.end - 1].into_iter().filter_map(Slot::new) {
                assert_eq!(
                    self.bucket_of(slot).hashmask,
                    bucket.hashmask,
                    "{slot} is in its bucket"
                );
            }
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

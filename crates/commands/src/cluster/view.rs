//! The map as one node sees it: its own slots, and the owners of all others. Created again for every change of the
//! map and shared by all threads, so that replies derived from it are written only once.

use std::sync::Arc;

use cluster::map::{CrossSlot, LogIndex, Map, Member, NodeId};
use placement::Slot;

use super::roles;
use super::topology::Topology;
use crate::Error;

const WORDS: usize = Slot::COUNT as usize / 64;

pub struct View {
    map: Arc<Map>,
    me: NodeId,
    /// One bit per slot: set if this node is its primary.
    mine: Box<[u64; WORDS]>,
    serves_all: bool,
    pub(super) topology: Topology,
}

/// The owner of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route<'a> {
    /// This node is its primary.
    Mine,
    /// Another node is the primary; this node may hold a copy.
    Elsewhere { primary: &'a Member, held: LocalCopy },
    /// All its holders are gone.
    Nobody,
}

/// The state of this node's copy of a slot whose primary is another node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocalCopy {
    AsBackup,
    NotAtAll,
}

impl View {
    pub fn new(map: Arc<Map>, me: NodeId) -> View {
        let mut mine = Box::new([0; WORDS]);
        let mut count = 0;
        for bucket in map.buckets().filter(|bucket| bucket.primary() == Some(me)) {
            for slot in bucket.hashmask.slots() {
                mine[usize::from(slot / 64)] |= 1 << (slot % 64);
                count += 1;
            }
        }
        let serves_all = count == Slot::COUNT;
        View { map, me, mine, serves_all, topology: Topology::default() }
    }

    pub fn map(&self) -> &Arc<Map> {
        &self.map
    }

    pub fn me(&self) -> NodeId {
        self.me
    }

    /// Returns this node, if it is a member: a node that is joining or has left is not in the map.
    pub fn myself(&self) -> Option<&Member> {
        self.map.member(self.me)
    }

    /// Returns whether this node serves every slot, so that no lookup is needed.
    #[inline]
    pub fn serves_all(&self) -> bool {
        self.serves_all
    }

    /// Returns whether this node is the primary of a slot.
    #[inline]
    pub fn is_mine(&self, slot: Slot) -> bool {
        let index = slot.index();
        self.serves_all || self.mine[index / 64] >> (index % 64) & 1 != 0
    }

    /// Returns whether the keys of one command must share a slot: otherwise they may be on different nodes, now or
    /// soon.
    pub fn one_slot_only(&self) -> bool {
        match self.map.settings().cross_slot {
            CrossSlot::Never => true,
            CrossSlot::OneMember => self.map.members().len() > 1,
        }
    }

    /// Returns the log index of the change that promoted the slot's present primary.
    pub fn reign(&self, slot: Slot) -> LogIndex {
        self.map.bucket_of(slot).reign
    }

    pub fn route(&self, slot: Slot) -> Route<'_> {
        if self.is_mine(slot) {
            return Route::Mine;
        }
        let bucket = self.map.bucket_of(slot);
        let primary = bucket.primary().and_then(|primary| self.map.member(primary));
        let held =
            if bucket.is_held_by(self.me) { LocalCopy::AsBackup } else { LocalCopy::NotAtAll };
        primary.map_or(Route::Nobody, |primary| Route::Elsewhere { primary, held })
    }

    /// Returns whether this node holds a backup copy of a slot.
    pub fn is_backed_up_here(&self, slot: Slot) -> bool {
        matches!(self.route(slot), Route::Elsewhere { held: LocalCopy::AsBackup, .. })
    }

    /// Returns whether this node backs up all slots of every primary of which it backs up any: then a walk over its
    /// backup copies finds all keys of those primaries.
    pub fn has_whole_shards(&self) -> bool {
        let compute = || roles::has_whole_shards(&self.map, self.me);
        *self.topology.has_whole_shards.get_or_init(compute)
    }

    /// Returns the error reply for a client whose command cannot run here.
    #[cold]
    pub fn redirection(&self, slot: Slot) -> Error {
        if self.is_mine(slot) {
            // The caller decided by another version of the map.
            return Error::fixed("TRYAGAIN the slot is being handed over; retry");
        }
        self.moved(slot)
    }

    /// Returns the error reply that names the ordinary port of the slot's primary, which may be this node.
    #[cold]
    pub fn moved(&self, slot: Slot) -> Error {
        let primary = self.map.bucket_of(slot).primary();
        let Some(primary) = primary.and_then(|primary| self.map.member(primary)) else {
            return Error::fixed("CLUSTERDOWN Hash slot not served");
        };
        let (host, port) = (&primary.at.host, primary.at.client);
        Error::new(format!("MOVED {slot} {host}:{port}"))
    }
}

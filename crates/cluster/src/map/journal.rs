//! The changes of a map as clients are told of them: which members and buckets differ from an earlier epoch.
//!
//! A step is the difference of two maps, however many changes lie between them, and describes members and buckets as
//! they are at its end. So steps can be joined, and a client that missed some asks for one step from its own epoch.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use placement::{Hashmask, Slot};

use super::{Bucket, Epoch, Generation, Map, Member, NodeId};

/// Maximum number of names of former members that are remembered.
const DEPARTURES_MAX: usize = 4_096;

/// The epoch at which each part of a map changed last. Its size is bounded by that of the map.
pub struct MapJournal {
    map: Arc<Map>,
    /// The oldest epoch from which a step can be made.
    known_since: Epoch,
    /// The end of the last step that changed anything for clients.
    told: Epoch,
    /// Buckets that have changed since `known_since`, by their first slots.
    buckets: BTreeMap<u16, Epoch>,
    members: BTreeMap<NodeId, Epoch>,
    /// The oldest first.
    departures: VecDeque<Departure>,
}

struct Departure {
    name: String,
    at: Epoch,
}

/// The difference between two epochs of a map.
#[derive(Clone, Debug)]
pub struct MapStep {
    /// The map at the end of the step.
    pub map: Arc<Map>,
    /// The epoch that the step follows on.
    pub after: Epoch,
    /// Names that no member has any more.
    pub gone: Vec<String>,
    /// Members that are new, or have another name or address.
    pub members: Vec<NodeId>,
    /// Buckets that are new, or have another epoch or other holders.
    pub buckets: Vec<Hashmask>,
}

/// The reason no step can be made from an epoch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StepError {
    /// Changes are known only since a later epoch.
    TooOld { known_since: Epoch },
    /// This map has not reached that epoch yet.
    Ahead { epoch: Epoch },
    /// That epoch belongs to another history of the cluster.
    OtherHistory { history: String },
}

impl MapJournal {
    pub fn new(map: Arc<Map>) -> MapJournal {
        MapJournal {
            known_since: map.epoch(),
            told: map.epoch(),
            buckets: BTreeMap::new(),
            members: BTreeMap::new(),
            departures: VecDeque::new(),
            map,
        }
    }

    pub fn map(&self) -> &Arc<Map> {
        &self.map
    }

    /// Goes on to the next map. Returns the step to it from the last step returned, unless nothing has changed for
    /// clients.
    pub fn follow(&mut self, map: &Arc<Map>) -> Option<MapStep> {
        let before = core::mem::replace(&mut self.map, Arc::clone(map));
        let epoch = map.epoch();
        if epoch < before.epoch() || !map.generation().is_one_with(before.generation()) {
            self.forget(epoch); // Epochs of two histories cannot be compared.
        }
        let gone = gone_names(&before, map);
        let members = changed_members(&before, map);
        let buckets = changed_buckets(&before, map, &members);
        if gone.is_empty() && members.is_empty() && buckets.is_empty() {
            return None;
        }
        for name in &gone {
            self.departures.push_back(Departure { name: name.clone(), at: epoch });
        }
        if self.departures.len() > DEPARTURES_MAX {
            let too_many = self.departures.len() - DEPARTURES_MAX;
            let forgotten = self.departures.drain(..too_many).map(|it| it.at).max();
            self.known_since = self.known_since.max(forgotten.unwrap_or(self.known_since));
        }
        self.members.retain(|node, _| map.member(*node).is_some());
        self.members.extend(members.iter().map(|node| (*node, epoch)));
        self.buckets.extend(buckets.iter().map(|bucket| (bucket.slots().start, epoch)));
        let after = core::mem::replace(&mut self.told, epoch);
        Some(MapStep { map: Arc::clone(map), after, gone, members, buckets })
    }

    /// Returns the step from an epoch to the present map. Epoch 0 is before everything: that step has the whole map.
    /// `history` is the one that the epoch belongs to, if the caller knows it.
    pub fn since(&self, epoch: Epoch, history: Option<&str>) -> Result<MapStep, StepError> {
        let map = Arc::clone(&self.map);
        if epoch == Epoch(0) {
            let members = map.members().iter().map(|member| member.id).collect();
            let buckets = map.buckets().map(|bucket| bucket.hashmask).collect();
            return Ok(MapStep { map, after: epoch, gone: Vec::new(), members, buckets });
        }
        let own = self.map.generation().history();
        if history.is_some_and(|history| history != own) {
            return Err(StepError::OtherHistory { history: own });
        }
        if epoch < self.known_since {
            return Err(StepError::TooOld { known_since: self.known_since });
        }
        if epoch > map.epoch() {
            return Err(StepError::Ahead { epoch: map.epoch() });
        }
        let names: BTreeSet<&str> = map.members().iter().map(|member| &*member.name).collect();
        let departures = self.departures.iter().filter(|it| it.at > epoch);
        let gone = departures.map(|it| it.name.clone()).filter(|name| !names.contains(&**name));
        let gone = gone.collect();
        let members = self.members.iter().filter(|(_, at)| **at > epoch).map(|(node, _)| *node);
        let members = members.collect();
        let first_slots = self.buckets.iter().filter(|(_, at)| **at > epoch).map(|(slot, _)| *slot);
        let bucket = |slot| map.bucket_of(Slot::new(slot).expect("a slot of the map")).hashmask;
        let buckets = first_slots.map(bucket).collect();
        Ok(MapStep { map, after: epoch, gone, members, buckets })
    }

    fn forget(&mut self, known_since: Epoch) {
        self.known_since = known_since;
        self.buckets.clear();
        self.members.clear();
        self.departures.clear();
    }
}

impl Generation {
    /// Returns the name of the history that this generation belongs to.
    pub fn history(self) -> String {
        let Generation { counter, founder } = self.joined();
        format!("{counter}-{:016x}", founder.0)
    }
}

fn gone_names(before: &Map, map: &Map) -> Vec<String> {
    if Arc::ptr_eq(&before.members, &map.members) {
        return Vec::new();
    }
    let names: BTreeSet<&str> = map.members().iter().map(|member| &*member.name).collect();
    let gone = before.members().iter().filter(|member| !names.contains(&*member.name));
    gone.map(|member| member.name.clone()).collect()
}

fn changed_members(before: &Map, map: &Map) -> Vec<NodeId> {
    if Arc::ptr_eq(&before.members, &map.members) {
        return Vec::new();
    }
    let is_same = |member: &Member, was: &Member| {
        (&was.name, &was.at.host, was.at.client)
            == (&member.name, &member.at.host, member.at.client)
    };
    let is_known =
        |member: &&Member| before.member(member.id).is_some_and(|was| is_same(member, was));
    map.members().iter().filter(|member| !is_known(member)).map(|member| member.id).collect()
}

/// Returns the buckets that are told differently in the two maps. Holders are told by their names.
fn changed_buckets(before: &Map, map: &Map, changed_members: &[NodeId]) -> Vec<Hashmask> {
    let name_in = |map: &Map, node| map.member(node).map(|member| member.name.clone());
    let is_renamed = |node: &&NodeId| name_in(before, **node) != name_in(map, **node);
    let renamed: BTreeSet<NodeId> = changed_members.iter().filter(is_renamed).copied().collect();
    let is_changed = |bucket: &&Bucket| {
        let is_like = |was: &Bucket| was.epoch == bucket.epoch && was.holders == bucket.holders;
        !before.bucket(bucket.hashmask).is_some_and(is_like)
            || bucket.holders.iter().any(|holder| renamed.contains(holder))
    };
    if renamed.is_empty() {
        let unshared = map.buckets.unshared(&before.buckets);
        unshared.filter(is_changed).map(|bucket| bucket.hashmask).collect()
    } else {
        map.buckets().filter(is_changed).map(|bucket| bucket.hashmask).collect()
    }
}

#[cfg(test)]
mod tests;

//! Invariants at every step, checked by an observer that sees all nodes and the true time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cluster::Moment;
use cluster::control::MapChanged;
use cluster::data::Plane;
use cluster::map::{
    Change, ChangeOutcome, DropReason, Generation, LogIndex, Map, NodeId, RecreateSource,
};
use placement::Slot;
use sim_engine::Network;
use store::digest_of;

use super::clients::{BRIEF, KEYS, LOCK};
use super::leaving::leaves_copies;
use super::node::{Node, Written};
use super::world::World;

/// Time that a node must have run and been reachable to count as well: several leases.
const LONG_WELL: Duration = Duration::from_secs(5);
/// Lost messages of a thousand; with fewer than this, never all messages of a lease are lost.
const FEW_LOST: u64 = 10;

#[derive(Default)]
pub(super) struct Checkers {
    /// The map at every index of the log, as the first node that reached it had it; of every generation.
    maps: BTreeMap<(Generation, LogIndex), Arc<Map>>,
    was_new: bool,
    /// Slots of buckets that were recreated without all their data: nothing is promised for these.
    lost: BTreeSet<u16>,
    /// True if some bucket had no holder at some time.
    pub was_unheld: bool,
    pub checked: u64,
    /// By generation, the last acknowledged write of each slot, and the reign it was made in.
    acknowledged: BTreeMap<(Generation, Slot), Written>,
}

impl Checkers {
    /// Returns whether all copies of some bucket were gone at some time.
    pub(super) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Returns whether all copies of the key's bucket were gone at some time.
    pub(super) fn is_lost(&self, key: &str) -> bool {
        self.lost.contains(&Slot::of(key.as_bytes()).number())
    }

    /// Returns whether the map seen last was seen for the first time.
    pub(super) fn is_new(&self) -> bool {
        self.was_new
    }

    /// Checks a map that a node has begun to follow.
    pub(super) fn see_map(
        &mut self,
        nodes: &BTreeMap<NodeId, Node>,
        changed: &MapChanged,
    ) -> Result<(), String> {
        let MapChanged { map, index, .. } = changed;
        let history = map.generation().joined();
        if let Some(known) = self.maps.get(&(history, *index)) {
            self.was_new = false;
            return if known == map { Ok(()) } else { Err(format!("two maps at {index}")) };
        }
        self.was_new = true;
        self.was_unheld |= map.lost().next().is_some();
        self.lost.extend(map.begun_anew().flat_map(|(bucket, _)| bucket.slots()));
        covers_once(map)?;
        let before = self.maps.range((history, LogIndex(0))..(history, *index)).next_back();
        let before = before.map(|(_, map)| map);
        if let Some(before) = before {
            keeps_copies(before, changed)?;
            leaves_copies(before, changed)?;
        }
        self.has_what_is_acknowledged(nodes, changed)?;
        self.maps.insert((history, *index), Arc::clone(map));
        Ok(())
    }

    /// Checks that a node that became a backup, or brought a bucket back, has all acknowledged writes.
    fn has_what_is_acknowledged(
        &self,
        nodes: &BTreeMap<NodeId, Node>,
        changed: &MapChanged,
    ) -> Result<(), String> {
        let Some(entry) = &changed.entry else { return Ok(()) };
        for (change, outcome) in entry.changes.iter().zip(&changed.outcomes) {
            let (Change::AddBackup { bucket, node, .. }
            | Change::Recreate { bucket, node, from: RecreateSource::OwnData, .. }) = change
            else {
                continue;
            };
            let member = changed.map.member(*node).map(cluster::map::Member::peer);
            let node = nodes.get(node).filter(|it| Some(it.me) == member);
            let (Some(node), ChangeOutcome::Applied) = (node, outcome) else { continue };
            let inside = |written: &&Written| {
                let slot = written.slot.number();
                bucket.slots().contains(&slot) && !self.lost.contains(&slot)
            };
            let history = changed.map.generation().joined();
            let known = self.acknowledged.iter().filter(|((of, _), _)| *of == history);
            for written in known.map(|(_, written)| written).filter(inside) {
                let has = node.plane.with_slot(written.slot, |state| state.table().version());
                if has < written.version {
                    let (slot, id) = (written.slot, node.me.id);
                    return Err(format!(
                        "{id} is made a holder and lacks a write to slot {slot}: it is at {has:?}, \
                         acknowledged was {written:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Checks, at rest, that all copies of a key's slot are equal.
    pub(super) fn compare_copies(&self, nodes: &BTreeMap<NodeId, Node>) -> Result<(), String> {
        let Some((_, map)) = self.maps.last_key_value() else { return Ok(()) };
        for slot in KEYS.iter().chain([&BRIEF, &LOCK]).map(|key| Slot::of(key.as_bytes())) {
            let holders = map.bucket_of(slot).holders.iter();
            let content = |node: &Node| {
                node.plane.with_slot(slot, |it| (it.table().version(), digest_of(it.table())))
            };
            let copies = holders.filter_map(|id| Some((id, content(nodes.get(id)?))));
            let copies: Vec<_> = copies.collect();
            if let Some(other) = copies.iter().find(|(_, content)| *content != copies[0].1) {
                let (first, other) = (copies[0].0, other.0);
                return Err(format!("slot {slot} is not the same on {first} and on {other}"));
            }
        }
        Ok(())
    }

    /// Checks a write that this node has acknowledged: it must be in every in-sync copy.
    pub(super) fn see_acknowledged(
        &mut self,
        nodes: &BTreeMap<NodeId, Node>,
        by: NodeId,
        written: Written,
    ) -> Result<(), String> {
        self.checked += 1;
        let Written { slot, version, reign, copies } = written;
        let Some(map) = nodes.get(&by).and_then(Node::map) else { return Ok(()) };
        if copies < usize::from(map.settings().min_copies) {
            return Err(format!("a write to slot {slot} was made on {copies} copies only"));
        }
        let history = map.generation().joined();
        let last = self.acknowledged.entry((history, slot)).or_insert(written);
        if last.version < version {
            *last = written;
        }
        let bucket = map.bucket_of(slot);
        if bucket.reign != reign {
            return Ok(()); // All in-sync copies of that reign had it; other checks cover the present reign.
        }
        // The log may be ahead: a copy that was dropped there no longer counts.
        let all = (history, LogIndex(0))..=(history, LogIndex(u64::MAX));
        let latest = self.maps.range(all).next_back().map(|(_, map)| map.bucket_of(slot));
        let counts = |id: &&NodeId| latest.is_some_and(|bucket| bucket.holders.contains(id));
        let holders = bucket.holders.iter().filter(counts);
        for holder in holders.filter_map(|id| nodes.get(id)) {
            let member = map.member(holder.me.id).map(cluster::map::Member::peer);
            let has = holder.plane.with_slot(slot, |state| state.table().version());
            if member == Some(holder.me) && has < version {
                let text = "a write is acknowledged that an in-sync copy does not have";
                return Err(format!("{text}: slot {slot} by {by}, not on {}", holder.me.id));
            }
        }
        Ok(())
    }

    /// Checks that at most one node answers for a slot at any moment.
    pub(super) fn look(
        &mut self,
        nodes: &BTreeMap<NodeId, Node>,
        moved: NodeId,
        now: Moment,
    ) -> Result<(), String> {
        let Some(node) = nodes.get(&moved) else { return Ok(()) };
        for slot in KEYS.iter().map(|key| Slot::of(key.as_bytes())) {
            if !node.serves(slot, now) {
                continue;
            }
            let other = nodes
                .values()
                .find(|it| it.me != node.me && it.serves(slot, now) && is_one_history(it, node));
            if let Some(other) = other {
                return Err(format!("{moved} and {} both serve slot {slot}", other.me.id));
            }
        }
        Ok(())
    }
}

/// Returns whether both are of one generation: between two generations nothing is promised before they merge.
fn is_one_history(one: &Node, other: &Node) -> bool {
    let both = one.control.generation().zip(other.control.generation());
    both.is_some_and(|(one, other)| one.is_one_with(other))
}

/// A running, reachable node must never be declared dead, even by a faulty leader; nor a suspended node while
/// the whole cluster is suspended.
pub(super) fn is_just(world: &World, changed: &MapChanged) -> Result<(), String> {
    let at = world.lid_since.unwrap_or(world.now);
    let entry = changed.entry.iter().flat_map(|entry| &entry.changes);
    let dead =
        entry.filter_map(|change| if let Change::Dead(dead) = change { Some(dead) } else { None });
    let runs = |node: &Node| !node.is_stopped || world.lid_since.is_some();
    let is_well = |node: &&Node| runs(node) && node.runs_since + LONG_WELL <= at;
    let mut well = dead.flatten().filter_map(|id| world.nodes.get(id)).filter(is_well);
    match well.next().filter(|_| is_smooth(&world.network, at)) {
        Some(node) => Err(format!("{} runs and is reachable, but was declared dead", node.me.id)),
        None => Ok(()),
    }
}

/// Returns whether every request was sure to get through in time for the last while.
fn is_smooth(network: &Network<NodeId, Moment>, now: Moment) -> bool {
    network.is_whole_for(LONG_WELL, now) && network.quality.lost < FEW_LOST
}

/// Checks that every slot is in exactly one bucket.
fn covers_once(map: &Map) -> Result<(), String> {
    let mut seen = vec![0_u8; usize::from(Slot::COUNT)];
    for bucket in map.buckets() {
        for slot in bucket.hashmask.slots() {
            seen[usize::from(slot)] += 1;
        }
    }
    match seen.iter().position(|count| *count != 1) {
        Some(slot) => Err(format!("slot {slot} is in {} buckets", seen[slot])),
        None => Ok(()),
    }
}

/// Checks that balancing removes no copy before there are enough others.
fn keeps_copies(before: &Map, changed: &MapChanged) -> Result<(), String> {
    let Some(entry) = &changed.entry else { return Ok(()) };
    let members = changed.map.members().iter().filter(|member| member.weight > 0).count();
    let wanted = (1 + usize::from(changed.map.settings().backups)).min(members);
    for (change, outcome) in entry.changes.iter().zip(&changed.outcomes) {
        let Change::DropBackup { bucket, node, because: DropReason::Balance, .. } = change else {
            continue;
        };
        let held = before.bucket(*bucket).is_some_and(|it| it.holders.contains(node));
        let after = changed.map.bucket(*bucket).map_or(0, |it| it.holders.len());
        if held && *outcome == ChangeOutcome::Applied && after < wanted {
            return Err(format!(
                "{bucket} has {after} copies after {node} was dropped for balance"
            ));
        }
    }
    Ok(())
}

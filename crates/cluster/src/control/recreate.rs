//! Lost buckets: every holder is gone. They wait for one of the last holders to return with its data,
//! and are recreated from the best available copy when `lost-after` has passed.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use placement::Hashmask;
use serde::{Deserialize, Serialize};

use super::{Control, Message};
use crate::Moment;
use crate::consensus::LogEntry;
use crate::map::{Change, LogIndex, Map, NodeId, Peer, RecreateSource};

/// Interval between a node's reports of the copies it has kept.
const KEPT_COPIES_INTERVAL: Duration = Duration::from_secs(1);
/// Multiple of `lost-after` that a lone node with data on its disk gets to read it.
const READING_TIMES: u32 = 20;
/// Maximum interval between announcements of a process that is loading.
const LOADING_HEARD: Duration = Duration::from_secs(10);
/// Maximum number of buckets recreated in one log entry.
pub(super) const TOGETHER_MAX: usize = 256;

/// Time after which a node that has not returned with the former data of a recreated bucket is not
/// awaited any more.
pub(super) const AWAITED_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// Interval between checks for such nodes.
const AWAITED_LOOK: Duration = Duration::from_secs(60);

/// A copy of a bucket that a process has found on its disk, or has kept in memory since it was declared
/// dead.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct KeptCopy {
    pub bucket: Hashmask,
    pub kept: Freshness,
    /// The end of its history: the highest reign and version of its slots.
    pub position: (LogIndex, u64),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Freshness {
    /// Everything the node held when its last process ended.
    AsItWas,
    Older,
}

/// The leader's knowledge of lost buckets.
#[derive(Default)]
pub(super) struct LostBuckets {
    since: BTreeMap<Hashmask, Moment>,
    /// Time since when each absent node is awaited with each bucket, as far as this leader has seen.
    awaited: BTreeMap<(NodeId, Hashmask), Moment>,
    awaited_due: Moment,
    kept_copies: BTreeMap<Peer, Vec<KeptCopy>>,
    /// Time at which each of these last announced that it is back and still loads its data.
    loading: BTreeMap<NodeId, Moment>,
}

/// The copies this node could bring back, and the time of its next report of them.
#[derive(Default)]
pub(super) struct OwnKeptCopies {
    mine: Vec<KeptCopy>,
    again_at: Moment,
    /// True if this process knows which copies it has.
    pub(super) is_told: bool,
    /// True if some of them are being handed over.
    pub(super) is_bringing: bool,
    /// Buckets that were handed over.
    pub(super) brought: Vec<Hashmask>,
}

impl OwnKeptCopies {
    /// Returns whether there is a copy of the bucket that was not handed over.
    pub(super) fn has_left(&self, bucket: Hashmask) -> bool {
        let is_brought = self.brought.iter().any(|it| contains(*it, bucket));
        !is_brought && self.mine.iter().any(|copy| contains(copy.bucket, bucket))
    }
}

impl LostBuckets {
    /// Follows the map's lost buckets and members.
    fn follow(&mut self, map: &Map, now: Moment) {
        self.since.retain(|bucket, _| map.lost().any(|(lost, _)| lost == *bucket));
        for (bucket, _) in map.lost() {
            self.since.entry(bucket).or_insert(now);
        }
        if self.since.is_empty() {
            self.kept_copies.clear();
            self.loading.clear();
        }
        let is_member = |peer: &Peer| map.member(peer.id).is_some_and(|it| it.peer() == *peer);
        self.kept_copies.retain(|peer, _| is_member(peer));
    }

    /// Records that a process of this node is back, and does not hold its data yet.
    pub(super) fn note_loading(&mut self, node: NodeId, now: Moment) {
        self.loading.insert(node, now);
    }

    /// Returns the change that ends the waiting for one node that has been awaited too long. Members are
    /// excluded: they bring their data themselves.
    pub(super) fn given_up(&mut self, map: &Map, now: Moment) -> Option<Change> {
        if now < self.awaited_due {
            return None;
        }
        self.awaited_due = now + AWAITED_LOOK;
        let is_away = |node: NodeId| map.member(node).is_none();
        self.awaited.retain(|(node, bucket), _| is_away(*node) && map.may_bring(*node, *bucket));
        for (bucket, last) in map.begun_anew() {
            for node in last.iter().filter(|node| is_away(**node)) {
                self.awaited.entry((*node, bucket)).or_insert(now);
            }
        }
        let is_over = |since: &Moment| now >= *since + AWAITED_FOR;
        let (&(node, _), _) = self.awaited.iter().find(|(_, since)| is_over(since))?;
        let of_node = self.awaited.iter().filter(|((it, _), since)| *it == node && is_over(since));
        let buckets = of_node.map(|((_, bucket), _)| *bucket).take(TOGETHER_MAX).collect();
        Some(Change::KeptCopiesHandedOver { node, buckets })
    }

    /// Returns the kept copies of this bucket, with the nodes that have them.
    fn kept_by(&self, bucket: Hashmask) -> impl Iterator<Item = (NodeId, &KeptCopy)> + use<'_> {
        self.kept_copies.iter().filter_map(move |(peer, copies)| {
            let copy = copies.iter().find(|copy| contains(copy.bucket, bucket))?;
            Some((peer.id, copy))
        })
    }

    /// Returns whether one of these is back and has yet to load its data.
    fn is_loaded_by(&self, nodes: &[NodeId], now: Moment) -> bool {
        let said = |node: &NodeId| self.loading.get(node);
        nodes.iter().filter_map(said).any(|last| now < *last + LOADING_HEARD)
    }

    /// Returns the node and the data to recreate a bucket from, if it is time for that.
    fn source(&self, map: &Map, bucket: Hashmask, now: Moment) -> Option<(NodeId, RecreateSource)> {
        let last = map.lost().find(|(lost, _)| *lost == bucket).map(|(_, holders)| holders)?;
        let is_last = |(node, copy): &(NodeId, &KeptCopy)| {
            copy.kept == Freshness::AsItWas && last.contains(node)
        };
        if let Some((node, _)) = best(self.kept_by(bucket).filter(is_last)) {
            return Some((node, RecreateSource::OwnData));
        }
        if self.is_loaded_by(last, now) {
            return None;
        }
        let waited = now.since(self.since.get(&bucket).copied().unwrap_or(now));
        let times = if reader(map).is_some() { READING_TIMES } else { 1 };
        if map.settings().lost_after.is_none_or(|after| waited < after * times) {
            return None;
        }
        let best = best(self.kept_by(bucket));
        let emptiest = || {
            let able = map.members().iter().zip(map.loads()).filter(|(it, _)| it.weight > 0);
            // A node that has yet to bring something would discard the data on its disk as soon as it
            // holds anything.
            let least = able.min_by_key(|(it, load)| {
                (map.may_bring_any(it.id), load.total() / it.weight, it.id)
            });
            least.map(|(member, _)| (member.id, RecreateSource::Empty))
        };
        best.map(|(node, _)| (node, RecreateSource::Snapshot)).or_else(emptiest)
    }
}

/// Returns the copy with the longest history.
fn best<'a>(
    copies: impl Iterator<Item = (NodeId, &'a KeptCopy)>,
) -> Option<(NodeId, &'a KeptCopy)> {
    copies.min_by_key(|(node, copy)| (copy.kept, Reverse(copy.position), *node))
}

/// Returns whether `part` equals `whole` or is a part of it.
fn contains(whole: Hashmask, part: Hashmask) -> bool {
    let (whole, part) = (whole.slots(), part.slots());
    whole.start <= part.start && part.end <= whole.end
}

/// Returns the node that is alone and was the last to hold the lost buckets: it may be reading its
/// disk.
pub(super) fn reader(map: &Map) -> Option<NodeId> {
    let [member] = map.members() else { return None };
    map.lost().any(|(_, holders)| holders.contains(&member.id)).then_some(member.id)
}

impl Control {
    /// Recreates lost buckets, if this node leads and it is possible.
    pub(super) fn recreate_lost(&mut self) {
        let Some(map) = self.map.clone() else { return };
        let Some(leader) = self.leader.as_mut().filter(|leader| leader.is_confirmed) else {
            return;
        };
        let is_quiet = map.lost().next().is_none() && leader.lost.since.is_empty();
        if is_quiet || self.yielding.is_some() {
            return;
        }
        leader.lost.follow(&map, self.now);
        let mut after = Map::clone(&map);
        let mut changes = Vec::new();
        for (bucket, _) in map.lost() {
            // Each choice takes the ones before it into account, so that the buckets spread out.
            let Some((node, from)) = leader.lost.source(&after, bucket, self.now) else { continue };
            let Some(expected) = map.bucket(bucket).map(|it| it.epoch) else { continue };
            let change = Change::Recreate { bucket, node, from, expected };
            after.apply(self.applied, &change);
            changes.push(change);
            if changes.len() == TOGETHER_MAX {
                break;
            }
        }
        if !changes.is_empty() {
            self.put_into_log(LogEntry { planned_at: None, changes });
        }
    }

    /// Stops waiting for nodes that have not come back, if this node leads.
    pub(super) fn give_up_awaited(&mut self) {
        let Some(map) = self.map.clone().filter(|_| self.yielding.is_none()) else { return };
        let Some(leader) = self.leader.as_mut().filter(|leader| leader.is_confirmed) else {
            return;
        };
        if let Some(change) = leader.lost.given_up(&map, self.now) {
            self.put_into_log(LogEntry { planned_at: None, changes: vec![change] });
        }
    }

    /// Records the copies that this process has found on its disk. They only count for buckets that all
    /// others have lost.
    pub(super) fn on_found(&mut self, copies: Vec<KeptCopy>) {
        self.own_kept = OwnKeptCopies {
            mine: copies,
            again_at: self.now,
            is_told: true,
            ..OwnKeptCopies::default()
        };
    }

    /// Withdraws copies of buckets that others hold and that are not reserved for this node: they are
    /// of no use any more.
    pub(super) fn forget_unwanted_copies(&mut self, map: &Map) {
        if self.own_kept.mine.is_empty() || !self.is_member() {
            return;
        }
        let me = self.me.id;
        let kept = map.away().filter(|(node, _)| *node == me).flat_map(|(_, away)| &away.buckets);
        let lost = map.lost().map(|(bucket, _)| bucket);
        let wanted: Vec<Hashmask> = kept.copied().chain(lost).chain(map.awaited_of(me)).collect();
        let is_wanted = |copy: &KeptCopy| wanted.iter().any(|it| contains(copy.bucket, *it));
        self.own_kept.mine.retain(is_wanted);
    }

    pub(super) fn report_kept_copies(&mut self) {
        let is_lost = self.map.as_ref().is_some_and(|map| map.lost().next().is_some());
        if !is_lost || self.own_kept.mine.is_empty() || self.now < self.own_kept.again_at {
            return;
        }
        self.own_kept.again_at = self.now + KEPT_COPIES_INTERVAL;
        let copies = self.own_kept.mine.clone();
        match self.consensus.leader() {
            Some(leader) if leader == self.me.id => self.on_kept_copies(self.me.peer(), copies),
            Some(leader) => self.send(leader, Message::KeptCopies(copies)),
            None => {}
        }
    }

    pub(super) fn on_kept_copies(&mut self, from: Peer, copies: Vec<KeptCopy>) {
        if let Some(leader) = &mut self.leader {
            leader.lost.kept_copies.insert(from, copies);
        }
    }
}

#[cfg(test)]
mod tests {
    use placement::Mask;

    use super::*;
    use crate::map::{Boot, ClusterSettings, Endpoints, Member, Zone};

    fn member(id: u64) -> Member {
        let (at, zone) = (Endpoints::default(), Zone::default());
        Member { id: NodeId(id), boot: Boot(id), name: format!("n{id}"), weight: 1, zone, at }
    }

    #[test]
    fn when_time_is_up_the_copy_that_has_come_farthest_is_taken() {
        let mut map = Map::found(member(1), Mask::M000F, ClusterSettings::default());
        map.apply(LogIndex(2), &Change::Join(member(2)));
        map.apply(LogIndex(3), &Change::Join(member(3)));
        map.apply(LogIndex(4), &Change::Dead([NodeId(1)].into()));
        let bucket = map.lost().next().unwrap().0;
        let (mut lost, at) = (LostBuckets::default(), Moment::START + Duration::from_secs(1));
        lost.follow(&map, at);
        for (id, position) in [(2, (LogIndex(1), 9)), (3, (LogIndex(2), 1))] {
            let copy = KeptCopy { bucket, kept: Freshness::AsItWas, position };
            lost.kept_copies.insert(member(id).peer(), vec![copy]);
        }
        assert_eq!(lost.source(&map, bucket, at), None, "the last holder may come back");
        let later = at + Duration::from_secs(31);
        assert_eq!(lost.source(&map, bucket, later), Some((NodeId(3), RecreateSource::Snapshot)));
        lost.note_loading(NodeId(1), later);
        assert_eq!(lost.source(&map, bucket, later), None, "it is back and loads");
    }
}

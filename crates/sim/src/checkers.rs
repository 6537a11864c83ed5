//! Invariants, checked without knowledge of the code under test: each promise with its sentence.

use std::collections::{BTreeMap, BTreeSet};

use cluster::balance::{BalanceMessage, MoveId};
use cluster::map::{Change, ChangeOutcome, LeaveWay, LogIndex, Map, NodeId};
use placement::Hashmask;

use crate::log::Version;
use crate::world::{Fill, is_alone};

/// All checkers. A broken promise panics; the caller knows the seed.
pub(crate) struct Checkers {
    once: MovedOnce,
}

impl Checkers {
    pub(crate) fn new(map: &Map) -> Checkers {
        map.check_invariants();
        Checkers { once: MovedOnce::default() }
    }

    pub(crate) fn fill_starts(&self, running: &BTreeMap<MoveId, Fill>, fill: &Fill) {
        one_move_at_a_time(running, fill);
    }

    pub(crate) fn sends(&self, from: NodeId, version: &Version, message: &BalanceMessage) {
        below_share_only_pings(from, version, message);
    }

    pub(crate) fn committed(
        &mut self,
        before: &Version,
        after: &Version,
        outcomes: &[(Change, ChangeOutcome)],
    ) {
        // The map before each change: an entry may promote a node for several buckets.
        let mut map = before.map.clone();
        for (change, outcome) in outcomes {
            if *outcome != ChangeOutcome::Applied {
                continue;
            }
            copies_never_fall(before, after, change);
            leaver_is_replaced(before, after, change);
            if is_alone(change, outcomes) {
                promotions_are_fair(before, &map, change);
            }
            self.once.applied(after, change);
            map.apply(LogIndex(0), change);
        }
    }

    pub(crate) fn at_rest(&self, map: &Map) {
        map.check_invariants();
        nothing_is_missing(map);
        equal_nodes_are_even(map);
    }
}

/// No node ever gives, receives or sends two buckets at once; those of one move are copied one after the other.
fn one_move_at_a_time(running: &BTreeMap<MoveId, Fill>, fill: &Fill) {
    let parts = |fill: &Fill| BTreeSet::from([fill.giver, fill.taker, fill.source]);
    for other in running.values() {
        let apart = parts(other).is_disjoint(&parts(fill));
        assert!(apart, "a node takes part in two moves at once: {other:?} and {fill:?}");
    }
}

/// A node that holds less than its share asks nobody for load levels.
fn below_share_only_pings(from: NodeId, version: &Version, message: &BalanceMessage) {
    if !matches!(message, BalanceMessage::AskLevels { .. }) {
        return;
    }
    let map = &version.map;
    let members = map.members().iter().filter(|member| member.weight > 0);
    let (nodes, weight) =
        members.fold((0, 0), |(nodes, sum), member| (nodes + 1, sum + member.weight));
    let equal = weight == nodes && map.member(from).is_some_and(|member| member.weight == 1);
    if equal {
        let ideal = map.bucket_count() as u32 * map.copies_wanted() as u32 / nodes;
        assert!(map.load(from).total() >= ideal, "{from} is below its share and asks for levels");
    }
}

/// Balancing never leaves a bucket with fewer in-sync copies than it had, unless it had too many.
fn copies_never_fall(before: &Version, after: &Version, change: &Change) {
    let Change::DropBackup { bucket, .. } = change else { return };
    let holders =
        |version: &Version| version.map.bucket(*bucket).map_or(0, |state| state.holders.len());
    let wanted = after.map.copies_wanted();
    assert!(
        holders(after) >= holders(before).min(wanted),
        "{bucket} has {} copies, had {}, should have {wanted}",
        holders(after),
        holders(before)
    );
}

/// A node that leaves safely takes no copy with it that the settings ask for.
fn leaver_is_replaced(before: &Version, after: &Version, change: &Change) {
    let Change::Leave { node, way: LeaveWay::Safe, .. } = change else { return };
    let wanted = after.map.copies_wanted();
    for bucket in before.map.buckets().filter(|bucket| bucket.holders.contains(node)) {
        let left = after.map.bucket(bucket.hashmask).map_or(0, |state| state.holders.len());
        assert!(
            left >= wanted,
            "{} has {left} of {wanted} copies after {node} left",
            bucket.hashmask
        );
    }
}

/// A promotion by itself (not the last step of giving a primary away) is fair while copies remain to be made:
/// the giver does not end with fewer primaries than the taker, and the taker does not end with more primaries
/// than backups. A leaving node is exempt: it promotes whichever node it must. `map` has the earlier changes of
/// the entry.
fn promotions_are_fair(before: &Version, map: &Map, change: &Change) {
    let Change::Promote { bucket, node, .. } = change else { return };
    if before.plan.copies_left(&before.map) == 0 {
        return;
    }
    let primary = map.bucket(*bucket).and_then(|state| state.primary());
    let giver = primary.expect("a promoted bucket had a primary");
    if map.member(giver).is_none_or(|member| member.weight == 0) {
        return;
    }
    let (from, to) = (map.load(giver), map.load(*node));
    assert!(to.primaries < to.backups, "{node} ends with more primaries than backups");
    let weight = |node| map.member(node).map_or(0, |member| member.weight);
    let equal = weight(giver) == weight(*node);
    assert!(
        !equal || from.primaries - 1 > to.primaries,
        "{giver} ends with fewer primaries than {node}"
    );
}

/// In one rebalancing, no node receives a bucket twice or gives away a bucket it received, and no bucket goes
/// back to a former primary. A step that was committed late begins another rebalancing, but is no part of it: the
/// new plan is made from its result.
#[derive(Default)]
struct MovedOnce {
    basis: u64,
    received: BTreeSet<(Hashmask, NodeId)>,
    served: BTreeSet<(Hashmask, NodeId)>,
}

impl MovedOnce {
    fn applied(&mut self, after: &Version, change: &Change) {
        let basis = after.map.basis().0;
        if basis != self.basis {
            *self = MovedOnce { basis, ..MovedOnce::default() };
        }
        if basis == after.map.epoch().0 {
            return;
        }
        match change {
            Change::AddBackup { bucket, node, .. } => {
                assert!(self.received.insert((*bucket, *node)), "{node} gets {bucket} twice");
            }
            Change::DropBackup { bucket, node, .. } => {
                assert!(!self.received.contains(&(*bucket, *node)), "{node} gives on {bucket}");
            }
            Change::Promote { bucket, node, .. } => {
                assert!(self.served.insert((*bucket, *node)), "{bucket} goes back to {node}");
            }
            Change::Join(_)
            | Change::Leave { .. }
            | Change::Away { .. }
            | Change::Forget(_)
            | Change::Dead(_)
            | Change::Split(_)
            | Change::Recreate { .. }
            | Change::Set(_)
            | Change::Yield(_)
            | Change::KeptCopiesHandedOver { .. }
            | Change::Write { .. } => {}
        }
    }
}

/// At rest every bucket has all its copies.
fn nothing_is_missing(map: &Map) {
    let wanted = map.copies_wanted();
    for bucket in map.buckets().filter(|bucket| !bucket.holders.is_empty()) {
        assert_eq!(bucket.holders.len(), wanted.max(1), "copies of {}", bucket.hashmask);
    }
}

/// At rest totals of equal nodes differ by at most one, and so do their primaries.
fn equal_nodes_are_even(map: &Map) {
    let mut by_weight: BTreeMap<u32, Vec<(u32, u32)>> = BTreeMap::new();
    for (member, load) in map.members().iter().zip(map.loads()) {
        by_weight.entry(member.weight).or_default().push((load.total(), load.primaries));
    }
    for (weight, loads) in by_weight.into_iter().filter(|(weight, _)| *weight > 0) {
        let spread = |numbers: &dyn Fn(&(u32, u32)) -> u32| {
            let numbers = || loads.iter().map(numbers);
            numbers().max().unwrap_or(0) - numbers().min().unwrap_or(0)
        };
        assert!(spread(&|load| load.0) <= 1, "totals of weight {weight} differ: {loads:?}");
        assert!(spread(&|load| load.1) <= 1, "primaries of weight {weight} differ: {loads:?}");
    }
}

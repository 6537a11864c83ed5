//! The holders each bucket shall have in the end, with the fewest copies: the fast algorithm.
//!
//! One greedy pass over the units. It nearly always finds an optimum, and then it can prove it: no plan
//! can keep more than `keepable` units. Otherwise `refine.rs` continues from its result. Among optimal
//! choices it takes those the rules of balancing prefer: the kind a giver has more of, never the bucket
//! received last, and runs of neighbouring buckets (`give.rs`).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::give::give_surplus;
use super::table::{NodeNumber, Nodes, PlanTable};

/// Sets `table.target`. Returns true if the result is known to be optimal.
pub(super) fn aim(table: &mut PlanTable) -> bool {
    let wanted = wanted_counts(table);
    let keepable = keepable(table, &wanted);
    drop_extra_units(table, &wanted);
    loosen_crowded_zones(table, &wanted);
    give_back(table, &wanted);
    let placed = place_missing_units(table, &wanted);
    let given = give_surplus(table, &wanted);
    let units: usize = table.buckets().map(|bucket| table.target(bucket).len()).sum();
    placed && given && units - table.copies_to_make() == keepable && crowded_units(table) == 0
}

/// Returns the number of units each node shall have: the floor of its share, or the ceiling. The few
/// ceilings go first to nodes that have that many already, because each saves a copy.
fn wanted_counts(table: &PlanTable) -> Vec<u32> {
    let mut wanted: Vec<u32> = table.bounds.iter().map(|bounds| *bounds.start()).collect();
    let units = table.buckets().count() * table.copies;
    let left = units - wanted.iter().map(|count| *count as usize).sum::<usize>();
    let mut open: Vec<usize> = (0..table.nodes())
        .filter(|node| !table.bounds[*node].is_empty() && rest(table, *node))
        .collect();
    let saves = |node: &usize| table.count[*node] > *table.bounds[*node].start();
    open.sort_by_key(|node| Reverse((saves(node), table.count[*node])));
    for node in open.into_iter().take(left) {
        wanted[node] += 1;
    }
    wanted
}

/// Returns whether the share is not a whole number.
fn rest(table: &PlanTable, node: usize) -> bool {
    table.bounds[node].start() < table.bounds[node].end()
}

/// Returns an upper bound on the units that any plan can keep: no more of a bucket than it should have
/// copies (and a zone may hold of them), no more on a node than it shall have in the end.
fn keepable(table: &PlanTable, wanted: &[u32]) -> usize {
    let of_bucket = |bucket: usize| {
        let units = table.target(bucket).len();
        let spread = if table.zones.matter {
            let zones = 0..table.zones.count as u16;
            zones.map(|zone| table.in_zone(bucket, zone).min(table.zones.limit)).sum()
        } else {
            units
        };
        spread.min(table.copies)
    };
    let of_node = |node: usize| table.count[node].min(wanted[node]) as usize;
    let by_bucket: usize = table.buckets().map(of_bucket).sum();
    let by_node: usize = (0..table.nodes()).map(of_node).sum();
    by_bucket.min(by_node)
}

/// Removes units of buckets that have more copies than wanted, those on the fullest nodes first.
/// As long as a node has too many, its units go from a whole run of buckets.
fn drop_extra_units(table: &mut PlanTable, wanted: &[u32]) {
    let mut previous: Option<NodeNumber> = None;
    for bucket in 0..table.held.len() {
        while table.target(bucket).len() > table.copies {
            let goes_too = |node: &NodeNumber| {
                table.is_target(bucket, *node)
                    && table.count[usize::from(*node)] > wanted[usize::from(*node)]
                    && table.last_received[usize::from(*node)] != Some(bucket)
            };
            let any = || fullest(table, wanted, bucket, table.target(bucket).iter().copied());
            let node = previous.filter(goes_too).unwrap_or_else(any);
            table.remove(bucket, node);
            previous = Some(node);
        }
    }
}

/// Returns the node furthest above its wanted count, but not one that has received the bucket last, if there
/// is another; of equals the last, which is least likely the primary.
fn fullest(
    table: &PlanTable,
    wanted: &[u32],
    bucket: usize,
    nodes: impl Iterator<Item = NodeNumber>,
) -> NodeNumber {
    let above = |node: &NodeNumber| {
        let node = usize::from(*node);
        let is_old = table.last_received[node] != Some(bucket);
        (is_old, i64::from(table.count[node]) - i64::from(wanted[node]))
    };
    nodes.max_by_key(above).expect("a bucket with extra units has units")
}

/// Removes units beyond what a zone should hold of a bucket, to be placed elsewhere; as many as the
/// shares of the zones allow.
fn loosen_crowded_zones(table: &mut PlanTable, wanted: &[u32]) {
    if !table.zones.matter {
        return;
    }
    let mut unavoidable = unavoidable_crowding(table, wanted);
    for bucket in 0..table.held.len() {
        for zone in 0..table.zones.count as u16 {
            while table.in_zone(bucket, zone) > table.zones.limit {
                if unavoidable[usize::from(zone)] > 0 {
                    unavoidable[usize::from(zone)] -= 1;
                    break;
                }
                let here = |node: &NodeNumber| table.zones.of[usize::from(*node)] == zone;
                let nodes = table.target(bucket).iter().copied().filter(here);
                let node = fullest(table, wanted, bucket, nodes);
                table.remove(bucket, node);
            }
        }
    }
}

/// Returns how many units of each zone have to stand beside another of their bucket, because the nodes
/// of the zone shall hold more than the zone can hold otherwise.
fn unavoidable_crowding(table: &PlanTable, wanted: &[u32]) -> Vec<usize> {
    let mut shares = vec![0; table.zones.count];
    for (node, count) in wanted.iter().enumerate() {
        shares[usize::from(table.zones.of[node])] += *count as usize;
    }
    let room = table.zones.limit * table.buckets().count();
    shares.into_iter().map(|share: usize| share.saturating_sub(room)).collect()
}

/// Returns the number of units beyond the limit of their zone.
fn crowded_units(table: &PlanTable) -> usize {
    if !table.zones.matter {
        return 0;
    }
    let over = |bucket, zone| table.in_zone(bucket, zone).saturating_sub(table.zones.limit);
    let zones = || 0..table.zones.count as u16;
    table.buckets().map(|bucket| zones().map(|zone| over(bucket, zone)).sum::<usize>()).sum()
}

/// Gives returning nodes their former buckets back, as far as they have room and others have too much:
/// these copies have to be made anyway, and a node's own former buckets need only a delta.
fn give_back(table: &mut PlanTable, wanted: &[u32]) {
    let mut returns: Vec<Return> = Vec::new();
    for (node, bucket) in core::mem::take(&mut table.reserved) {
        let has_room = table.count[usize::from(node)] < wanted[usize::from(node)];
        if !has_room || table.held[bucket].is_empty() || table.is_target(bucket, node) {
            continue;
        }
        if table.target(bucket).len() < table.copies {
            if table.zone_has_room(bucket, node) {
                table.add(bucket, node);
            }
            continue;
        }
        let above = |it: &NodeNumber| table.count[usize::from(*it)] > wanted[usize::from(*it)];
        let fits = |it: &NodeNumber| above(it) && zone_has_room_after(table, bucket, *it, node);
        let givers: Vec<NodeNumber> = table.target(bucket).iter().copied().filter(fits).collect();
        let giver = if givers.is_empty() {
            exchange_giver(table, wanted, &mut returns, bucket)
                .filter(|giver| zone_has_room_after(table, bucket, *giver, node))
        } else {
            Some(fullest(table, wanted, bucket, givers.into_iter()))
        };
        if let Some(giver) = giver {
            table.remove(bucket, giver);
            table.add(bucket, node);
            returns.push(Return { bucket, giver, to: node });
        }
    }
}

/// A bucket that was given back, and by whom.
struct Return {
    bucket: usize,
    giver: NodeNumber,
    to: NodeNumber,
}

/// Makes a holder of a bucket able to give it back, although none has too much: another holder gives an
/// earlier return in its place.
fn exchange_giver(
    table: &mut PlanTable,
    wanted: &[u32],
    returns: &mut [Return],
    bucket: usize,
) -> Option<NodeNumber> {
    for Return { bucket: earlier, giver, to } in returns {
        if !table.is_target(bucket, *giver) {
            continue;
        }
        let fits = |it: &NodeNumber| {
            it != to
                && table.count[usize::from(*it)] > wanted[usize::from(*it)]
                && zone_has_room_after(table, *earlier, *it, *giver)
        };
        if let Some(instead) = table.target(*earlier).iter().copied().find(fits) {
            table.remove(*earlier, instead);
            table.add(*earlier, *giver);
            return Some(core::mem::replace(giver, instead));
        }
    }
    None
}

/// The nodes with room, the one with the most first.
pub(super) struct NodesWithRoom(BTreeSet<(Reverse<u32>, NodeNumber)>);

impl NodesWithRoom {
    pub(super) fn of(table: &PlanTable, wanted: &[u32]) -> NodesWithRoom {
        let room = |node: usize| wanted[node].saturating_sub(table.count[node]);
        let nodes = (0..table.nodes()).filter(|node| room(*node) > 0);
        NodesWithRoom(nodes.map(|node| (Reverse(room(node)), node as NodeNumber)).collect())
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeNumber> + use<'_> {
        self.0.iter().map(|(_, node)| *node)
    }

    pub(super) fn take(&mut self, wanted: u32, table: &PlanTable, node: NodeNumber) {
        let after = wanted - table.count[usize::from(node)];
        self.0.remove(&(Reverse(after + 1), node));
        if after > 0 {
            self.0.insert((Reverse(after), node));
        }
    }
}

/// Gives every bucket its full number of units. A run of neighbouring buckets gets them on the same nodes,
/// until those have their fair part of all missing units; then the least loaded nodes follow.
fn place_missing_units(table: &mut PlanTable, wanted: &[u32]) -> bool {
    let missing = |bucket: usize| table.copies.saturating_sub(table.target(bucket).len());
    let units: usize = table.buckets().map(missing).sum();
    if units == 0 {
        return true;
    }
    let mut room = NodesWithRoom::of(table, wanted);
    let mut parts = fair_parts(table, wanted, units);
    let mut all_fit = true;
    let mut previous = Nodes::new();
    for bucket in 0..table.held.len() {
        if table.held[bucket].is_empty() || table.target(bucket).len() >= table.copies {
            continue;
        }
        let mut takers = Nodes::new();
        while table.target(bucket).len() < table.copies {
            let fits = |node: &NodeNumber| {
                !table.is_target(bucket, *node) && table.zone_has_room(bucket, *node)
            };
            let has_room =
                |node: &NodeNumber| table.count[usize::from(*node)] < wanted[usize::from(*node)];
            let has_part = |node: &NodeNumber| parts[usize::from(*node)] > 0 && has_room(node);
            let before = || previous.iter().copied();
            let node = before()
                .find(|node| has_part(node) && fits(node))
                .or_else(|| room.nodes().find(|node| has_part(node) && fits(node)))
                .or_else(|| before().find(|node| has_room(node) && fits(node)))
                .or_else(|| room.nodes().find(fits));
            if let Some(node) = node {
                table.add(bucket, node);
                room.take(wanted[usize::from(node)], table, node);
                let part = &mut parts[usize::from(node)];
                *part = part.saturating_sub(1);
                takers.push(node);
            } else if !all_fit || !place_by_exchange(table, bucket, &mut room, wanted) {
                // No permitted node has room: the unit goes anywhere, and `refine` corrects that.
                all_fit = false;
                table.add(bucket, emptiest(table, bucket));
                room = NodesWithRoom::of(table, wanted);
            }
        }
        previous = takers;
    }
    all_fit
}

/// Returns the part of `units` missing units that each node gets, in proportion to its room.
fn fair_parts(table: &PlanTable, wanted: &[u32], units: usize) -> Vec<usize> {
    let room = |node: usize| wanted[node].saturating_sub(table.count[node]) as usize;
    let all: usize = (0..table.nodes()).map(room).sum();
    (0..table.nodes()).map(|node| (units * room(node)).div_ceil(all.max(1))).collect()
}

/// Places a unit although every node with room holds its bucket already, or has no room for it in its zone:
/// another node takes it, and passes a new unit of another bucket to a node with room. Returns false if
/// there is no such exchange.
pub(super) fn place_by_exchange(
    table: &mut PlanTable,
    bucket: usize,
    room: &mut NodesWithRoom,
    wanted: &[u32],
) -> bool {
    let exchange = |with_room: NodeNumber, other: usize| {
        let swaps = |node: &&NodeNumber| {
            !table.is_held(other, **node)
                && !table.is_target(bucket, **node)
                && table.zone_has_room(bucket, **node)
                && zone_has_room_after(table, other, **node, with_room)
        };
        let is_there = table.is_target(other, with_room);
        let node = if is_there { None } else { table.target(other).iter().find(swaps) };
        node.map(|node| (with_room, other, *node))
    };
    let others = 0..table.held.len();
    let found =
        room.nodes().find_map(|node| others.clone().find_map(|other| exchange(node, other)));
    let Some((with_room, other, node)) = found else { return false };
    table.remove(other, node);
    table.add(other, with_room);
    table.add(bucket, node);
    room.take(wanted[usize::from(with_room)], table, with_room);
    true
}

/// Returns the least loaded node with weight that lacks the bucket.
fn emptiest(table: &PlanTable, bucket: usize) -> NodeNumber {
    let may = |node: &NodeNumber| *table.bounds[usize::from(*node)].end() > 0;
    (0..table.nodes() as NodeNumber)
        .filter(|node| may(node) && !table.is_target(bucket, *node))
        .min_by_key(|node| table.count[usize::from(*node)])
        .expect("there are as many nodes with weight as copies")
}

/// Returns whether the taker's zone has room for the bucket once the giver has given it.
pub(super) fn zone_has_room_after(
    table: &PlanTable,
    bucket: usize,
    giver: NodeNumber,
    taker: NodeNumber,
) -> bool {
    let zone = |node: NodeNumber| table.zones.of[usize::from(node)];
    zone(giver) == zone(taker) || table.zone_has_room(bucket, taker)
}

//! The holders each bucket shall have in the end, with the fewest copies: the fast algorithm.
//!
//! One greedy pass over the units. It nearly always finds an optimum, and then it can prove it: no plan
//! can keep more than `keepable` units. Otherwise `refine.rs` continues from its result. Among optimal
//! choices it takes those the rules of balancing prefer: the kind a giver has more of, the lowest
//! bucket, never the bucket received last.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::table::{Node, Table};

/// Sets `table.target`; `last_received` names for each node the bucket it should not give away. Returns
/// true if the result is known to be optimal.
pub(super) fn aim(table: &mut Table, last_received: &[Option<usize>]) -> bool {
    let wanted = wanted_counts(table);
    let keepable = keepable(table, &wanted);
    drop_extra_units(table, &wanted);
    loosen_crowded_zones(table, &wanted);
    give_back(table, &wanted);
    let placed = place_missing_units(table, &wanted);
    let given = give_surplus(table, &wanted, last_received);
    let units: usize = table.buckets().map(|bucket| table.target[bucket].len()).sum();
    placed && given && units - table.copies_to_make() == keepable && crowded_units(table) == 0
}

/// Returns the number of units each node shall have: the floor of its share, or the ceiling. The few
/// ceilings go first to nodes that have that many already, because each saves a copy.
fn wanted_counts(table: &Table) -> Vec<u32> {
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
fn rest(table: &Table, node: usize) -> bool {
    table.bounds[node].start() < table.bounds[node].end()
}

/// Returns an upper bound on the units that any plan can keep: no more of a bucket than it should have
/// copies (and a zone may hold of them), no more on a node than it shall have in the end.
fn keepable(table: &Table, wanted: &[u32]) -> usize {
    let of_bucket = |bucket: usize| {
        let units = table.target[bucket].len();
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
fn drop_extra_units(table: &mut Table, wanted: &[u32]) {
    for bucket in 0..table.target.len() {
        while table.target[bucket].len() > table.copies {
            let node = fullest(table, wanted, table.target[bucket].iter().copied());
            table.remove(bucket, node);
        }
    }
}

/// Returns the node furthest above its wanted count; of equals the last, which is least likely the
/// primary.
fn fullest(table: &Table, wanted: &[u32], nodes: impl Iterator<Item = Node>) -> Node {
    let above = |node: &Node| {
        let node = usize::from(*node);
        i64::from(table.count[node]) - i64::from(wanted[node])
    };
    nodes.max_by_key(above).expect("a bucket with extra units has units")
}

/// Removes units beyond what a zone should hold of a bucket, to be placed elsewhere; as many as the
/// shares of the zones allow.
fn loosen_crowded_zones(table: &mut Table, wanted: &[u32]) {
    if !table.zones.matter {
        return;
    }
    let mut unavoidable = unavoidable_crowding(table, wanted);
    for bucket in 0..table.target.len() {
        for zone in 0..table.zones.count as u16 {
            while table.in_zone(bucket, zone) > table.zones.limit {
                if unavoidable[usize::from(zone)] > 0 {
                    unavoidable[usize::from(zone)] -= 1;
                    break;
                }
                let here = |node: &Node| table.zones.of[usize::from(*node)] == zone;
                let node =
                    fullest(table, wanted, table.target[bucket].iter().copied().filter(here));
                table.remove(bucket, node);
            }
        }
    }
}

/// Returns how many units of each zone have to stand beside another of their bucket, because the nodes
/// of the zone shall hold more than the zone can hold otherwise.
fn unavoidable_crowding(table: &Table, wanted: &[u32]) -> Vec<usize> {
    let mut shares = vec![0; table.zones.count];
    for (node, count) in wanted.iter().enumerate() {
        shares[usize::from(table.zones.of[node])] += *count as usize;
    }
    let room = table.zones.limit * table.buckets().count();
    shares.into_iter().map(|share: usize| share.saturating_sub(room)).collect()
}

/// Returns the number of units beyond the limit of their zone.
fn crowded_units(table: &Table) -> usize {
    if !table.zones.matter {
        return 0;
    }
    let over = |bucket, zone| table.in_zone(bucket, zone).saturating_sub(table.zones.limit);
    let zones = || 0..table.zones.count as u16;
    table.buckets().map(|bucket| zones().map(|zone| over(bucket, zone)).sum::<usize>()).sum()
}

/// Gives returning nodes their former buckets back, as far as they have room and others have too much:
/// these copies have to be made anyway, and a node's own former buckets need only a delta.
fn give_back(table: &mut Table, wanted: &[u32]) {
    for (node, bucket) in core::mem::take(&mut table.places) {
        let has_room = table.count[usize::from(node)] < wanted[usize::from(node)];
        if !has_room || table.held[bucket].is_empty() || table.is_target(bucket, node) {
            continue;
        }
        if table.target[bucket].len() < table.copies {
            if table.zone_has_room(bucket, node) {
                table.add(bucket, node);
            }
            continue;
        }
        let above = |it: &Node| table.count[usize::from(*it)] > wanted[usize::from(*it)];
        let fits = |it: &Node| above(it) && zone_has_room_after(table, bucket, *it, node);
        let givers: Vec<Node> = table.target[bucket].iter().copied().filter(fits).collect();
        if !givers.is_empty() {
            let giver = fullest(table, wanted, givers.into_iter());
            table.remove(bucket, giver);
            table.add(bucket, node);
        }
    }
}

/// The nodes with room, the one with the most first.
struct Room(BTreeSet<(Reverse<u32>, Node)>);

impl Room {
    fn of(table: &Table, wanted: &[u32]) -> Room {
        let room = |node: usize| wanted[node].saturating_sub(table.count[node]);
        let nodes = (0..table.nodes()).filter(|node| room(*node) > 0);
        Room(nodes.map(|node| (Reverse(room(node)), node as Node)).collect())
    }

    fn nodes(&self) -> impl Iterator<Item = Node> + use<'_> {
        self.0.iter().map(|(_, node)| *node)
    }

    fn take(&mut self, wanted: u32, table: &Table, node: Node) {
        let after = wanted - table.count[usize::from(node)];
        self.0.remove(&(Reverse(after + 1), node));
        if after > 0 {
            self.0.insert((Reverse(after), node));
        }
    }
}

/// Gives every bucket its full number of units, each on the least loaded node that lacks it.
fn place_missing_units(table: &mut Table, wanted: &[u32]) -> bool {
    let mut room = Room::of(table, wanted);
    let mut all_fit = true;
    for bucket in 0..table.target.len() {
        while !table.held[bucket].is_empty() && table.target[bucket].len() < table.copies {
            let fits =
                |node: &Node| !table.is_target(bucket, *node) && table.zone_has_room(bucket, *node);
            let node = room.nodes().find(fits);
            if let Some(node) = node {
                table.add(bucket, node);
                room.take(wanted[usize::from(node)], table, node);
            } else {
                // No permitted node has room: the unit goes anywhere, and `refine` corrects that.
                all_fit = false;
                table.add(bucket, emptiest(table, bucket));
                room = Room::of(table, wanted);
            }
        }
    }
    all_fit
}

/// Returns the least loaded node with weight that lacks the bucket.
fn emptiest(table: &Table, bucket: usize) -> Node {
    let may = |node: &Node| *table.bounds[usize::from(*node)].end() > 0;
    (0..table.nodes() as Node)
        .filter(|node| may(node) && !table.is_target(bucket, *node))
        .min_by_key(|node| table.count[usize::from(*node)])
        .expect("there are as many nodes with weight as copies")
}

/// The buckets a node has to give, in the order of the buckets.
struct Pile {
    giver: Node,
    last_received: Option<usize>,
    primaries: Vec<usize>,
    backups: Vec<usize>,
}

/// Moves units from nodes above their wanted count to nodes below it, in turns.
fn give_surplus(table: &mut Table, wanted: &[u32], last_received: &[Option<usize>]) -> bool {
    let mut givers: Vec<usize> =
        (0..table.nodes()).filter(|node| table.count[*node] > wanted[*node]).collect();
    if givers.is_empty() {
        return true;
    }
    let mut piles = piles(table, &givers, last_received);
    let mut room = Room::of(table, wanted);
    let mut all_given = true;
    while !givers.is_empty() {
        givers.retain(|giver| {
            if table.count[*giver] <= wanted[*giver] {
                return false;
            }
            let gift = choose_gift(table, &mut piles[*giver], &room);
            let Some((bucket, taker)) = gift else {
                all_given = false;
                return false;
            };
            table.remove(bucket, *giver as Node);
            table.add(bucket, taker);
            room.take(wanted[usize::from(taker)], table, taker);
            true
        });
    }
    all_given
}

/// Returns the piles of the givers; those of the other nodes stay empty.
fn piles(table: &Table, givers: &[usize], last_received: &[Option<usize>]) -> Vec<Pile> {
    let empty = |node: usize| Pile {
        giver: node as Node,
        last_received: last_received[node],
        primaries: Vec::new(),
        backups: Vec::new(),
    };
    let mut piles: Vec<Pile> = (0..table.nodes()).map(empty).collect();
    let mut gives = vec![false; table.nodes()];
    givers.iter().for_each(|giver| gives[*giver] = true);
    for bucket in table.buckets() {
        for (rank, node) in table.held[bucket].iter().enumerate() {
            if gives[usize::from(*node)] && table.is_target(bucket, *node) {
                let pile = &mut piles[usize::from(*node)];
                (if rank == 0 { &mut pile.primaries } else { &mut pile.backups }).push(bucket);
            }
        }
    }
    piles
}

/// Returns the next bucket a giver gives and its taker; removes the bucket from the giver's pile.
fn choose_gift(table: &Table, pile: &mut Pile, room: &Room) -> Option<(usize, Node)> {
    let (giver, last_received) = (pile.giver, pile.last_received);
    // If the numbers are equal, a backup goes: giving one away disturbs no client.
    let mut kinds = [&mut pile.backups, &mut pile.primaries];
    if kinds[1].len() > kinds[0].len() {
        kinds.reverse();
    }
    for may_give_last_received in [false, true] {
        for taker in room.nodes() {
            for kind in &mut kinds {
                let fits = |bucket: &usize| {
                    (may_give_last_received || Some(*bucket) != last_received)
                        && !table.is_target(*bucket, taker)
                        && zone_has_room_after(table, *bucket, giver, taker)
                };
                if let Some(rank) = kind.iter().position(fits) {
                    return Some((kind.remove(rank), taker));
                }
            }
        }
    }
    None
}

/// Returns whether the taker's zone has room for the bucket once the giver has given it.
fn zone_has_room_after(table: &Table, bucket: usize, giver: Node, taker: Node) -> bool {
    let zone = |node: Node| table.zones.of[usize::from(node)];
    zone(giver) == zone(taker) || table.zone_has_room(bucket, taker)
}

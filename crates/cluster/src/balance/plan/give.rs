//! Gifts: the units that nodes above their wanted count give to nodes below it, in runs of neighbouring
//! buckets.
//!
//! Which of its units a node gives makes no difference to the number of copies, but it decides how many
//! runs of slots the map has in the end. So a giver gives its whole quota in as few runs as possible, and
//! from the edge of a run it keeps: a cut costs one run, a piece out of the middle two, and a run that is
//! given whole or that continues a run of the taker none. Called by `target.rs`.

use core::cmp::Reverse;

use super::table::{NodeNumber, PlanTable};
use super::target::{NodesWithRoom, place_by_exchange, zone_has_room_after};

/// Moves units from nodes above their wanted count to nodes below it. Returns false if some could not be
/// moved.
pub(super) fn give_surplus(table: &mut PlanTable, wanted: &[u32]) -> bool {
    let surplus = |table: &PlanTable, node: usize| table.count[node].saturating_sub(wanted[node]);
    let givers: Vec<usize> = (0..table.nodes()).filter(|node| surplus(table, *node) > 0).collect();
    if givers.is_empty() {
        return true;
    }
    let takers: Vec<NodeNumber> = NodesWithRoom::of(table, wanted).nodes().collect();
    let mut gifts = Gifts::new(table, &givers);
    for (served, taker) in takers.iter().enumerate() {
        let waiting = (takers.len() - served) as u32;
        let mut room = wanted[usize::from(*taker)] - table.count[usize::from(*taker)];
        let mut quotas = Vec::new();
        for giver in &givers {
            let quota = surplus(table, *giver).div_ceil(waiting).min(room);
            room -= quota;
            if quota > 0 {
                quotas.push(gifts.quota(*giver, quota as usize));
            }
        }
        gifts.give_all(table, *taker, quotas);
    }
    givers.iter().all(|giver| surplus(table, *giver) == 0) || give_singly(table, wanted, givers)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyKind {
    Primary,
    Backup,
}

/// The number of units of each kind that a giver gives to one taker.
struct Quota {
    giver: usize,
    primaries: usize,
    backups: usize,
}

/// The buckets a node can give, in order.
#[derive(Clone, Default)]
struct Pile {
    primaries: Vec<usize>,
    backups: Vec<usize>,
    /// The kind of the bucket that it has received last and does not give, if there is one.
    kept: Option<CopyKind>,
}

impl Pile {
    fn of_kind(&mut self, kind: CopyKind) -> &mut Vec<usize> {
        match kind {
            CopyKind::Primary => &mut self.primaries,
            CopyKind::Backup => &mut self.backups,
        }
    }
}

/// The treatment of the bucket that a giver has received last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastReceived {
    IsKept,
    MayBeGiven,
}

/// Units of one kind that go from one node to another.
#[derive(Clone, Copy)]
struct Gift {
    giver: usize,
    taker: NodeNumber,
    kind: CopyKind,
}

/// A stretch of a pile, to be given from one of its edges.
struct Stretch {
    /// Its first place in the pile, and its length.
    first: usize,
    len: usize,
    from_the_end: bool,
}

struct Gifts {
    backups_of_a_bucket: usize,
    piles: Vec<Pile>,
    /// For each bucket, its primary as far as it is planned.
    serving: Vec<NodeNumber>,
    /// For each node, the buckets it shares with the present taker as the result of gifts.
    shared: Vec<usize>,
    /// For each node, the primaries it still has to give to the present taker.
    pending: Vec<usize>,
}

impl Gifts {
    fn new(table: &PlanTable, givers: &[usize]) -> Gifts {
        let serving = |bucket: usize| {
            let (held, target) = (&table.held[bucket], table.target(bucket));
            let stays = held.first().filter(|primary| target.contains(primary));
            stays.or(target.first()).copied().unwrap_or(NodeNumber::MAX)
        };
        Gifts {
            backups_of_a_bucket: table.copies - 1,
            piles: piles(table, givers, LastReceived::IsKept),
            serving: (0..table.held.len()).map(serving).collect(),
            shared: vec![0; table.nodes()],
            pending: vec![0; table.nodes()],
        }
    }

    /// Divides a quota into kinds: each unit is of the kind the giver has more of then, in relation to the
    /// number of backups a bucket has. If the numbers are equal, a backup goes: giving one away disturbs no
    /// client.
    fn quota(&self, giver: usize, units: usize) -> Quota {
        let pile = &self.piles[giver];
        let kept = |kind: CopyKind| usize::from(pile.kept == Some(kind));
        let have_primaries = pile.primaries.len() + kept(CopyKind::Primary);
        let have_backups = pile.backups.len() + kept(CopyKind::Backup);
        let (mut primaries, mut backups) = (0, 0);
        for _ in 0..units {
            let left = (have_primaries - primaries, have_backups - backups);
            if left.0 * self.backups_of_a_bucket.max(1) > left.1 {
                primaries += 1;
            } else if left.1 > 0 {
                backups += 1;
            }
        }
        Quota { giver, primaries, backups }
    }

    fn give_all(&mut self, table: &mut PlanTable, taker: NodeNumber, mut quotas: Vec<Quota>) {
        self.shared.fill(0);
        self.pending.fill(0);
        quotas.iter().for_each(|quota| self.pending[quota.giver] = quota.primaries);
        for Quota { giver, primaries, backups } in &mut quotas {
            let gift = Gift { giver: *giver, taker, kind: CopyKind::Primary };
            // What does not fit goes as the other kind.
            *backups += *primaries - self.give(table, gift, *primaries);
            self.pending[*giver] = 0;
        }
        for Quota { giver, backups, .. } in quotas {
            self.give(table, Gift { giver, taker, kind: CopyKind::Backup }, backups);
        }
    }

    /// Gives up to `units` units, in as few runs as possible. Returns how many it has given.
    fn give(&mut self, table: &mut PlanTable, gift: Gift, units: usize) -> usize {
        let Gift { giver, taker, kind } = gift;
        let mut left = units;
        while left > 0 {
            let Some(stretch) = self.best_stretch(table, gift, left) else { break };
            let len = stretch.len.min(left);
            let first = stretch.first + if stretch.from_the_end { stretch.len - len } else { 0 };
            let given: Vec<usize> =
                self.piles[giver].of_kind(kind).drain(first..first + len).collect();
            for bucket in given {
                table.remove(bucket, giver as NodeNumber);
                for other in table.target(bucket) {
                    self.shared[usize::from(*other)] += 1;
                }
                table.add(bucket, taker);
                if kind == CopyKind::Primary {
                    self.serving[bucket] = taker;
                }
            }
            left -= len;
        }
        units - left
    }

    /// Returns the stretch of the giver's pile that costs the fewest runs. A stretch is unbroken, has one
    /// primary, and all of it fits.
    fn best_stretch(&self, table: &PlanTable, gift: Gift, units: usize) -> Option<Stretch> {
        let pile = match gift.kind {
            CopyKind::Primary => &self.piles[gift.giver].primaries,
            CopyKind::Backup => &self.piles[gift.giver].backups,
        };
        let fits = |bucket: usize| {
            !table.is_target(bucket, gift.taker)
                && zone_has_room_after(table, bucket, gift.giver as NodeNumber, gift.taker)
        };
        let mut best = None;
        let mut first = 0;
        while first < pile.len() {
            if !fits(pile[first]) {
                first += 1;
                continue;
            }
            let goes_on = |place: usize| {
                pile[place] == pile[place - 1] + 1
                    && self.serving[pile[place]] == self.serving[pile[first]]
                    && fits(pile[place])
            };
            let end = (first + 1..pile.len()).find(|place| !goes_on(*place)).unwrap_or(pile.len());
            let len = end - first;
            let (lowest, highest) = (pile[first], pile[end - 1]);
            let edges =
                [(lowest, lowest.checked_sub(1), false), (highest, Some(highest + 1), true)];
            for (bucket, outside, from_the_end) in edges {
                let outside = outside.filter(|outside| *outside < self.serving.len());
                let (cost, lonely, shared) = self.score(table, gift, bucket, outside);
                let score = (cost - i32::from(len <= units), lonely, shared, Reverse(len));
                if best.as_ref().is_none_or(|(lowest, _)| score < *lowest) {
                    best = Some((score, Stretch { first, len, from_the_end }));
                }
            }
            first = end;
        }
        best.map(|(_, stretch)| stretch)
    }

    /// Judges a gift that begins with `bucket` at the edge of a stretch, where its neighbour is `outside`. Less is
    /// better. Returns the runs it costs, whether it is away from other gifts to the taker, and how many buckets
    /// the taker shares already with the other holders of the bucket.
    fn score(
        &self,
        table: &PlanTable,
        Gift { giver, taker, kind }: Gift,
        bucket: usize,
        outside: Option<usize>,
    ) -> (i32, bool, usize) {
        let neighbour = outside.map(|outside| self.serving[outside]);
        let others = table.target(bucket).iter().filter(|node| usize::from(**node) != giver);
        let shared = others.map(|node| self.shared[usize::from(*node)]).sum();
        let (continues, is_near) = match kind {
            CopyKind::Primary => {
                let gives_soon = |node: NodeNumber| {
                    let pending = self.pending.get(usize::from(node));
                    usize::from(node) != giver && pending.is_some_and(|units| *units > 0)
                };
                (neighbour == Some(taker), neighbour.is_some_and(gives_soon))
            }
            CopyKind::Backup => {
                let is_taken = outside.is_some_and(|outside| table.is_target(outside, taker));
                (is_taken && neighbour == Some(self.serving[bucket]), neighbour == Some(taker))
            }
        };
        (1 - i32::from(continues), !is_near, shared)
    }
}

/// Returns the piles of the givers; those of the other nodes stay empty.
fn piles(table: &PlanTable, givers: &[usize], last_received: LastReceived) -> Vec<Pile> {
    let mut piles = vec![Pile::default(); table.nodes()];
    let mut gives = vec![false; table.nodes()];
    givers.iter().for_each(|giver| gives[*giver] = true);
    for bucket in table.buckets() {
        for (rank, node) in table.held[bucket].iter().enumerate() {
            let giver = usize::from(*node);
            if !gives[giver] || !table.is_target(bucket, *node) {
                continue;
            }
            let kind = if rank == 0 { CopyKind::Primary } else { CopyKind::Backup };
            let is_last = table.last_received[giver] == Some(bucket);
            if is_last && last_received == LastReceived::IsKept {
                piles[giver].kept = Some(kind);
            } else {
                piles[giver].of_kind(kind).push(bucket);
            }
        }
    }
    piles
}

/// Moves what is left one unit at a time, in turns, whatever the runs: the rest of those nodes that had
/// too few units that fit.
fn give_singly(table: &mut PlanTable, wanted: &[u32], mut givers: Vec<usize>) -> bool {
    let mut piles = piles(table, &givers, LastReceived::MayBeGiven);
    let mut room = NodesWithRoom::of(table, wanted);
    let mut all_given = true;
    while !givers.is_empty() {
        givers.retain(|giver| {
            if table.count[*giver] <= wanted[*giver] {
                return false;
            }
            let pile = &mut piles[*giver];
            if let Some((bucket, taker)) = any_gift(table, *giver, pile, &room) {
                table.remove(bucket, *giver as NodeNumber);
                table.add(bucket, taker);
                room.take(wanted[usize::from(taker)], table, taker);
                return true;
            }
            let exchanged = give_by_exchange(table, *giver, pile, &mut room, wanted);
            all_given &= exchanged;
            exchanged
        });
    }
    all_given
}

/// Returns a bucket that a giver can give and its taker; removes the bucket from the giver's pile.
fn any_gift(
    table: &PlanTable,
    giver: usize,
    pile: &mut Pile,
    room: &NodesWithRoom,
) -> Option<(usize, NodeNumber)> {
    let mut kinds = [CopyKind::Backup, CopyKind::Primary];
    if pile.primaries.len() > pile.backups.len() {
        kinds.reverse();
    }
    for may_give_last_received in [false, true] {
        for taker in room.nodes() {
            for kind in kinds {
                let fits = |bucket: &usize| {
                    (may_give_last_received || Some(*bucket) != table.last_received[giver])
                        && !table.is_target(*bucket, taker)
                        && zone_has_room_after(table, *bucket, giver as NodeNumber, taker)
                };
                let pile = pile.of_kind(kind);
                if let Some(rank) = pile.iter().position(fits) {
                    return Some((pile.remove(rank), taker));
                }
            }
        }
    }
    None
}

/// Gives the first bucket of a pile although every node with room has it already.
fn give_by_exchange(
    table: &mut PlanTable,
    giver: usize,
    pile: &mut Pile,
    room: &mut NodesWithRoom,
    wanted: &[u32],
) -> bool {
    for kind in [CopyKind::Backup, CopyKind::Primary] {
        let pile = pile.of_kind(kind);
        let Some(bucket) = pile.first().copied() else { continue };
        table.remove(bucket, giver as NodeNumber);
        if place_by_exchange(table, bucket, room, wanted) {
            pile.remove(0);
            return true;
        }
        table.add(bucket, giver as NodeNumber);
    }
    false
}

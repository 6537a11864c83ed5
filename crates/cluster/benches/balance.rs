//! Time of a balancing decision: 4,096 buckets (and 16,384, the most there can be), 1,000 nodes, one of which
//! has just joined. `cargo bench -p cluster`.

use cluster::balance::decide::{PlanCursor, decide};
use cluster::balance::{MoveReadiness, Plan, PlanView};
use cluster::map::{
    Boot, Change, ClusterSettings, DropReason, Endpoints, Epoch, LogIndex, Map, Member, NodeId,
    Zone,
};
use divan::{Bencher, black_box};
use placement::{Mask, Slot};

fn main() {
    divan::main();
}

/// A decision without any cache: builds the plan from the map and finds the next move in it.
#[divan::bench(args = [10, 100, 1000])]
fn decision_from_scratch(bencher: Bencher, nodes: u64) {
    decide_from_scratch(bencher, &grown(nodes, Mask::M0FFF));
}

#[divan::bench(args = [10, 100, 1000])]
fn decision_from_scratch_with_16384_buckets(bencher: Bencher, nodes: u64) {
    decide_from_scratch(bencher, &grown(nodes, Mask::M3FFF));
}

fn decide_from_scratch(bencher: Bencher, map: &Map) {
    let giver = a_giver(map);
    bencher.bench(|| {
        let plan = Plan::of(black_box(map));
        let view = PlanView { map, plan: &plan };
        decide(view, giver, &mut PlanCursor::default(), |_| MoveReadiness::Free)
    });
}

/// A decision with a plan that is already built: the usual case.
#[divan::bench(args = [10, 100, 1000])]
fn decision_under_a_plan(bencher: Bencher, nodes: u64) {
    let map = grown(nodes, Mask::M0FFF);
    let giver = a_giver(&map);
    let plan = Plan::of(&map);
    let view = PlanView { map: &map, plan: &plan };
    bencher.bench(|| {
        decide(black_box(view), giver, &mut PlanCursor::default(), |_| MoveReadiness::Free)
    });
}

/// One change applied to a map that other threads still read.
#[divan::bench]
fn change_of_a_published_map(bencher: Bencher) {
    let map = grown(100, Mask::M0FFF);
    let bucket = map.bucket_at(77).hashmask;
    let change = Change::Promote { bucket, node: NodeId(1), expected: map.bucket_at(77).epoch };
    bencher.bench(|| {
        let mut next = map.clone();
        next.apply(LogIndex(9), black_box(&change));
        next
    });
}

#[divan::bench]
fn bucket_of_a_slot(bencher: Bencher) {
    let map = grown(100, Mask::M0FFF);
    let slot = Slot::of(b"key:000000000042");
    bencher.bench(|| map.bucket_of(black_box(slot)).primary());
}

fn a_giver(map: &Map) -> NodeId {
    let plan = Plan::of(map);
    let mut givers = plan.buckets().iter().flat_map(|bucket| &bucket.copies);
    givers.find_map(|copy| copy.giver).expect("a joining node gets something from somebody")
}

fn member(id: u64) -> Member {
    let (id, name) = (NodeId(id), format!("n{id}"));
    Member { id, boot: Boot(1), name, weight: 1, zone: Zone::default(), at: Endpoints::default() }
}

/// Returns a cluster balanced with one node fewer, right after the last node has joined.
fn grown(nodes: u64, mask: Mask) -> Map {
    let mut map = Map::found(member(1), mask, ClusterSettings::default());
    for id in 2..=nodes {
        if id > 2 {
            carry_out(&mut map);
        }
        map.apply(LogIndex(id), &Change::Join(member(id)));
    }
    map
}

fn carry_out(map: &mut Map) {
    for plan in Plan::of(map).buckets() {
        let (bucket, because) = (plan.hashmask, DropReason::Balance);
        let epoch = |map: &Map| map.bucket(bucket).map_or(Epoch(0), |bucket| bucket.epoch);
        for copy in &plan.copies {
            let expected = epoch(map);
            map.apply(LogIndex(0), &Change::AddBackup { bucket, node: copy.taker, expected });
        }
        let expected = epoch(map);
        map.apply(LogIndex(0), &Change::Promote { bucket, node: plan.primary, expected });
        for node in plan.copies.iter().filter_map(|copy| copy.giver) {
            let expected = epoch(map);
            map.apply(LogIndex(0), &Change::DropBackup { bucket, node, expected, because });
        }
    }
}

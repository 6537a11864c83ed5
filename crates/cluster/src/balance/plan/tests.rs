//! Plans of examples. `sim/tests` shows that plans are optimal for every history.

use super::*;
use crate::map::{Boot, Change, ClusterSettings, Endpoints, LeaveWay, LogIndex, Member, Zone};
use placement::Mask;

fn member(id: u64) -> Member {
    let (id, name) = (NodeId(id), format!("n{id}"));
    Member { id, boot: Boot(1), name, weight: 1, zone: Zone::default(), at: Endpoints::default() }
}

/// A cluster in which every plan is carried out at once.
struct Cluster {
    map: Map,
    index: LogIndex,
}

impl Cluster {
    fn new(mask: Mask) -> Cluster {
        let map = Map::found(member(1), mask, ClusterSettings::default());
        Cluster { map, index: LogIndex::FIRST }
    }

    fn commit(&mut self, change: &Change) {
        self.index.0 += 1;
        self.map.apply(self.index, change);
    }

    fn join(&mut self, member: Member) -> Plan {
        self.commit(&Change::Join(member));
        Plan::of(&self.map)
    }

    fn carry_out(&mut self, plan: &Plan) {
        for bucket in plan.buckets() {
            let mut expected = self.map.bucket(bucket.hashmask).unwrap().epoch;
            for change in changes(bucket) {
                self.commit(&at_epoch(change, expected));
                expected = expected.next();
            }
        }
        self.map.check_invariants();
        assert!(plan.is_done(&self.map));
        assert!(Plan::of(&self.map).is_empty(), "balanced: nothing is left to plan");
    }

    fn loads(&self) -> Vec<(u32, u32)> {
        self.map.loads().iter().map(|load| (load.primaries, load.backups)).collect()
    }
}

/// Returns all changes of one bucket; the expected epochs are still to be set.
fn changes(plan: &BucketPlan) -> Vec<Change> {
    let (bucket, expected) = (plan.hashmask, Epoch(0));
    let because = crate::map::DropReason::Balance;
    let add =
        plan.copies.iter().map(|copy| Change::AddBackup { bucket, node: copy.taker, expected });
    let promote = Change::Promote { bucket, node: plan.primary, expected };
    let given = plan.copies.iter().filter_map(|copy| copy.giver);
    let gone = given.chain(plan.drops.iter().copied());
    let dropped = gone.map(|node| Change::DropBackup { bucket, node, expected, because });
    add.chain([promote]).chain(dropped).collect()
}

fn at_epoch(mut change: Change, epoch: Epoch) -> Change {
    if let Change::AddBackup { expected, .. }
    | Change::Promote { expected, .. }
    | Change::DropBackup { expected, .. } = &mut change
    {
        *expected = epoch;
    }
    change
}

#[test]
fn one_node_has_nothing_to_plan() {
    assert!(Plan::of(&Cluster::new(Mask::M000F).map).is_empty());
}

#[test]
fn two_nodes_end_with_a_copy_of_everything_each() {
    let mut cluster = Cluster::new(Mask::M000F);
    let plan = cluster.join(member(2));
    assert_eq!(plan.copies_to_make(), 16);
    let served: Vec<u64> = plan.buckets().iter().map(|bucket| bucket.primary.0).collect();
    assert_eq!(served, [2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1]);
    cluster.carry_out(&plan);
    assert_eq!(cluster.loads(), [(8, 8), (8, 8)]);
}

#[test]
fn the_nth_equal_node_costs_the_floor_of_its_share() {
    let mut cluster = Cluster::new(Mask::M000F);
    for (nodes, copies) in (2..).zip([16, 10, 8, 6, 5, 4, 4]) {
        let plan = cluster.join(member(nodes));
        assert_eq!(plan.copies_to_make(), copies, "node {nodes}");
        cluster.carry_out(&plan);
    }
}

#[test]
fn totals_and_primaries_end_even_where_the_eight_rules_left_them_uneven() {
    let mut cluster = Cluster::new(Mask::M000F);
    let mut ends = Vec::new();
    for nodes in 2..=6 {
        let plan = cluster.join(member(nodes));
        cluster.carry_out(&plan);
        let mut totals: Vec<u32> = cluster.map.loads().iter().map(|load| load.total()).collect();
        totals.sort_unstable();
        let primaries = || cluster.loads().into_iter().map(|(primaries, _)| primaries);
        assert!(primaries().max().unwrap() - primaries().min().unwrap() <= 1);
        ends.push(totals);
    }
    assert_eq!(ends[1], [10, 11, 11]);
    assert_eq!(ends[2], [8, 8, 8, 8]);
    assert_eq!(ends[3], [6, 6, 6, 7, 7]);
    assert_eq!(ends[4], [5, 5, 5, 5, 6, 6]);
}

#[test]
fn a_third_node_gets_backups_first_and_both_kinds_in_the_end() {
    let mut cluster = Cluster::new(Mask::M000F);
    let plan = cluster.join(member(2));
    cluster.carry_out(&plan);
    let plan = cluster.join(member(3));
    assert!(plan.buckets().iter().flat_map(|bucket| &bucket.copies).all(|copy| copy.taker.0 == 3));
    let of = |name: &str| {
        let mut buckets = plan.buckets().iter();
        let found = buckets.find(|bucket| bucket.hashmask.to_string() == name).unwrap();
        (found.copies[0].giver, found.primary)
    };
    assert_eq!(of("000F/000C"), (Some(NodeId(1)), NodeId(2)), "a backup");
    assert_eq!(of("000F/0005"), (Some(NodeId(2)), NodeId(3)), "a backup that is promoted then");
    assert_eq!(of("000F/0001"), (Some(NodeId(1)), NodeId(3)), "a primary");
    cluster.carry_out(&plan);
    assert_eq!(cluster.loads(), [(5, 6), (6, 5), (5, 5)]);
}

#[test]
fn weights_1_1_2_end_with_shares_1_1_2() {
    let mut cluster = Cluster::new(Mask::M000F);
    for (id, weight) in [(2, 1), (3, 2)] {
        let plan = cluster.join(Member { weight, ..member(id) });
        cluster.carry_out(&plan);
    }
    assert_eq!(cluster.loads(), [(4, 4), (4, 4), (8, 8)]);
}

#[test]
fn copies_stand_in_different_zones_where_shares_allow() {
    let mut cluster = Cluster::new(Mask::M00FF);
    let zoned = |id: u64, zone: &str| Member { zone: Zone(zone.to_owned()), ..member(id) };
    cluster.commit(&Change::Join(zoned(1, "east")));
    for (id, zone) in [(2, "east"), (3, "west"), (4, "west")] {
        let plan = cluster.join(zoned(id, zone));
        cluster.carry_out(&plan);
    }
    let zone = |node: &NodeId| &cluster.map.member(*node).unwrap().zone;
    for bucket in cluster.map.buckets() {
        assert_ne!(zone(&bucket.holders[0]), zone(&bucket.holders[1]), "{bucket:?}");
    }
    let totals: Vec<u32> = cluster.map.loads().iter().map(|load| load.total()).collect();
    assert_eq!(totals, [128; 4]);
}

#[test]
fn a_witness_holds_nothing_and_does_not_count() {
    let mut cluster = Cluster::new(Mask::M000F);
    let plan = cluster.join(Member { weight: 0, ..member(2) });
    assert!(plan.is_empty());
    let plan = cluster.join(member(3));
    cluster.carry_out(&plan);
    assert_eq!(cluster.loads(), [(8, 8), (0, 0), (8, 8)]);
}

#[test]
fn fewer_backups_drop_copies_and_make_none() {
    let mut cluster = Cluster::new(Mask::M000F);
    for id in 2..=3 {
        let plan = cluster.join(member(id));
        cluster.carry_out(&plan);
    }
    cluster.commit(&Change::Set(crate::map::Setting::Backups(0)));
    let plan = Plan::of(&cluster.map);
    assert_eq!(plan.copies_to_make(), 0);
    cluster.carry_out(&plan);
    let totals: Vec<u32> = cluster.map.loads().iter().map(|load| load.total()).collect();
    assert_eq!(totals, [6, 5, 5]);
}

#[test]
fn lost_buckets_are_left_alone() {
    let mut cluster = Cluster::new(Mask::M000F);
    cluster.join(member(2));
    cluster.commit(&Change::Dead([NodeId(1)].into()));
    assert!(Plan::of(&cluster.map).is_empty());
}

#[test]
fn a_node_that_was_away_gets_its_own_buckets_again_and_nothing_else_moves() {
    for nodes in [2, 3, 5] {
        let mut cluster = Cluster::new(Mask::M00FF);
        for id in 2..=nodes {
            let plan = cluster.join(member(id));
            cluster.carry_out(&plan);
        }
        let away = NodeId(2);
        let held = |cluster: &Cluster| -> Vec<Hashmask> {
            let held = cluster.map.buckets().filter(|bucket| bucket.is_held_by(away));
            held.map(|bucket| bucket.hashmask).collect()
        };
        let before = held(&cluster);
        cluster.commit(&Change::Join(Member { weight: 0, ..member(2) }));
        let served: Vec<_> =
            cluster.map.buckets().filter(|it| it.primary() == Some(away)).cloned().collect();
        for bucket in served {
            let (node, expected) = (bucket.backups()[0], bucket.epoch);
            cluster.commit(&Change::Promote { bucket: bucket.hashmask, node, expected });
        }
        cluster.commit(&Change::Away {
            node: away,
            boot: member(2).boot,
            absence: core::time::Duration::from_secs(60),
            way: LeaveWay::Quick,
        });
        let plan = Plan::of(&cluster.map);
        cluster.carry_out(&plan);
        let plan = cluster.join(Member { boot: Boot(2), ..member(2) });
        cluster.carry_out(&plan);
        let again = held(&cluster);
        assert!(again.iter().all(|bucket| before.contains(bucket)), "{nodes} nodes");
        // If shares are not whole numbers, another node may hold the extra one.
        assert!(again.len() + 1 >= before.len(), "{nodes} nodes");
        assert_eq!(plan.copies_to_make(), again.len(), "{nodes} nodes");
    }
}

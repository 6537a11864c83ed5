//! Nodes whose memory is short: they give copies away, and the primaries of their backups make room.

use std::collections::BTreeMap;

use super::world::{World, ms};
use crate::balance::{MemoryLevel, MemoryReport, Vitals};
use crate::control::Input;
use crate::map::{Bucket, NodeId};

/// Bytes of a copy.
const COPY: u64 = 100;

/// Reports the memory of all nodes several times, as servers do. Each copy takes `COPY` bytes, and these
/// nodes have these limits; the others have none.
fn report_for(t: &mut World, millis: u64, limits: &[(u64, u64)]) {
    for _ in 0..millis / 250 {
        for id in t.members() {
            let (map, node) = (t.map().clone(), NodeId(id));
            let held = map.buckets().filter(|bucket| bucket.is_held_by(node));
            let copies: BTreeMap<_, _> = held.map(|bucket| (bucket.hashmask, COPY)).collect();
            let max = limits.iter().find(|(limited, _)| *limited == id).map_or(0, |(_, max)| *max);
            let level = MemoryLevel { used: copies.len() as u64 * COPY, max, evicts: false };
            t.give(node, Input::Vitals(Vitals { memory: level, ..Vitals::default() }));
            t.give(node, Input::Memory(MemoryReport { level, base: 0, copies }));
        }
        t.run(ms(250));
    }
}

fn held(t: &World, node: u64) -> (u32, u32) {
    let load = t.map().load(NodeId(node));
    (load.primaries, load.backups)
}

fn is_whole(t: &World) -> bool {
    t.map().buckets().all(|bucket| bucket.holders.len() == 2)
}

#[test]
fn a_crowded_node_gives_backups_away_to_nodes_with_room() {
    let mut t = World::of(3);
    let (primaries, backups) = held(&t, 2);
    let limit = u64::from(primaries + backups) * COPY;
    report_for(&mut t, 5_000, &[(2, limit)]);
    let (primaries_now, backups_now) = held(&t, 2);
    assert_eq!(primaries_now, primaries, "backups go first");
    let used = u64::from(primaries_now + backups_now) * COPY;
    assert!(
        used < limit * 9 / 10 && used >= limit * 7 / 10,
        "{used} of {limit}: no more than needed"
    );
    assert!(is_whole(&t));
    let epoch = t.map().epoch();
    report_for(&mut t, 5_000, &[(2, limit)]);
    assert_eq!(t.map().epoch(), epoch, "nothing goes back");
}

#[test]
fn when_all_backups_are_gone_primaries_follow() {
    let mut t = World::of(3);
    report_for(&mut t, 10_000, &[(2, 4 * COPY)]);
    let (primaries, backups) = held(&t, 2);
    assert!(backups == 0 && (1..4).contains(&primaries), "{primaries} and {backups} are left");
    assert!(is_whole(&t));
}

#[test]
fn without_room_anywhere_nothing_moves_and_the_primaries_are_asked_to_make_room() {
    let mut t = World::of(3);
    let epoch = t.map().epoch();
    let limits = [(1, 9 * COPY), (2, 8 * COPY), (3, 9 * COPY)];
    report_for(&mut t, 3_000, &limits);
    assert_eq!(t.map().epoch(), epoch, "all are crowded");
    let debts = &t.node(1).debts;
    let to_second = debts.iter().filter(|(full, _)| *full == NodeId(2));
    assert!(to_second.count() >= 3, "{debts:?}: it is asked again and again");
    let asked = t.node(1).debts.iter().chain(&t.node(3).debts).filter(|it| it.0 == NodeId(2));
    assert!(asked.into_iter().any(|(_, bytes)| *bytes > 0), "somebody has to make room");
}

#[test]
fn a_missing_copy_goes_where_there_is_room() {
    let mut t = World::of(4);
    let copies = held(&t, 2).0 + held(&t, 2).1;
    t.kill(4);
    // By the plan it would get three more.
    let limit = u64::from(copies) * COPY + COPY / 2;
    report_for(&mut t, 20_000, &[(2, limit)]);
    assert!(is_whole(&t), "copies that it has no room for are elsewhere");
    let used = u64::from(held(&t, 2).0 + held(&t, 2).1) * COPY;
    assert!(used <= limit + COPY, "{used} of {limit}");
}

#[test]
fn without_room_anywhere_a_missing_copy_is_made_nevertheless() {
    let mut t = World::of(4);
    let limits = [1, 2, 3, 4].map(|id| (id, 7 * COPY));
    report_for(&mut t, 1_000, &limits);
    t.kill(4);
    report_for(&mut t, 10_000, &limits);
    assert!(!is_whole(&t), "what may not be evicted has no place");
    for id in t.members() {
        let level = MemoryLevel { used: 8 * COPY, max: 7 * COPY, evicts: true };
        t.give(NodeId(id), Input::Vitals(Vitals { memory: level, ..Vitals::default() }));
    }
    t.run(ms(10_000));
    assert!(is_whole(&t), "keys can be evicted");
}

#[test]
fn a_crowded_node_can_become_primary_of_what_it_holds() {
    let mut t = World::of(3);
    let limit = 14 * COPY;
    t.kill(3);
    report_for(&mut t, 5_000, &[(2, limit)]);
    let is_served = |bucket: &Bucket| bucket.primary().is_some();
    assert!(t.map().buckets().all(is_served), "a promotion needs no memory");
    assert!(held(&t, 2).0 >= 5, "{:?}", held(&t, 2));
}

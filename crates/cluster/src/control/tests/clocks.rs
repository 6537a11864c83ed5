//! Wall clocks that differ are reported as long as they do, and nothing else is reported.

use std::collections::BTreeMap;

use placement::Slot;
use sim_engine::Quality;
use store::UnixMillis;

use super::super::{Input, Skew};
use super::world::{CALM, World, ms};
use crate::map::{LogIndex, NodeId};

const EPOCH_MILLIS: i64 = 1_700_000_000_000;

/// Lets this many seconds pass. In each of them every node reads its wall clock, which is off by this
/// many milliseconds.
fn tick(t: &mut World, seconds: u64, off: &BTreeMap<u64, i64>) {
    for _ in 0..seconds {
        for id in t.members() {
            let true_time = i64::try_from(t.now.clock_reading().as_millis()).unwrap();
            let wall = EPOCH_MILLIS + true_time + off.get(&id).unwrap_or(&0);
            t.give(NodeId(id), Input::Clock(UnixMillis(wall.cast_unsigned())));
        }
        t.run(ms(1_000));
    }
}

fn off(node: u64, millis: i64) -> BTreeMap<u64, i64> {
    BTreeMap::from([(node, millis)])
}

/// Returns the findings of one node about another, in milliseconds; `None` when they agree again.
fn findings(t: &World, by: u64, about: u64) -> Vec<Option<i64>> {
    let mine = t.skews.iter().filter(|(_, node, _)| node.0 == by);
    let of_it = mine.filter_map(|(_, _, skew)| match skew {
        Skew::Apart { node, millis } => (node.0 == about).then_some(Some(*millis)),
        Skew::Agreed { node } => (node.0 == about).then_some(None),
    });
    of_it.collect()
}

#[test]
fn clocks_that_agree_within_a_second_are_no_news() {
    let mut t = World::of(3);
    t.network.quality = Quality { delay_us: (1_000, 300_000), lost: 50, doubled: 50, broken: 0 };
    let ahead = off(t.follower(), 600);
    tick(&mut t, 600, &ahead);
    assert!(t.skews.is_empty(), "{:?}", t.skews);
}

#[test]
fn a_clock_that_is_ahead_is_reported_on_both_sides_at_once_and_every_minute() {
    let mut t = World::of(3);
    let (leader, ahead) = (t.leader().unwrap(), t.follower());
    tick(&mut t, 6, &off(ahead, 2_500));
    let about = |t: &World| (findings(t, leader, ahead), findings(t, ahead, leader));
    let (by_leader, by_itself) = about(&t);
    assert_eq!((by_leader.len(), by_itself.len()), (1, 1), "{:?}", t.skews);
    assert!(by_leader[0].is_some_and(|millis| (2_400..=2_500).contains(&millis)), "{by_leader:?}");
    assert!(
        by_itself[0].is_some_and(|millis| (-2_600..=-2_500).contains(&millis)),
        "{by_itself:?}"
    );
    tick(&mut t, 570, &off(ahead, 2_500));
    let (by_leader, by_itself) = about(&t);
    assert_eq!((by_leader.len(), by_itself.len()), (10, 10), "once a minute as long as it lasts");
    assert_eq!(t.skews.len(), 20, "the third clock agrees with the leader's");
    tick(&mut t, 10, &BTreeMap::new());
    assert_eq!(findings(&t, leader, ahead).last(), Some(&None), "they agree again");
    assert_eq!(findings(&t, ahead, leader).last(), Some(&None));
    assert_eq!(t.skews.len(), 22, "{:?}", &t.skews[18..]);
}

#[test]
fn the_leader_knows_the_skew_of_all_and_the_others_that_of_the_leader() {
    let mut t = World::of(3);
    let (leader, ahead) = (t.leader().unwrap(), t.follower());
    tick(&mut t, 6, &off(ahead, -70_000));
    let known: Vec<u64> = t.control(leader).skews().map(|(node, _)| node.0).collect();
    assert_eq!(known.len(), 2);
    let by_itself: Vec<(NodeId, i64)> = t.control(ahead).skews().collect();
    assert_eq!(by_itself.len(), 1);
    assert!(by_itself[0].0.0 == leader && by_itself[0].1 >= 69_900, "{by_itself:?}");
}

#[test]
fn a_node_that_was_stopped_for_long_is_not_taken_for_one_with_a_wrong_clock() {
    let mut t = World::of(3);
    let stopped = t.follower();
    tick(&mut t, 5, &BTreeMap::new());
    for _ in 0..5 {
        t.stop(stopped);
        // Shorter than it takes to be declared dead; messages to it wait in its sockets.
        t.run(ms(900));
        t.go_on(stopped);
        tick(&mut t, 3, &BTreeMap::new());
    }
    assert!(t.skews.is_empty(), "{:?}", t.skews);
}

#[test]
fn a_clock_that_is_set_right_is_no_news_of_the_others() {
    let mut t = World::of(3);
    let leader = t.leader().unwrap();
    tick(&mut t, 10, &off(leader, 900));
    t.skews.clear();
    tick(&mut t, 10, &off(leader, -900));
    assert!(t.skews.is_empty(), "{:?}", t.skews);
}

#[test]
fn a_flood_of_refused_frames_does_not_cost_the_lease() {
    let mut t = World::of(3);
    // Its answers take longer than a hundred refused frames.
    t.network.quality = Quality { delay_us: (100_000, 100_000), ..CALM };
    let flooded = t.follower();
    let (slot, reign) = (Slot::new(1).unwrap(), LogIndex(u64::MAX));
    for _ in 0..3_000 {
        t.give(NodeId(flooded), Input::NewerReignSeen { slot, reign });
        t.run(ms(1));
        assert!(t.has_lease(flooded), "its open questions are forgotten");
    }
}

//! Handovers, splits, fills and proposals that interfere with each other.

use placement::{Hashmask, Mask};
use sim_engine::Quality;

use super::world::{CALM, World, ms};
use crate::balance::{BucketSize, Condition, SizeReport, Vitals};
use crate::control::{Answer, Input, OperatorRequest};
use crate::map::NodeId;

fn bucket(text: &str) -> Hashmask {
    text.parse().unwrap()
}

#[test]
fn a_bucket_that_does_not_drain_is_served_again_after_a_lease() {
    let mut t = World::of(1);
    t.join(2);
    t.run_until(|t| t.is_member(2));
    t.hold_drains(1);
    t.run_until(|t| !t.node(1).drains.is_empty());
    let (paused, epoch) = t.node(1).drains[0];
    t.run(ms(900));
    assert_eq!(t.map().bucket(paused).unwrap().epoch, epoch);
    t.run(ms(300));
    let state = t.map().bucket(paused).unwrap().clone();
    assert!(state.epoch > epoch, "by the epoch it knows that it may serve");
    assert_eq!(state.primary(), Some(NodeId(1)));
    t.release_drains(1);
    t.settle();
    t.assert_balanced();
}

#[test]
fn a_split_ends_a_handover_and_the_primary_goes_on() {
    let mut t = World::of(1);
    t.join(2);
    t.run_until(|t| t.is_member(2));
    t.hold_drains(1);
    t.run_until(|t| !t.node(1).drains.is_empty());
    let (paused, epoch) = t.node(1).drains[0];
    let split = t.ask(2, OperatorRequest::Split(Some(paused)));
    t.run_until(|t| t.answers.contains_key(&split));
    assert!(t.map().bucket(paused).is_none());
    // The answer of the data plane comes too late: it promotes nothing.
    let before = t.map();
    t.release_drains(1);
    t.give(NodeId(1), Input::Drained { buckets: vec![(paused, epoch)] });
    for child in paused.split() {
        assert_eq!(before.bucket(child).unwrap().primary(), Some(NodeId(1)));
    }
    t.settle();
    t.assert_balanced();
}

#[test]
fn an_operator_splits_everything_or_one_bucket() {
    let mut t = World::of(2);
    let one = t.ask(2, OperatorRequest::Split(Some(bucket("000F/0003"))));
    t.run_until(|t| t.answers.contains_key(&one));
    t.settle();
    assert_eq!((t.map().bucket_count(), &t.answers[&one]), (31, &Answer::Done));
    let all = t.ask(1, OperatorRequest::Split(None));
    t.run_until(|t| t.answers.contains_key(&all));
    t.settle();
    assert_eq!((t.map().bucket_count(), &t.answers[&all]), (256, &Answer::Done));
    let none = t.ask(1, OperatorRequest::Split(Some(bucket("000F/0003"))));
    assert_eq!(t.answers[&none], Answer::Refused("there is no bucket 000F/0003".into()));
}

#[test]
fn the_seventh_node_finds_smaller_buckets() {
    let mut t = World::of(5);
    assert_eq!(t.map().bucket_count(), 16);
    t.join(6);
    t.join(7);
    t.settle();
    assert_eq!(t.map().bucket_count(), 256);
    t.assert_balanced();
}

#[test]
fn a_bucket_that_has_outgrown_the_rest_is_split_whoever_serves_it() {
    let mut t = World::of(3);
    let large = t.map().buckets().find(|it| it.primary() == Some(NodeId(2))).unwrap().hashmask;
    let map = t.map();
    for id in [1, 2, 3] {
        let mine = map.buckets().filter(|it| it.primary() == Some(NodeId(id)));
        let size = |bucket| {
            let bytes = if bucket == large { 100 << 20 } else { 1 << 20 };
            BucketSize { bucket, bytes, largest_slot_bytes: bytes / 64 }
        };
        let report = SizeReport::new(64 << 20, mine.map(|it| size(it.hashmask)));
        t.give(NodeId(id), Input::Sizes(report));
    }
    t.run(ms(100));
    assert_eq!(t.map().bucket_count(), 31);
    assert!(t.map().bucket(large).is_none());
}

#[test]
fn a_fill_that_fails_is_tried_again() {
    let mut t = World::of(1);
    t.hold_fills(1);
    t.join(2);
    t.run_until(|t| !t.node(1).fills.is_empty());
    let (move_id, ..) = t.node(1).fills[0];
    t.give(NodeId(1), Input::FillFailed { move_id });
    t.run_until(|t| t.node(1).fills.iter().any(|(other, ..)| *other != move_id));
    t.release_fills(1);
    t.settle();
    t.assert_balanced();
}

#[test]
fn a_fill_that_named_an_older_epoch_adds_no_copy() {
    let mut t = World::of(1);
    t.hold_fills(1);
    t.join(2);
    t.run_until(|t| !t.node(1).fills.is_empty());
    let (move_id, ref buckets, _) = t.node(1).fills[0];
    let filled = buckets[0];
    let epoch = t.map().bucket(filled).unwrap().epoch;
    // Another change of the bucket: a copy that does not exist is dropped.
    t.give(NodeId(1), Input::OutOfSync { bucket: filled, node: NodeId(2), epoch });
    t.run(ms(20));
    assert!(t.map().bucket(filled).unwrap().epoch > epoch);
    t.give(NodeId(1), Input::FillDone { move_id, filled: vec![(filled, epoch)] });
    t.run(ms(20));
    assert!(!t.map().bucket(filled).unwrap().is_held_by(NodeId(2)), "the taker has let it go");
    t.release_fills(1);
    t.settle();
}

#[test]
fn a_backup_that_fell_out_of_sync_is_dropped_and_filled_again() {
    let mut t = World::of(3);
    let state = t.map().bucket(bucket("000F/0004")).unwrap().clone();
    let (primary, backup) = (state.holders[0], state.holders[1]);
    let input = Input::OutOfSync { bucket: state.hashmask, node: backup, epoch: state.epoch };
    t.give(primary, input);
    t.run_until(|t| !t.map().bucket(state.hashmask).unwrap().is_held_by(backup));
    t.settle();
    t.assert_balanced();
}

#[test]
fn a_backup_that_is_stuck_again_and_again_is_filled_again_ever_later() {
    let mut t = World::of(2);
    let first = t.map().buckets().next().unwrap().clone();
    let (primary, backup) = (first.holders[0], first.holders[1]);
    let is_held = |t: &World| t.map().bucket(first.hashmask).unwrap().is_held_by(backup);
    let mut waits = Vec::new();
    for _ in 0..4 {
        let (bucket, node) = (first.hashmask, backup);
        let epoch = t.map().bucket(bucket).unwrap().epoch;
        t.give(primary, Input::Stuck { node });
        t.give(primary, Input::OutOfSync { bucket, node, epoch });
        t.run_until(|t| !is_held(t));
        let begun = t.now;
        t.run_until(is_held);
        waits.push(t.now.since(begun));
        t.run(ms(100)); // The primary learns of it, too.
    }
    let least = [400, 900, 1_800, 3_600];
    let kept = waits.iter().zip(least).all(|(wait, least)| *wait >= ms(least));
    assert!(kept && waits[0] < ms(3_000), "{waits:?}");
}

#[test]
fn what_is_lost_on_the_way_is_said_again_until_it_is_done() {
    let mut t =
        World::new(3, Quality { delay_us: (1_000, 20_000), lost: 200, doubled: 100, broken: 0 });
    t.found(1);
    for id in 2..=4 {
        t.join(id);
        t.run_until(|t| t.is_member(id));
    }
    t.settle();
    t.assert_balanced();
    let goes = t.follower();
    t.leave(goes);
    t.run_until(|t| !t.members().contains(&goes));
    t.settle();
    t.assert_balanced();
}

#[test]
fn a_sick_node_hands_on_what_it_serves_and_gets_it_back_when_it_is_well() {
    let mut t = World::of(3);
    let sick = Vitals { condition: Condition::Sick, ..Vitals::default() };
    t.give(NodeId(2), Input::Vitals(sick));
    t.run_until(|t| t.map().load(NodeId(2)).primaries == 0);
    t.run(ms(20_000));
    assert_eq!(t.map().load(NodeId(2)).primaries, 0);
    t.give(NodeId(2), Input::Vitals(Vitals::default()));
    t.run_until(|t| t.map().load(NodeId(2)).primaries >= 5);
    t.settle();
    t.assert_balanced();
}

#[test]
fn two_sick_nodes_do_not_hand_a_bucket_to_and_fro() {
    let mut t = World::of(2);
    let sick = Vitals { condition: Condition::Sick, ..Vitals::default() };
    for id in [1, 2] {
        t.give(NodeId(id), Input::Vitals(sick));
    }
    t.run(ms(5_000));
    let epoch = t.map().epoch();
    t.run(ms(20_000));
    assert_eq!(t.map().epoch(), epoch);
}

#[test]
fn a_node_that_reaches_hardly_anybody_cannot_drop_its_backups() {
    let mut t = World::of(4);
    let gray = t.follower();
    let state = t.map().buckets().find(|it| it.primary() == Some(NodeId(gray))).unwrap().clone();
    let leader = t.leader().unwrap();
    // It reaches the leader and no other node.
    let others = t.members().into_iter().filter(|id| ![gray, leader].contains(id));
    for other in others.collect::<Vec<_>>() {
        t.network.cut.extend([(NodeId(gray), NodeId(other)), (NodeId(other), NodeId(gray))]);
        t.give(NodeId(gray), Input::Unreachable(NodeId(other)));
    }
    t.run(ms(1_300));
    let node = state.holders[1];
    let epoch = t.map().bucket(state.hashmask).unwrap().epoch;
    t.give(NodeId(gray), Input::OutOfSync { bucket: state.hashmask, node, epoch });
    t.run(ms(3_000));
    let after = t.map().bucket(state.hashmask).unwrap().clone();
    assert!(after.is_held_by(node), "the copy that others reach stays: {after:?}");
}

#[test]
fn whoever_looks_around_sees_how_the_others_are_and_who_is_silent() {
    let mut t = World::of(3);
    let vitals = Vitals { ops_per_second: 7, lag_bytes: 9, ..Vitals::default() };
    t.give(NodeId(2), Input::Vitals(vitals));
    assert!(t.node(1).control.sights().is_empty(), "nobody has looked");
    t.give(NodeId(1), Input::LookAround);
    t.run(ms(100));
    assert_eq!(t.node(1).control.sights()[&NodeId(2)].vitals, vitals);
    assert_eq!(t.node(1).control.sights().len(), 2);
    t.cut_off(&[3]);
    t.give(NodeId(1), Input::LookAround);
    t.run(ms(500));
    assert_eq!(t.node(1).control.silence_of(NodeId(3)), None, "not yet");
    t.run(ms(600));
    assert!(t.node(1).control.silence_of(NodeId(3)) >= Some(ms(1_000)));
    assert_eq!(t.node(1).control.silence_of(NodeId(2)), None);
}

#[test]
fn a_move_is_told_by_those_who_take_part_in_it() {
    let mut t = World::of(1);
    t.join(2);
    t.hold_drains(1);
    t.run_until(|t| !t.node(1).drains.is_empty());
    t.give(NodeId(2), Input::LookAround);
    t.run(ms(50));
    let sight = t.node(2).control.sights()[&NodeId(1)].clone();
    let told = sight.moving.expect("it is in the middle of a move");
    assert_eq!((&*told.giver, &*told.taker), ("n1", "n2"));
    assert!(!told.rule.is_empty(), "the giver knows why: {told:?}");
    t.release_drains(1);
    t.settle();
    t.give(NodeId(2), Input::LookAround);
    t.run(ms(50));
    assert_eq!(t.node(2).control.sights()[&NodeId(1)].moving, None);
}

/// Returns a node with 256 buckets that fills a second one, and holds its fills.
fn two_with_small_buckets() -> World {
    let mut t = World::new(1, CALM);
    t.mask = Mask::M00FF;
    t.found(1);
    t.run_until(|t| t.is_member(1));
    t.hold_fills(1);
    t.join(2);
    t.run_until(|t| !t.node(1).fills.is_empty());
    t
}

fn held_by(t: &World, node: u64) -> usize {
    t.map().buckets().filter(|bucket| bucket.is_held_by(NodeId(node))).count()
}

#[test]
fn small_buckets_move_together_and_become_copies_in_one_step() {
    let mut t = two_with_small_buckets();
    let buckets = t.node(1).fills[0].1.clone();
    assert_eq!(buckets.len(), 16, "as many slots as one of 16 buckets has");
    let before = t.control(1).applied();
    t.release_fills(1);
    t.hold_fills(1);
    t.run_until(|t| held_by(t, 2) > 0);
    assert_eq!(held_by(&t, 2), 16);
    assert_eq!(t.control(1).applied().0, before.0 + 1);
    t.release_fills(1);
    t.settle();
    t.assert_balanced();
}

#[test]
fn a_move_that_is_cut_short_adds_what_was_copied_and_goes_on() {
    let mut t = two_with_small_buckets();
    let (move_id, ref buckets, _) = t.node(1).fills[0];
    let copied = buckets[..3].to_vec();
    let epoch = |bucket| t.map().bucket(bucket).unwrap().epoch;
    let filled = copied.iter().map(|bucket| (*bucket, epoch(*bucket))).collect();
    t.give(NodeId(1), Input::FillDone { move_id, filled });
    t.run_until(|t| held_by(t, 2) > 0);
    assert!(copied.iter().all(|it| t.map().bucket(*it).unwrap().is_held_by(NodeId(2))));
    assert_eq!(held_by(&t, 2), 3);
    t.run_until(|t| t.node(1).fills.iter().any(|(other, ..)| *other != move_id));
    t.release_fills(1);
    t.settle();
    t.assert_balanced();
}

#[test]
fn buckets_that_changed_meanwhile_are_left_out_of_a_move() {
    let mut t = two_with_small_buckets();
    let (move_id, ref buckets, _) = t.node(1).fills[0];
    let buckets = buckets.clone();
    let epoch = |bucket| t.map().bucket(bucket).unwrap().epoch;
    let filled: Vec<_> = buckets.iter().map(|bucket| (*bucket, epoch(*bucket))).collect();
    let (changed, old) = filled[5];
    t.give(NodeId(1), Input::OutOfSync { bucket: changed, node: NodeId(2), epoch: old });
    t.run(ms(20));
    t.give(NodeId(1), Input::FillDone { move_id, filled });
    t.run_until(|t| held_by(t, 2) > 0);
    assert_eq!(held_by(&t, 2), 15);
    assert!(!t.map().bucket(changed).unwrap().is_held_by(NodeId(2)), "the taker has let it go");
    t.release_fills(1);
    t.settle();
    t.assert_balanced();
}

#[test]
fn buckets_that_are_handed_over_together_are_served_again_together() {
    let mut t = two_with_small_buckets();
    t.hold_drains(1);
    t.release_fills(1);
    t.run_until(|t| !t.node(1).drains.is_empty());
    let drains = t.node(1).drains.clone();
    assert_eq!(drains.len(), 16);
    t.run(ms(1_300));
    for (bucket, epoch) in drains {
        let state = t.map().bucket(bucket).unwrap().clone();
        assert!(state.epoch > epoch && state.primary() == Some(NodeId(1)), "{state:?}");
    }
    t.release_drains(1);
    t.settle();
    t.assert_balanced();
}

#[test]
fn a_new_node_is_filled_as_soon_as_it_knows_the_map() {
    let mut t = World::of(3);
    t.join(4);
    t.run_until(|t| t.is_member(4));
    let begun = t.now;
    let is_filled = |t: &World| {
        let fills = |id| t.node(id).fills.iter();
        [1, 2, 3].into_iter().any(|id| fills(id).any(|(_, _, taker)| *taker == NodeId(4)))
    };
    t.run_until(is_filled);
    assert!(t.now.since(begun) < ms(150), "{:?}", t.now.since(begun));
}

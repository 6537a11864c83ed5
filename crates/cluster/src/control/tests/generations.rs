//! Going on alone, meeting again, and buckets that all holders have lost.

use placement::{Hashmask, Mask};

use super::rules::of_two_with_a_third_in_the_log;
use super::world::{World, member, ms};
use crate::Moment;
use crate::control::recreate::{AWAITED_FOR, LostBuckets};
use crate::control::{Answer, Freshness, Input, KeptCopy, OperatorRequest};
use crate::map::{
    Change, ClusterSettings, Generation, LogIndex, Map, NodeId, RecreateSource, Setting,
};

fn of_two_without_the_second() -> World {
    let mut t = World::of(2);
    t.kill(2);
    t.run(ms(3_000));
    t
}

pub(super) fn everything(kept: Freshness) -> Input {
    let offer = |bucket| KeptCopy { bucket, kept, position: (LogIndex(1), 1) };
    Input::Found(Hashmask::all(Mask::M000F).map(offer).collect())
}

#[test]
fn the_survivor_of_two_goes_on_alone_when_a_client_turns_to_it() {
    let mut t = of_two_without_the_second();
    assert!(!t.has_lease(1) && t.control(1).may_take_over());
    t.client_turns_to(1);
    assert!(t.has_lease(1));
    assert_eq!((t.loads(), t.generation(1)), (vec![(16, 0)], (2, 1)));
    assert_eq!(t.control(1).partitioned_members().len(), 1);
    // It grows again; then it is greater than a side that has stayed alone.
    t.join(3);
    t.settle();
    assert_eq!((t.loads(), t.generation(3)), (vec![(8, 8), (8, 8)], (3, 1)));
}

#[test]
fn it_does_not_before_the_lease_of_the_other_has_surely_run_out() {
    let mut t = World::of(2);
    t.kill(2);
    for _ in 0..12 {
        t.run(ms(100));
        t.client_turns_to(1);
        assert_eq!(t.members(), [1, 2]);
    }
}

#[test]
fn it_does_not_if_that_is_switched_off() {
    let mut t = World::of(2);
    let set = t.set(1, Setting::TwoNodeTakeover(false));
    t.run_until(|t| t.answers.contains_key(&set));
    t.kill(2);
    t.run(ms(5_000));
    t.client_turns_to(1);
    assert_eq!(t.members(), [1, 2]);
}

#[test]
fn it_does_not_while_it_hears_from_the_other() {
    let mut t = World::of(2);
    t.network.cut.insert((NodeId(1), NodeId(2)));
    t.run(ms(5_000));
    assert!(!t.has_lease(1));
    t.client_turns_to(1);
    assert_eq!(t.members(), [1, 2]);
}

#[test]
fn of_three_nobody_goes_on_alone() {
    let mut t = World::of(3);
    t.kill(2);
    t.kill(3);
    t.run(ms(5_000));
    t.client_turns_to(1);
    assert_eq!(t.members(), [1, 2, 3]);
    assert!(!t.has_lease(1));
}

#[test]
fn it_does_not_if_a_third_stands_in_its_log_though_undecided() {
    let (mut t, leader, other) = of_two_with_a_third_in_the_log();
    t.kill(leader);
    t.run(ms(5_000));
    assert!(t.control(other).consensus.undecided().next().is_some());
    t.client_turns_to(other);
    assert_eq!(t.members(), [1, 2]);
}

#[test]
fn a_restarted_process_of_two_does_not_go_on_with_nothing() {
    let mut t = World::of(2);
    t.kill(2);
    let disk = t.kill(1).unwrap();
    t.restart(1, 555, disk);
    t.run(ms(5_000));
    t.client_turns_to(1);
    assert_eq!(t.members(), [1, 2]);
}

#[test]
fn one_that_was_only_stopped_yields_to_the_one_that_took_over() {
    let mut t = World::of(2);
    t.stop(2);
    t.run(ms(3_000));
    t.client_turns_to(1);
    t.go_on(2);
    assert!(!t.has_lease(2));
    t.run_until(|t| !t.nodes.contains_key(&NodeId(2)));
    assert_eq!(t.gone(2), "Yielded(Generation { counter: 2, founder: NodeId(1) })");
    assert!(t.has_lease(1));
}

#[test]
fn if_both_went_on_alone_the_lesser_yields_and_hands_over_what_it_wrote() {
    let mut t = World::of(2);
    t.cut_off(&[1]);
    t.run(ms(3_000));
    t.client_turns_to(1);
    t.client_turns_to(2);
    assert!(t.has_lease(1) && t.has_lease(2), "that is the price");
    t.network.cut.clear();
    t.meet(1, 2);
    assert!(t.has_lease(2) && !t.has_lease(1), "of two alike the greater founder stands");
    t.run(ms(1_000));
    assert_eq!(t.gone(1), "", "first it hands over");
    t.give(NodeId(1), Input::Merged);
    assert_eq!(t.gone(1), "Yielded(Generation { counter: 2, founder: NodeId(2) })");
}

#[test]
fn a_side_that_has_grown_stands_before_one_that_has_not() {
    let mut t = World::of(2);
    t.cut_off(&[1]);
    t.run(ms(3_000));
    t.client_turns_to(1);
    t.client_turns_to(2);
    t.join_at(1, 3);
    t.run_until(|t| t.is_member(3));
    t.network.cut.clear();
    t.meet(1, 2);
    assert!(t.has_lease(1) && !t.has_lease(2));
}

#[test]
fn a_side_that_has_yielded_lets_nobody_join() {
    let mut t = World::of(2);
    t.cut_off(&[1]);
    t.run(ms(3_000));
    t.client_turns_to(1);
    t.client_turns_to(2);
    t.meet(1, 2);
    t.kill(2);
    t.join(3);
    t.run(ms(1_000));
    assert_eq!((t.members_by(1), t.refused.is_empty()), (vec![1], true), "it is told to wait");
}

#[test]
fn by_the_operators_word_a_survivor_goes_on_without_the_majority() {
    let mut t = World::of(5);
    let takeover = t.ask(1, OperatorRequest::Takeover);
    let text = "this node holds a lease: the cluster can decide without a takeover";
    assert_eq!(t.answers[&takeover], Answer::Refused(text.into()));
    for id in [2, 3, 4] {
        t.kill(id);
    }
    t.run(ms(5_000));
    assert!(!t.has_lease(1));
    let takeover = t.ask(1, OperatorRequest::Takeover);
    assert_eq!(t.answers[&takeover], Answer::Done);
    assert!(t.has_lease(1));
    assert_eq!(t.members_by(1), [1]);
    // The other survivor meets it, yields and may come back as a new process.
    t.meet(1, 5);
    assert_eq!(t.gone(5), "", "first it hands over what only it has held");
    t.give(NodeId(5), Input::Merged);
    assert!(t.gone(5).starts_with("Yielded"));
}

#[test]
fn a_lost_bucket_waits_and_then_begins_again_empty() {
    let mut t = World::of(5);
    let leader = t.leader().unwrap();
    let victims: Vec<u64> = t.members().into_iter().filter(|id| *id != leader).take(2).collect();
    for id in &victims {
        t.kill(*id);
    }
    t.run_until(|t| t.members().len() == 3);
    let lost = t.map().lost().count();
    assert!(lost > 0);
    t.run(ms(29_000));
    assert_eq!(t.map().lost().count(), lost);
    t.run(ms(2_000));
    assert_eq!(t.map().lost().count(), 0);
    t.settle();
    t.assert_balanced();
}

#[test]
fn if_it_shall_never_begin_again_it_stays_lost() {
    let mut t = World::of(3);
    let set = t.set(1, Setting::LostAfter(None));
    t.run_until(|t| t.answers.contains_key(&set));
    let set = t.set(1, Setting::Backups(0));
    t.run_until(|t| t.answers.contains_key(&set));
    t.run_until(|t| t.map().buckets().all(|bucket| bucket.holders.len() == 1));
    let victim = t.follower();
    t.kill(victim);
    t.run(ms(120_000));
    assert!(t.map().lost().count() >= 5);
}

#[test]
fn a_lone_node_comes_back_with_all_it_had() {
    let mut t = World::of(1);
    let disk = t.kill(1).unwrap();
    t.restart(1, 4242, disk);
    t.run(ms(400));
    assert_eq!(t.map().lost().count(), 16);
    // It takes its time to read, and joining nodes wait for that.
    t.join(2);
    t.run(ms(60_000));
    assert_eq!((t.map().lost().count(), t.members()), (16, vec![1]));
    t.give(NodeId(1), everything(Freshness::AsItWas));
    t.run(ms(200));
    assert_eq!(t.map().lost().count(), 0);
    t.settle();
    assert_eq!(t.loads(), [(8, 8), (8, 8)]);
}

#[test]
fn one_of_the_last_holders_brings_a_bucket_back_at_once_and_others_when_time_is_up() {
    for (kept, from, wait) in [
        (Freshness::AsItWas, RecreateSource::OwnData, 3_000),
        (Freshness::Older, RecreateSource::Snapshot, 31_000),
    ] {
        let mut t = World::of(2);
        let disks = [t.kill(1).unwrap(), t.kill(2).unwrap()];
        for (id, disk) in (1..).zip(disks) {
            t.restart(id, 700 + id, disk);
        }
        t.run_until(|t| t.is_member(1) && t.is_member(2));
        let last = t.map().lost().next().unwrap().1[0];
        t.give(last, everything(kept));
        t.run(ms(wait));
        assert_eq!(t.map().lost().count(), 0);
        let leader = t.leader().unwrap();
        let changes = t.control(leader).history().changes();
        let recreated = |it: &Change| match it {
            Change::Recreate { node, from, .. } => Some((*node, *from)),
            Change::Join(_)
            | Change::Leave { .. }
            | Change::Away { .. }
            | Change::Forget(_)
            | Change::Dead(_)
            | Change::AddBackup { .. }
            | Change::Promote { .. }
            | Change::DropBackup { .. }
            | Change::Split(_)
            | Change::Set(_)
            | Change::Yield(_)
            | Change::KeptCopiesHandedOver { .. }
            | Change::Write { .. } => None,
        };
        let mut sources = changes.flat_map(|it| it.entry.changes.iter().filter_map(recreated));
        assert!(sources.all(|source| source == (last, from)));
    }
}

#[test]
fn who_comes_back_too_late_takes_in_nothing_before_it_has_brought_what_it_has() {
    let mut t = World::of(3);
    t.set(1, Setting::Backups(0));
    t.run(ms(5_000));
    t.settle();
    let late = t.follower();
    let disk = t.kill(late).unwrap();
    t.run(ms(35_000));
    let awaited = t.map().begun_anew().count();
    assert!(awaited > 0 && t.map().lost().count() == 0, "its buckets began again");
    t.restart(late, 777, disk);
    t.give(NodeId(late), everything(Freshness::AsItWas));
    t.run_until(|t| t.is_member(late));
    t.run(ms(5_000));
    assert_eq!(t.map().load(NodeId(late)).total(), 0, "what it has is the only copy");
    let brings = t.nodes[&NodeId(late)].brings.clone().unwrap();
    assert_eq!(brings.len(), awaited);
    t.give(NodeId(late), Input::Brought(brings));
    t.run(ms(1_000));
    assert_eq!(t.map().begun_anew().count(), 0);
    t.settle();
    assert!(t.map().load(NodeId(late)).total() >= 5, "{:?}", t.loads());
}

#[test]
fn nobody_is_awaited_for_longer_than_a_day() {
    let mut map = Map::found(member(1), Mask::M000F, ClusterSettings::default());
    map.apply(LogIndex(2), &Change::Join(member(2)));
    map.apply(LogIndex(3), &Change::Dead([NodeId(1)].into()));
    for bucket in Hashmask::all(Mask::M000F) {
        let (node, from) = (NodeId(2), RecreateSource::Empty);
        let expected = map.bucket(bucket).unwrap().epoch;
        map.apply(LogIndex(4), &Change::Recreate { bucket, node, from, expected });
    }
    assert_eq!(map.begun_anew().count(), 16);
    let (mut lost, at) = (LostBuckets::default(), Moment::START + ms(5_000));
    assert_eq!(lost.given_up(&map, at), None);
    assert_eq!(lost.given_up(&map, at + (AWAITED_FOR - ms(100_000))), None);
    let change = lost.given_up(&map, at + AWAITED_FOR).unwrap();
    map.apply(LogIndex(5), &change);
    assert_eq!(map.begun_anew().count(), 0);
    assert_eq!(lost.given_up(&map, at + 2 * AWAITED_FOR), None, "there is nobody left");
}

#[test]
fn a_side_that_yields_hands_over_only_when_no_lease_of_it_runs_any_more() {
    let mut t = World::of(3);
    let theirs = Generation { counter: 8, founder: NodeId(9) };
    t.give(NodeId(1), Input::Met(theirs));
    t.run_until(|t| t.nodes.values().any(|node| node.control.yields_to().is_some()));
    for _ in 0..1_200 {
        t.run(ms(1));
        let begun = t.nodes.values().any(|node| node.hands_over);
        let serves = t.nodes.values().any(|node| node.has_lease(t.now));
        assert!(!begun || !serves, "what is acknowledged now would be handed over by nobody");
    }
    t.run(ms(300));
    assert!(t.nodes.values().all(|node| node.hands_over));
}

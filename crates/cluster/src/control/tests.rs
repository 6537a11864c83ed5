//! Scenarios of a cluster, run in `World`: nodes join, leave and die, and the tests check which nodes
//! serve meanwhile.

mod joins; //   Admission of joining nodes, and the answers to them.
mod memory; //  Nodes whose memory is short.
mod moves; //   Handovers, splits, fills and lost proposals.
mod away; //    Leaving for a while, and coming back.
mod generations; // Going on alone, meeting again, lost buckets.
mod overlaps; // A pause and a death at about the same time.
mod slow_disk; // A leader that waits for its disk.
mod returning; // Processes that were declared dead, and those that load their data.
mod rules; //   The purpose of each rule.
mod random; //  Random scenarios from seeds.
mod clocks; //  Wall clocks that differ.
mod documents; // Writing documents.
mod world;

use super::{Answer, Input, Message, OperatorRequest};
use crate::consensus::LogEntry;
use crate::map::{Change, LogIndex, Member, NodeId, Zone};
use world::{World, member, ms, request};

#[test]
fn one_node_founds_a_cluster_and_serves_for_ever() {
    let mut t = World::of(1);
    t.run(ms(3_600_000));
    assert!(t.has_lease(1));
    assert_eq!(t.loads(), [(16, 0)]);
}

#[test]
fn two_nodes_share_everything_and_both_vote() {
    let t = World::of(2);
    assert_eq!(t.loads(), [(8, 8), (8, 8)]);
    assert_eq!(t.voters(), [1, 2]);
    assert!(t.has_lease(1) && t.has_lease(2));
}

#[test]
fn three_nodes_come_and_one_leaves() {
    let mut t = World::of(3);
    t.assert_balanced();
    assert_eq!(t.voters(), [1, 2, 3]);
    let leave = t.leave(3);
    t.run_until(|t| t.answers.contains_key(&leave));
    assert_eq!(t.gone(3), "Left");
    t.settle();
    assert_eq!(t.loads(), [(8, 8), (8, 8)]);
    assert_eq!(t.voters(), [1, 2]);
}

#[test]
fn a_cluster_grows_to_five_and_shrinks_to_three() {
    let mut t = World::of(1);
    for (id, voters) in [(2, 2), (3, 3), (4, 3), (5, 5)] {
        t.join(id);
        t.settle();
        t.assert_balanced();
        assert_eq!(t.voters().len(), voters);
    }
    for id in [2, 4] {
        t.leave(id);
        t.run_until(|t| !t.members().contains(&id));
        t.settle();
        t.assert_balanced();
    }
    assert_eq!(t.members(), [1, 3, 5]);
    assert_eq!(t.voters(), [1, 3, 5]);
}

#[test]
fn everybody_leaves_but_the_last_who_keeps_all() {
    let mut t = World::of(3);
    let first = t.leader().unwrap();
    t.leave(first);
    t.run_until(|t| !t.members().contains(&first));
    t.settle();
    let (stays, goes) = (t.members()[0], t.members()[1]);
    t.leave(goes);
    t.run_until(|t| t.members() == [stays]);
    t.settle();
    assert_eq!(t.loads(), [(16, 0)]);
    let leave = t.leave(stays);
    assert_eq!(t.gone(stays), "LeftAsTheLast");
    assert_eq!(t.answers[&leave], Answer::Done);
}

#[test]
fn a_node_leaves_although_what_it_said_of_itself_before_is_decided_behind_that() {
    let mut t = World::of(3);
    let (leader, goes) = (t.leader().unwrap(), t.follower());
    let as_it_was = t.map().member(NodeId(goes)).unwrap().clone();
    t.leave(goes);
    t.run_until(|t| t.map().member(NodeId(goes)).is_none_or(|it| it.weight == 0));
    let (from, changes) = (as_it_was.peer(), vec![Change::Join(as_it_was)]);
    let message = Message::Propose(LogEntry { planned_at: None, changes });
    t.give(NodeId(leader), Input::Message { from, message });
    t.run_until(|t| t.map().member(NodeId(goes)).is_none_or(|it| it.weight > 0));
    assert!(t.is_member(goes), "it was taken for one that stays");
    t.run_until(|t| !t.is_member(goes));
    t.settle();
}

#[test]
fn two_nodes_that_leave_together_go_one_after_the_other() {
    let mut t = World::of(2);
    t.leave(1);
    t.leave(2);
    t.run_until(|t| t.nodes.is_empty());
    let mut ends = [t.gone(1), t.gone(2)];
    ends.sort_unstable();
    assert_eq!(ends, ["Left", "LeftAsTheLast"]);
}

#[test]
fn of_two_that_leave_together_the_second_waits_for_all_that_the_first_hands_over() {
    for first in [1, 2] {
        let mut t = World::of(2);
        t.hold_drains(1);
        t.hold_drains(2);
        t.leave(first);
        t.run(ms(100));
        t.leave(3 - first);
        t.run(ms(60_000));
        assert_eq!(t.nodes.len(), 2, "the first has not handed over its buckets yet");
        t.release_drains(1);
        t.release_drains(2);
        t.run_until(|t| t.nodes.is_empty());
        assert_eq!([t.gone(first), t.gone(3 - first)], ["Left", "LeftAsTheLast"]);
    }
}

#[test]
fn the_leader_hands_on_before_it_leaves_and_nobody_loses_its_lease() {
    let mut t = World::of(3);
    let leader = t.leader().unwrap();
    let others: Vec<u64> = t.members().into_iter().filter(|id| *id != leader).collect();
    t.leave(leader);
    while t.is_member(leader) {
        t.run(ms(10));
        assert!(others.iter().all(|id| t.has_lease(*id)));
    }
    t.settle();
}

#[test]
fn a_killed_node_is_dead_when_its_lease_has_surely_run_out_and_not_before() {
    let mut t = World::of(3);
    let victim = t.follower();
    t.kill(victim);
    t.run(ms(1_000));
    assert_eq!(t.members().len(), 3, "its lease may still run");
    t.run(ms(700));
    assert_eq!(t.members().len(), 2);
    assert!(t.map().buckets().all(|bucket| !bucket.holders.is_empty()), "promoted in one step");
    t.settle();
    assert_eq!(t.loads(), [(8, 8), (8, 8)]);
}

#[test]
fn after_the_death_of_the_leader_the_others_go_on_within_three_seconds() {
    let mut t = World::of(3);
    let leader = t.leader().unwrap();
    t.kill(leader);
    t.run(ms(2_700));
    assert_eq!(t.members().len(), 2);
    assert!(t.members().iter().all(|id| t.has_lease(*id)));
    t.settle();
}

#[test]
fn those_who_die_together_go_in_one_step() {
    let mut t = World::of(5);
    let leader = t.leader().unwrap();
    let victims: Vec<u64> = t.members().into_iter().filter(|id| *id != leader).take(2).collect();
    t.kill(victims[0]);
    t.run(ms(90));
    t.kill(victims[1]);
    t.run_until(|t| t.members().len() < 5);
    assert_eq!(t.members().len(), 3);
    for (_, holders) in t.map().lost() {
        let mut holders: Vec<u64> = holders.iter().map(|node| node.0).collect();
        holders.sort_unstable();
        assert_eq!(holders, victims, "both were in sync to the last");
    }
}

#[test]
fn of_two_nodes_none_declares_the_other_dead() {
    let mut t = World::of(2);
    t.kill(2);
    t.run(ms(10_000));
    assert_eq!(t.members(), [1, 2]);
    assert!(!t.has_lease(1));
}

#[test]
fn a_joining_node_that_dies_before_it_has_a_vote_stops_nobody() {
    let mut t = World::of(1);
    t.join(2);
    t.run_until(|t| t.members() == [1, 2]);
    t.kill(2);
    t.run(ms(10_000));
    assert_eq!(t.members(), [1]);
    assert!(t.has_lease(1));
}

#[test]
fn a_leader_cut_off_with_one_follower_gets_no_lease_and_gives_none() {
    let mut t = World::of(5);
    let leader = t.leader().unwrap();
    let follower = t.follower();
    t.cut_off(&[leader, follower]);
    t.run(ms(1_100));
    assert!(!t.has_lease(leader) && !t.has_lease(follower));
    t.run(ms(2_000));
    assert_eq!(t.members().len(), 3);
    let rest: Vec<u64> = t.members();
    assert!(rest.iter().all(|id| t.has_lease(*id)));
    // When the partition heals, the two learn that they were declared dead.
    t.network.cut.clear();
    t.run(ms(3_000));
    assert_eq!((t.gone(leader), t.gone(follower)), ("Removed".into(), "Removed".into()));
}

#[test]
fn a_leader_that_slept_for_an_hour_declares_nobody_dead() {
    let mut t = World::of(3);
    let all = t.members();
    for id in &all {
        t.stop(*id);
    }
    t.run(ms(3_600_000));
    for id in &all {
        t.go_on(*id);
    }
    assert!(all.iter().all(|id| !t.has_lease(*id)), "what was granted an hour ago counts no more");
    t.run(ms(3_000));
    assert_eq!(t.members(), all);
    assert!(all.iter().all(|id| t.has_lease(*id)));
}

#[test]
fn a_node_that_is_condemned_gets_no_lease_any_more() {
    let mut t = World::of(3);
    let (leader, victim) = (t.leader().unwrap(), t.follower());
    // It hears nothing, and at the last moment its request comes through.
    t.network.cut.insert((NodeId(victim), NodeId(leader)));
    t.network.cut.insert((NodeId(leader), NodeId(victim)));
    t.run_until(|t| t.control(leader).condemns(NodeId(victim)));
    t.network.cut.clear();
    t.run(ms(50));
    assert!(!t.nodes.contains_key(&NodeId(victim)) || !t.has_lease(victim));
    t.run(ms(3_000));
    assert_eq!(t.members().len(), 2);
}

#[test]
fn a_stopped_node_has_lost_its_lease_when_it_wakes() {
    let mut t = World::of(3);
    let sleeper = t.follower();
    t.stop(sleeper);
    t.run(ms(10_000));
    assert_eq!(t.members().len(), 2);
    t.go_on(sleeper);
    t.run(ms(2_000));
    assert_eq!(t.gone(sleeper), "Removed");
}

#[test]
fn a_request_to_join_that_was_under_way_for_long_brings_nobody_back() {
    let mut t = World::of(3);
    let (leader, victim) = (t.leader().unwrap(), t.follower());
    let request = request(t.map().member(NodeId(victim)).unwrap().clone());
    t.cut_off(&[victim]);
    t.run(ms(5_000));
    assert_eq!(t.members().len(), 2);
    // The process's first request arrives only now.
    t.ask(leader, OperatorRequest::Join(Box::new(request)));
    t.run(ms(100));
    assert_eq!(t.members().len(), 3);
    t.network.cut.clear();
    t.run(ms(3_000));
    assert_eq!(t.gone(victim), "Removed", "it has missed that it was away");
}

#[test]
fn one_that_was_let_in_and_given_up_before_it_knew_begins_anew_at_once() {
    let mut t = World::of(3);
    let (leader, id) = (t.leader().unwrap(), t.follower());
    let disk = t.kill(id).unwrap();
    t.run_until(|t| t.members().len() == 2);
    let index = t.control(leader).applied();
    t.restart_let_in_by(leader, id, 999, disk);
    t.run(ms(2_000));
    assert_eq!(t.gone(id), "", "it may hear of it yet");
    // No member accepts a link from a process that is not a member, but each one says so.
    let (from, generation) = (t.node(leader).me, t.control(leader).generation().unwrap());
    let refused_at = |index: LogIndex| Message::LeaseRefused { generation, index };
    t.give(NodeId(id), Input::Message { from, message: refused_at(LogIndex(index.0 - 1)) });
    assert_eq!(t.gone(id), "", "by a map that is older than the one that let it in");
    t.give(NodeId(id), Input::Message { from, message: refused_at(index) });
    assert_eq!(t.gone(id), "Removed");
}

#[test]
fn a_restarted_process_is_a_member_again_but_holds_nothing_until_it_is_filled() {
    let mut t = World::of(3);
    let id = t.follower();
    let disk = t.kill(id).unwrap();
    t.run(ms(100));
    t.restart(id, 999, disk);
    t.run_until(|t| t.is_member(id));
    assert_eq!(t.map().load(NodeId(id)).total(), 0);
    t.settle();
    t.assert_balanced();
    assert_eq!(t.members().len(), 3);
}

#[test]
fn both_of_two_restart_and_find_each_other() {
    let mut t = World::of(2);
    let disks = [t.kill(1).unwrap(), t.kill(2).unwrap()];
    t.run(ms(5_000));
    for (id, disk) in (1..).zip(disks) {
        t.restart(id, 700 + id, disk);
    }
    t.run_until(|t| t.is_member(1) && t.is_member(2) && t.has_lease(1) && t.has_lease(2));
    assert_eq!(t.map().lost().count(), 16, "nobody holds anything any more");
}

#[test]
fn voters_stand_in_as_many_zones_as_there_are() {
    let mut t = World::of(1);
    for (id, zone) in [(2, ""), (3, ""), (4, "b"), (5, "c"), (6, "c"), (7, "c")] {
        let zone = Zone(zone.into());
        t.join_as(request(Member { zone, ..member(id) }));
        t.run_until(|t| t.is_member(id));
    }
    t.settle();
    let voters = t.voters();
    let zone = |id: &u64| t.map().member(NodeId(*id)).unwrap().zone.0.clone();
    let count = |name: &str| voters.iter().filter(|id| zone(id) == name).count();
    assert_eq!((count(""), count("b"), count("c")), (2, 1, 2), "{voters:?}");
}

#[test]
fn a_witness_votes_and_holds_nothing() {
    let mut t = World::of(2);
    t.join_as(request(Member { weight: 0, ..member(3) }));
    t.run_until(|t| t.is_member(3));
    t.settle();
    assert_eq!(t.voters(), [1, 2, 3]);
    assert_eq!(t.loads(), [(8, 8), (8, 8), (0, 0)]);
    t.kill(2);
    t.run(ms(2_700));
    assert_eq!(t.loads(), [(16, 0), (0, 0)]);
    assert!(t.has_lease(1));
}

//! Admission of joining nodes, and the reasons given to those that are refused.

use std::time::Duration;

use sim_engine::Quality;

use super::world::{CALM, CLUSTER, World, member, ms, request};
use crate::control::{Answer, Input, JoinRequest, Message, OperatorRequest, ProtocolRange};
use crate::map::{Boot, ClusterId, Member, NodeId, Setting, SplitLargerThan};

fn refusal(request: JoinRequest) -> String {
    let mut t = World::of(2);
    let (id, before) = (request.member.id, t.map());
    t.join_as(request);
    t.run(ms(1_000));
    assert_eq!(t.map(), before, "the cluster is undisturbed");
    t.refused[&id].clone()
}

#[test]
fn a_node_of_a_neighbouring_release_joins() {
    let ours = ProtocolRange::OURS;
    for versions in [
        ProtocolRange { newest: ours.newest + 1, ..ours },
        ProtocolRange { oldest: ours.oldest - 1, ..ours },
    ] {
        let mut t = World::of(2);
        t.join_as(JoinRequest { versions, ..request(member(3)) });
        t.run(ms(1_000));
        assert!(t.map().member(member(3).id).is_some(), "{versions}");
    }
}

#[test]
fn a_node_that_does_not_fit_is_told_why_in_one_line() {
    let fits = || request(member(3));
    let ours = ProtocolRange::OURS;
    let versions = ProtocolRange { oldest: ours.newest + 1, newest: ours.newest + 1 };
    assert_eq!(
        refusal(JoinRequest { versions, ..fits() }),
        format!(
            "protocol version mismatch: the cluster speaks {ours}, the joining node {versions}"
        )
    );
    assert_eq!(
        refusal(JoinRequest { cluster: Some(ClusterId(CLUSTER.0 + 1)), ..fits() }),
        "its data directory belongs to another cluster"
    );
    assert_eq!(
        refusal(JoinRequest { skew: Duration::from_secs(90), ..fits() }),
        "its clock differs from the cluster's by 90 s; at most 60 s are allowed"
    );
    let name = String::new();
    assert_eq!(
        refusal(request(Member { name, ..member(3) })),
        "a node's name must have 1 to 64 bytes"
    );
}

#[test]
fn the_name_of_a_living_node_is_refused() {
    let name = "n2".to_string();
    assert_eq!(
        refusal(request(Member { name, ..member(3) })),
        "the name n2 is in use by a live node at here:6379; choose another --name"
    );
}

#[test]
fn a_node_that_comes_back_under_its_old_name_waits_out_its_old_lease() {
    let mut t = World::of(3);
    let victim = 2;
    t.kill(victim);
    let name = format!("n{victim}");
    t.join_as(request(Member { name, ..member(9) }));
    t.run(ms(1_000));
    assert!(!t.is_member(9), "the old one may still serve");
    t.run_until(|t| t.is_member(9));
    t.settle();
    assert!(t.refused.is_empty() && !t.members().contains(&victim));
}

#[test]
fn any_member_can_be_asked_and_a_lost_answer_does_no_harm() {
    let mut t = World::of(3);
    let follower = t.follower();
    let ask = OperatorRequest::Join(Box::new(request(member(4))));
    // Asked by hand, so that nothing starts the process before it has asked twice.
    for id in [4001, 4002] {
        t.give(NodeId(follower), crate::control::Input::OperatorRequest { id, ask: ask.clone() });
        t.run(ms(200));
    }
    assert!(t.members().contains(&4));
    let epoch = t.map().epoch();
    t.give(NodeId(follower), crate::control::Input::OperatorRequest { id: 4003, ask });
    t.run(ms(20));
    assert_eq!(t.map().epoch(), epoch, "it is a member already");
}

#[test]
fn a_setting_is_the_same_everywhere_a_moment_later() {
    let mut t = World::of(3);
    let follower = t.follower();
    let set = t.set(follower, Setting::Backups(2));
    t.run_until(|t| t.answers.contains_key(&set));
    assert_eq!(t.answers[&set], Answer::Done);
    t.settle();
    assert!(t.map().buckets().all(|bucket| bucket.holders.len() == 3));
}

#[test]
fn a_setting_that_makes_no_sense_is_refused() {
    let mut t = World::of(1);
    let mut refusal = |setting| {
        let ask = t.set(1, setting);
        match &t.answers[&ask] {
            Answer::Refused(text) => text.clone(),
            answer @ (Answer::Done | Answer::Unknown(_) | Answer::Join(_)) => panic!("{answer:?}"),
        }
    };
    assert_eq!(refusal(Setting::Backups(4)), "backups must be 0 to 3");
    assert_eq!(refusal(Setting::MinCopies(3)), "min-copies must be 1 to 2 with backups = 1");
    assert_eq!(refusal(Setting::MinBuckets(0)), "min-buckets must be 1 to 1024");
    assert_eq!(refusal(Setting::Lease(ms(100))), "lease must be 200ms to 60s");
    assert_eq!(refusal(Setting::PendingAfter(ms(0))), "pending-after must be above 0");
    assert_eq!(refusal(Setting::FillRate(Some(1))), "fill-rate must be at least 64 KiB per second");
    let limit = SplitLargerThan { times_the_median: 0, bytes: 1 };
    assert_eq!(refusal(Setting::SplitLargerThan(limit)), "split-larger-than must be above 0");
}

#[test]
fn without_a_majority_an_operator_is_told_so() {
    let mut t = World::of(2);
    t.kill(2);
    t.run(ms(2_000));
    let set = t.set(1, Setting::Backups(0));
    t.run(ms(6_000));
    assert!(matches!(t.answers[&set], Answer::Unknown(_)));
    assert_eq!(t.map().settings().backups, 1);
}

#[test]
fn a_shorter_lease_counts_when_every_longer_one_has_run_out() {
    let mut t = World::of(3);
    let set = t.set(1, Setting::Lease(ms(4_000)));
    t.run_until(|t| t.answers.contains_key(&set));
    t.run(ms(1_000));
    let set = t.set(1, Setting::Lease(ms(400)));
    t.run(ms(4_500));
    assert_eq!(t.map().settings().lease, ms(4_000));
    assert!([1, 2, 3].iter().all(|id| t.has_lease(*id)), "meanwhile nobody is without one");
    t.run_until(|t| t.answers.contains_key(&set));
    assert_eq!(t.map().settings().lease, ms(400));
    let victim = 2;
    t.kill(victim);
    t.run(ms(900));
    assert_eq!(t.members().len(), 2);
}

#[test]
fn all_but_one_may_leave_at_once() {
    for stays in [1, 4, 7] {
        let mut t = World::of(7);
        for goes in (1..=7).filter(|id| *id != stays) {
            t.leave(goes);
        }
        t.run_until(|t| t.members_by(stays) == [stays]);
        t.settle();
        assert_eq!(t.map().load(NodeId(stays)).primaries, 256, "{stays} stays");
    }
}

#[test]
fn a_question_of_an_earlier_process_that_comes_late_takes_nobodys_place() {
    let mut t = World::of(3);
    let node = t.follower();
    let disk = t.kill(node).unwrap();
    t.restart(node, 700, disk);
    t.run_until(|t| t.is_member(node) && t.has_lease(node));
    let late = OperatorRequest::Join(Box::new(request(Member { boot: Boot(600), ..member(node) })));
    for _ in 0..10 {
        t.ask(t.leader().unwrap(), late.clone());
        t.run(ms(100));
    }
    assert_eq!(t.map().member(NodeId(node)).unwrap().boot, Boot(700));
    assert!(t.is_member(node) && t.has_lease(node));
}

#[test]
fn the_last_question_of_an_ended_process_that_comes_late_keeps_nobody_out() {
    let mut t = World::of(3);
    let (node, leader) = (t.follower(), t.leader().unwrap());
    let before = t.map().member(NodeId(node)).unwrap().peer();
    let disk = t.kill(node).unwrap();
    t.restart(node, 700, disk);
    t.run(ms(300));
    assert!(!t.is_member(node), "it has asked to come back");
    let applied = t.control(leader).applied();
    let message = Message::LeaseAsk { number: 1_000_000, applied, is_cut_off: false };
    t.give(NodeId(leader), Input::Message { from: before, message });
    t.run_until(|t| t.is_member(node) && t.has_lease(node));
}

#[test]
fn a_process_that_comes_back_asks_others_when_the_leader_it_knows_dies() {
    let mut t = World::of(7);
    t.settle();
    let voters = t.voters();
    let node = (1..=7).find(|id| !voters.contains(id)).expect("five of seven vote");
    let disk = t.kill(node).unwrap();
    t.run_until(|t| !t.members().contains(&node));
    t.restart(node, 700, disk);
    t.run_until(|t| t.control(node).leader().is_some());
    t.kill(t.leader().unwrap());
    t.run_until(|t| t.is_member(node));
}

/// Until then two of three members vote, and the death of one of them would leave no majority.
#[test]
fn a_third_node_votes_before_it_holds_a_copy() {
    for seed in 0..200 {
        let mut t = World::new(seed, Quality { delay_us: (100, 2_000), ..CALM });
        t.found(1);
        t.join(2);
        t.join(3);
        t.run_until(|t| t.is_member(3) && t.map().load(NodeId(3)).total() > 0);
        let voters = t.nodes[&NodeId(1)].control.configuration().voters.len();
        assert_eq!(voters, 3, "seed {seed}\n{}", t.picture());
    }
}

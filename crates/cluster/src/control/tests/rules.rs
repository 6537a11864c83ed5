//! The purpose of a rule: the same scenario, with the rule and without it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::world::{World, member, ms, request};
use crate::control::{Input, OperatorRequest};
use crate::map::{NodeId, Setting};
use crate::rules::Rule;

#[test]
fn a_cluster_that_slept_wakes_up_whole_because_the_leader_notices() {
    let members_after_a_nap = |rule: Option<Rule>| {
        let mut t = World::of(5);
        // With more copies than late nodes: otherwise the leader would have another one confirm the
        // deaths first.
        t.set(1, Setting::Backups(2));
        t.run_until(|t| t.map().settings().backups == 2);
        t.settle();
        t.break_rule(rule);
        let leader = t.leader().unwrap();
        let others: Vec<u64> = t.members().into_iter().filter(|id| *id != leader).collect();
        t.members().into_iter().for_each(|id| t.stop(id));
        t.run(ms(3_600_000));
        // A laptop lid is opened: some nodes wake a little later than others.
        t.go_on(leader);
        for id in others {
            t.run(ms(60));
            t.go_on(id);
        }
        t.run(ms(2_000));
        t.members().len()
    };
    assert_eq!(members_after_a_nap(None), 5);
    assert!(members_after_a_nap(Some(Rule::StallIsNoticed)) < 5);
}

#[test]
fn a_late_question_of_a_condemned_node_is_not_answered() {
    let is_served_twice = |rule: Option<Rule>| {
        std::panic::catch_unwind(|| {
            let mut t = World::of(3);
            t.break_rule(rule);
            let leader = t.leader().unwrap();
            let victim = t.follower();
            let third = t.members().into_iter().find(|id| ![leader, victim].contains(id)).unwrap();
            t.cut_off(&[victim]);
            t.run_until(|t| t.control(leader).is_about_to_condemn(NodeId(victim)));
            // The proposal does not reach the third node; meanwhile the victim is heard again.
            t.network.cut.insert((NodeId(leader), NodeId(third)));
            t.run_until(|t| t.control(leader).condemns(NodeId(victim)));
            let to_victim = (NodeId(leader), NodeId(victim));
            t.network.cut = BTreeSet::from([(NodeId(leader), NodeId(third)), to_victim]);
            t.run(ms(210));
            t.network.cut.remove(&to_victim);
            for _ in 0..600 {
                if t.nodes.contains_key(&NodeId(victim)) && !t.has_lease(victim) {
                    t.run(Duration::from_micros(500));
                }
            }
            // It votes for its own death, and is cut off before it hears that this was decided.
            t.network.cut = BTreeSet::from([to_victim]);
            t.run(ms(150));
        })
        .is_err()
    };
    assert!(!is_served_twice(None));
    assert!(is_served_twice(Some(Rule::NoLeaseAfterDeathProposed)));
}

/// Returns two nodes, the leader first. The other has heard that a third joins, and its answer has not
/// arrived.
pub(super) fn of_two_with_a_third_in_the_log() -> (World, u64, u64) {
    let mut t = World::of(2);
    let leader = t.leader().expect("two that stand have one");
    let other = 3 - leader;
    t.network.cut.insert((NodeId(other), NodeId(leader)));
    let ask = OperatorRequest::Join(Box::new(request(member(3))));
    t.give(NodeId(leader), Input::OperatorRequest { id: 3000, ask });
    t.run(ms(20));
    (t, leader, other)
}

#[test]
fn who_has_a_third_in_its_log_does_not_split_a_cluster_of_three() {
    let goes_on_alone = |rule: Option<Rule>| {
        let (mut t, leader, other) = of_two_with_a_third_in_the_log();
        t.break_rule(rule);
        t.cut_off(&[leader]);
        t.run(ms(5_000));
        t.client_turns_to(other);
        t.has_lease(other)
    };
    assert!(!goes_on_alone(None));
    assert!(goes_on_alone(Some(Rule::NoThirdInTheLog)));
}

#[test]
fn of_two_generations_alike_one_stands() {
    let that_serve = |rule: Option<Rule>| {
        let mut t = World::of(2);
        t.break_rule(rule);
        t.cut_off(&[1]);
        t.run(ms(3_000));
        t.client_turns_to(1);
        t.client_turns_to(2);
        t.network.cut.clear();
        t.meet(1, 2);
        [1, 2].into_iter().filter(|id| t.has_lease(*id)).count()
    };
    assert_eq!(that_serve(None), 1);
    assert_eq!(that_serve(Some(Rule::FoundersDiffer)), 0, "both yield, and nobody is left");
}

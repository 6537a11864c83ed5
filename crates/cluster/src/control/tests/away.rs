//! Leaving for a while, and coming back.

use std::time::Duration;

use placement::Hashmask;

use super::super::{Answer, OperatorRequest};
use super::world::{World, member, request};
use crate::map::{Boot, LeaveWay, Member, NodeId};

fn held(t: &World, node: u64) -> Vec<Hashmask> {
    let map = t.map();
    let held = map.buckets().filter(|bucket| bucket.is_held_by(NodeId(node)));
    held.map(|bucket| bucket.hashmask).collect()
}

fn leave_request(absence: Duration) -> OperatorRequest {
    OperatorRequest::LeaveFor { absence, way: LeaveWay::Safe }
}

fn leave_for(t: &mut World, node: u64, seconds: u64) {
    let asked = t.ask(node, leave_request(Duration::from_secs(seconds)));
    t.run_until(|t| t.answers.contains_key(&asked));
    assert_eq!(t.gone(node), format!("LeftFor({seconds}s)"));
}

#[test]
fn a_node_that_is_back_in_time_has_its_own_buckets_again() {
    let mut t = World::of(3);
    let before = held(&t, 3);
    leave_for(&mut t, 3, 300);
    t.settle();
    assert_eq!(t.loads(), [(8, 8), (8, 8)], "meanwhile others hold everything");
    assert_eq!(t.map().away().count(), 1);
    t.join_as(request(Member { boot: Boot(77), ..member(3) }));
    t.run_until(|t| t.members() == [1, 2, 3]);
    t.settle();
    t.assert_balanced();
    assert_eq!(held(&t, 3), before);
    t.run(Duration::from_secs(1));
    assert_eq!(t.map().away().count(), 0);
}

#[test]
fn places_are_kept_no_longer_than_was_asked_for() {
    let mut t = World::of(3);
    leave_for(&mut t, 2, 20);
    t.run(Duration::from_secs(15));
    assert_eq!(t.map().away().count(), 1);
    t.run(Duration::from_secs(10));
    assert_eq!(t.map().away().count(), 0);
}

#[test]
fn nobody_is_away_for_ever() {
    let mut t = World::of(2);
    for long in [Duration::ZERO, Duration::from_secs(100_000)] {
        let asked = t.ask(2, leave_request(long));
        t.run_until(|t| t.answers.contains_key(&asked));
        let text = "a node can be away for 1s to 24h";
        assert_eq!(t.answers[&asked], Answer::Refused(text.into()));
    }
    assert_eq!(t.members(), [1, 2]);
}

//! Processes that come back with their data: declared dead but alive, or restarted and still loading.

use placement::{Hashmask, Mask};

use super::world::{World, member, ms, request};
use crate::control::{Freshness, Input, JoinRequest, KeptCopy, OperatorRequest};
use crate::map::{Boot, LogIndex, Member, NodeId, Setting};

/// Sets up three nodes without backups and kills a follower. Returns its id.
fn with_lost_buckets(t: &mut World) -> u64 {
    t.set(1, Setting::Backups(0));
    t.run(ms(5_000));
    t.settle();
    let victim = t.follower();
    t.kill(victim);
    t.run_until(|t| t.map().lost().count() > 0);
    victim
}

fn say_loading(t: &mut World, node: u64) {
    let member = Member { boot: Boot(888), ..member(node) };
    let request = JoinRequest { is_loading: true, ..request(member) };
    let leader = t.leader().unwrap();
    t.ask(leader, OperatorRequest::Join(Box::new(request)));
}

#[test]
fn a_last_holder_that_still_loads_is_waited_for() {
    let mut t = World::of(3);
    let victim = with_lost_buckets(&mut t);
    let lost = t.map().lost().count();
    for _ in 0..20 {
        say_loading(&mut t, victim);
        t.run(ms(3_000));
        assert_eq!(t.map().lost().count(), lost, "a minute is twice as long as lost-after");
    }
    assert!(!t.members().contains(&victim), "it has not asked to be let in");
    t.run(ms(15_000));
    assert_eq!(t.map().lost().count(), 0, "nobody waits for one that says nothing any more");
}

#[test]
fn one_that_loads_a_bucket_it_was_not_the_last_to_hold_is_not_waited_for() {
    let mut t = World::of(3);
    let victim = with_lost_buckets(&mut t);
    let other = t.members().into_iter().find(|id| *id != victim).unwrap();
    for _ in 0..12 {
        say_loading(&mut t, other);
        t.run(ms(3_000));
    }
    assert_eq!(t.map().lost().count(), 0);
}

#[test]
fn a_process_that_was_given_up_is_let_in_when_every_other_member_is_known_to_live() {
    let mut t = World::of(3);
    t.given_up_return = true;
    let leader = t.leader().unwrap();
    let others: Vec<u64> = t.members().into_iter().filter(|id| *id != leader).collect();
    t.stop(others[0]);
    t.run_until(|t| !t.members().contains(&others[0]));
    t.stop(others[1]);
    t.run(ms(700));
    t.go_on(others[0]);
    t.run(ms(300));
    assert!(!t.is_member(others[0]), "its copies are needed if the other one is dead");
    t.run_until(|t| t.is_member(others[0]));
    assert!(!t.members().contains(&others[1]));
}

#[test]
fn all_holders_that_were_given_up_together_bring_their_buckets_back() {
    let mut t = World::of(5);
    t.given_up_return = true;
    let leader = t.leader().unwrap();
    let holders =
        t.map().buckets().map(|it| it.holders.clone()).find(|it| !it.contains(&NodeId(leader)));
    let holders: Vec<u64> = holders.unwrap().iter().map(|node| node.0).collect();
    holders.iter().for_each(|node| t.stop(*node));
    t.run(ms(5_000));
    assert!(t.map().lost().count() > 0);
    holders.iter().for_each(|node| t.go_on(*node));
    t.run_until(|t| holders.iter().all(|node| t.members().contains(node)));
    for node in &holders {
        let offer =
            |bucket| KeptCopy { bucket, kept: Freshness::AsItWas, position: (LogIndex(1), 1) };
        let offers = Hashmask::all(Mask::M000F).map(offer).collect();
        t.give(NodeId(*node), Input::Found(offers));
    }
    t.run(ms(3_000));
    let left: Vec<_> = t.map().lost().map(|(bucket, last)| (bucket, last.to_vec())).collect();
    assert_eq!((left, t.map().begun_anew().count()), (vec![], 0), "given up: {holders:?}");
    t.settle();
    t.assert_balanced();
}

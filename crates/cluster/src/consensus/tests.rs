//! Scenarios of a few nodes on a network in memory (`net.rs`); then invalid messages (`liars.rs`) and
//! many random histories (`weather.rs`).

mod net; //     A network of nodes that a test can cut, and disks from which they can restart.
mod liars; //   No message makes a node panic.
mod weather; // Loss, delay and restarts, from seeds.

use super::*;
use crate::map::{LogIndex, NodeId};
use net::{A, B, C, D, E, Net};

#[test]
fn one_voter_answers_at_once() {
    let mut net = Net::founded_by(A);
    assert!(net[A].is_leader());
    net.propose(A, "one");
    assert_eq!(net.names(A), ["one"]);
    net.node(A).read_index(7);
    let ready = net.node(A).ready();
    assert_eq!(ready.reads, [(7, net[A].committed())]);
}

#[test]
fn a_founder_begins_with_its_map_on_disk() {
    let map = net::founding_map(A);
    let mut founder = Consensus::new(A, 1, Begin::Found(map.clone()));
    let ready = founder.ready();
    assert_eq!(ready.snapshot, Some((LogIndex::FIRST, map.clone())));
    assert_eq!(ready.persist.snapshot.map(|snapshot| snapshot.map), Some(map));
    assert_eq!(ready.messages, []);
}

#[test]
fn three_nodes_elect_one_leader_and_have_the_same_map() {
    let mut net = Net::of([A, B, C]);
    net.cut_off(A);
    net.run(20);
    let leader = net.leader_among([B, C]).expect("two of three elect a leader");
    net.propose(leader, "without A");
    net.heal();
    net.run(20);
    for node in [A, B, C] {
        assert_eq!(net.names(node), ["without A"]);
        assert_eq!(net[node].leader(), Some(leader), "{node} follows");
        assert_eq!(net[node].map(), net[leader].map());
    }
}

#[test]
fn a_node_that_joins_gets_the_map_and_follows() {
    let mut net = Net::founded_by(A);
    net.propose(A, "before");
    net.start(B, Begin::Join);
    net.reconfigure(A, [A], [B]);
    net.run(5);
    assert!(net.taken[&B].snapshots > 0, "the founder's map is in no entry");
    net.propose(A, "after");
    net.run(2);
    assert_eq!(net.names(B), ["before", "after"]);
    assert_eq!(net[B].map(), net[A].map());
    assert!(!net[B].is_leader());
}

#[test]
fn a_learner_never_stands_for_election() {
    let mut net = Net::founded_by(A);
    net.start(B, Begin::Join);
    net.reconfigure(A, [A], [B]);
    net.run(5);
    net.cut_off(A);
    net.run(100);
    assert_eq!(net[B].term(), net[A].term());
    assert_eq!(net[B].leader(), Some(A));
}

#[test]
fn all_voters_are_replaced_at_once() {
    let mut net = Net::of([A, B, C]);
    for node in [D, E] {
        net.start(node, Begin::Join);
    }
    net.reconfigure(A, [A, B, C], [D, E]);
    net.run(5);
    net.reconfigure(A, [A, D, E], []);
    net.run(10);
    for node in [A, D, E] {
        assert_eq!(net[node].voters(), &[A, D, E].into());
        assert!(!net[node].configuration().is_joint());
    }
    net.cut_off(B);
    net.cut_off(C);
    net.propose(A, "by the new ones");
    net.run(2);
    assert_eq!(net.names(E), ["by the new ones"]);
}

#[test]
fn a_leader_that_is_to_lose_its_vote_hands_over_first() {
    let mut net = Net::of([A, B, C]);
    net.reconfigure(A, [B, C], []);
    net.run(2);
    let leader = net.leader_among([B, C]).expect("it was handed over at once");
    net.reconfigure(leader, [B, C], []);
    net.run(5);
    assert_eq!(net[leader].voters(), &[B, C].into());
    net.propose(leader, "without A");
    net.run(2);
    assert_eq!(net.names(B), net.names(C));
}

#[test]
fn a_leader_whose_only_heir_is_new_stays_until_it_can_hand_over() {
    let mut net = Net::founded_by(A);
    net.start(B, Begin::Join);
    for _ in 0..5 {
        if let Some(leader) = net.leader_among([A, B]) {
            net.reconfigure(leader, [B], []);
        }
        net.run(15);
    }
    assert!(net[B].is_leader());
    assert_eq!(net[B].configuration().voters, [B].into());
}

#[test]
fn a_leader_that_another_one_had_removed_steps_down() {
    let mut net = Net::of([A, B, C]);
    net.cut_off(C);
    net.reconfigure(A, [A, C], []);
    while let Some((from, to, message)) = net.wire.pop_front() {
        if (from, to) == (A, B) {
            net.arrive(from, to, &message); // Its answer stays on the wire, and is lost there.
            break;
        }
    }
    net.wire.clear();
    net.heal();
    net.cut_off(A);
    net.run(20);
    assert_eq!(net[C].voters(), &[A, C].into(), "B led just long enough to decide it");
    assert!(!net[B].is_leader());
    net.heal();
    net.run(20);
    let leader = net.leader_among([A, C]).expect("the two that are left elect one");
    net.propose(leader, "without B");
    net.run(2);
    assert_eq!(net.names(A), net.names(C));
}

#[test]
fn a_node_that_was_cut_off_disturbs_nobody_when_it_is_back() {
    let mut net = Net::of([A, B, C]);
    let term = net[A].term();
    net.cut_off(C);
    net.run(100);
    net.heal();
    net.run(20);
    assert_eq!(net[C].leader(), Some(A));
    assert_eq!([A, B, C].map(|node| net[node].term()), [term; 3]);
}

#[test]
fn a_voter_becomes_a_learner_and_a_learner_a_voter_in_one_step() {
    let mut net = Net::of([A, B, C]);
    net.start(D, Begin::Join);
    net.reconfigure(A, [A, B, C], [D]);
    net.run(5);
    net.reconfigure(A, [A, B, D], [C]);
    net.run(5);
    assert_eq!(net[A].voters(), &[A, B, D].into());
    assert_eq!(net[A].learners(), &[C].into());
    net.propose(A, "heard by all");
    net.run(2);
    assert_eq!(net.names(C), ["heard by all"]);
}

#[test]
fn a_leader_that_is_cut_off_gets_no_read_index_and_steps_down() {
    let mut net = Net::of([A, B, C]);
    net.node(A).read_index(1);
    net.run(2);
    assert_eq!(net.taken[&A].reads.len(), 1, "while it leads it gets one");
    net.cut_off(A);
    net.node(A).read_index(2);
    net.run(20);
    assert_eq!(net.taken[&A].reads.len(), 1);
    assert!(!net[A].is_leader(), "nobody answers it");
    net.heal();
    net.run(20);
    assert_eq!(net.taken[&A].reads.len(), 1, "what it once asked is not answered later");
}

#[test]
fn a_read_index_covers_all_that_was_decided_before_it() {
    let mut net = Net::of([A, B, C]);
    net.propose(A, "before");
    net.run(2);
    let decided = net[A].committed();
    net.node(A).read_index(3);
    net.run(2);
    assert_eq!(net.taken[&A].reads, [(3, decided)]);
}

#[test]
fn a_follower_proposes_nothing_and_says_who_can() {
    let mut net = Net::of([A, B, C]);
    let refused = net.node(B).propose(&net::entry("no"));
    assert_eq!(refused, Err(ProposeError::NotLeader { leader: Some(A) }));
}

#[test]
fn leadership_is_handed_over_without_silence() {
    let mut net = Net::of([A, B, C]);
    net.node(A).transfer_leadership(C);
    net.run(1);
    assert!(net[C].is_leader());
    assert_eq!(net[A].leader(), Some(C));
}

#[test]
fn leadership_that_nobody_takes_stays() {
    let mut net = Net::of([A, B, C]);
    net.cut_off(C);
    net.node(A).transfer_leadership(C);
    assert_eq!(net.node(A).propose(&net::entry("meanwhile")), Err(ProposeError::Busy));
    net.run(10);
    assert!(net[A].is_leader());
    net.propose(A, "afterwards");
    net.run(2);
    assert_eq!(net.names(B), ["afterwards"]);
}

#[test]
fn a_node_restarts_with_its_vote_and_its_log() {
    let mut net = Net::of([A, B, C]);
    net.propose(A, "kept");
    net.run(2);
    net.cut_off(A);
    net.run(20);
    let leader = net.leader_among([B, C]).expect("two of three elect a leader");
    let voter = if leader == B { C } else { B };
    let (hard_state, map) = (net.disk(voter).hard_state(), net[voter].map().cloned());
    assert_eq!(hard_state.vote, Some(leader));
    net.restart(voter);
    assert_eq!(net[voter].map().cloned(), map, "all it knew to be decided is applied again");
    assert_eq!(net.names(voter), ["kept"]);
    let late = MessageBody::Vote {
        ballot: Ballot::Election,
        last: LogPlace { index: LogIndex(99), term: hard_state.term },
        commit: LogPlace::new(1, 1),
    };
    net.node(voter).step(A, &RaftMessage { term: hard_state.term, body: late });
    let answers = net.node(voter).ready().messages;
    let [(A, RaftMessage { term, body: MessageBody::VoteRefused { .. } })] = answers.as_slice()
    else {
        panic!("one vote a term: {answers:?}")
    };
    assert_eq!(*term, hard_state.term);
}

#[test]
fn the_last_voter_that_restarts_leads_at_once() {
    let mut net = Net::founded_by(A);
    net.propose(A, "kept");
    net.restart(A);
    assert!(net[A].is_leader());
    net.propose(A, "and more");
    assert_eq!(net.names(A), ["kept", "and more"]);
}

#[test]
fn a_long_log_is_compacted_and_whoever_is_behind_gets_a_snapshot() {
    let mut net = Net::of([A, B, C]);
    net.cut_off(C);
    for number in 0..2_000 {
        net.propose(A, &format!("{}", number % 7));
        net.deliver();
    }
    assert!(net.disk(A).entries().len() < 1_500, "{} entries", net.disk(A).entries().len());
    net.restart(B);
    let before = net.taken[&C].snapshots;
    net.heal();
    net.run(20);
    assert!(net.taken[&C].snapshots > before);
    assert_eq!(net[C].map(), net[A].map());
    assert_eq!(net[B].map(), net[A].map());
}

#[test]
fn whoever_is_a_little_behind_needs_no_snapshot() {
    let mut net = Net::of([A, B, C]);
    net.run(2);
    net.cut_off(C);
    for number in 0..100 {
        net.propose(A, &format!("{number}"));
        net.deliver();
    }
    net.node(A).compact();
    let before = net.taken[&C].snapshots;
    net.heal();
    net.run(10);
    assert_eq!(net.taken[&C].snapshots, before);
    assert_eq!(net[C].map(), net[A].map());
}

#[test]
fn a_snapshot_that_is_lost_is_sent_again() {
    let mut net = Net::founded_by(A);
    net.start(B, Begin::Join);
    net.lose_snapshots = true;
    net.reconfigure(A, [A], [B]);
    net.run(10);
    assert_eq!(net[B].map(), None);
    net.lose_snapshots = false;
    net.run(60);
    assert_eq!(net[B].map(), net[A].map());
}

#[test]
fn a_link_that_knows_of_the_loss_saves_the_wait() {
    let mut net = Net::founded_by(A);
    net.start(B, Begin::Join);
    net.lose_snapshots = true;
    net.reconfigure(A, [A], [B]);
    net.run(3);
    net.lose_snapshots = false;
    net.node(A).report_snapshot(B, Delivery::Lost);
    net.run(4);
    assert_eq!(net[B].map(), net[A].map());
}

#[test]
fn up_to_five_voters_wait_for_different_times() {
    for term in 0..50 {
        let nodes = [A, B, C, D, E];
        let configuration = Configuration { voters: nodes.into(), ..Configuration::default() };
        let at = LogPlace::new(1, term + 1);
        let snapshot = SnapshotData { at, configuration, map: net::founding_map(A) };
        let saved = Saved::new(HardState::default(), Some(snapshot), Vec::new()).unwrap();
        let timeout = |node: NodeId| {
            let node = Consensus::new(node, 42, Begin::Resume(saved.clone()));
            node.election_timeout()
        };
        let timeouts: std::collections::BTreeSet<usize> = nodes.map(timeout).into();
        assert_eq!(timeouts, [5, 6, 7, 8, 9].into());
    }
}

#[test]
fn what_does_not_belong_together_is_not_resumed_from() {
    let mut net = Net::of([A, B, C]);
    net.propose(A, "one");
    net.propose(A, "two");
    let disk = net.disk(A).clone();
    let (hard_state, snapshot) = (disk.hard_state(), disk.snapshot().cloned());
    let mut entries = disk.entries().to_vec();
    assert_eq!(Saved::new(hard_state, snapshot.clone(), entries.clone()), Ok(disk));
    let orphans = Saved::new(hard_state, None, entries.clone());
    assert_eq!(orphans, Err(Inconsistent::NoSnapshot));
    let missing = entries.remove(1).index;
    let gap = Saved::new(hard_state, snapshot, entries);
    assert_eq!(gap, Err(Inconsistent::Gap(missing)));
}

//! A pause and a death that overlap, in every order. As long as a majority of the voters' processes run
//! and reach each other there is a leader again, and the living nodes hold everything.

use sim_engine::Rng;

use super::generations::everything;
use super::world::{World, ms};
use crate::control::Freshness;
use crate::map::NodeId;

/// The leader's fate when one of three nodes is stopped for a while and another is killed.
#[derive(Clone, Copy, Debug)]
enum Leader {
    Stays,
    IsStopped,
    IsKilled,
}

const LEADERS: [Leader; 3] = [Leader::Stays, Leader::IsStopped, Leader::IsKilled];

/// Returns the node that stays, the one that is stopped and the one that is killed.
fn cast(t: &World, of_leader: Leader) -> [u64; 3] {
    let leader = t.leader().unwrap();
    let others: Vec<u64> = t.members().into_iter().filter(|id| *id != leader).collect();
    match of_leader {
        Leader::Stays => [leader, others[0], others[1]],
        Leader::IsStopped => [others[0], leader, others[1]],
        Leader::IsKilled => [others[0], others[1], leader],
    }
}

/// Runs until the living nodes are members with leases and hold every bucket.
fn come_back(t: &mut World, living: &[u64]) {
    t.run_until(|t| {
        let Some(map) = t.has_a_map().then(|| t.map()) else { return false };
        t.members() == living
            && t.has_leases()
            && map.buckets().all(|bucket| bucket.holders.len() == 2)
    });
}

fn sorted(mut nodes: Vec<u64>) -> Vec<u64> {
    nodes.sort_unstable();
    nodes
}

#[test]
fn two_of_three_go_on_whenever_one_is_stopped_and_another_killed_meanwhile() {
    for of_leader in LEADERS {
        for killed_after in (0..3_000).step_by(50) {
            println!("{of_leader:?}, killed {killed_after} ms after the stop");
            let mut t = World::of(3);
            t.given_up_return = true;
            let [stays, stopped, killed] = cast(&t, of_leader);
            t.stop(stopped);
            t.run(ms(killed_after));
            t.kill(killed);
            t.run(ms(3_000 - killed_after));
            t.go_on(stopped);
            come_back(&mut t, &sorted(vec![stays, stopped]));
        }
    }
}

#[test]
fn two_of_three_go_on_whenever_one_is_killed_and_another_stopped_meanwhile() {
    for of_leader in LEADERS {
        for stopped_after in (0..1_200).step_by(50) {
            println!("{of_leader:?}, stopped {stopped_after} ms after the kill");
            let mut t = World::of(3);
            t.given_up_return = true;
            let [stays, stopped, killed] = cast(&t, of_leader);
            t.kill(killed);
            t.run(ms(stopped_after));
            t.stop(stopped);
            t.run(ms(3_000));
            t.go_on(stopped);
            come_back(&mut t, &sorted(vec![stays, stopped]));
        }
    }
}

#[test]
fn a_process_that_was_given_up_keeps_its_vote_until_the_others_do_without_it() {
    let mut t = World::of(3);
    t.given_up_return = true;
    let [stays, stopped, killed] = cast(&t, Leader::Stays);
    t.stop(stopped);
    t.run_until(|t| t.map().member(NodeId(stopped)).is_none());
    t.run(ms(5_000));
    assert_eq!(t.voters().len(), 3, "it may only be paused, and two tolerate no fault");
    t.kill(killed);
    t.run(ms(5_000));
    t.go_on(stopped);
    come_back(&mut t, &sorted(vec![stays, stopped]));
}

#[test]
fn two_of_three_that_restart_together_go_on_without_the_third() {
    for of_leader in LEADERS {
        println!("{of_leader:?}");
        let mut t = World::of(3);
        let living = sorted(cast(&t, of_leader)[..2].to_vec());
        let disks: Vec<_> = [1, 2, 3].map(|id| (id, t.kill(id).unwrap())).into();
        t.run(ms(2_000));
        for (id, disk) in disks.into_iter().filter(|(id, _)| living.contains(id)) {
            t.restart(id, 700 + id, disk);
            t.give(NodeId(id), everything(Freshness::AsItWas));
        }
        come_back(&mut t, &living);
    }
}

/// Two of three voters are back under new boots, the leader among them is not in the map any more, and
/// the third is dead. Each is let in only when the leader knows that the other one lives.
#[test]
fn returning_processes_are_let_in_by_a_leader_that_is_no_member_itself() {
    let mut t = World::of(3);
    t.given_up_return = true;
    let [restarted, given_up, killed] = cast(&t, Leader::Stays);
    t.stop(given_up);
    t.run_until(|t| !t.members().contains(&given_up));
    t.kill(killed);
    t.run(ms(700));
    t.go_on(given_up);
    t.run(ms(300));
    assert!(!t.is_member(given_up), "its copies are needed if the silent one is dead");
    let disk = t.kill(restarted).unwrap();
    t.run(ms(2_000));
    t.restart(restarted, 700, disk);
    t.give(NodeId(restarted), everything(Freshness::AsItWas));
    t.run_until(|t| t.leader().is_some());
    assert_eq!(t.leader(), Some(given_up), "it has waited for a vote, and has the whole log");
    assert!(!t.members().contains(&given_up));
    come_back(&mut t, &sorted(vec![restarted, given_up]));
}

/// Stops, restarts and isolates a random one of three nodes.
fn disturb(t: &mut World, draw: &mut Rng) {
    let node = 1 + draw.draw() % 3;
    let is_there = t.nodes.contains_key(&NodeId(node));
    match draw.draw() % 6 {
        0 | 1 if is_there => t.stop(node),
        2 => t.stopped().into_iter().for_each(|id| t.go_on(id)),
        3 | 4 => {
            if let Some(disk) = t.kill(node) {
                t.run(ms(draw.draw() % 2_500));
                t.restart(node, 10_000 + draw.draw() % 1_000_000, disk);
            }
        }
        5 if is_there && t.network.cut.is_empty() => t.cut_off(&[node]),
        _ => t.network.cut.clear(),
    }
}

#[test]
fn a_majority_goes_on_whatever_has_overlapped_before() {
    let nightly = std::env::var_os("OPENCLUSTER_NIGHTLY").is_some();
    for seed in 0..if nightly { 3_000 } else { 400 } {
        println!("seed {seed}");
        let (mut t, mut draw) = (World::of(3), Rng::new(seed));
        t.given_up_return = true;
        for _ in 0..2 + draw.draw() % 6 {
            disturb(&mut t, &mut draw);
            t.run(ms(draw.draw() % 2_000));
        }
        let killed = 1 + draw.draw() % 3;
        if t.can_spare(killed) {
            t.kill(killed);
        }
        t.run(ms(draw.draw() % 2_000));
        t.network.cut.clear();
        t.stopped().into_iter().for_each(|id| t.go_on(id));
        for _ in 0..5 {
            t.run(ms(1_000));
            // A returning process offers the copies it has kept.
            let living: Vec<NodeId> = t.nodes.keys().copied().collect();
            living.into_iter().for_each(|id| t.give(id, everything(Freshness::AsItWas)));
        }
        t.run_until(|t| t.nodes.len() == t.members().len() && t.has_leases());
    }
}

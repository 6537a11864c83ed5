//! A leader whose disk takes longer to write an entry than a node may stay silent before it counts as missing.

use super::world::{World, ms};
use crate::map::{NodeId, Setting};

/// Longer than a stall, shorter than the others' election timeout.
const DISK: u64 = 250;

/// Returns four nodes whose leader has a slow disk. There is always something to write.
fn busy() -> (World, u64) {
    let mut t = World::of(4);
    let leader = t.leader().unwrap();
    t.nodes.get_mut(&NodeId(leader)).unwrap().disk_takes = ms(DISK);
    (t, leader)
}

fn run_busily(t: &mut World, steps: u64) {
    for step in 0..steps {
        if let Some(leader) = t.leader() {
            t.set(leader, Setting::PendingAfter(ms(500 + step % 100)));
        }
        t.run(ms(400));
    }
}

#[test]
fn a_death_is_declared_although_the_leader_waits_for_its_disk_all_the_time() {
    let (mut t, leader) = busy();
    run_busily(&mut t, 5);
    let victim = t.follower();
    t.kill(victim);
    run_busily(&mut t, 12);
    assert!(!t.members().contains(&victim), "five seconds are enough");
    assert_eq!(t.leader(), Some(leader), "a slow disk alone is no reason for another leader");
}

#[test]
fn nobody_is_taken_for_dead_by_a_leader_that_waits_for_its_disk() {
    let (mut t, _) = busy();
    run_busily(&mut t, 60);
    assert_eq!(t.members().len(), 4);
    assert_eq!(t.map().lost().count(), 0);
}

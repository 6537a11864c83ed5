//! Nodes that die and nodes that sleep, under load.
use std::thread;
use std::time::Duration;

use e2e::{Cluster, Effort};

use crate::load::Load;
use crate::steady::Steady;

#[test]
fn a_killed_node_costs_nothing_that_was_acknowledged() {
    let mut cluster = Cluster::of(3, &[]);
    let kills = Effort::of_this_run().of_normally(3).max(1);
    for _ in 0..kills {
        let load = Load::start(&cluster.urls());
        load.go_on_for(1_000);
        cluster.kill(2);
        load.go_on_for(2_000);
        load.end_with_nothing_acknowledged_lost(&cluster.urls());
        cluster.wait_until_even();
        cluster.join();
        cluster.wait_until_even();
    }
}

#[test]
fn a_node_that_slept_serves_nothing_old_and_comes_back() {
    let cluster = Cluster::of(3, &[]);
    let load = Steady::start(&cluster);
    thread::sleep(Duration::from_secs(1));
    cluster.nodes[0].stop();
    thread::sleep(Duration::from_secs(5));
    cluster.nodes[0].go_on();
    thread::sleep(Duration::from_secs(2));
    load.end();
    cluster.wait_until_even();
}

#[test]
fn with_two_backups_a_death_is_settled_before_anybody_is_answered() {
    let mut cluster = Cluster::of(4, &["--backups", "2"]);
    let load = Steady::start(&cluster);
    thread::sleep(Duration::from_secs(1));
    cluster.kill(3);
    thread::sleep(Duration::from_secs(4));
    load.end();
    cluster.wait_until_even();
}

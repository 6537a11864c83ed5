//! Nodes that die and nodes that sleep, under load.
use e2e::{Cluster, Effort};

use crate::load::Load;

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
    let load = Load::start(&cluster.urls());
    load.go_on_for(1_000);
    cluster.nodes[1].stop();
    load.go_on_for(500);
    std::thread::sleep(std::time::Duration::from_secs(4));
    cluster.nodes[1].go_on();
    load.go_on_for(1_000);
    cluster.wait_until_even();
    load.end_with_nothing_acknowledged_lost(&cluster.urls());
}

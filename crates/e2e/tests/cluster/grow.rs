//! Joining and leaving under load.
use e2e::{Cluster, Server, http};

use crate::load::Load;

#[test]
fn one_two_three_five_three_under_load_and_nothing_is_lost() {
    let mut cluster = Cluster::of(1, &[]);
    let load = Load::start(&cluster.urls());
    load.go_on_for(2_000);
    for nodes in [2, 3, 5] {
        while cluster.nodes.len() < nodes {
            cluster.join();
        }
        cluster.wait_until_even();
        load.go_on_for(2_000);
    }
    for _ in 0..2 {
        cluster.leave(cluster.nodes.len() - 1);
        cluster.wait_until_even();
        load.go_on_for(2_000);
    }
    load.end_with_nothing_lost(&cluster.urls());
}

#[test]
fn sixteen_buckets_split_on_the_way_to_seven_nodes() {
    let mut cluster = Cluster::of(1, &["--buckets", "16"]);
    let load = Load::start(&cluster.urls());
    load.go_on_for(1_000);
    for _ in 1..7 {
        cluster.join();
        cluster.wait_until_even();
    }
    load.go_on_for(1_000);
    let primaries: u64 = cluster.shares().iter().map(|share| share.primaries).sum();
    assert_eq!(primaries, 256, "all buckets were split");
    load.end_with_nothing_lost(&cluster.urls());
}

/// Returns in how many steps a node has followed the map since its start.
fn map_steps(node: &Server) -> u64 {
    let page = http::get(node.http_port(), "/metrics");
    let steps = page.lines().find_map(|line| line.strip_prefix("opencluster_map_steps_total "));
    steps.and_then(|steps| steps.parse().ok()).expect("a node tells its steps")
}

#[test]
fn a_growth_takes_a_few_large_steps_of_the_map() {
    let mut cluster = Cluster::of(1, &[]);
    let load = Load::start(&cluster.urls());
    // 256 copies and 128 promotions; then, for the fourth node, 128 copies.
    for steps_max in [50, 60, 50] {
        let before = map_steps(&cluster.nodes[0]);
        cluster.join();
        cluster.wait_until_even();
        let steps = map_steps(&cluster.nodes[0]) - before;
        assert!(steps <= steps_max, "{} nodes: {steps} steps", cluster.nodes.len());
    }
    load.end_with_nothing_lost(&cluster.urls());
}

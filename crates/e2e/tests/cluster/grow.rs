//! Joining and leaving under load.
use e2e::Cluster;

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

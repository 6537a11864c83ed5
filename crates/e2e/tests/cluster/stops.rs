//! A whole cluster that is stopped and started again.
use std::thread;

use e2e::{Cluster, Server};

use crate::losses::{fill, has_all, set, soon};

#[test]
fn a_cluster_that_was_stopped_as_a_whole_starts_again_with_all_it_had() {
    let mut cluster = Cluster::with_directories(3, &[]);
    fill(&cluster);
    // All at once, as when a machine room is shut down; each waits for its turn.
    cluster.nodes.iter().for_each(Server::ask_to_end);
    start_again_together(&mut cluster);
    soon("everything is there", || has_all(&cluster.nodes));
    cluster.wait_until_even();
}

#[test]
fn two_of_three_that_were_killed_together_go_on_without_the_third() {
    let mut cluster = Cluster::with_directories(3, &[]);
    set(&cluster.nodes[0], "lost-after", "2s");
    cluster.nodes.iter().for_each(Server::kill);
    cluster.nodes.remove(2);
    start_again_together(&mut cluster);
    soon("the two are the members, and hold everything", || {
        let status = cluster.nodes[0].client().status();
        let count = |list: &serde_json::Value| list.as_array().map_or(0, Vec::len);
        let buckets = status["buckets"].as_array().cloned().unwrap_or_default();
        count(&status["members"]) == 2 && buckets.iter().all(|it| count(&it["holders"]) == 2)
    });
    fill(&cluster);
    assert!(has_all(&cluster.nodes));
}

/// Starts all nodes again at the same time: each may wait for another.
fn start_again_together(cluster: &mut Cluster) {
    let again = cluster.nodes.drain(..).map(|node| thread::spawn(|| node.start_again()));
    let again: Vec<_> = again.collect();
    let started = again.into_iter().map(|thread| thread.join().expect("it is ready"));
    cluster.nodes.extend(started.collect::<Vec<Server>>());
}

//! A whole cluster that is stopped and started again.
use std::thread;

use e2e::{Cluster, Server};

use crate::losses::{fill, has_all, soon};

#[test]
fn a_cluster_that_was_stopped_as_a_whole_starts_again_with_all_it_had() {
    let mut cluster = Cluster::with_directories(3, &[]);
    fill(&cluster);
    // All at once, as when a machine room is shut down; each waits for its turn.
    cluster.nodes.iter().for_each(Server::ask_to_end);
    let again = cluster.nodes.drain(..).map(|node| thread::spawn(|| node.start_again()));
    let again: Vec<_> = again.collect();
    let started = again.into_iter().map(|thread| thread.join().expect("it is ready"));
    cluster.nodes.extend(started.collect::<Vec<Server>>());
    soon("everything is there", || has_all(&cluster.nodes));
    cluster.wait_until_even();
}

//! Processes without data directories that are paused together, or paused while another one is killed. Two of
//! three processes that run and reach each other go on by themselves, and nothing acknowledged is lost.
use std::thread;
use std::time::Duration;

use e2e::Cluster;

use crate::losses::{fill, has_all, soon};

#[test]
fn two_of_five_that_were_paused_together_are_back_with_all_they_had() {
    let cluster = Cluster::of(5, &[]);
    fill(&cluster);
    let paused = [&cluster.nodes[1], &cluster.nodes[3]];
    paused.iter().for_each(|node| node.stop());
    thread::sleep(Duration::from_secs(5));
    paused.iter().for_each(|node| node.go_on());
    soon("everything is there", || has_all(&cluster.nodes));
    cluster.wait_until_even();
    assert!(has_all(&cluster.nodes));
}

#[test]
fn two_of_three_go_on_when_one_was_paused_while_another_was_killed() {
    for paused in 0..3 {
        let mut cluster = Cluster::of(3, &[]);
        fill(&cluster);
        let node = cluster.nodes.remove(paused);
        node.stop();
        thread::sleep(Duration::from_millis(800));
        cluster.kill(0);
        thread::sleep(Duration::from_millis(2_200));
        node.go_on();
        cluster.nodes.push(node);
        soon("everything is there", || has_all(&cluster.nodes));
        cluster.wait_until_even();
        cluster.join();
        cluster.wait_until_even();
        assert!(has_all(&cluster.nodes));
    }
}

#[test]
fn two_of_three_go_on_when_one_was_given_up_before_another_was_killed() {
    let mut cluster = Cluster::of(3, &[]);
    fill(&cluster);
    let node = cluster.nodes.remove(2);
    node.stop();
    soon("it is given up, and its buckets have two copies again", || {
        let status = cluster.nodes[0].client().status();
        let count = |list: &serde_json::Value| list.as_array().map_or(0, Vec::len);
        let buckets = status["buckets"].as_array().cloned().unwrap_or_default();
        count(&status["members"]) == 2 && buckets.iter().all(|it| count(&it["holders"]) == 2)
    });
    cluster.kill(0);
    thread::sleep(Duration::from_millis(1_500));
    node.go_on();
    cluster.nodes.push(node);
    soon("everything is there", || has_all(&cluster.nodes));
    cluster.wait_until_even();
}

//! Clients that follow the map by its pushes.
use std::collections::BTreeSet;
use std::time::Duration;

use e2e::{Cluster, MapFollower, Server};
use resp::Value;

/// Time without a push after which the map is at rest.
const QUIET: Duration = Duration::from_millis(500);

fn texts(value: &Value) -> Vec<String> {
    let Value::Array(parts) = value else { panic!("no list: {value}") };
    let text = |part: &Value| {
        if let Value::Integer(number) = part {
            return number.to_string();
        }
        part.text().map_or_else(
            || texts(part).join(" "),
            |text| String::from_utf8_lossy(text).into_owned(),
        )
    };
    parts.iter().map(text).collect()
}

/// Returns the buckets as a node lists them.
fn buckets(node: &Server) -> BTreeSet<String> {
    let lines = texts(&node.client().run("CLUSTER HASHMASKS ALL"));
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Returns id and address of every node, as a node lists them.
fn addresses(node: &Server) -> BTreeSet<String> {
    let answer = node.client().run("CLUSTER NODES");
    let text = String::from_utf8_lossy(answer.text().expect("a text")).into_owned();
    let address = |line: &str| line.split('@').next().expect("an address").to_owned();
    text.lines().map(address).collect()
}

/// Waits until the map is at rest, and compares it with the follower's.
fn check(cluster: &Cluster, follower: &mut MapFollower, when: &str) {
    cluster.wait_until_even();
    follower.follow(QUIET);
    let node = &cluster.nodes[0];
    assert_eq!(follower.buckets(), buckets(node), "{when}");
    assert_eq!(follower.nodes(), addresses(node), "{when}");
}

#[test]
fn a_client_that_only_follows_pushes_has_the_map_from_one_node_to_seven_and_back() {
    let mut cluster = Cluster::of(1, &["--buckets", "16"]);
    let mut follower = MapFollower::at(&cluster.nodes[0]);
    check(&cluster, &mut follower, "at the start");
    for count in 2..=7 {
        cluster.join();
        check(&cluster, &mut follower, &format!("with {count} nodes"));
    }
    assert_eq!(follower.buckets().len(), 256, "the sixth node has split all buckets");
    let before = follower.steps;
    cluster.nodes[3].client().run("CLUSTER SPLIT 00FF/0003");
    check(&cluster, &mut follower, "after a split");
    assert_eq!(follower.buckets().len(), 256 - 1 + 16);
    cluster.leave(6);
    check(&cluster, &mut follower, "after a leave");
    cluster.kill(5);
    check(&cluster, &mut follower, "after a death");
    assert!(follower.steps > before + 2, "{} steps", follower.steps);
    assert_eq!(follower.gaps, 0, "no push was lost");
}

#[test]
fn a_client_that_has_lost_pushes_sees_the_gap_and_fills_it() {
    let mut cluster = Cluster::of(2, &["--buckets", "16"]);
    let mut follower = MapFollower::at(&cluster.nodes[0]);
    cluster.join();
    cluster.wait_until_even();
    follower.lose(QUIET);
    assert_ne!(follower.buckets(), buckets(&cluster.nodes[0]), "it has missed the moves");
    cluster.nodes[1].client().run("CLUSTER SPLIT 000F/0003");
    check(&cluster, &mut follower, "after the gap");
    assert_eq!(follower.gaps, 1);
    // Another node knows the same epochs: a client that has lost its node goes on there.
    let since = format!("CLUSTER HASHMASKS SINCE {}", follower.epoch());
    let answer = cluster.nodes[2].client().run(&since);
    let text = String::from_utf8_lossy(answer.text().expect("a text")).into_owned();
    assert_eq!(text.lines().count(), 1, "nothing has changed: {text}");
    let old = cluster.nodes[2].client().run("CLUSTER HASHMASKS SINCE 1");
    let is_refused = matches!(&old, Value::Error(text) if text.starts_with(b"TOOOLD "));
    assert!(is_refused, "it joined later: {old}");
}

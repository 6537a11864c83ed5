//! Cluster-aware clients and three nodes: the clients find every key, whichever node they ask first.
use e2e::{Cluster, NODE, PYTHON, REDIS_BENCHMARK, REDIS_CLI};

use crate::run;

const REDIS_PY_STORY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/redis_py_cluster.py");
const IOREDIS_STORY: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/ioredis_cluster.js");

#[test]
fn redis_cli_follows_its_keys_and_finds_the_cluster_in_order() {
    let cluster = Cluster::of(3, &[]);
    for (number, node) in cluster.nodes.iter().enumerate() {
        let key = format!("key:{number}");
        assert_eq!(run(node, REDIS_CLI, &["-c", "SET", &key, "here"]), "OK\n");
        for other in &cluster.nodes {
            assert_eq!(run(other, REDIS_CLI, &["-c", "GET", &key]), "here\n");
        }
    }
    let address = format!("127.0.0.1:{}", cluster.nodes[1].port());
    let said = REDIS_CLI.output(&["--cluster", "check", &address], b"");
    assert!(said.contains("[OK] 3 keys in 3 masters."), "{said}");
    assert!(said.contains("[OK] All nodes agree about slots configuration."), "{said}");
    assert!(said.contains("[OK] All 16384 slots covered."), "{said}");
}

#[test]
fn redis_benchmark_spreads_over_the_cluster() {
    let cluster = Cluster::of(3, &[]);
    let args = ["--cluster", "-t", "set,get", "-n", "5000", "-c", "20", "-r", "10000", "-q"];
    let said = run(&cluster.nodes[2], REDIS_BENCHMARK, &args);
    assert_eq!(said.matches("requests per second").count(), 2, "{said}");
    assert!(!said.contains("WARN") && !said.contains("rror"), "{said}");
}

#[test]
fn redis_py_finds_all_keys_of_a_cluster() {
    let cluster = Cluster::of(3, &[]);
    let ports: Vec<String> = cluster.nodes.iter().map(|node| node.port().to_string()).collect();
    let said = PYTHON.output(&[REDIS_PY_STORY, &ports[0], &ports[1], &ports[2]], b"");
    assert_eq!(said, "redis-py: all told\n");
}

#[test]
fn ioredis_finds_all_keys_of_a_cluster() {
    let cluster = Cluster::of(3, &[]);
    let port = cluster.nodes[0].port().to_string();
    let said = NODE.output(&[IOREDIS_STORY, &port], b"");
    assert_eq!(said, "ioredis: all told\n");
}

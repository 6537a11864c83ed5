//! Splits by size: a bucket that has outgrown the rest is split alone, by the bytes that are really there.
use e2e::{Cluster, Server, opencluster};
use placement::{Hashmask, Mask, Slot};
use redis::cluster::ClusterConnection;
use resp::Value;

use crate::load::client;
use crate::losses::soon;

const KIB: usize = 1024;

/// Returns keys of different slots of a bucket.
fn keys_in(bucket: Hashmask, count: usize) -> Vec<String> {
    let names = (0..).map(|number| format!("key:{number}"));
    let is_inside = |key: &String| bucket.slots().contains(&Slot::of(key.as_bytes()).number());
    names.filter(is_inside).take(count).collect()
}

fn set(connection: &mut ClusterConnection, key: &str, bytes: usize) {
    let set = redis::cmd("SET").arg(key).arg(vec![b'x'; bytes]).exec(connection);
    set.expect("a write is taken");
}

/// Returns the node that serves the slot of a key.
fn primary_of<'a>(cluster: &'a Cluster, key: &str) -> &'a Server {
    let serves =
        |node: &&Server| !matches!(node.client().run(&format!("GET {key}")), Value::Error(_));
    cluster.nodes.iter().find(serves).expect("a node serves it")
}

/// Returns the names of all buckets, sorted.
fn buckets(node: &Server) -> Vec<String> {
    let status = node.client().status();
    let buckets = status["buckets"].as_array().cloned().unwrap_or_default();
    let name = |bucket: &serde_json::Value| bucket["bucket"].as_str().map(str::to_owned);
    let mut names: Vec<String> = buckets.iter().filter_map(name).collect();
    names.sort();
    names
}

#[test]
fn a_bucket_that_has_outgrown_the_rest_is_split_alone_and_one_huge_key_is_not() {
    let cluster = Cluster::of(3, &["--buckets", "16"]);
    let node = format!("127.0.0.1:{}", cluster.nodes[0].port());
    let limit = opencluster(&["settings", "split-larger-than", "4x,1mib", "--node", &node]);
    assert!(limit.status.success(), "{limit:?}");
    let mut connection = client(&cluster.urls()).get_connection().expect("a node answers");
    let all: Vec<Hashmask> = Hashmask::all(Mask::M000F).collect();
    let (huge, outgrown) = (all[3], all[11]);
    all.iter().for_each(|bucket| set(&mut connection, &keys_in(*bucket, 1)[0], 10));
    // One huge key comes first, so that its bucket is judged together with the other one.
    let huge_key = keys_in(huge, 2).remove(1);
    set(&mut connection, &huge_key, 4_000 * KIB);
    let holder = primary_of(&cluster, &huge_key);
    let reports = || {
        let log = holder.log();
        let is_report = |line: &&str| line.contains(&format!("bucket {huge} has "));
        log.lines().filter(is_report).filter(|line| line.contains("in one slot")).count()
    };
    soon("the node that serves the huge key reports it", || reports() > 0);
    let keys = keys_in(outgrown, 400);
    keys.iter().for_each(|key| set(&mut connection, key, 10 * KIB));
    soon("there are more buckets", || buckets(&cluster.nodes[0]).len() > all.len());
    let others = all.iter().filter(|bucket| **bucket != outgrown).map(Hashmask::to_string);
    let mut expected: Vec<String> =
        others.chain(outgrown.split().map(|part| part.to_string())).collect();
    expected.sort();
    assert_eq!(buckets(&cluster.nodes[0]), expected, "{outgrown} was split, and nothing else");
    cluster.wait_until_even();
    for key in &keys {
        let length = redis::cmd("STRLEN").arg(key).query::<usize>(&mut connection);
        assert_eq!(length, Ok(10 * KIB), "{key}");
    }
    assert_eq!(reports(), 1, "once, not every five seconds");
}

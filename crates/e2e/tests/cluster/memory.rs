//! `maxmemory` covers backups: a node near it gives copies away, and one above it has those make room whose
//! copies take too much. And nodes that stall.
use std::time::Duration;

use e2e::{Client, Cluster, Server, wait_until};
use redis::cluster::cluster_pipe;
use resp::Value;

use crate::load::client;

const MIB: u64 = 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(60);
const OOM: &[u8] = b"OOM command not allowed when used memory > 'maxmemory'.";

fn info(node: &Server, field: &str) -> u64 {
    let Value::Bulk(text) = node.client().run("INFO") else { panic!("INFO is a bulk string") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {field} in INFO"))
}

fn limit(node: &Server, bytes: u64) {
    let answer = node.client().run(&format!("CONFIG SET maxmemory {bytes}"));
    assert_eq!(answer, Value::Simple(b"OK".to_vec()));
}

/// Writes values of 1 KiB through one node. Returns the names of those that were taken, and the number of those
/// that were refused for want of memory; others are keys of another node.
fn write(client: &mut Client, name: &str, count: usize) -> (Vec<String>, usize) {
    let value = "v".repeat(1_024);
    let (mut taken, mut refused) = (Vec::new(), 0);
    let keys: Vec<String> = (0..count).map(|number| format!("{name}:{number}")).collect();
    for part in keys.chunks(200) {
        part.iter().for_each(|key| client.send(&["SET", key, &value]).expect("the node reads"));
        for key in part {
            let answer = client.receive().expect("an answer").value;
            if answer == Value::Error(OOM.to_vec()) {
                refused += 1;
            } else if let Value::Error(text) = &answer {
                assert!(text.starts_with(b"MOVED"), "{answer}");
            } else {
                taken.push(key.clone());
            }
        }
    }
    (taken, refused)
}

fn missing(client: &mut Client, keys: &[String]) -> usize {
    let mut is_there = |key: &String| client.run(&format!("EXISTS {key}")) == Value::Integer(1);
    keys.iter().filter(|key| !is_there(key)).count()
}

#[test]
fn a_node_near_its_limit_gives_copies_to_nodes_with_room() {
    const KEYS: usize = 24_000;
    let cluster = Cluster::of(3, &[]);
    let mut connection = client(&cluster.urls()).get_connection().expect("a node answers");
    let value = "x".repeat(1_000);
    for part in (0..KEYS).collect::<Vec<_>>().chunks(1_000) {
        let mut pipe = cluster_pipe();
        part.iter().for_each(|number| {
            pipe.set(format!("key:{number}"), &value).ignore();
        });
        pipe.query::<()>(&mut connection).expect("all are written");
    }
    let full = &cluster.nodes[2];
    let name = full.client().status()["node"].as_str().expect("a name").to_owned();
    let share = || cluster.shares().into_iter().find(|it| it.name == name).expect("a member");
    let before = share();
    let max = info(full, "used_memory") * 100 / 96;
    limit(full, max);
    let is_relieved = || info(full, "used_memory") < max * 9 / 10;
    wait_until("it has given copies away", PATIENCE, is_relieved);
    let after = share();
    assert!(after.backups < before.backups, "{before:?} became {after:?}");
    assert_eq!(after.primaries, before.primaries, "backups go first");
    let copies: u64 = cluster.shares().iter().map(|it| it.primaries + it.backups).sum();
    assert_eq!(copies, 512, "every bucket has its backup");
    for node in &cluster.nodes {
        assert_eq!(info(node, "evicted_keys"), 0);
    }
    for number in 0..KEYS {
        let length = redis::cmd("STRLEN").arg(format!("key:{number}")).query(&mut connection);
        assert_eq!(length, Ok(1_000), "key:{number}");
    }
    assert!(cluster.nodes[0].client().run("SET key:1 x") != Value::Error(OOM.to_vec()));
}

#[test]
fn backups_that_fill_a_node_cost_it_none_of_its_own_keys() {
    let cluster = Cluster::of(2, &["--maxmemory-policy", "allkeys-lru"]);
    let [writer, full] = &cluster.nodes[..] else { panic!("two nodes") };
    let (own, _) = write(&mut full.client(), "own", 2_000);
    let max = info(full, "used_memory") + 12 * MIB;
    limit(full, max);
    let (_, refused) = write(&mut writer.client(), "other", 80_000);
    assert_eq!(refused, 0, "keys may be evicted instead");
    let is_within = || info(full, "used_memory") < max + max / 20;
    wait_until("its memory is within its limit", PATIENCE, is_within);
    assert!(info(writer, "evicted_keys") > 10_000, "the one that wrote has made room");
    assert_eq!(info(full, "evicted_keys"), 0);
    assert_eq!(missing(&mut full.client(), &own), 0, "own keys are not evicted for others");
}

#[test]
fn without_eviction_writes_are_refused_that_would_not_fit_on_the_backup() {
    let cluster = Cluster::of(2, &[]);
    let [writer, full] = &cluster.nodes[..] else { panic!("two nodes") };
    let max = info(full, "used_memory") + 12 * MIB;
    limit(full, max);
    let mut client = writer.client();
    let (mut taken, mut rounds) = (Vec::new(), 0);
    // About 5 MB a second: the writer hears of it a quarter of a second late.
    let refused = || {
        rounds += 1;
        let (more, refused) = write(&mut client, &format!("key:{rounds}"), 200);
        taken.extend(more);
        refused > 0
    };
    wait_until("a write is refused", PATIENCE, refused);
    let used = info(full, "used_memory");
    assert!(used < max + 4 * MIB, "{used} of {max}: it has no room for what it got");
    assert_eq!(client.run(&format!("DEL {}", taken[0])), Value::Integer(1), "this frees memory");
    assert_eq!(missing(&mut client, &taken[1..100]), 0);
    limit(full, 4 * max);
    let accepts = || write(&mut client, "more", 100).1 == 0;
    wait_until("there is room again", PATIENCE, accepts);
    assert_eq!(info(writer, "evicted_keys") + info(full, "evicted_keys"), 0);
}

#[test]
fn a_node_whose_thread_stalls_says_so_and_hands_over() {
    let cluster = Cluster::of(3, &["--io-threads", "3", "--enable-debug-command", "yes"]);
    let stalls = &cluster.nodes[2];
    let name = stalls.client().status()["node"].as_str().expect("a name").to_owned();
    let mut sleeper = stalls.client();
    sleeper.send(&["DEBUG", "SLEEP", "14"]).expect("it reads");
    let says_so = || stalls.log().contains("this node is sick: thread io-");
    wait_until("it notices that a thread stalls", PATIENCE, says_so);
    let serves = || cluster.shares().iter().any(|it| it.name == name && it.primaries > 0);
    wait_until("it hands over what it serves", PATIENCE, || !serves());
    let is_well = || stalls.log().contains("this node is well again");
    wait_until("it recovers", PATIENCE, is_well);
    cluster.wait_until_even();
}

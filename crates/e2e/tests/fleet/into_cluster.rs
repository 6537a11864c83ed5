//! A cluster as a server of the fleet: the Redis servers are emptied into it, and filled from it again.
use std::collections::BTreeSet;

use e2e::{Client, Cluster, Effort, Server};
use placement::Slot;
use resp::Value;

use crate::fleet::{Fleet, address};
use crate::load::{Load, Types};
use crate::migration::a_while;

const CLIENTS: usize = 3;

fn text(number: usize) -> Value {
    Value::Bulk(number.to_string().into_bytes())
}

fn write(client: &mut Client, count: usize) {
    for number in 0..count {
        assert!(client.run(&format!("SET key:{number} {number} EX 1000")).is_ok());
    }
}

fn check(client: &mut Client, count: usize) {
    for number in 0..count {
        assert_eq!(client.run(&format!("GET key:{number}")), text(number), "key:{number}");
        let Value::Integer(left) = client.run(&format!("TTL key:{number}")) else { panic!() };
        assert!((300..=1000).contains(&left), "key:{number} lives for {left} s");
    }
}

/// Returns all keys that SCAN finds.
fn scanned(client: &mut Client) -> BTreeSet<Vec<u8>> {
    let mut cursor = "0".to_owned();
    let mut keys = BTreeSet::new();
    loop {
        let Value::Array(page) = client.run(&format!("SCAN {cursor} COUNT 100")) else { panic!() };
        let [next, Value::Array(found)] = page.as_slice() else { panic!("{page:?}") };
        keys.extend(found.iter().map(|key| key.text().expect("a key").to_vec()));
        cursor = String::from_utf8_lossy(next.text().expect("a cursor")).into_owned();
        if cursor == "0" {
            return keys;
        }
    }
}

/// Nodes that take no string as long as that of `write_refused`.
const LIMITED: [&str; 4] = ["--buckets", "16", "--proto-max-bulk-len", "1mb"];
const REFUSED_BYTES: i64 = 1_500_000;

fn write_refused(client: &mut Client) {
    let last = (REFUSED_BYTES - 1).to_string();
    assert_eq!(client.run(&format!("SETRANGE long {last} x")), Value::Integer(REFUSED_BYTES));
}

#[test]
fn the_same_migration_empties_the_servers_into_a_cluster_under_load() {
    let count = Effort::of_this_run().of_normally(1_000);
    let fleet = Fleet::start(2);
    let mut client = fleet.proxies[0].client();
    write(&mut client, count);
    write_refused(&mut client);
    let load = Load::of(Types::Strings, CLIENTS, &fleet.ports());
    a_while(&load);
    let mut cluster = Cluster::of(3, &LIMITED);
    let added = address(cluster.nodes[0].port());
    // The nodes refuse the string: it is reported, and stays where it can be read.
    let ran = fleet.run("migrate", &["--map", "0.0.4", "--add", &added]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("left: long:"), "{}", ran.out);
    assert_eq!(fleet.keys_on(0) + fleet.keys_on(1), 1);
    assert_eq!(client.run("STRLEN long"), Value::Integer(REFUSED_BYTES));
    a_while(&load);
    let Value::Error(refused) = fleet.proxies[1].client().run("APPEND long y") else { panic!() };
    let expected = b"ERR the key is read-only until it can be moved";
    assert!(refused.starts_with(expected), "{}", refused.escape_ascii());
    assert_eq!(client.run("STRLEN long"), Value::Integer(REFUSED_BYTES));
    // Once the nodes take strings of that length, it moves whole.
    assert!(cluster.nodes[0].client().run("CONFIG SET proto-max-bulk-len 4mb").is_ok());
    fleet.run("migrate", &["--resume"]).must_succeed();
    assert_eq!(fleet.says(0, "migration.status"), "2");
    // The cluster keeps growing: proxies that ask the wrong node are redirected, and follow.
    cluster.join();
    cluster.wait_until_even();
    a_while(&load);
    load.stop();
    check(&mut client, count);
    assert_eq!(client.run("STRLEN long"), Value::Integer(REFUSED_BYTES));
    for node in &cluster.nodes {
        assert_ne!(node.client().run("DBSIZE"), Value::Integer(0), "every node has its share");
    }
    fleet.run("check", &[]).must_succeed();
}

#[test]
fn a_cluster_behind_a_proxy_is_used_like_any_server() {
    let cluster = Cluster::of(3, &["--buckets", "16"]);
    let fleet = Fleet::over(&[cluster.nodes[1].port()], "1");
    let mut client = fleet.proxies[0].client();
    write(&mut client, 300);
    let keys: Vec<String> = (0..300).map(|number| format!("key:{number}")).collect();
    let Value::Array(values) = client.run(&format!("MGET {}", keys.join(" "))) else { panic!() };
    assert_eq!(values, (0..300).map(text).collect::<Vec<_>>());
    assert_eq!(client.run("DBSIZE"), Value::Integer(300));
    let expected: BTreeSet<Vec<u8>> = keys.iter().map(|key| key.clone().into_bytes()).collect();
    assert_eq!(scanned(&mut client), expected);
    assert_eq!(client.run("DEL key:0 key:1 nothing"), Value::Integer(2));
    // A transaction works if all its keys are in one slot; otherwise it is refused with an error.
    assert!(client.run("WATCH {t}a").is_ok());
    assert!(client.run("MULTI").is_ok());
    client.run("SET {t}a 1");
    client.run("INCR {t}a");
    assert_eq!(
        client.run("EXEC"),
        Value::Array(vec![Value::Simple(b"OK".to_vec()), Value::Integer(2)])
    );
    // Two slots of one node: it refuses the transaction. Two nodes: the second key is not the first one's node's.
    let in_bucket = |key: &str| Slot::of(key.as_bytes()).number() / 1024;
    let near = (0..).map(|number| format!("near:{number}"));
    let near = near.into_iter().find(|key| in_bucket(key) == in_bucket("x")).expect("one of many");
    let nodes = cluster.nodes.iter().map(|node| node.client().run("GET x"));
    let holder = nodes.into_iter().position(|reply| reply == Value::Null).expect("one serves x");
    let elsewhere = (0..)
        .map(|number| format!("far:{number}"))
        .find(|key| cluster.nodes[holder].client().run(&format!("GET {key}")) != Value::Null);
    let far = elsewhere.expect("one of many");
    for (other, error) in [(&near, "CROSSSLOT"), (&far, "EXECABORT")] {
        client.run("MULTI");
        client.run("SET x 1");
        client.run(&format!("SET {other} 1"));
        let Value::Error(refused) = client.run("EXEC") else { panic!() };
        assert!(refused.starts_with(error.as_bytes()), "{}", refused.escape_ascii());
        assert_eq!(client.run("GET x"), Value::Null, "nothing of it was done");
        assert_eq!(client.run(&format!("GET {other}")), Value::Null, "nothing of it was done");
    }
    // WATCH detects a write by another client in between.
    assert!(client.run("WATCH {t}a").is_ok());
    fleet.proxies[1].client().run("SET {t}a 7");
    client.run("MULTI");
    client.run("SET {t}a 8");
    assert_eq!(client.run("EXEC"), Value::Null);
    assert_eq!(client.run("GET {t}a"), Value::Bulk(b"7".to_vec()));
}

#[test]
fn a_migration_into_a_cluster_can_be_turned_back() {
    let fleet = Fleet::start(2);
    let mut client = fleet.proxies[0].client();
    write(&mut client, 400);
    write_refused(&mut client);
    let cluster = Cluster::of(2, &LIMITED);
    let added = address(cluster.nodes[0].port());
    let ran = fleet.run("migrate", &["--map", "0.0.4", "--add", &added]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(client.run("SET key:7 new EX 1000").is_ok());
    fleet.run("migrate", &["--abort"]).must_succeed();
    assert_eq!(fleet.says(0, "current"), "4.4");
    assert_eq!(fleet.keys_on(0) + fleet.keys_on(1), 401);
    assert_eq!(client.run("GET key:7"), Value::Bulk(b"new".to_vec()));
    client.run("SET key:7 7 EX 1000");
    check(&mut client, 400);
    assert_eq!(client.run("STRLEN long"), Value::Integer(REFUSED_BYTES));
    fleet.run("check", &[]).must_succeed();
}

#[test]
fn a_node_alone_is_a_cluster_too() {
    let fleet = Fleet::start(1);
    let mut client = fleet.proxies[0].client();
    write(&mut client, 200);
    let node = Server::node();
    let added = address(node.port());
    fleet.run("migrate", &["--map", "0.4", "--add", &added]).must_succeed();
    check(&mut client, 200);
    assert_eq!(client.run("INCR counter"), Value::Integer(1));
}

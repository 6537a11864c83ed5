//! Under `maxmemory` the node stays near its limit, evicts keys as its policy says, and keeps serving.

use e2e::{Client, Server};
use resp::Value;

const MIB: u64 = 1024 * 1024;
/// Number of values of 1 KiB to write: far more than fit.
const KEYS: usize = 40_000;

fn node(policy: &str) -> Server {
    Server::node_with(&["--maxmemory", "24mb", "--maxmemory-policy", policy])
}

/// Sends all requests, then reads all replies; returns the errors among them.
fn pipeline(client: &mut Client, lines: impl Iterator<Item = Vec<String>>) -> Vec<Vec<u8>> {
    let mut errors = Vec::new();
    let lines: Vec<Vec<String>> = lines.collect();
    for chunk in lines.chunks(500) {
        chunk.iter().for_each(|args| client.send(args).expect("the node reads"));
        for _ in chunk {
            if let Value::Error(text) = client.receive().expect("the node answers").value {
                errors.push(text);
            }
        }
    }
    errors
}

fn set(name: &str, number: usize, more: &[&str]) -> Vec<String> {
    let mut args = vec!["SET".to_owned(), format!("{name}:{number}"), "v".repeat(1024)];
    args.extend(more.iter().map(|word| (*word).to_owned()));
    args
}

fn info(client: &mut Client, field: &str) -> u64 {
    let Value::Bulk(text) = client.run("INFO") else { panic!("INFO is a bulk string") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {field} in INFO"))
}

/// Returns how many of `name:0` to `name:count` exist.
fn left(client: &mut Client, name: &str, count: usize) -> i64 {
    let mut args = vec!["EXISTS".to_owned()];
    args.extend((0..count).map(|number| format!("{name}:{number}")));
    let Value::Integer(there) = client.call(&args).value else { panic!("EXISTS counts") };
    there
}

fn assert_near_limit(client: &mut Client) {
    let used = info(client, "used_memory");
    assert!(used > 16 * MIB && used < 28 * MIB, "{used} bytes in use");
}

#[test]
fn without_eviction_writes_are_refused_and_reads_go_on() {
    let node = node("noeviction");
    let mut client = node.client();
    let errors = pipeline(&mut client, (0..KEYS).map(|number| set("k", number, &[])));
    assert!(!errors.is_empty());
    let oom = b"OOM command not allowed when used memory > 'maxmemory'.".to_vec();
    assert!(errors.iter().all(|error| *error == oom));
    assert_near_limit(&mut client);
    assert_eq!(left(&mut client, "k", 1), 1);
    assert_eq!(info(&mut client, "evicted_keys"), 0);
    assert_eq!(client.run("DEL k:0"), Value::Integer(1), "what frees memory is always allowed");
}

#[test]
fn every_allkeys_policy_keeps_memory_near_its_limit() {
    for policy in ["allkeys-lru", "allkeys-lfu", "allkeys-random"] {
        let node = node(policy);
        let mut client = node.client();
        let errors = pipeline(&mut client, (0..KEYS).map(|number| set("k", number, &[])));
        assert_eq!(errors.len(), 0, "{policy}");
        assert_near_limit(&mut client);
        let evicted = info(&mut client, "evicted_keys");
        assert!(evicted > KEYS as u64 / 2, "{policy}: {evicted} evicted");
    }
}

#[test]
fn the_frequently_used_outlive_the_others() {
    let node = node("allkeys-lfu");
    let mut client = node.client();
    let hot = 500;
    pipeline(&mut client, (0..hot).map(|number| set("hot", number, &[])));
    for round in 0..40 {
        let get = |number| vec!["GET".to_owned(), format!("hot:{number}")];
        pipeline(&mut client, (0..hot).map(get));
        pipeline(&mut client, (0..1_000).map(|number| set("cold", round * 1_000 + number, &[])));
    }
    let (hot_left, cold_left) = (left(&mut client, "hot", hot), left(&mut client, "cold", 40_000));
    println!("{hot_left} of {hot} used keys and {cold_left} of 40000 unused ones are left");
    assert!(hot_left as usize * 10 > hot * 9, "{hot_left} of {hot} are left");
    assert!(cold_left < 20_000);
}

#[test]
fn volatile_policies_take_only_keys_that_expire_and_refuse_when_there_are_none() {
    for policy in ["volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl"] {
        let node = node(policy);
        let mut client = node.client();
        let keep = 4_000;
        pipeline(&mut client, (0..keep).map(|number| set("keep", number, &[])));
        let expiring = (0..KEYS).map(|number| set("k", number, &["EX", "10000"]));
        assert_eq!(pipeline(&mut client, expiring).len(), 0, "{policy}");
        assert_near_limit(&mut client);
        assert_eq!(left(&mut client, "keep", keep), keep as i64, "{policy}");
        let forever = (0..KEYS).map(|number| set("forever", number, &[]));
        assert!(!pipeline(&mut client, forever).is_empty(), "{policy}");
        assert_eq!(left(&mut client, "keep", keep), keep as i64, "{policy}");
    }
}

#[test]
fn volatile_ttl_takes_those_that_expire_soonest() {
    let node = node("volatile-ttl");
    let mut client = node.client();
    let later = 3_000;
    pipeline(&mut client, (0..later).map(|number| set("later", number, &["EX", "100000"])));
    pipeline(&mut client, (0..KEYS).map(|number| set("soon", number, &["EX", "1000"])));
    let stayed = left(&mut client, "later", later);
    println!("{stayed} of {later} keys that expire later are left");
    assert!(stayed as usize * 10 > later * 9, "{stayed} of {later}");
}

#[test]
fn a_lowered_limit_is_kept_though_nobody_writes() {
    let node = node("allkeys-random");
    let mut client = node.client();
    pipeline(&mut client, (0..10_000).map(|number| set("k", number, &[])));
    assert_eq!(client.run("CONFIG SET maxmemory 12mb"), Value::Simple(b"OK".to_vec()));
    let below = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        info(&mut client, "used_memory") <= 12 * MIB
    });
    assert!(below, "{} bytes in use", info(&mut client, "used_memory"));
}

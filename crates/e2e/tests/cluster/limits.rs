//! Sizes and backlogs: a large transaction reaches the backup or is refused; a backup that lags far behind slows
//! writers down instead of being dropped; and no key is evicted because of data waiting to be sent.

use std::thread;
use std::time::{Duration, Instant};

use e2e::{Client, Cluster, Server};
use resp::Value;

use crate::losses::soon;

const MIB: usize = 1024 * 1024;

/// Returns the node that serves the slot of `{t}`, and the other one.
fn nodes(cluster: &Cluster) -> (&Server, &Server) {
    let serves = |node: &&Server| !matches!(node.client().run("GET {t}"), Value::Error(_));
    let primary = cluster.nodes.iter().find(serves).expect("one of them serves it");
    let backup = cluster.nodes.iter().find(|node| node.port() != primary.port());
    (primary, backup.expect("there are two"))
}

/// Queues `count` copies of `{t}v` in a transaction, and runs it.
fn copy_in_one(client: &mut Client, count: usize) -> Value {
    assert_eq!(client.run("MULTI"), Value::Simple(b"OK".to_vec()));
    for number in 0..count {
        client.send(&["COPY", "{t}v", &format!("{{t}}{number}")]).expect("the node reads");
    }
    for _ in 0..count {
        assert_eq!(client.receive().expect("an answer").value, Value::Simple(b"QUEUED".to_vec()));
    }
    client.run("EXEC")
}

/// Returns the number of buckets with a single copy.
fn without_backup(node: &Server) -> usize {
    let status = node.client().status();
    let buckets = status["buckets"].as_array().cloned().unwrap_or_default();
    let alone =
        |bucket: &&serde_json::Value| bucket["holders"].as_array().is_none_or(|it| it.len() < 2);
    buckets.iter().filter(alone).count()
}

/// Returns whether a copy was dropped because it could not keep up.
fn has_dropped(node: &Server) -> bool {
    node.client().status().to_string().contains("out of sync")
}

#[test]
fn a_transaction_of_hundreds_of_mebibytes_reaches_the_backup() {
    let cluster = Cluster::of(2, &["--buckets", "16"]);
    let (primary, backup) = nodes(&cluster);
    let mut client = primary.client();
    client.call(&["SET", "{t}v", &"x".repeat(MIB)]);
    let Value::Array(copied) = copy_in_one(&mut client, 601) else { panic!("it runs") };
    assert!(copied.len() == 601 && copied.iter().all(|it| *it == Value::Integer(1)));
    let begun = Instant::now();
    assert_eq!(client.run("SET {t}after 1"), Value::Simple(b"OK".to_vec()));
    assert!(begun.elapsed() < Duration::from_secs(10));
    soon("every bucket has its backup", || without_backup(primary) == 0);
    let mut reader = backup.client();
    reader.run("READONLY");
    soon("the backup has all of it", || {
        reader.run("STRLEN {t}600") == Value::Integer(MIB as i64)
            && reader.run("GET {t}after") == Value::Bulk(b"1".to_vec())
    });
}

#[test]
fn a_transaction_that_no_backup_could_take_changes_nothing() {
    let cluster = Cluster::of(2, &["--buckets", "16"]);
    let (primary, backup) = nodes(&cluster);
    let mut client = primary.client();
    client.call(&["SET", "{t}v", &"x".repeat(MIB)]);
    let Value::Error(text) = copy_in_one(&mut client, 4_200) else { panic!("it is refused") };
    assert!(text.starts_with(b"EXECABORT "), "{}", String::from_utf8_lossy(&text));
    assert_eq!(client.run("EXISTS {t}0"), Value::Integer(0));
    assert_eq!(client.run("SET {t}after 1"), Value::Simple(b"OK".to_vec()));
    let mut reader = backup.client();
    reader.run("READONLY");
    soon("the backup follows", || reader.run("GET {t}after") == Value::Bulk(b"1".to_vec()));
    assert!(!has_dropped(primary) && without_backup(primary) == 0);
}

#[test]
fn one_large_value_costs_no_bucket_its_backup() {
    let cluster = Cluster::of(2, &["--buckets", "16"]);
    let (primary, _) = nodes(&cluster);
    let mut client = primary.client();
    let large = vec![b'x'; 300 * MIB];
    for _ in 0..2 {
        let answer = client.call(&[b"SET".as_slice(), b"{t}v", &large]).value;
        assert_eq!(answer, Value::Simple(b"OK".to_vec()));
    }
    thread::sleep(Duration::from_millis(300)); // Long enough for three checks for lagging backups.
    assert!(!has_dropped(primary), "it was acknowledged part by part");
    assert_eq!(without_backup(primary), 0);
}

fn info(client: &mut Client, field: &str) -> u64 {
    let Value::Bulk(text) = client.run("INFO") else { panic!("INFO is a bulk string") };
    let text = String::from_utf8_lossy(&text).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{field}:")));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {field} in INFO"))
}

#[test]
fn no_key_is_evicted_for_what_waits_for_a_backup() {
    const KEYS: usize = 200;
    let flags = ["--buckets", "16", "--maxmemory", "160mb", "--maxmemory-policy", "allkeys-lru"];
    let cluster = Cluster::of(2, &flags);
    let (primary, backup) = nodes(&cluster);
    let mut client = primary.client();
    // With the usual second, a busy machine may add enough to the pause below for the primary to lose its lease.
    assert_eq!(client.run("CLUSTER SETTINGS lease 5s"), Value::Simple(b"OK".to_vec()));
    let has_long_lease = |node: &Server| node.client().status()["settings"]["lease"] == "5s";
    soon("both nodes know the longer lease", || cluster.nodes.iter().all(has_long_lease));
    // Leases are renewed five times a second: until then each node has one of the usual length.
    thread::sleep(Duration::from_secs(1));
    let value = "x".repeat(MIB / 4);
    let write_all = |client: &mut Client| {
        for number in 0..KEYS {
            client.send(&["SET", &format!("{{t}}{number}"), &value]).expect("the node reads");
        }
    };
    let read_all = |client: &mut Client| {
        for _ in 0..KEYS {
            let answer = client.receive().expect("an answer").value;
            assert_eq!(answer, Value::Simple(b"OK".to_vec()));
        }
    };
    write_all(&mut client);
    read_all(&mut client);
    assert_eq!(info(&mut client, "evicted_keys"), 0);
    // The backup is stopped for less than a lease; meanwhile everything is rewritten twice. What
    // exceeds the backup's maximum backlog stays in the sockets.
    backup.stop();
    let buffered = thread::scope(|scope| {
        let mut other = primary.client();
        let writing = scope.spawn(|| {
            write_all(&mut client);
            write_all(&mut client);
        });
        let begun = Instant::now();
        let mut buffered = 0;
        while begun.elapsed() < Duration::from_millis(700) {
            buffered = buffered.max(info(&mut other, "mem_not_counted_for_evict"));
            thread::sleep(Duration::from_millis(20));
        }
        backup.go_on();
        writing.join().expect("it was written");
        buffered
    });
    let limit = 64 * MIB as u64;
    assert!(buffered > limit / 3, "only {buffered} bytes were waiting");
    assert!(buffered < limit + limit / 4, "{buffered} bytes were waiting: nobody was held up");
    read_all(&mut client);
    read_all(&mut client);
    assert_eq!(info(&mut client, "evicted_keys"), 0);
}

//! A stream with a consumer group as a queue, over a failover: every entry that was acknowledged to its producer is
//! delivered, none that a consumer has acknowledged comes again, and ids never go back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use e2e::{Cluster, Server};
use placement::Slot;
use redis::cluster::{ClusterClient, ClusterConnection};
use redis::{RedisResult, Value};

use crate::load::client;
use crate::losses::soon;

const QUEUE: &str = "jobs";
const PRODUCERS: u64 = 3;
const CONSUMERS: u64 = 4;
const AFTER_FAILOVER: Duration = Duration::from_secs(3);

/// What the clients have seen.
#[derive(Default)]
struct Seen {
    /// Jobs whose XADD was acknowledged.
    added: Mutex<BTreeSet<String>>,
    /// Jobs that some consumer has got.
    delivered: Mutex<BTreeSet<String>>,
    /// Entries whose XACK was acknowledged, and when.
    finished: Mutex<BTreeMap<String, Instant>>,
    has_stopped_adding: AtomicBool,
    is_over: AtomicBool,
}

/// Connects, as often as it takes while nodes are gone.
fn connect(client: &ClusterClient) -> ClusterConnection {
    loop {
        if let Ok(connection) = client.get_connection() {
            let timeout = Some(Duration::from_secs(2));
            connection.set_read_timeout(timeout).expect("a duration");
            return connection;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Adds jobs until told to stop. The ids that it gets rise, whatever happens between two of them.
fn produce(number: u64, client: &ClusterClient, seen: &Seen) {
    let mut connection = connect(client);
    let mut last = (0_u64, 0_u64);
    for count in 0_u64.. {
        if seen.has_stopped_adding.load(Ordering::Relaxed) {
            return;
        }
        let job = format!("{number}:{count}");
        let add = redis::cmd("XADD").arg(QUEUE).arg("*").arg("job").arg(&job).to_owned();
        let added: RedisResult<String> = add.query(&mut connection);
        let Ok(id) = added else {
            connection = connect(client);
            continue;
        };
        let (ms, seq) = id.split_once('-').expect("an id");
        let id = (ms.parse().expect("a number"), seq.parse().expect("a number"));
        assert!(id > last, "{id:?} came after {last:?}");
        last = id;
        seen.added.lock().expect("no panic").insert(job);
    }
}

/// Reads, claims and acknowledges jobs until told to stop. Every seventh is left to be claimed.
fn consume(number: u64, client: &ClusterClient, seen: &Seen) {
    let mut connection = connect(client);
    let name = format!("consumer{number}");
    for round in 0_u64.. {
        if seen.is_over.load(Ordering::Relaxed) {
            return;
        }
        let asked = Instant::now();
        let mut ask;
        if round.is_multiple_of(4) {
            ask = redis::cmd("XAUTOCLAIM");
            ask.arg(QUEUE).arg("g").arg(&name).arg(300).arg("0").arg("COUNT").arg(20);
        } else {
            ask = redis::cmd("XREADGROUP");
            ask.arg("GROUP").arg("g").arg(&name).arg("COUNT").arg(5);
            ask.arg("BLOCK").arg(100).arg("STREAMS").arg(QUEUE).arg(">");
        }
        let reply: RedisResult<Value> = ask.query(&mut connection);
        let entries = reply.map(|reply| {
            let mut entries = Vec::new();
            collect(&reply, &mut entries);
            entries
        });
        match entries {
            Ok(entries) => handle(&entries, asked, (client, &mut connection), seen),
            Err(_) => connection = connect(client),
        }
    }
}

/// Collects the entries in a reply, wherever they stand: ids and jobs.
fn collect(reply: &Value, entries: &mut Vec<(String, String)>) {
    let Value::Array(parts) = reply else { return };
    let text = |part: &Value| {
        let Value::BulkString(text) = part else { panic!("not a text: {part:?}") };
        String::from_utf8_lossy(text).into_owned()
    };
    match parts.as_slice() {
        [Value::BulkString(id), Value::Array(pair)]
            if pair.first() == Some(&Value::BulkString(b"job".to_vec())) =>
        {
            entries.push((String::from_utf8_lossy(id).into_owned(), text(&pair[1])));
        }
        parts => parts.iter().for_each(|part| collect(part, entries)),
    }
}

fn handle(
    entries: &[(String, String)],
    asked: Instant,
    (client, connection): (&ClusterClient, &mut ClusterConnection),
    seen: &Seen,
) {
    for (index, (id, job)) in entries.iter().enumerate() {
        let finished = seen.finished.lock().expect("no panic").get(id).copied();
        assert!(finished.is_none_or(|at| at >= asked), "{id} came again");
        seen.delivered.lock().expect("no panic").insert(job.clone());
        if index % 7 == 6 {
            continue;
        }
        // Repeated until it is answered: whether the first one was carried out, nobody knows.
        let ack = redis::cmd("XACK").arg(QUEUE).arg("g").arg(id).to_owned();
        while ack.query::<u64>(connection).is_err() {
            *connection = connect(client);
        }
        seen.finished.lock().expect("no panic").insert(id.clone(), Instant::now());
    }
}

fn spawn(
    count: u64,
    work: fn(u64, &ClusterClient, &Seen),
    (urls, seen): (&[String], &Arc<Seen>),
) -> Vec<JoinHandle<()>> {
    let start = |number| {
        let (client, seen) = (client(urls), Arc::clone(seen));
        thread::spawn(move || work(number, &client, &seen))
    };
    (0..count).map(start).collect()
}

/// Returns the index of the node that is primary of the queue.
fn primary_of_queue(cluster: &Cluster) -> usize {
    let status = cluster.nodes[0].client().status();
    let slot = u64::from(Slot::of(QUEUE.as_bytes()).number());
    let buckets = status["buckets"].as_array().cloned().unwrap_or_default();
    let bound = |bucket: &serde_json::Value, name: &str| bucket[name].as_u64().expect("a slot");
    let has_slot = |bucket: &&serde_json::Value| {
        (bound(bucket, "first_slot")..=bound(bucket, "last_slot")).contains(&slot)
    };
    let primary = buckets.iter().find(has_slot).expect("every slot has one")["holders"][0].clone();
    let is_primary = |node: &Server| node.client().status()["node"] == primary;
    cluster.nodes.iter().position(is_primary).expect("it is a member")
}

#[test]
fn a_queue_loses_and_repeats_nothing_over_a_failover() {
    let mut cluster = Cluster::of(3, &["--buckets", "16"]);
    let urls = cluster.urls();
    let mut connection = connect(&client(&urls));
    let mut create = redis::cmd("XGROUP");
    create.arg("CREATE").arg(QUEUE).arg("g").arg("0").arg("MKSTREAM");
    create.query::<()>(&mut connection).expect("there is no such group");
    let seen = Arc::new(Seen::default());
    let producers = spawn(PRODUCERS, produce, (&urls, &seen));
    let consumers = spawn(CONSUMERS, consume, (&urls, &seen));
    let count = |jobs: &Mutex<BTreeSet<String>>| jobs.lock().expect("no panic").len();
    soon("jobs are under way", || count(&seen.delivered) > 300);
    let primary = primary_of_queue(&cluster);
    cluster.kill(primary);
    let before = count(&seen.added);
    soon("jobs are added again", || count(&seen.added) > before + 300);
    thread::sleep(AFTER_FAILOVER);
    seen.has_stopped_adding.store(true, Ordering::Relaxed);
    for producer in producers {
        producer.join().expect("ids rise");
    }
    let mut connection = connect(&client(&cluster.urls()));
    soon("nothing is pending any more", || {
        let info: RedisResult<Vec<BTreeMap<String, Value>>> =
            redis::cmd("XINFO").arg("GROUPS").arg(QUEUE).query(&mut connection);
        let Ok(info) = info else { return false };
        let is_zero = |name: &str| info[0].get(name) == Some(&Value::Int(0));
        is_zero("pending") && is_zero("lag")
    });
    seen.is_over.store(true, Ordering::Relaxed);
    for consumer in consumers {
        consumer.join().expect("no entry comes again");
    }
    let (added, delivered) = (seen.added.lock().expect("no panic"), seen.delivered.lock());
    let delivered = delivered.expect("no panic");
    let lost: Vec<&String> = added.difference(&delivered).take(5).collect();
    assert!(lost.is_empty(), "of {} jobs, these were never delivered: {lost:?}", added.len());
}

//! Key events follow the key: each is heard exactly once, whichever node serves the key, while buckets move.
mod ear;
mod writer;

use std::time::Duration;

use e2e::{Client, Cluster, Server, free_ports};
use placement::Slot;
use resp::Value;

use ear::{Ear, counts};
use writer::{Writer, Written};

/// Waits until each acknowledged write was heard of; none may be heard of twice.
fn all_heard_once<'a>(written: &Written, ears: impl Fn() -> Vec<&'a Ear>) {
    let is_missing = |key: &&String| !counts(ears()).contains_key(*key);
    e2e::wait_until("every event is heard", Duration::from_secs(20), || {
        let missing = written.acknowledged.iter().rev().take(200).filter(is_missing).count();
        missing == 0
    });
    std::thread::sleep(Duration::from_millis(300)); // A second message would be on its way.
    let counts = counts(ears());
    let count = |key: &String| counts.get(key).copied().unwrap_or(0);
    let wrong: Vec<_> = written.acknowledged.iter().filter(|key| count(key) != 1).collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:?}", wrong.len(), written.acknowledged.len());
    let twice: Vec<_> = written.unknown.iter().filter(|key| count(key) > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

/// Turns events on for the whole cluster, at one node.
fn turn_on(node: &Server, scope: &str) {
    let set = format!("CONFIG SET notify-keyspace-events EA notify-scope {scope}");
    assert_eq!(node.client().run(&set), Value::Simple(b"OK".to_vec()));
}

fn ports(cluster: &Cluster) -> Vec<u16> {
    cluster.nodes.iter().map(Server::port).collect()
}

/// Returns a cluster of three, the last of which has an any-port, and that port.
fn three_with_any_port(flags: &[&str]) -> (Cluster, u16) {
    let mut cluster = Cluster::of(2, flags);
    let [port] = free_ports();
    let join = format!("127.0.0.1:{}", cluster.nodes[0].port());
    let any_port = ["--any-port", &port.to_string(), "--join", &join];
    cluster.nodes.push(Server::node_with(&[flags, &any_port].concat()));
    cluster.wait_until_even();
    (cluster, port)
}

#[test]
fn in_the_scope_of_the_cluster_one_subscriber_hears_every_event_once() {
    let mut cluster = Cluster::of(2, &["--buckets", "16"]);
    turn_on(&cluster.nodes[1], "cluster");
    let ear = Ear::on(cluster.nodes[0].port());
    ear.wait_until_known_to(&cluster.nodes);
    let writer = Writer::start(ports(&cluster));
    for _ in 0..2 {
        writer.go_on_for(200);
        cluster.join();
    }
    cluster.wait_until_even();
    cluster.nodes[2].client().run("CLUSTER SPLIT 000F/0003");
    writer.go_on_for(200);
    cluster.leave(3);
    cluster.leave(2);
    cluster.wait_until_even();
    writer.go_on_for(200);
    let written = writer.end();
    assert!(written.unknown.is_empty(), "{:?}", written.unknown);
    all_heard_once(&written, || vec![&ear]);
}

#[test]
fn in_the_scope_of_a_node_subscribers_of_all_nodes_hear_every_event_once_and_the_any_port_all() {
    let (mut cluster, any_port) = three_with_any_port(&["--buckets", "16"]);
    turn_on(&cluster.nodes[1], "node");
    let at_any_port = Ear::on(any_port);
    at_any_port.wait_until_known_to(&cluster.nodes);
    let mut ears: Vec<Ear> = ports(&cluster).into_iter().map(Ear::on).collect();
    let writer = Writer::start(vec![cluster.nodes[0].port(), cluster.nodes[2].port()]);
    for _ in 0..2 {
        writer.go_on_for(200);
        // A subscriber is there before the new node serves anything that is written.
        writer.without_writes(|| ears.push(Ear::on(cluster.join().port())));
    }
    cluster.nodes[2].client().run("CLUSTER SPLIT 000F/0003");
    cluster.wait_until_even();
    writer.go_on_for(200);
    cluster.leave(4);
    cluster.leave(1);
    cluster.wait_until_even();
    writer.go_on_for(200);
    let written = writer.end();
    assert!(written.unknown.is_empty(), "{:?}", written.unknown);
    all_heard_once(&written, || ears.iter().collect());
    all_heard_once(&written, || vec![&at_any_port]);
    for ear in &ears {
        assert!(ear.heard().len() < written.acknowledged.len(), "nobody serves all keys");
    }
}

#[test]
fn after_a_death_only_events_of_unacknowledged_writes_are_missing() {
    // With one thread a subscriber of the killed node is told before the reply leaves.
    let (mut cluster, any_port) = three_with_any_port(&["--buckets", "16", "--io-threads", "1"]);
    turn_on(&cluster.nodes[0], "node");
    let at_any_port = Ear::on(any_port);
    at_any_port.wait_until_known_to(&cluster.nodes);
    let mut ears: Vec<Ear> = ports(&cluster).into_iter().map(Ear::on).collect();
    let writer = Writer::start(vec![cluster.nodes[0].port(), cluster.nodes[2].port()]);
    for _ in 0..3 {
        writer.go_on_for(300);
        cluster.kill(1);
        writer.go_on_for(300);
        writer.without_writes(|| {
            cluster.join();
            let new = cluster.nodes.pop().expect("it has joined");
            ears.push(Ear::on(new.port()));
            cluster.nodes.insert(1, new);
        });
        cluster.wait_until_even();
    }
    let written = writer.end();
    all_heard_once(&written, || ears.iter().collect());
    all_heard_once(&written, || vec![&at_any_port]);
}

/// Returns the next message: its channel and its payload.
fn next(subscriber: &mut Client) -> (String, String) {
    let answer = subscriber.receive().expect("a message").value;
    let Value::Array(parts) = &answer else { panic!("no message: {answer}") };
    let [.., channel, payload] = parts.as_slice() else { panic!("too short: {answer}") };
    let text = |part: &Value| String::from_utf8_lossy(part.text().expect("a text")).into_owned();
    (text(channel), text(payload))
}

/// Returns the payload of the next message, which must be on this channel.
fn next_on(subscriber: &mut Client, channel: &str) -> String {
    let (on, payload) = next(subscriber);
    assert_eq!(on, channel, "{payload}");
    payload
}

/// Returns two nodes, with a lease so long that a pause of one is not its death.
fn two_with_a_long_lease() -> Cluster {
    let cluster = Cluster::of(2, &["--buckets", "16"]);
    turn_on(&cluster.nodes[0], "node");
    cluster.nodes[0].client().run("CLUSTER SETTINGS lease 30s");
    let has_long_lease = |node: &Server| node.client().status()["settings"]["lease"] == "30s";
    e2e::wait_until("both nodes know the longer lease", Duration::from_secs(20), || {
        cluster.nodes.iter().all(has_long_lease)
    });
    // Leases are renewed five times a second: until then each node has one of the usual length.
    std::thread::sleep(Duration::from_secs(1));
    cluster
}

/// Returns keys that this node serves.
fn keys_of(node: &Server, count: usize) -> Vec<String> {
    let mut client = node.client();
    let is_here = |key: &String| client.run(&format!("GET {key}")) == Value::Null;
    (0..).map(|number: u32| format!("key:{number}")).filter(is_here).take(count).collect()
}

fn number_in_info(client: &mut Client, name: &str) -> u64 {
    let info = client.run("INFO stats");
    let text = String::from_utf8_lossy(info.text().expect("a text")).into_owned();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    value.and_then(|value| value.trim().parse().ok()).expect("a number")
}

#[test]
fn an_event_leaves_with_the_acknowledged_reply_and_not_before() {
    let cluster = two_with_a_long_lease();
    let (primary, backup) = (&cluster.nodes[0], &cluster.nodes[1]);
    let keys = keys_of(primary, 2);
    let mut subscriber = primary.client();
    subscriber.run("PSUBSCRIBE __keyevent@0__:set");
    subscriber.run("SUBSCRIBE news");
    backup.stop();
    // Messages do not wait for backups, and commands of a connection run in order: the event of a write that had left
    // when the write was done would come before the message behind it.
    let mut client = primary.client();
    let send = |client: &mut Client, line: &str| {
        client.send(&line.split(' ').collect::<Vec<_>>()).expect("the node reads");
    };
    send(&mut client, &format!("SET {} x", keys[0]));
    send(&mut client, "PUBLISH news one");
    assert_eq!(next_on(&mut subscriber, "news"), "one");
    send(&mut client, "MULTI");
    send(&mut client, &format!("SET {} x", keys[1]));
    send(&mut client, "PUBLISH news two");
    send(&mut client, "EXEC");
    send(&mut client, "PUBLISH news three");
    assert_eq!(next_on(&mut subscriber, "news"), "three", "the transaction waits as a whole");
    assert_eq!(client.receive_within(Duration::from_millis(50)).expect("it stands"), None);
    backup.go_on();
    assert_eq!(client.receive().expect("an answer").value, Value::Simple(b"OK".to_vec()));
    assert_eq!(next_on(&mut subscriber, "__keyevent@0__:set"), keys[0]);
    assert_eq!(next_on(&mut subscriber, "__keyevent@0__:set"), keys[1]);
    assert_eq!(next_on(&mut subscriber, "news"), "two");
}

#[test]
fn events_of_expired_and_evicted_keys_wait_for_the_backup_too() {
    let cluster = two_with_a_long_lease();
    let (primary, backup) = (&cluster.nodes[0], &cluster.nodes[1]);
    let keys = keys_of(primary, 3);
    let mut client = primary.client();
    client.run("CONFIG SET maxmemory-policy volatile-ttl");
    let mut subscriber = primary.client();
    for name in ["expired", "evicted"] {
        subscriber.run(&format!("SUBSCRIBE __keyevent@0__:{name}"));
    }
    subscriber.run("SUBSCRIBE news");
    client.run(&format!("SET {} x PX 3000", keys[0]));
    client.run(&format!("SET {} x EX 1000", keys[1]));
    backup.stop();
    client.run("CONFIG SET maxmemory 1");
    e2e::wait_until("a key is evicted", Duration::from_secs(20), || {
        number_in_info(&mut client, "evicted_keys") > 0
    });
    client.run("PUBLISH news one");
    assert_eq!(next_on(&mut subscriber, "news"), "one");
    backup.go_on();
    let told = [next(&mut subscriber), next(&mut subscriber)].map(|(_, key)| key);
    assert_eq!(told.iter().collect::<std::collections::BTreeSet<_>>(), keys[..2].iter().collect());
    // The same for a key that expires.
    client.run("CONFIG SET maxmemory 0");
    client.run(&format!("SET {} x PX 2000", keys[2]));
    backup.stop();
    e2e::wait_until("a key expires", Duration::from_secs(20), || {
        number_in_info(&mut client, "expired_keys") > 0
    });
    client.run("PUBLISH news two");
    assert_eq!(next_on(&mut subscriber, "news"), "two");
    backup.go_on();
    assert_eq!(next_on(&mut subscriber, "__keyevent@0__:expired"), keys[2]);
}

#[test]
fn a_message_is_heard_on_every_node_once() {
    let cluster = Cluster::of(3, &[]);
    let ears: Vec<Ear> = ports(&cluster).into_iter().map(Ear::on).collect();
    for ear in &ears {
        ear.wait_until_known_to(&cluster.nodes);
    }
    for (number, node) in cluster.nodes.iter().enumerate() {
        // It goes where an event would go, but a message has no scope.
        node.client().call(&["PUBLISH", "__keyevent@0__:set", &number.to_string()]);
    }
    for ear in &ears {
        let heard = || {
            let mut heard = ear.heard();
            heard.sort_unstable();
            heard
        };
        e2e::wait_until("all are heard", Duration::from_secs(20), || heard().len() >= 3);
        assert_eq!(heard(), ["0", "1", "2"]);
    }
}

/// Returns a channel in each of 16 buckets.
fn channels() -> Vec<String> {
    let in_bucket = |bucket: u16| {
        let mut names = (0..).map(|number: u32| format!("channel:{number}"));
        names.find(|name| Slot::of(name.as_bytes()).number() / 1024 == bucket).expect("one of them")
    };
    (0..16).map(in_bucket).collect()
}

fn is_moved(answer: &Value) -> bool {
    matches!(answer, Value::Error(text) if text.starts_with(b"MOVED "))
}

#[test]
fn a_shard_channel_follows_its_slot_and_its_subscriber_is_told() {
    let mut cluster = Cluster::of(2, &["--buckets", "16"]);
    let mut subscriber = cluster.nodes[0].client();
    let mut mine = channels();
    mine.retain(|channel| !is_moved(&subscriber.run(&format!("SSUBSCRIBE {channel}"))));
    assert_eq!(mine.len(), 8, "{mine:?}");
    cluster.join();
    cluster.wait_until_even();
    let asks = |channel: &String| cluster.nodes[0].client().run(&format!("SSUBSCRIBE {channel}"));
    let (gone, kept): (Vec<&String>, Vec<&String>) =
        mine.iter().partition(|channel| is_moved(&asks(channel)));
    assert!(gone.len() >= 2 && !kept.is_empty(), "{gone:?} have moved, {kept:?} have not");
    let mut told = Vec::new();
    for left in (kept.len()..mine.len()).rev() {
        let answer = subscriber.receive().expect("a message").value;
        let Value::Array(parts) = &answer else { panic!("no message: {answer}") };
        assert_eq!(parts[0].text(), Some(b"sunsubscribe".as_slice()), "{answer}");
        assert_eq!(parts[2], Value::Integer(left as i64), "{answer}");
        told.push(String::from_utf8_lossy(parts[1].text().expect("a name")).into_owned());
    }
    told.sort_unstable();
    let mut moved: Vec<String> = gone.iter().map(|channel| (*channel).clone()).collect();
    moved.sort_unstable();
    assert_eq!(told, moved, "it is told of each channel that has moved");
    for channel in kept {
        let count = cluster.nodes[0].client().run(&format!("SPUBLISH {channel} hello"));
        assert!(matches!(count, Value::Integer(1..)), "{count}");
        assert_eq!(next_on(&mut subscriber, channel), "hello");
    }
    // At the node that a redirect names, the subscription is taken.
    for channel in gone {
        let answer = subscriber.run(&format!("SSUBSCRIBE {channel}"));
        let Value::Error(text) = &answer else { panic!("no redirect: {answer}") };
        let text = String::from_utf8_lossy(text);
        let port = text.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        let mut there = Client::try_connect(port).expect("it listens");
        there.run(&format!("SSUBSCRIBE {channel}"));
        let mut publisher = Client::try_connect(port).expect("it listens");
        assert_eq!(publisher.run(&format!("SPUBLISH {channel} there")), Value::Integer(1));
        assert_eq!(next_on(&mut there, channel), "there");
    }
}

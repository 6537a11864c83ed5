//! Messages and key events reach a subscriber on any node, whichever node is primary, while buckets move.
use std::time::Duration;

use e2e::{Client, Cluster};
use resp::Value;

use crate::load::client;

/// Returns the payloads of the next `count` messages; fewer if no more arrive.
fn heard(subscriber: &mut Client, count: usize) -> Vec<String> {
    let mut heard = Vec::new();
    while heard.len() < count {
        let answer = subscriber.receive_within(Duration::from_secs(10));
        let Some(answer) = answer.expect("the connection stands") else {
            break;
        };
        let Value::Array(parts) = &answer.value else { continue };
        if let Some(Value::Bulk(payload)) = parts.last() {
            heard.push(String::from_utf8_lossy(payload).into_owned());
        }
    }
    heard
}

#[test]
fn every_write_is_told_once_to_a_subscriber_elsewhere_while_buckets_move() {
    const WRITES: usize = 3_000;
    let mut cluster = Cluster::of(2, &["--notify-keyspace-events", "E$"]);
    let mut subscriber = cluster.nodes[0].client();
    subscriber.run("SUBSCRIBE __keyevent@0__:set");
    let urls = cluster.urls();
    let writer = std::thread::spawn(move || {
        let mut connection = client(&urls).get_connection().unwrap();
        for number in 0..WRITES {
            redis::cmd("SET").arg(number).arg("x").query::<()>(&mut connection).unwrap();
        }
    });
    cluster.join();
    cluster.wait_until_even();
    writer.join().unwrap();
    let mut told = heard(&mut subscriber, WRITES);
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), WRITES, "each write is told");
}

#[test]
fn a_message_is_heard_on_every_node_and_a_shard_channel_follows_its_slot() {
    let cluster = Cluster::of(3, &[]);
    let mut listeners: Vec<Client> = cluster.nodes.iter().map(e2e::Server::client).collect();
    for listener in &mut listeners {
        listener.run("SUBSCRIBE news");
    }
    // Until the other nodes know the subscription, a message may be missed.
    std::thread::sleep(Duration::from_millis(200));
    for (number, node) in cluster.nodes.iter().enumerate() {
        node.client().call(&["PUBLISH", "news", &number.to_string()]);
    }
    for listener in &mut listeners {
        let mut told = heard(listener, 3);
        told.sort_unstable();
        assert_eq!(told, ["0", "1", "2"]);
    }
    let answers: Vec<Value> =
        cluster.nodes.iter().map(|node| node.client().run("SSUBSCRIBE {s}")).collect();
    let moved =
        |answer: &&Value| matches!(answer, Value::Error(text) if text.starts_with(b"MOVED"));
    assert_eq!(answers.iter().filter(moved).count(), 2, "one node has the slot: {answers:?}");
}

//! When a write is acknowledged: `ack` and `min-copies`.
use std::time::Duration;

use e2e::{Client, Cluster};
use resp::Value;

use crate::pending::shared_key;

/// Long enough that a reply which waits for nothing would have come, on a busy machine.
const NO_REPLY_WITHIN: Duration = Duration::from_secs(2);

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

/// Changes a setting of the cluster, and waits until every node has it.
fn set(cluster: &Cluster, name: &str, value: &str) {
    let answer = cluster.nodes[0].client().run(&format!("CLUSTER SETTINGS {name} {value}"));
    assert!(!matches!(answer, Value::Error(_)), "{answer:?}");
    e2e::wait_until("all nodes have the setting", Duration::from_secs(60), || {
        let has = |mut client: Client| client.status()["settings"][name].as_str() == Some(value);
        cluster.nodes.iter().all(|node| has(node.client()))
    });
}

#[test]
fn a_reply_waits_for_the_backup_unless_ack_is_primary() {
    let cluster = Cluster::of(3, &["--buckets", "16"]);
    set(&cluster, "lease", "30s"); // So that the backup is not declared dead while it is stopped.
    let key = shared_key(&cluster);
    let mut writer = cluster.nodes[0].client();
    let write = |value: &str| ["SET".to_owned(), key.clone(), value.to_owned()];

    cluster.nodes[1].stop();
    writer.send(&write("with-backup")).expect("it is sent");
    let early = writer.receive_within(NO_REPLY_WITHIN).expect("the connection stays");
    assert!(early.is_none(), "acknowledged without the backup: {early:?}");
    cluster.nodes[1].go_on();
    assert_eq!(writer.receive().expect("now it is acknowledged").value, ok());

    set(&cluster, "ack", "primary");
    cluster.nodes[1].stop();
    writer.send(&write("alone")).expect("it is sent");
    let reply = writer.receive().expect("the connection stays").value;
    assert_eq!(reply, ok(), "the backup is still stopped");
    cluster.nodes[1].go_on();
    let mut backup = cluster.nodes[1].client();
    backup.run("READONLY");
    e2e::wait_until("the backup gets the write later", Duration::from_secs(60), || {
        backup.run(&format!("GET {key}")) == Value::Bulk(b"alone".to_vec())
    });
}

#[test]
fn with_min_copies_2_a_write_without_a_backup_waits_and_is_then_refused() {
    let mut cluster = Cluster::of(1, &["--buckets", "16"]);
    let mut client = cluster.nodes[0].client();
    assert_eq!(client.run("SET key before"), ok());
    set(&cluster, "min-copies", "2");

    let refused = client.run("SET key refused");
    let Value::Error(text) = &refused else { panic!("written with one copy: {refused:?}") };
    let text = String::from_utf8_lossy(text);
    assert!(text.starts_with("TRYAGAIN the slot has fewer copies than min-copies"), "{text}");
    assert_eq!(client.run("GET key"), Value::Bulk(b"before".to_vec()), "it was not done");
    let status = cluster.nodes[0].client().status();
    assert_eq!(status["single_copies"], 16, "status says why");

    cluster.join();
    e2e::wait_until(
        "a write that waits runs when the copy is there",
        Duration::from_secs(60),
        || client.run("SET key after") == ok(),
    );
    cluster.wait_until_even();
    assert_eq!(client.status()["single_copies"], 0);
}

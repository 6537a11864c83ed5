//! A backup whose primary has fallen silent reports its buckets as pending, and serves no reads from its copy.
use std::time::Duration;

use e2e::{Client, Cluster};
use resp::Value;

/// Returns a key that the first node serves and the second backs up.
pub(crate) fn shared_key(cluster: &Cluster) -> String {
    let name = |node: usize| cluster.nodes[node].client().status()["node"].clone();
    let holders = [name(0), name(1)];
    let status = cluster.nodes[0].client().status();
    let buckets = status["buckets"].as_array().expect("a list").clone();
    let mut client = cluster.nodes[0].client();
    let key = (0..10_000).map(|number| format!("key:{number}")).find(|key| {
        let Value::Integer(slot) = client.run(&format!("CLUSTER KEYSLOT {key}")) else {
            return false;
        };
        let is_in = |bucket: &&serde_json::Value| {
            let first = bucket["first_slot"].as_i64().unwrap_or(0);
            (first..=bucket["last_slot"].as_i64().unwrap_or(-1)).contains(&slot)
        };
        buckets.iter().find(is_in).is_some_and(|it| it["holders"] == serde_json::json!(holders))
    });
    key.expect("the two share buckets")
}

fn wait_until(what: &str, is_so: impl FnMut() -> bool) {
    e2e::wait_until(what, Duration::from_secs(60), is_so);
}

#[test]
fn a_backup_whose_primary_is_silent_is_pending_and_is_not_read() {
    let cluster = Cluster::of(3, &["--buckets", "16"]);
    let set = |line: &str| {
        let answer = cluster.nodes[1].client().run(&format!("CLUSTER SETTINGS {line}"));
        assert!(!matches!(answer, Value::Error(_)), "{answer:?}");
    };
    // Leaves time to look between the primary's silence and its death.
    set("lease 30s");
    set("pending-after 500ms");
    let is_set = |name: &str, value: &str| {
        cluster.nodes[1].client().status()["settings"][name].as_str() == Some(value)
    };
    wait_until("the settings change", || {
        is_set("lease", "30s") && is_set("pending-after", "500ms")
    });
    let key = shared_key(&cluster);
    cluster.nodes[0].client().run(&format!("SET {key} 1"));
    let mut backup: Client = cluster.nodes[1].client();
    backup.run("READONLY");
    let get = format!("GET {key}");
    wait_until("it reads from its copy", || backup.run(&get) == Value::Bulk(b"1".to_vec()));
    cluster.nodes[0].stop();
    let is_moved =
        |answer: Value| matches!(answer, Value::Error(text) if text.starts_with(b"MOVED"));
    wait_until("it sends readers to the primary", || is_moved(backup.run(&get)));
    let status = cluster.nodes[1].client().status();
    let buckets = status["buckets"].as_array().expect("a list");
    assert!(buckets.iter().any(|bucket| bucket["pending"] == true));
    cluster.nodes[0].go_on();
    wait_until("it reads again", || backup.run(&get) == Value::Bulk(b"1".to_vec()));
}

//! The receiving side of a copy knows how complete it is.
use std::time::Duration;

use e2e::Cluster;
use resp::Value;

#[test]
fn a_node_that_is_being_filled_reports_how_much_it_lacks() {
    let mut cluster = Cluster::of(1, &["--buckets", "16"]);
    let mut client = cluster.nodes[0].client();
    let value = "x".repeat(1_000);
    for number in 0..4_000 {
        let answer = client.run(&format!("SET key:{number} {value}"));
        assert_eq!(answer, Value::Simple(b"OK".to_vec()));
    }
    // About a second for each bucket of 250 kB, so that there is time to look.
    client.run("CLUSTER SETTINGS fill-rate 256kb");
    let source = client.status()["node"].clone();
    cluster.join();
    let mut taker = cluster.nodes[1].client();
    let name = taker.status()["node"].clone();
    let mut seen = serde_json::Value::Null;
    e2e::wait_until("the taker reports a fill", Duration::from_secs(60), || {
        let sync = taker.status()["sync"].clone();
        let is_partial = |copy: &&serde_json::Value| copy["items_behind"].as_u64() > Some(0);
        let found = sync.as_array().and_then(|copies| copies.iter().find(is_partial).cloned());
        seen = found.unwrap_or_default();
        !seen.is_null()
    });
    assert_eq!((&seen["node"], &seen["primary"]), (&name, &source), "{seen}");
    assert!(seen["percent"].as_u64() < Some(100), "{seen}");
    assert!(seen["bytes_behind"].as_u64() > Some(0), "{seen}");
    client.run("CLUSTER SETTINGS fill-rate unlimited");
    cluster.wait_until_even();
    e2e::wait_until("the copies are in sync", Duration::from_secs(60), || {
        taker.status()["sync"] == serde_json::json!([])
    });
}

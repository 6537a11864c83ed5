//! An operator's actions on a cluster: inspect it, change its settings, split its buckets, remove a node.
use std::time::Duration;

use e2e::{Cluster, Server, http, opencluster};
use resp::Value;

fn address(node: &Server) -> String {
    format!("127.0.0.1:{}", node.port())
}

/// Returns what our binary prints when run against `node`; it must succeed.
fn run_cli(node: &Server, args: &[&str]) -> String {
    let node = address(node);
    let output = opencluster(&[args, &["--node", &node]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(args: &[&str]) -> (Option<i32>, String) {
    let output = opencluster(args);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Waits for a condition that becomes true soon.
fn soon(claim: &str, holds: impl FnMut() -> bool) {
    e2e::wait_until(claim, Duration::from_secs(20), holds);
}

#[test]
fn the_cluster_is_shown_as_tables_and_as_a_document() {
    let cluster = Cluster::of(3, &["--buckets", "16"]);
    let node = &cluster.nodes[1];
    // The shares may be even while a move is still about to end.
    let mut text = run_cli(node, &["status"]);
    for _ in 0..100 {
        if text.contains("moves in flight\n  none") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        text = run_cli(node, &["status"]);
    }
    for line in [
        "3 nodes, 16 buckets: 10 to 11 copies each, 5 to 6 of them primaries",
        "moves in flight\n  none",
        " becomes primary of 000F/",
        "#F ",
    ] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
    let document = run_cli(node, &["status", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    let served: serde_json::Value =
        serde_json::from_str(&http::get(node.http_port(), "/api/cluster")).expect("JSON");
    for part in ["cluster", "epoch", "node", "buckets", "changes", "settings"] {
        assert_eq!(document[part], served[part], "{part}");
    }
    assert_eq!(document["buckets"].as_array().map(Vec::len), Some(16));
    let own = |document: &serde_json::Value| document["members"].as_array().map(Vec::len);
    assert_eq!((own(&document), own(&served)), (Some(3), Some(3)));
}

#[test]
fn a_setting_changed_at_one_node_is_so_at_all() {
    let cluster = Cluster::of(3, &[]);
    let settings = run_cli(&cluster.nodes[0], &["settings"]);
    for pair in [["backups", "1"], ["maxmemory-policy", "noeviction"]] {
        let mut lines = settings.lines();
        assert!(lines.any(|line| line.split_whitespace().eq(pair)), "{pair:?}: {settings}");
    }
    run_cli(&cluster.nodes[1], &["settings", "backups", "2"]);
    soon("all nodes know", || {
        let says = |node| run_cli(node, &["settings", "backups"]) == "backups 2\n";
        cluster.nodes.iter().all(says)
    });
    run_cli(&cluster.nodes[2], &["settings", "maxmemory-policy", "allkeys-LRU"]);
    for node in &cluster.nodes {
        let shown = run_cli(node, &["settings", "maxmemory-policy"]);
        assert_eq!(shown, "maxmemory-policy allkeys-lru\n", "as CONFIG SET: when it answers");
    }
    soon("all nodes hold everything", || {
        cluster.shares().iter().all(|share| share.primaries + share.backups == 256)
    });
    let node = address(&cluster.nodes[0]);
    for (args, answer) in [
        (["settings", "backups", "9"], "backups must be a number from 0 to 3, not \"9\""),
        (["settings", "min-copies", "4"], "min-copies must be 1 to 3 with backups = 2"),
        (["settings", "maxmemory-policy", "lru"], "argument(s) must be one of the following:"),
        (["settings", "replicas", "2"], "unknown cluster setting \"replicas\""),
    ] {
        let (code, run_cli) = refused(&[&args[..], &["--node", &node]].concat());
        assert!(code == Some(1) && run_cli.contains(answer), "{args:?}: {code:?} {run_cli}");
    }
}

#[test]
fn a_split_reaches_who_watches_the_map() {
    let cluster = Cluster::of(2, &["--buckets", "16"]);
    let mut watcher = cluster.nodes[0].client();
    watcher.run("HELLO 3");
    let Value::Integer(before) = watcher.run("CLUSTER WATCH") else { panic!("an epoch") };
    let mut subscriber = cluster.nodes[0].client();
    subscriber.run("SUBSCRIBE __cluster__:map");
    run_cli(&cluster.nodes[1], &["split", "000F/0003"]);
    let pushed = watcher.receive().expect("a push comes").value;
    let Value::Push(parts) = &pushed else { panic!("no push: {pushed}") };
    assert_eq!(parts[1].text(), Some(b"__cluster__:map".as_slice()));
    let text = std::str::from_utf8(parts[2].text().expect("the changes")).expect("text");
    let epoch = text.split(' ').next().expect("the epoch").parse::<i64>();
    assert!(epoch.expect("a number") > before, "{text}");
    let children: Vec<&str> = text.lines().filter(|line| line.starts_with("bucket ")).collect();
    assert_eq!(children.len(), 16, "one line for each part: {text}");
    assert!(children[0].starts_with("bucket 00FF/0003 12288 12351 "), "{text}");
    let message = subscriber.receive().expect("a message comes").value;
    let Value::Array(same) = &message else { panic!("no message: {message}") };
    assert_eq!(same.last(), parts.last(), "without RESP3 the text is the same");
    // Further changes may be pushed to the watcher at any time, so the reply comes over another connection.
    let buckets = cluster.nodes[0].client().run("CLUSTER HASHMASKS ALL");
    let Value::Array(buckets) = &buckets else { panic!("no list: {buckets}") };
    assert_eq!(buckets.len(), 31, "the map that was told of is there");
}

#[test]
fn a_node_that_is_told_to_leave_hands_everything_over() {
    let mut cluster = Cluster::of(3, &[]);
    let mut client = connected(&cluster);
    for number in 0..500 {
        let set = redis::cmd("SET").arg(format!("key:{number}")).arg(number).exec(&mut client);
        set.expect("a write is taken");
    }
    let text = run_cli(&cluster.nodes[2], &["leave"]);
    assert!(text.ends_with(" has left\n"), "{text}");
    cluster.leave(2); // It has ended by itself.
    assert_eq!(cluster.shares().len(), 2);
    let mut client = connected(&cluster);
    for number in 0..500 {
        let read = redis::cmd("GET").arg(format!("key:{number}")).query::<i64>(&mut client);
        assert_eq!(read, Ok(number));
    }
}

#[test]
fn a_transaction_counts_and_flushes_what_its_node_serves() {
    let cluster = Cluster::of(2, &[]);
    let mut client = connected(&cluster);
    for number in 0..200 {
        let set = redis::cmd("SET").arg(format!("key:{number}")).arg(number).exec(&mut client);
        set.expect("a write is taken");
    }
    let exec = |node: &Server, commands: &[&str]| {
        let mut client = node.client();
        client.run("MULTI");
        commands.iter().for_each(|command| drop(client.run(command)));
        client.run("EXEC")
    };
    let count = |node: &Server| {
        let answer = exec(node, &["DBSIZE"]);
        let Value::Array(answers) = &answer else { panic!("no count: {answer}") };
        let [Value::Integer(count)] = answers[..] else { panic!("no count: {answer}") };
        count
    };
    let sum: i64 = cluster.nodes.iter().map(count).sum();
    assert_eq!(sum, 200);
    for node in &cluster.nodes {
        let done = exec(node, &["FLUSHALL", "DBSIZE"]);
        assert_eq!(done.to_string(), "1) OK\n2) (integer) 0");
    }
}

fn connected(cluster: &Cluster) -> redis::cluster::ClusterConnection {
    let client = redis::cluster::ClusterClient::new(cluster.urls());
    client.and_then(|client| client.get_connection()).expect("a cluster client connects")
}

#[test]
fn who_asks_nobody_or_without_the_password_is_told_so() {
    let node = Server::node();
    node.client().run("CONFIG SET requirepass secret");
    let (code, run_cli) = refused(&["status", "--node", &address(&node)]);
    assert_eq!(code, Some(1));
    assert!(run_cli.contains("wants a password"), "{run_cli}");
    let redis = Server::redis();
    let (_, run_cli) = refused(&["status", "--node", &address(&redis)]);
    assert!(run_cli.contains("is not an OpenCluster node"), "{run_cli}");
    let gone = address(&redis);
    drop(redis);
    let (code, run_cli) = refused(&["leave", "--node", &gone]);
    assert!(
        code == Some(1) && run_cli.contains(&format!("no node answers at {gone}")),
        "{run_cli}"
    );
}

//! An operator's commands: dry runs, status, check, and commands that are refused with one line and no change.
use e2e::Server;
use resp::Value;

use crate::fleet::{Fleet, Ran, address};
use crate::keys::Keys;

#[test]
fn a_dry_run_says_what_would_move_and_moves_nothing() {
    let fleet = Fleet::start(3);
    Keys::write(&mut fleet.proxies[0].client(), 600);
    let before = fleet.keys_on(1);
    let out = fleet.run("migrate", &["--map", "4.0.4", "--dry-run", "--json"]).must_succeed();
    let plan: serde_json::Value = serde_json::from_str(&out).expect("one line of JSON");
    assert_eq!(plan["keys"], before);
    assert_eq!(plan["exact"], true);
    assert_eq!(fleet.keys_on(1), before);
    assert_eq!(fleet.says(0, "current"), "4.4.4");
    let out = fleet.run("migrate", &["--map", "4.0.4", "--dry-run"]).must_succeed();
    assert!(out.starts_with("from 4.4.4 to 4.0.4\n"), "{out}");
}

#[test]
fn status_shows_shares_against_weights() {
    let fleet = Fleet::start(2);
    Keys::write(&mut fleet.proxies[0].client(), 1_000);
    let out = fleet.run("status", &["--json"]).must_succeed();
    let status: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(status["current"], "4.4");
    let keys = |index: usize| status["servers"][index]["keys"].as_u64().expect("a number");
    assert_eq!(keys(0) + keys(1), 1_000);
    assert_eq!(status["servers"][0]["wanted_share_percent"], 50.0);
    let out = fleet.run("status", &[]).must_succeed();
    assert!(out.starts_with("map 4.4, epoch 1, migration not started\n"), "{out}");
}

#[test]
fn check_finds_keys_in_the_wrong_place_and_mends_them() {
    let fleet = Fleet::start(2);
    let mut client = fleet.proxies[0].client();
    client.run("SET k right");
    let on = usize::from(fleet.keys_on(0) == 0);
    // A copy that nobody reads, and keys written directly to both servers.
    fleet.servers[1 - on].client().run("SET k orphan");
    for number in 0..20 {
        fleet.servers[number % 2].client().run(&format!("SET lost:{number} {number}"));
    }
    let found = fleet.run("check", &[]);
    found.must_say(1, "the fleet is not in order; --fix repairs what can be repaired");
    assert!(found.out.contains("1 duplicate"), "{}", found.out);
    let refused = fleet.run("migrate", &["--map", "4.0"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("`opencluster fleet check --fix` first"), "{}", refused.err);
    fleet.run("check", &["--fix"]).must_succeed();
    fleet.run("check", &[]).must_succeed();
    assert_eq!(client.run("GET k"), Value::Bulk(b"right".to_vec()));
    for number in 0..20 {
        let expected = Value::Bulk(number.to_string().into_bytes());
        assert_eq!(client.run(&format!("GET lost:{number}")), expected);
    }
}

#[test]
fn servers_that_disagree_are_named_and_made_to_agree() {
    let fleet = Fleet::start(2);
    let mut second = fleet.servers[1].client();
    second.run("SET server.config.current 1.1");
    let (a, b) = (fleet.first(), address(fleet.servers[1].port()));
    let line =
        format!("the servers disagree: server.config.current is \"4.4\" on {a} and \"1.1\" on {b}");
    fleet.run("migrate", &["--map", "4.0"]).must_say(1, &line);
    let list = fleet.list();
    proxy_refuses(&list, &[], &line);
    fleet.run("check", &["--fix"]).must_succeed();
    assert_eq!(fleet.says(1, "current"), "4.4");
}

#[test]
fn a_second_migration_is_refused_and_told_who_runs() {
    let fleet = Fleet::start(2);
    fleet.servers[0].client().run("SET server.config.lock token_holder PX 60000");
    let ran = fleet.run("migrate", &["--map", "4.0"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("a migration is running"), "{}", ran.err);
    assert_eq!(fleet.says(0, "epoch"), "1");
    assert_eq!(fleet.says(1, "lock"), "");
}

fn proxy_refuses(servers: &str, args: &[&str], line: &str) {
    let mut command = std::process::Command::new(e2e::node_binary());
    command
        .args(["fleet", "proxy", "--port", "0", "--http-port", "0", "--servers", servers])
        .args(args);
    let ran = Ran::of(command);
    assert_ne!(ran.code, 0);
    assert_eq!(ran.err, format!("opencluster: {line}\n"));
}

#[test]
fn bad_input_gets_one_line_and_changes_nothing() {
    let fleet = Fleet::start(2);
    let weights = |text: &str| format!("the map {text} has 3 weights for 2 servers");
    for (args, code, line) in [
        (vec!["--map", "4.4.4"], 2, weights("4.4.4")),
        (vec!["--map", "4.4"], 2, "the fleet's map is already 4.4".to_owned()),
        (
            vec!["--map", "0.0"],
            2,
            "every weight of the server map is 0, so no server could keep a key".to_owned(),
        ),
        (vec![], 2, "no goal given; use --map MAP, --resume or --abort".to_owned()),
        (vec!["--resume"], 1, "no migration is in progress; the fleet's map is 4.4".to_owned()),
    ] {
        fleet.run("migrate", &args).must_say(code, &line);
    }
    assert_eq!(fleet.says(0, "epoch"), "1");
    assert_eq!(fleet.says(0, "lock"), "");
}

#[test]
fn servers_that_do_not_fit_are_refused_with_one_line() {
    let fleet = Fleet::start(2);
    let password = Server::redis();
    password.client().run("CONFIG SET requirepass secret");
    let replica = Server::redis();
    replica.client().run(&format!("REPLICAOF 127.0.0.1 {}", fleet.servers[0].port()));
    let cluster = Server::redis_with(&["--cluster-enabled", "yes"]);
    let node = Server::node();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("there are free ports");
    let full = Server::redis();
    full.client().run("SET k v");
    let gone = Server::redis();
    let gone_port = gone.port();
    drop(gone);
    for (port, why) in [
        (password.port(), "it requires a password, and none was given".to_owned()),
        (replica.port(), "it is a replica of 127.0.0.1; a fleet is made of primaries".to_owned()),
        (cluster.port(), "it runs in cluster mode; a fleet is made of plain servers".to_owned()),
        (full.port(), "it holds 1 keys already".to_owned()),
        (gone_port, "Connection refused (os error 111)".to_owned()),
        (node.http_port(), "it does not speak RESP".to_owned()),
        (silent.local_addr().expect("it is bound").port(), "it did not answer in time".to_owned()),
    ] {
        let added = address(port);
        let ran = fleet.run("migrate", &["--map", "4.4.4", "--add", &added]);
        assert_eq!(ran.code, 1, "{}", ran.err);
        let expected = format!("opencluster: server {added}: {why}");
        assert!(ran.err.starts_with(&expected), "{} / {expected}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    }
    assert_eq!(fleet.says(0, "epoch"), "1");
    assert_eq!(full.client().run("DBSIZE"), Value::Integer(1));
    assert_eq!(replica.client().run("EXISTS server.config.lock"), Value::Integer(0));
}

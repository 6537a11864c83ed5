//! Maps change under load: nothing is lost, nothing is resurrected, and only the keys that must move do.
use std::time::{Duration, Instant};

use e2e::{Effort, Server};
use resp::Value;

use crate::fleet::{Fleet, address};
use crate::keys::Keys;
use crate::load::Load;

const CLIENTS: usize = 4;

fn key_count() -> usize {
    match Effort::of_this_run() {
        Effort::Quick => 3_000,
        Effort::Normal => 30_000,
        Effort::Nightly => 200_000,
    }
}

/// Waits until the clients have done some work, before and after a change.
pub(crate) fn a_while(load: &Load) {
    let target = load.done() + 200;
    let begun = Instant::now();
    while load.done() < target {
        assert!(begun.elapsed() < Duration::from_secs(60), "the clients stand still");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn maps_change_under_load_while_a_migrator_and_a_proxy_are_killed() {
    let mut fleet = Fleet::start(4);
    let keys = Keys::write(&mut fleet.proxies[0].client(), key_count());
    let load = Load::start(CLIENTS, &fleet.ports());
    a_while(&load);

    // Weight to 0: exactly that server's keys move.
    let before: Vec<usize> = (0..4).map(|server| fleet.keys_on(server)).collect();
    fleet.run("migrate", &["--map", "4.4.0.4"]).must_succeed();
    assert_eq!(fleet.keys_on(2), 0);
    assert!(before[2] > keys.count() / 5, "it held a quarter: {before:?}");
    for server in 0..4 {
        assert_eq!(fleet.says(server, "migration.status"), "2");
        assert_eq!(fleet.says(server, "current"), "4.4.0.4");
        assert_eq!(fleet.says(server, "previous"), "4.4.0.4");
    }
    a_while(&load);

    // A new server; a migrator and a proxy are killed on the way.
    fleet.servers.push(Server::redis());
    let added = address(fleet.servers[4].port());
    let slow = ["--map", "4.4.0.4.4", "--add", &added, "--rate", "0.2"];
    let mut migrator = fleet.spawn("migrate", &slow);
    wait_until(|| fleet.keys_on(4) > 50);
    migrator.kill().expect("it runs");
    let _ = migrator.wait();
    assert_eq!(fleet.says(0, "migration.status"), "1");
    a_while(&load);
    fleet.proxies[0].kill();
    a_while(&load);
    fleet.run("migrate", &["--resume", "--wait"]).must_succeed();
    assert_eq!(fleet.says(0, "migration.status"), "2");
    a_while(&load);

    let done = load.stop();
    assert!(done > 1_000, "{done}");
    keys.check(&mut fleet.proxies[1].client());
    assert_eq!(fleet.keys_on(2), 0);
    let all: usize = (0..5).map(|server| fleet.keys_on(server)).sum();
    let (share, ideal) = (fleet.keys_on(4), all / 4);
    let slack = (all / 50).max(4 * (all as f64).sqrt() as usize);
    assert!(share.abs_diff(ideal) < slack, "{share} of {all}");
    let report = fleet.run("check", &[]).must_succeed();
    assert!(report.contains("0 misplaced, 0 duplicate"), "{report}");
}

fn wait_until(ready: impl FnMut() -> bool) {
    e2e::wait_until("it comes to that", Duration::from_secs(60), ready);
}

#[test]
fn a_migration_that_is_aborted_goes_back_and_loses_nothing() {
    let fleet = Fleet::start(3);
    let keys = Keys::write(&mut fleet.proxies[0].client(), key_count() / 10);
    let load = Load::start(2, &fleet.ports());
    a_while(&load);
    let mut migrator = fleet.spawn("migrate", &["--map", "4.0.4", "--rate", "0.02"]);
    wait_until(|| fleet.says(0, "migration.status") == "1");
    a_while(&load);
    migrator.kill().expect("it runs");
    let _ = migrator.wait();
    fleet.run("migrate", &["--abort", "--wait"]).must_succeed();
    assert_eq!(fleet.says(0, "current"), "4.4.4");
    a_while(&load);
    load.stop();
    keys.check(&mut fleet.proxies[1].client());
    fleet.run("check", &[]).must_succeed();
}

#[test]
fn turning_back_prefers_what_was_written_over_what_a_dead_mover_left() {
    let fleet = Fleet::start(2);
    let mut client = fleet.proxies[0].client();
    for number in 0..20 {
        client.run(&format!("SET key:{number} old"));
    }
    let mut source = fleet.servers[1].client();
    let moving: Vec<String> = (0..20)
        .map(|number| format!("key:{number}"))
        .filter(|key| source.run(&format!("EXISTS {key}")) == Value::Integer(1))
        .collect();
    let (written, untouched) = (&moving[0], &moving[1]);
    // No key is small enough to be moved, so the migration stays in progress.
    let ran = fleet.run("migrate", &["--map", "4.0", "--skip-larger-than", "1"]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("larger than --skip-larger-than"), "{}", ran.out);
    assert!(client.run(&format!("SET {written} new")).is_ok());
    assert_eq!(source.run(&format!("EXISTS {written}")), Value::Integer(0));
    // As if the mover had died before it deleted the old copy.
    source.run(&format!("SET {written} old"));
    fleet.run("migrate", &["--abort"]).must_succeed();
    assert_eq!(client.run(&format!("GET {written}")), Value::Bulk(b"new".to_vec()));
    assert_eq!(client.run(&format!("GET {untouched}")), Value::Bulk(b"old".to_vec()));
    assert_eq!(source.run(&format!("GET {written}")), Value::Bulk(b"new".to_vec()));
    fleet.run("check", &[]).must_succeed();
}

#[test]
fn a_second_migration_can_wait_for_the_first() {
    let fleet = Fleet::start(3);
    let keys = Keys::write(&mut fleet.proxies[0].client(), 600);
    let mut first = fleet.spawn("migrate", &["--map", "4.0.4", "--rate", "0.01"]);
    wait_until(|| fleet.says(0, "migration.status") == "1");
    let refused = fleet.run("migrate", &["--map", "4.4.4"]);
    assert_eq!(refused.code, 1);
    let line = format!("a migration from 4.4.4 to 4.0.4 is running: process {}", first.id());
    assert!(refused.err.contains(&line), "{}", refused.err);
    fleet.run("migrate", &["--map", "4.4.4", "--wait"]).must_succeed();
    assert_eq!(first.wait().expect("it ends by itself").code(), Some(0));
    assert_eq!((fleet.says(0, "current"), fleet.says(0, "epoch")), ("4.4.4".into(), "3".into()));
    keys.check(&mut fleet.proxies[1].client());
}

#[test]
fn an_announcement_that_nobody_stands_behind_is_taken_back() {
    let fleet = Fleet::start(2);
    let mut client = fleet.proxies[0].client();
    client.run("SET k before");
    // The state left by a migrator that dies between announcing and switching, with its lock expired.
    for server in &fleet.servers {
        let mut server = server.client();
        server.run("MSET server.config.epoch 2 server.config.next 4.0");
    }
    wait_until(|| fleet.says(0, "epoch") == "3");
    wait_until(|| fleet.says(1, "epoch") == "3");
    for server in [0, 1] {
        assert_eq!(fleet.says(server, "next"), "");
        assert_eq!(fleet.says(server, "current"), "4.4");
    }
    for number in 0..50 {
        assert!(client.run(&format!("SET key:{number} x")).is_ok());
    }
    assert_eq!(fleet.proxies[1].client().run("GET k"), Value::Bulk(b"before".to_vec()));
    fleet.run("migrate", &["--map", "4.0"]).must_succeed();
    assert_eq!(client.run("GET k"), Value::Bulk(b"before".to_vec()));
}

#[test]
fn a_proxy_that_slept_through_a_migration_wakes_to_the_new_map() {
    let fleet = Fleet::start(2);
    let (mut sleeper, mut other) = (fleet.proxies[0].client(), fleet.proxies[1].client());
    for number in 0..50 {
        assert!(sleeper.run(&format!("SET key:{number} old")).is_ok());
    }
    fleet.proxies[0].signal("-STOP");
    fleet.run("migrate", &["--map", "0.4"]).must_succeed();
    for number in 0..50 {
        assert!(other.run(&format!("SET key:{number} new")).is_ok());
    }
    // The paused proxy answers a request from before its wakeup by the new map, or refuses it.
    sleeper.send(&["SET", "key:0", "late"]).expect("the kernel takes it");
    fleet.proxies[0].signal("-CONT");
    let late = sleeper.receive().expect("it answers").value;
    let first: &[u8] = if late.is_ok() { b"late" } else { b"new" };
    assert_eq!(other.run("GET key:0"), Value::Bulk(first.to_vec()), "{late}");
    let mut client = fleet.proxies[0].client();
    wait_until(|| client.run("GET key:1") == Value::Bulk(b"new".to_vec()));
    for number in 1..50 {
        assert_eq!(client.run(&format!("GET key:{number}")), Value::Bulk(b"new".to_vec()));
    }
    assert_eq!(fleet.keys_on(0), 0);
    fleet.run("check", &[]).must_succeed();
}

#[test]
fn a_server_that_dies_on_the_way_leaves_the_migration_in_progress() {
    let mut fleet = Fleet::start(3);
    Keys::write(&mut fleet.proxies[0].client(), 2_000);
    let mut migrator = fleet.spawn("migrate", &["--map", "0.4.4", "--rate", "0.02"]);
    wait_until(|| fleet.says(0, "migration.status") == "1");
    drop(fleet.servers.pop());
    let status = migrator.wait().expect("it ends by itself");
    assert_eq!(status.code(), Some(1));
    assert_eq!(fleet.says(0, "migration.status"), "1");
}

#[test]
fn a_large_stream_moves_in_pieces_and_remembers_what_it_has_lost() {
    let fleet = Fleet::start(2);
    let mut client = fleet.proxies[0].client();
    let value = "x".repeat(1_000);
    let entries: Vec<Vec<String>> = (1..=12_000)
        .map(|id| ["XADD", "stream", &format!("{id}-1"), "f", &value].map(str::to_owned).to_vec())
        .collect();
    crate::keys::pipelined(&mut client, &entries);
    client.run("XDEL stream 12000-1 17-1");
    client.run("PEXPIRE stream 1000000");
    let info = client.run("XINFO STREAM stream");
    let on = usize::from(fleet.keys_on(0) == 0);
    for server in &fleet.servers {
        server.client().run("CONFIG SET slowlog-log-slower-than 50000");
        server.client().run("SLOWLOG RESET");
    }
    fleet.run("migrate", &["--map", ["0.4", "4.0"][on]]).must_succeed();
    for server in &fleet.servers {
        assert_eq!(server.client().run("SLOWLOG LEN"), Value::Integer(0));
    }
    assert_eq!(fleet.keys_on(on), 0);
    // Length, last id, ids ever added and deleted, the first entry and the last are all as before.
    let field = |info: &Value, name: &str| {
        let Value::Array(items) = info else { panic!("{info}") };
        let at = items.iter().position(|item| item.text() == Some(name.as_bytes()));
        items[at.expect("a field of XINFO") + 1].clone()
    };
    let moved = client.run("XINFO STREAM stream");
    for name in ["length", "last-generated-id", "max-deleted-entry-id", "entries-added"] {
        assert_eq!(field(&moved, name), field(&info, name), "{name}");
    }
    for name in ["first-entry", "last-entry"] {
        assert_eq!(field(&moved, name), field(&info, name), "{name}");
    }
    let Value::Integer(left) = client.run("PTTL stream") else { panic!() };
    assert!((500_000..=1_000_000).contains(&left), "{left}");
}

#[test]
fn a_large_hash_moves_without_holding_a_server_up() {
    let fleet = Fleet::start(2);
    let mut client = fleet.proxies[0].client();
    // The server that has the key, whichever it is, is emptied.
    let megabytes = if Effort::of_this_run() == Effort::Nightly { 100 } else { 20 };
    let value = "x".repeat(1_000);
    for chunk in 0..megabytes {
        let mut args = vec!["HSET".to_owned(), "big".to_owned()];
        for field in 0..1_000 {
            args.extend([format!("f{chunk}:{field}"), value.clone()]);
        }
        client.call(&args);
    }
    let on = usize::from(fleet.keys_on(0) == 0);
    let map = if on == 0 { "0.4" } else { "4.0" };
    let mut watch = fleet.servers[on].client();
    watch.run("CONFIG SET slowlog-log-slower-than 50000");
    watch.run("SLOWLOG RESET");
    fleet.run("migrate", &["--map", map]).must_succeed();
    assert_eq!(watch.run("SLOWLOG LEN"), Value::Integer(0));
    assert_eq!(fleet.keys_on(on), 0);
    assert_eq!(client.run("HLEN big"), Value::Integer(megabytes * 1_000));
}

//! Scripts on running nodes: atomic under load and through a failover, known to the whole cluster, killed when slow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use e2e::{Client, Cluster, PYTHON, Server};
use resp::Value;

const STORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts/redis_py_scripts.py");

/// Adds to two counters that must always be equal.
const BOTH: &str = "redis.call('incr', KEYS[1]) return redis.call('incr', KEYS[2])";
/// Reads both counters.
const PAIR: &str = "return {redis.call('get', KEYS[1]), redis.call('get', KEYS[2])}";

fn text(value: &Value) -> String {
    value.text().map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default()
}

/// Returns the client of the node that serves a key.
fn owner<'c>(cluster: &'c Cluster, key: &str) -> (usize, &'c Server) {
    let serves =
        |node: &Server| !matches!(node.client().run(&format!("GET {key}")), Value::Error(_));
    let found = cluster.nodes.iter().enumerate().find(|(_, node)| serves(node));
    found.expect("some node serves the key")
}

#[test]
fn redis_py_registers_scripts_and_locks() {
    let node = Server::node();
    let said = PYTHON.output(&[STORY, &node.port().to_string()], b"");
    assert_eq!(said, "redis-py: scripts told\n");
}

#[test]
fn scripts_are_atomic_under_load() {
    let node = Server::node_with(&["--io-threads", "2"]);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|number| {
                let (node, stop) = (&node, &stop);
                scope.spawn(move || {
                    let mut client = node.client();
                    let mut done = 0;
                    while !stop.load(Ordering::Relaxed) {
                        // Half of them do not declare the second key.
                        let request: &[&str] = if number % 2 == 0 {
                            &["EVAL", BOTH, "2", "one", "two"]
                        } else {
                            &[
                                "EVAL",
                                "redis.call('incr', 'one') return redis.call('incr', 'two')",
                                "0",
                            ]
                        };
                        let value = client.call(request).value;
                        assert!(matches!(value, Value::Integer(_)), "{value:?}");
                        done += 1;
                    }
                    done
                })
            })
            .collect();
        let mut reader = node.client();
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until {
            reader.run("MULTI");
            reader.run("GET one");
            reader.run("GET two");
            let Value::Array(pair) = reader.run("EXEC") else { panic!("an array") };
            assert_eq!(pair[0], pair[1]);
            let Value::Array(pair) = reader.call(&["EVAL_RO", PAIR, "2", "one", "two"]).value
            else {
                panic!("an array")
            };
            assert_eq!(pair[0], pair[1]);
        }
        stop.store(true, Ordering::Relaxed);
        let done: u64 = writers.into_iter().map(|it| it.join().expect("a writer")).sum();
        assert_eq!(text(&reader.run("GET one")), done.to_string());
    });
}

#[test]
fn a_script_reaches_the_backup_whole_or_not_at_all() {
    let mut cluster = Cluster::of(3, &[]);
    let (index, node) = owner(&cluster, "{t}one");
    let mut client = node.client();
    let stop = AtomicBool::new(false);
    let mut acknowledged = 0;
    thread::scope(|scope| {
        let stop = &stop;
        let killer = scope.spawn(move || {
            thread::sleep(Duration::from_millis(700));
            stop.store(true, Ordering::Relaxed);
        });
        while !stop.load(Ordering::Relaxed) {
            let value = client.call(&["EVAL", BOTH, "2", "{t}one", "{t}two"]).value;
            assert!(matches!(value, Value::Integer(_)), "{value:?}");
            acknowledged += 1;
        }
        killer.join().expect("it only sleeps");
    });
    // One more is on its way when the node is killed.
    client.send(&["EVAL", BOTH, "2", "{t}one", "{t}two"]).expect("the node runs");
    cluster.kill(index);
    e2e::wait_until("another node serves the slot", Duration::from_secs(30), || {
        cluster.nodes.iter().any(|node| !matches!(node.client().run("GET {t}one"), Value::Error(_)))
    });
    let (_, node) = owner(&cluster, "{t}one");
    let mut client = node.client();
    let (one, two) = (text(&client.run("GET {t}one")), text(&client.run("GET {t}two")));
    assert_eq!(one, two);
    let count: u64 = one.parse().expect("a number");
    assert!((acknowledged..=acknowledged + 1).contains(&count), "{count} of {acknowledged}");
}

#[test]
fn a_loaded_script_runs_on_every_node_and_on_one_that_joins() {
    let mut cluster = Cluster::of(2, &[]);
    let loaded = cluster.nodes[0].client().call(&["SCRIPT", "LOAD", "return 'here'"]).value;
    let id = text(&loaded);
    assert_eq!(id.len(), 40, "{loaded:?}");
    let says = |node: &Server| text(&node.client().run(&format!("EVALSHA {id} 0")));
    assert_eq!(says(&cluster.nodes[0]), "here");
    assert_eq!(says(&cluster.nodes[1]), "here");
    cluster.join();
    e2e::wait_until("the new node knows it", Duration::from_secs(20), || {
        says(&cluster.nodes[2]) == "here"
    });
    assert!(cluster.nodes[1].client().run("SCRIPT FLUSH").is_ok());
    for node in &cluster.nodes {
        let Value::Error(error) = node.client().run(&format!("EVALSHA {id} 0")) else {
            panic!("it is forgotten")
        };
        assert!(error.starts_with(b"NOSCRIPT "), "{}", error.escape_ascii());
    }
}

#[test]
fn in_a_cluster_a_script_keeps_to_one_slot() {
    let cluster = Cluster::of(2, &[]);
    let (_, node) = owner(&cluster, "{t}a");
    let mut client = node.client();
    let mut run = |script: &str, keys: &[&str]| {
        let count = keys.len().to_string();
        let mut args = vec!["EVAL", script, &count];
        args.extend(keys);
        let value = client.call(&args).value;
        if let Value::Error(text) = value {
            return String::from_utf8_lossy(&text).into_owned();
        }
        text(&value)
    };
    let undeclared = "redis.call('set', '{t}b', 'v') return redis.call('get', '{t}b')";
    assert_eq!(run(undeclared, &["{t}a"]), "v");
    assert_eq!(run(undeclared, &[]), "v");
    let other = "redis.call('set', KEYS[1], 'v') return redis.call('get', ARGV[1] or '{u}x')";
    let error = run(other, &["{t}a"]);
    assert!(error.starts_with("ERR Script attempted to access "), "{error}");
    assert!(run("return 1", &["{t}a", "{u}a"]).starts_with("CROSSSLOT "));
}

#[test]
fn a_slow_script_is_busy_in_its_slot_only_and_can_be_killed() {
    let node = Server::node_with(&["--io-threads", "2", "--busy-reply-threshold", "100ms"]);
    let mut clients: Vec<Client> = (0..8).map(|_| node.client()).collect();
    let mut slow = clients.remove(0);
    slow.run("SET k v");
    // It is known to declare its keys after its first run.
    let script =
        "redis.call('get', KEYS[1]) if ARGV[1] == 'slow' then while true do end end return 1";
    slow.call(&["EVAL", script, "1", "k", "quick"]);
    slow.send(&["EVAL", script, "1", "k", "slow"]).expect("the node runs");
    thread::sleep(Duration::from_millis(300));
    // The clients of the script's own I/O thread wait; those of the other are served.
    let patience = Duration::from_secs(1);
    let mut served = 0;
    let mut others = Vec::new();
    for mut client in clients {
        client.send(&["GET", "other"]).expect("the node runs");
        if client.receive_within(patience).expect("no failure").is_some() {
            served += 1;
            others.push(client);
        }
    }
    assert!(served > 0, "no client of another I/O thread was served");
    let Value::Error(busy) = others[0].run("GET k") else { panic!("the slot is busy") };
    assert!(busy.starts_with(b"BUSY "), "{}", busy.escape_ascii());
    assert!(others[0].run("SCRIPT KILL").is_ok());
    let Value::Error(killed) = slow.receive().expect("an answer").value else { panic!("an error") };
    assert!(killed.ends_with(b"on @user_script:1.") || killed.windows(6).any(|it| it == b"killed"));
    assert_eq!(text(&others[0].run("GET k")), "v");
    let Value::Error(idle) = others[0].run("SCRIPT KILL") else { panic!("nothing runs") };
    assert!(idle.starts_with(b"NOTBUSY "));
}

#[test]
fn a_script_that_has_written_cannot_be_killed() {
    let node = Server::node_with(&["--io-threads", "2", "--busy-reply-threshold", "100ms"]);
    let mut clients: Vec<Client> = (0..8).map(|_| node.client()).collect();
    let mut slow = clients.remove(0);
    let script = "redis.call('set', KEYS[1], 'v') for i = 1, 1e8 do end return 'done'";
    slow.send(&["EVAL", script, "1", "k"]).expect("the node runs");
    thread::sleep(Duration::from_millis(50));
    let patience = Duration::from_millis(300);
    let mut refused = 0;
    for mut client in clients {
        client.send(&["SCRIPT", "KILL"]).expect("the node runs");
        if let Some(answer) = client.receive_within(patience).expect("no failure")
            && let Value::Error(error) = answer.value
        {
            refused += usize::from(error.starts_with(b"UNKILLABLE "));
        }
    }
    assert!(refused > 0, "no client was told that it cannot be killed");
    assert_eq!(text(&slow.receive().expect("an answer").value), "done");
}

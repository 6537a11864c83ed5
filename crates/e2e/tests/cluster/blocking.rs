//! Clients that wait for keys while buckets move and nodes die: each is served, redirected or disconnected.
use std::time::{Duration, Instant};

use e2e::{Client, Cluster, Server, free_ports, wait_until};
use resp::Value;

const KEYS: usize = 40;
const PATIENCE: Duration = Duration::from_secs(20);

fn key(number: usize) -> String {
    format!("queue:{number}")
}

/// Waits until this many clients are blocked at a node.
fn await_blocked(node: &Server, count: usize) {
    let mut client = node.client();
    let line = format!("blocked_clients:{count}\r\n");
    wait_until(&line, PATIENCE, || {
        let Value::Bulk(text) = client.run("INFO clients") else { panic!("a bulk string") };
        String::from_utf8_lossy(&text).contains(&line)
    });
}

/// Sends a request whose reply comes later.
fn send(port: u16, args: &[&str]) -> Client {
    let mut client = Client::try_connect(port).expect("it listens");
    client.send(args).expect("it reads");
    client
}

fn reply(client: &mut Client) -> String {
    client.receive().expect("a reply").value.to_string()
}

/// Runs a command on the node that serves its key, and returns its reply and that node.
fn at_its_node(nodes: &[Server], line: &str) -> (Value, usize) {
    let is_redirection = |value: &Value| value.to_string().starts_with("(error) MOVED");
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        for (index, node) in nodes.iter().enumerate() {
            let value = node.client().run(line);
            if !is_redirection(&value) && !value.to_string().starts_with("(error) CLUSTERDOWN") {
                return (value, index);
            }
        }
    }
    panic!("nobody serves {line}");
}

#[test]
fn who_waits_where_a_bucket_leaves_is_redirected_and_the_others_wait_on() {
    let mut cluster = Cluster::of(1, &["--buckets", "16"]);
    let port = cluster.nodes[0].port();
    let mut waiting: Vec<(String, Client)> = (0..KEYS)
        .map(|number| {
            let key = key(number);
            let command = if number % 2 == 0 { "BLPOP" } else { "BRPOP" };
            let client = send(port, &[command, &key, "0"]);
            (key, client)
        })
        .collect();
    await_blocked(&cluster.nodes[0], KEYS);
    cluster.join();
    cluster.wait_until_even();
    let (mut served, mut moved) = (0, 0);
    for (key, client) in &mut waiting {
        let (pushed, node) = at_its_node(&cluster.nodes, &format!("RPUSH {key} x"));
        assert_eq!(pushed, Value::Integer(1));
        let answer = reply(client);
        if node == 0 {
            served += 1;
            assert_eq!(answer, format!("1) \"{key}\"\n2) \"x\""));
        } else {
            moved += 1;
            let target = format!(":{}", cluster.nodes[1].port());
            assert!(answer.starts_with("(error) MOVED") && answer.ends_with(&target), "{answer}");
            // The element is still there for one who follows the redirection.
            let mut there = send(cluster.nodes[1].port(), &["BLPOP", key, "0"]);
            assert_eq!(reply(&mut there), format!("1) \"{key}\"\n2) \"x\""));
        }
    }
    println!("{served} served, {moved} redirected");
    assert!(served > 0 && moved > 0);
    await_blocked(&cluster.nodes[0], 0);
}

#[test]
fn on_the_any_port_a_wait_goes_on_at_the_next_node() {
    let [port] = free_ports();
    let mut cluster = Cluster::of(0, &[]);
    cluster.nodes.push(Server::node_with(&["--any-port", &port.to_string(), "--buckets", "16"]));
    let mut waiting: Vec<Client> =
        (0..KEYS).map(|number| send(port, &["BLPOP", &key(number), "0"])).collect();
    let begun = Instant::now();
    let mut timed: Vec<Client> =
        (0..KEYS).map(|number| send(port, &["BZPOPMIN", &key(number), "4.5"])).collect();
    await_blocked(&cluster.nodes[0], 2 * KEYS);
    cluster.join();
    cluster.wait_until_even();
    let moved_after = begun.elapsed();
    for client in &mut timed {
        assert_eq!(reply(client), "(nil)");
        let waited = begun.elapsed();
        assert!(waited >= Duration::from_millis(4_500), "{waited:?}");
    }
    println!("moved after {moved_after:?}, timed out after {:?}", begun.elapsed());
    let mut producer = Client::try_connect(port).expect("it listens");
    for (number, client) in waiting.iter_mut().enumerate() {
        let key = key(number);
        assert_eq!(producer.run(&format!("RPUSH {key} x")), Value::Integer(1));
        assert_eq!(reply(client), format!("1) \"{key}\"\n2) \"x\""));
    }
    // What stands behind a command that waits has not run, wherever its key is.
    let mut batch = Client::try_connect(port).expect("it listens");
    batch.send_raw(b"BLPOP q 0\r\nMSET a 1 b 2\r\nDEL c\r\n").expect("it reads");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(producer.run("EXISTS a b"), Value::Integer(0));
    // One who hangs up takes nothing.
    drop(batch);
    await_blocked(&cluster.nodes[0], 0);
    await_blocked(&cluster.nodes[1], 0);
    producer.run("RPUSH q x");
    assert_eq!(producer.run("LLEN q"), Value::Integer(1));
    assert_eq!(producer.run("EXISTS a b"), Value::Integer(0));
}

#[test]
fn what_a_waiting_client_got_is_gone_for_the_next_primary_too() {
    let mut cluster = Cluster::of(3, &["--buckets", "16"]);
    let mut keys: Vec<String> = (0..KEYS).map(key).collect();
    keys.retain(|key| at_its_node(&cluster.nodes, &format!("EXISTS {key}")).1 == 2);
    assert!(keys.len() > 1, "the last node serves a third of all keys");
    let mut waiting: Vec<Client> =
        keys.iter().map(|key| send(cluster.nodes[2].port(), &["BLPOP", key, "0"])).collect();
    await_blocked(&cluster.nodes[2], keys.len());
    let mut producer = cluster.nodes[2].client();
    let (first, rest) = waiting.split_at_mut(1);
    producer.run(&format!("RPUSH {} a b", keys[0]));
    assert_eq!(reply(&mut first[0]), format!("1) \"{}\"\n2) \"a\"", keys[0]));
    cluster.kill(2);
    for client in rest {
        assert!(client.receive().is_err(), "its node is dead");
    }
    let (left, _) = at_its_node(&cluster.nodes, &format!("LRANGE {} 0 -1", keys[0]));
    assert_eq!(left.to_string(), "1) \"b\"");
    let (pushed, node) = at_its_node(&cluster.nodes, &format!("RPUSH {} c", keys[1]));
    assert_eq!(pushed, Value::Integer(1));
    let mut there = send(cluster.nodes[node].port(), &["BLPOP", &keys[1], "0"]);
    assert_eq!(reply(&mut there), format!("1) \"{}\"\n2) \"c\"", keys[1]));
}

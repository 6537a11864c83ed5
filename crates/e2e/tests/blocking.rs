//! Clients that wait for keys (BLPOP and others) on one node with several I/O threads.

use std::collections::BTreeSet;
use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use e2e::{Client, Server, raise_fd_limit, wait_until};
use resp::Value;

/// Time in which a reply that must not come would have come.
const QUIET: Duration = Duration::from_millis(150);
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns a reply's text as it is.
fn text(value: &Value) -> String {
    if let Value::Bulk(bytes) = value {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    value.to_string()
}

fn node() -> Server {
    Server::node_with(&["--io-threads", "2"])
}

/// Waits until this number of clients is blocked.
fn await_blocked(node: &Server, count: usize) {
    let mut client = node.client();
    let line = format!("blocked_clients:{count}\r\n");
    wait_until(&line, PATIENCE, || text(&client.run("INFO clients")).contains(&line));
}

/// Sends a request whose reply comes later.
fn send(node: &Server, line: &str) -> Client {
    let mut client = node.client();
    client.send(&line.split(' ').collect::<Vec<_>>()).expect("the node reads");
    client
}

/// Sends requests that wait, each when the one before waits.
fn line_up(node: &Server, lines: &[&str]) -> Vec<Client> {
    let clients = lines.iter().enumerate().map(|(index, line)| {
        let client = send(node, line);
        await_blocked(node, index + 1);
        client
    });
    clients.collect()
}

fn reply(client: &mut Client) -> String {
    client.receive().expect("a reply").value.to_string()
}

fn is_quiet(client: &mut Client) -> bool {
    client.receive_within(QUIET).expect("an open connection").is_none()
}

#[test]
fn clients_are_served_in_the_order_in_which_they_came() {
    let node = node();
    let mut waiting = line_up(&node, &["BLPOP q 0", "BRPOP p q 0", "BLPOP q 0", "BLPOP q 0"]);
    assert!(waiting.iter_mut().all(is_quiet));
    let mut producer = node.client();
    assert_eq!(producer.run("RPUSH q a b c"), Value::Integer(3));
    assert_eq!(reply(&mut waiting[0]), "1) \"q\"\n2) \"a\"");
    assert_eq!(reply(&mut waiting[1]), "1) \"q\"\n2) \"c\"");
    assert_eq!(reply(&mut waiting[2]), "1) \"q\"\n2) \"b\"");
    assert!(is_quiet(&mut waiting[3]));
    assert_eq!(producer.run("RENAME missing q").to_string(), "(error) ERR no such key");
    assert_eq!(producer.run("RPUSH other d"), Value::Integer(1));
    producer.run("RENAME other q");
    assert_eq!(reply(&mut waiting[3]), "1) \"q\"\n2) \"d\"");
    await_blocked(&node, 0);
    assert_eq!(producer.run("EXISTS q p other"), Value::Integer(0));
}

#[test]
fn a_wait_ends_to_the_millisecond_and_the_requests_behind_it_wait_too() {
    let node = node();
    let mut client = node.client();
    let begun = Instant::now();
    let request = b"BLPOP q 0.12\r\nBZPOPMIN z 0.03\r\nSET k v\r\nGET k\r\n";
    client.send_raw(request).expect("the node reads");
    let mut other = node.client();
    await_blocked(&node, 1);
    assert_eq!(other.run("GET k"), Value::Null, "what comes behind has not run");
    assert_eq!(reply(&mut client), "(nil)");
    let first = begun.elapsed();
    assert_eq!(reply(&mut client), "(nil)");
    let second = begun.elapsed();
    assert!(first >= Duration::from_millis(120), "{first:?}");
    assert!(second >= Duration::from_millis(150), "{second:?}");
    assert_eq!((reply(&mut client), reply(&mut client)), ("OK".to_owned(), "\"v\"".to_owned()));
    await_blocked(&node, 0);
}

#[test]
fn who_has_hung_up_takes_nothing() {
    let node = node();
    let mut waiting = line_up(&node, &["BLPOP q 0", "BLPOP q 0"]);
    // The end of the connection is behind bytes that the node has not read.
    waiting[0].send_raw(b"PING\r\n").expect("the node reads");
    waiting[0].stream().shutdown(std::net::Shutdown::Write).expect("an open connection");
    let mut producer = node.client();
    producer.run("RPUSH q a");
    assert_eq!(reply(&mut waiting[1]), "1) \"q\"\n2) \"a\"");
    await_blocked(&node, 0);
    for _ in 0..200 {
        let client = send(&node, "BLPOP q 0");
        await_blocked(&node, 1);
        drop(client);
        producer.run("RPUSH q x");
        assert_eq!(producer.run("LPOP q").to_string(), "\"x\"");
    }
    let mut client = node.client();
    client.stream().write_all(b"BLPOP q 0\r\n").expect("the node reads");
    client.stream().shutdown(std::net::Shutdown::Write).expect("an open connection");
    assert!(client.receive().is_err(), "nobody is served who sends nothing more");
    await_blocked(&node, 0);
}

#[test]
fn another_client_sees_and_ends_the_wait() {
    let node = node();
    let mut admin = node.client();
    let mut client = node.client();
    let Value::Integer(id) = client.run("CLIENT ID") else { panic!("no id") };
    for (how, expected) in [
        ("", "(nil)"),
        (" TIMEOUT", "(nil)"),
        (" ERROR", "(error) UNBLOCKED client unblocked via CLIENT UNBLOCK"),
    ] {
        client.send(&["BLPOP", "q", "0"]).expect("the node reads");
        await_blocked(&node, 1);
        let line = admin.run(&format!("CLIENT LIST ID {id}")).to_string();
        assert!(line.contains(" flags=b ") && line.contains(" cmd=blpop "), "{line}");
        assert_eq!(admin.run(&format!("CLIENT UNBLOCK {id}{how}")), Value::Integer(1));
        assert_eq!(reply(&mut client), expected);
        assert_eq!(admin.run(&format!("CLIENT UNBLOCK {id}{how}")), Value::Integer(0));
        let line = admin.run(&format!("CLIENT LIST ID {id}")).to_string();
        assert!(line.contains(" flags=N "), "{line}");
    }
    client.send(&["BLPOP", "q", "0"]).expect("the node reads");
    await_blocked(&node, 1);
    assert_eq!(admin.run(&format!("CLIENT KILL ID {id}")), Value::Integer(1));
    assert!(client.receive().is_err());
    await_blocked(&node, 0);
    admin.run("RPUSH q a");
    assert_eq!(admin.run("LLEN q"), Value::Integer(1));
}

#[test]
fn a_pause_holds_up_those_who_are_served_and_no_deadline() {
    let node = node();
    let mut waiting = line_up(&node, &["BLPOP q 0", "BLPOP q 0.3"]);
    let mut producer = node.client();
    // The push runs, and the pause begins before those who wait can pop.
    let request = b"CLIENT PAUSE 100000 WRITE\r\n";
    producer.send_raw(request).expect("the node reads");
    assert_eq!(reply(&mut producer), "OK");
    assert_eq!(reply(&mut waiting[1]), "(nil)", "a pause does not lengthen a wait");
    let mut pusher = send(&node, "RPUSH q a");
    assert!(is_quiet(&mut pusher) && is_quiet(&mut waiting[0]));
    producer.run("CLIENT UNPAUSE");
    assert_eq!(reply(&mut pusher), "(integer) 1");
    assert_eq!(reply(&mut waiting[0]), "1) \"q\"\n2) \"a\"");
}

#[test]
fn each_element_is_popped_once_by_many_consumers() {
    const CONSUMERS: usize = 16;
    const ELEMENTS: usize = 4_000;
    let node = node();
    let popped: Vec<Vec<String>> = thread::scope(|scope| {
        let consumers: Vec<_> = (0..CONSUMERS)
            .map(|index| {
                let mut client = node.client();
                scope.spawn(move || {
                    let keys = if index % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
                    let mut popped = Vec::new();
                    loop {
                        let value = client.call(&["BLPOP", keys[0], keys[1], "0"]).value;
                        let Value::Array(mut parts) = value else { panic!("{value}") };
                        let element = parts.remove(1).to_string();
                        if element == "\"end\"" {
                            return popped;
                        }
                        popped.push(element);
                    }
                })
            })
            .collect();
        for part in 0..2 {
            let mut producer = node.client();
            scope.spawn(move || {
                for number in (part..ELEMENTS).step_by(2) {
                    let key = if number % 3 == 0 { "a" } else { "b" };
                    producer.call(&["RPUSH", key, &number.to_string()]);
                }
            });
        }
        let mut client = node.client();
        wait_until("all is popped", PATIENCE, || {
            let calls = text(&client.run("INFO commandstats"));
            calls.contains(&format!("cmdstat_blpop:calls={ELEMENTS},"))
        });
        for _ in 0..CONSUMERS {
            client.run("RPUSH a end");
        }
        consumers.into_iter().map(|it| it.join().expect("a consumer")).collect()
    });
    let mut all: Vec<String> = popped.into_iter().flatten().collect();
    all.sort_unstable();
    let mut expected: Vec<String> = (0..ELEMENTS).map(|it| format!("\"{it}\"")).collect();
    expected.sort_unstable();
    assert!(all == expected, "{} elements of {ELEMENTS}", all.len());
}

/// Returns a number from INFO.
fn number(client: &mut Client, section: &str, name: &str) -> u64 {
    let info = text(&client.run(&format!("INFO {section}")));
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn waiting_clients_take_at_most_a_kibibyte_each_and_no_cpu() {
    const CLIENTS: usize = 9_000;
    const BYTES_MAX: u64 = 1_024;
    const WATCHED: Duration = Duration::from_secs(3);
    /// A node that looks at all of them once in a round uses more.
    const CPU_MAX: Duration = Duration::from_millis(600);
    raise_fd_limit();
    let node = Server::node_with(&["--io-threads", "2", "--maxclients", "20000"]);
    let mut admin = node.client();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| node.client()).collect();
    clients.iter_mut().for_each(|client| drop(client.run("BLPOP warm 0.001")));
    let before = number(&mut admin, "memory", "used_memory");
    for (index, client) in clients.iter_mut().enumerate() {
        let key = format!("queue:{index}");
        client.send(&["BLPOP", &key, "common", "1000.5"]).expect("the node reads");
    }
    await_blocked(&node, CLIENTS);
    assert_eq!(number(&mut admin, "clients", "clients_in_timeout_table"), CLIENTS as u64);
    let each = (number(&mut admin, "memory", "used_memory") - before) / CLIENTS as u64;
    let cpu = node.cpu_time();
    thread::sleep(WATCHED);
    let cpu = node.cpu_time() - cpu;
    println!("{each} bytes for each of {CLIENTS} waiting clients, {cpu:?} of CPU in {WATCHED:?}");
    assert!(each <= BYTES_MAX, "{each} bytes");
    assert!(cpu < CPU_MAX, "{cpu:?}");
    let elements: Vec<String> = (0..CLIENTS).map(|number| number.to_string()).collect();
    let push = ["RPUSH", "common"].into_iter().chain(elements.iter().map(String::as_str));
    admin.call(&push.collect::<Vec<_>>());
    let popped: BTreeSet<String> = clients.iter_mut().map(reply).collect();
    assert_eq!(popped.len(), CLIENTS, "each got another element");
    assert!(popped.iter().all(|reply| reply.starts_with("1) \"common\"")));
}

//! Connections cost little, leave nothing behind, and cannot exhaust the memory.
use std::io::Write;
use std::time::{Duration, Instant};

use e2e::{Client, Server, raise_fd_limit};
use resp::Value;

const MIB: u64 = 1024 * 1024;

/// Returns whether a condition becomes true soon.
fn soon(mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(10) {
        if is_so() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

fn connect(node: &Server, count: usize) -> Vec<Client> {
    (0..count)
        .map(|index| {
            let mut client = Client::try_connect(node.port()).unwrap_or_else(|error| {
                panic!("connection {index}: {error} (is `ulimit -Hn` large enough?)")
            });
            assert_eq!(client.run("PING"), Value::Simple(b"PONG".to_vec()), "connection {index}");
            client
        })
        .collect()
}

#[test]
fn ten_thousand_idle_connections_fit_into_60_mib_in_all() {
    raise_fd_limit();
    let node = Server::node_with(&["--maxclients", "20000"]);
    let clients = connect(&node, 10_000);
    std::thread::sleep(Duration::from_millis(500));
    let rss = node.rss_bytes();
    println!("{} connections: {:.1} MiB in all", clients.len(), rss as f64 / MIB as f64);
    assert!(rss < 60 * MIB, "{rss} bytes");
}

#[test]
fn five_thousand_connections_opened_and_closed_leave_nothing() {
    raise_fd_limit();
    let node = Server::node();
    // Memory allocated for the first connections is kept for the next.
    open_and_close(&node);
    assert!(soon(|| node.fds() < 100), "{} descriptors", node.fds());
    let (fds, rss) = (node.fds(), node.rss_bytes());
    for _ in 0..5 {
        open_and_close(&node);
    }
    assert!(soon(|| node.fds() <= fds), "{fds} descriptors before, {} after", node.fds());
    let after = node.rss_bytes();
    println!(
        "{:.1} MiB before, {:.1} MiB after",
        rss as f64 / MIB as f64,
        after as f64 / MIB as f64
    );
    assert!(after < rss + 4 * MIB, "{rss} bytes before, {after} after");
    let mut client = node.client();
    assert_eq!(client.run("PUBSUB NUMSUB news").to_string(), "1) \"news\"\n2) (integer) 0");
}

/// Opens a thousand connections, and closes them in the middle of all kinds of activities.
fn open_and_close(node: &Server) {
    for (index, mut client) in connect(node, 1000).into_iter().enumerate() {
        match index % 5 {
            0 => drop(client.run("SUBSCRIBE news")),
            1 => drop((client.run("WATCH key"), client.run("MULTI"), client.run("INCR key"))),
            2 => client
                .send_raw(b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$100000\r\nhalf a val")
                .expect("sent"),
            3 => drop(client.run(&format!("SET key:{index} value"))),
            _ => {}
        }
    }
}

#[test]
fn a_client_that_never_reads_cannot_eat_the_memory() {
    let node = Server::node();
    let mut client = node.client();
    client.call(&["SET".as_bytes(), b"big", &vec![b'x'; 1024 * 1024]]);
    let greedy = node.client();
    greedy.stream().set_write_timeout(Some(Duration::from_secs(2))).expect("a timeout");
    // 20 GiB of answers, if the node held them all.
    let requests = b"*2\r\n$3\r\nGET\r\n$3\r\nbig\r\n".repeat(100);
    let mut highest = 0;
    for _ in 0..200 {
        let sent = greedy.stream().write_all(&requests);
        highest = highest.max(node.rss_bytes());
        assert_eq!(client.run("PING"), Value::Simple(b"PONG".to_vec()), "others are still served");
        if sent.is_err() {
            break;
        }
    }
    println!("{:.1} MiB at most", highest as f64 / MIB as f64);
    assert!(highest < 200 * MIB, "{highest} bytes");
    drop(greedy);
}

#[test]
fn a_listener_that_never_reads_cannot_eat_the_memory() {
    let node = Server::node();
    let mut client = node.client();
    let mut deaf = node.client();
    deaf.run("SUBSCRIBE news");
    let message = vec![b'x'; 256 * 1024];
    let mut highest = 0;
    for _ in 0..2000 {
        client.call(&[b"PUBLISH", &b"news"[..], &message]);
        highest = highest.max(node.rss_bytes());
    }
    println!("{:.1} MiB at most", highest as f64 / MIB as f64);
    assert!(highest < 200 * MIB, "{highest} bytes");
}

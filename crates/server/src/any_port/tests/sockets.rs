//! A session with real sockets, between a test client and simulated nodes.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use commands::Table;
use placement::Slot;

use super::nodes::{Connection, Nodes, encoded, keys, node_at, slot, take_request, words};
use crate::any_port::Home;
use crate::any_port::routes::{NodeAddress, Routes};
use crate::any_port::session::AnyPortSession;

const CLOSE: &[u8] = b"close";
const MIB: usize = 1024 * 1024;

/// Three listening nodes; the any-port belongs to the first.
struct Cluster {
    table: Table,
    nodes: Mutex<Nodes>,
    ports: Vec<u16>,
    /// Replies that replace the next ones to commands with keys at a node; [`CLOSE`] runs the command and
    /// closes the connection.
    faults: Mutex<Vec<(usize, &'static [u8])>>,
    /// Number of bytes that nodes have written.
    written: AtomicUsize,
}

impl Routes for Cluster {
    fn here(&self) -> NodeAddress {
        self.address(0)
    }

    fn node_of(&self, slot: Slot) -> NodeAddress {
        self.address(node_at(&self.nodes.lock().unwrap().node_of(slot)))
    }
}

impl Home for Cluster {
    fn table(&self) -> &Table {
        &self.table
    }

    fn is_stopping(&self) -> bool {
        false
    }

    fn wants_password(&self) -> bool {
        false
    }

    fn clients_max(&self) -> usize {
        usize::MAX
    }

    fn query_bytes_max(&self) -> u64 {
        u64::MAX
    }
}

impl Cluster {
    /// Starts the nodes. Keys `a` and `b` belong to the nodes 1 and 2, all others to node 0.
    fn start() -> Arc<Cluster> {
        let mut nodes = Nodes::new(3);
        nodes.give(slot("a"), 1, true);
        nodes.give(slot("b"), 2, true);
        let listeners: Vec<_> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let cluster = Arc::new(Cluster {
            table: Table::default(),
            nodes: Mutex::new(nodes),
            ports: listeners.iter().map(|it| it.local_addr().unwrap().port()).collect(),
            faults: Mutex::default(),
            written: AtomicUsize::new(0),
        });
        for (node, listener) in listeners.into_iter().enumerate() {
            let cluster = Arc::clone(&cluster);
            thread::spawn(move || {
                for stream in listener.incoming() {
                    let (cluster, stream) = (Arc::clone(&cluster), stream.unwrap());
                    thread::spawn(move || cluster.serve(node, stream));
                }
            });
        }
        cluster
    }

    fn address(&self, node: usize) -> NodeAddress {
        NodeAddress { host: "127.0.0.1".to_owned(), port: self.ports[node] }
    }

    fn serve(&self, node: usize, mut stream: TcpStream) {
        let (mut connection, mut input) = (Connection::default(), Vec::new());
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            input.extend_from_slice(&bytes[..count]);
            while let Some(words) = take_request(&mut input) {
                let mut faults = self.faults.lock().unwrap();
                let fault =
                    faults.iter().position(|(at, _)| *at == node && !keys(&words).is_empty());
                let fault = fault.map(|index| faults.remove(index).1);
                drop(faults);
                let reply = match fault {
                    Some(reply) if reply != CLOSE => reply.to_vec(),
                    _ => self.nodes.lock().unwrap().serve(node, &mut connection, &words),
                };
                if fault == Some(CLOSE) || !self.write(&mut stream, &reply) {
                    return;
                }
            }
        }
    }

    fn write(&self, stream: &mut TcpStream, reply: &[u8]) -> bool {
        let mut reply = reply.to_vec();
        if reply.starts_with(b"-MOVED") {
            let mut text = String::from_utf8(reply).unwrap();
            for (node, port) in self.ports.iter().enumerate() {
                text = text.replace(&format!("node{node}:{node}"), &format!("127.0.0.1:{port}"));
            }
            reply = text.into_bytes();
        }
        reply.chunks(64 * 1024).all(|chunk| {
            self.written.fetch_add(chunk.len(), Ordering::Relaxed);
            stream.write_all(chunk).is_ok()
        })
    }

    /// Connects a client through a session.
    fn client(self: &Arc<Cluster>) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let cluster = Arc::clone(self);
        thread::spawn(move || AnyPortSession::new(&*cluster, stream).unwrap().run());
        client
    }

    fn fail(&self, node: usize, reply: &'static [u8]) {
        self.faults.lock().unwrap().push((node, reply));
    }

    fn value(&self, key: &str) -> String {
        let nodes = self.nodes.lock().unwrap();
        nodes
            .store
            .get(key.as_bytes())
            .map_or(String::new(), |value| String::from_utf8(value.clone()).unwrap())
    }
}

/// Sends all lines in one packet.
fn send(client: &mut TcpStream, lines: &[&str]) {
    let batch: Vec<u8> = lines.iter().flat_map(|line| encoded(&words(line))).collect();
    client.write_all(&batch).unwrap();
}

/// Reads until `expected` has arrived, the connection ends, or nothing arrives any more.
fn receive(client: &mut TcpStream, expected: &str) -> String {
    let (mut said, mut bytes) = (Vec::new(), [0; 4096]);
    while said.len() < expected.len() {
        match client.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => said.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    String::from_utf8(said).unwrap()
}

#[track_caller]
fn expect(client: &mut TcpStream, lines: &[&str], expected: &str) {
    send(client, lines);
    assert_eq!(receive(client, expected), expected);
}

#[track_caller]
fn expect_end(client: &mut TcpStream) {
    assert_eq!(client.read(&mut [0; 64]).unwrap(), 0, "the connection is closed");
}

#[test]
fn multi_takes_no_earlier_reply() {
    let mut client = Cluster::start().client();
    expect(
        &mut client,
        &["SET a 7", "GET a", "MULTI", "SET a 1", "EXEC"],
        "+OK\r\n$1\r\n7\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n",
    );
}

#[test]
fn a_name_in_a_batch_loses_no_answer() {
    let mut client = Cluster::start().client();
    let batch = ["GET a", "GET b", "CLIENT SETNAME me", "GET b", "GET a", "PING"];
    expect(&mut client, &batch, "$-1\r\n$-1\r\n+OK\r\n$-1\r\n$-1\r\n+PONG\r\n");
}

#[test]
fn a_redirection_keeps_the_order_of_a_key() {
    let cluster = Cluster::start();
    let mut client = cluster.client();
    // For one moment node 1 believes that another node serves its slot.
    cluster.fail(1, b"-MOVED 15495 node2:2\r\n");
    expect(&mut client, &["SET a 1", "SET a 2"], "+OK\r\n+OK\r\n");
    assert_eq!(cluster.value("a"), "2");
}

#[test]
fn a_client_that_does_not_read_makes_nobody_hold_its_answers() {
    const COUNT: usize = 128;
    let cluster = Cluster::start();
    let keys: Vec<String> = (0..COUNT).map(|number| format!("k{number}")).collect();
    for key in &keys {
        let store = &mut cluster.nodes.lock().unwrap().store;
        store.insert(key.clone().into_bytes(), vec![b'x'; MIB]);
    }
    let mut client = cluster.client();
    let batch: Vec<String> = keys.iter().map(|key| format!("GET {key}")).collect();
    send(&mut client, &batch.iter().map(String::as_str).collect::<Vec<_>>());
    // Wait until nothing moves any more.
    let (mut written, begun) = (0, Instant::now());
    loop {
        thread::sleep(Duration::from_millis(300));
        let now = cluster.written.load(Ordering::Relaxed);
        if now == written || begun.elapsed() > Duration::from_secs(10) {
            break;
        }
        written = now;
    }
    println!("{} MiB of {COUNT} were written by nodes", written / MIB);
    assert!(written < COUNT * MIB / 2, "sockets alone hold some MiB, not {written} bytes");
    // The rest arrives when it is read.
    let expected = COUNT * (MIB + format!("${MIB}\r\n\r\n").len());
    let (mut count, mut bytes) = (0, vec![0; MIB]);
    while count < expected {
        count += client.read(&mut bytes).unwrap();
    }
    assert_eq!(count, expected);
}

#[test]
fn a_write_that_ran_in_part_is_not_answered() {
    let cluster = Cluster::start();
    let mut client = cluster.client();
    cluster.fail(2, b"-OOM no room\r\n");
    expect(&mut client, &["PING", "MSET a 1 b 2"], "+PONG\r\n");
    expect_end(&mut client);
    assert_eq!(cluster.value("a"), "1", "a part has run");
}

#[test]
fn a_command_whose_node_is_gone_is_not_answered_and_not_repeated() {
    let cluster = Cluster::start();
    let mut client = cluster.client();
    cluster.fail(1, CLOSE);
    expect(&mut client, &["GET b", "APPEND a 1"], "$-1\r\n");
    expect_end(&mut client);
    assert_eq!(cluster.value("a"), "1", "it ran once");
}

#[test]
fn a_connection_that_a_node_has_closed_is_made_again() {
    let cluster = Cluster::start();
    let mut client = cluster.client();
    expect(&mut client, &["GET a"], "$-1\r\n");
    // The node closes the other client's connection, not ours.
    let mut other = cluster.client();
    cluster.fail(1, CLOSE);
    send(&mut other, &["GET a"]);
    expect_end(&mut other);
    expect(&mut client, &["GET a", "SET a 1"], "$-1\r\n+OK\r\n");
}

#[test]
fn a_listener_speaks_with_its_node_alone() {
    let mut client = Cluster::start().client();
    let listens = "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n+PONG\r\n";
    expect(&mut client, &["CLIENT SETNAME me", "SUBSCRIBE c", "PING"], listens);
    expect(&mut client, &["PING"], "+PONG\r\n");
}

#[test]
fn a_large_request_goes_through() {
    let cluster = Cluster::start();
    let mut client = cluster.client();
    let large = "y".repeat(8 * MIB);
    expect(&mut client, &[&format!("SET a {large}"), "PING"], "+OK\r\n+PONG\r\n");
    assert_eq!(cluster.value("a").len(), 8 * MIB);
}

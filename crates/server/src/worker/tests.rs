//! Tests of states that a client can see but cannot bring about.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::AcqRel;
use std::time::Duration;

use cluster::data::Plane;
use cluster::replication::Role;
use placement::Slot;
use settings::{JoinAddress, JoinAddresses, Settings, SidePort};

use crate::{Node, NodeOptions};

fn start(settings: Settings) -> Node {
    let settings = Settings { port: 0, http_port: SidePort::Off, ..settings };
    let options = NodeOptions { settings, memory: Arc::new(AtomicU64::new(0)), config_file: None };
    Node::start(options).expect("a free port")
}

fn stop(node: &Node) {
    node.shutdown();
    node.wait();
}

/// Starts a cluster of two nodes, and waits until no move is under way: its end would wake what waits.
fn start_two() -> (Node, Node) {
    let peer_port = SidePort::At(0);
    let one = start(Settings { peer_port, ..Settings::default() });
    let seed = JoinAddress { host: "127.0.0.1".into(), port: one.client_addr().port() };
    let join = JoinAddresses(vec![seed]);
    let two = start(Settings { peer_port, join, ..Settings::default() });
    let map = || one.shared().data.map();
    while map().members().len() < 2 || map().loads().iter().any(|it| it.primaries != it.backups) {
        std::thread::sleep(Duration::from_millis(10));
    }
    (one, two)
}

/// Returns keys that another node serves.
fn foreign_keys(node: &Node) -> Vec<String> {
    let view = node.shared().data.view.load_full();
    let keys = (0..100).map(|number| format!("k{number}"));
    keys.filter(|key| !view.is_mine(Slot::of(key.as_bytes()))).collect()
}

fn set_role(node: &Node, key: &[u8], role: Role) {
    let mut state = node.shared().data.keyspace.lock_one(Slot::of(key));
    let reign = state.replica().reign();
    state.parts_for_tests().1.become_for_tests(role, reign);
    drop(state);
    node.shared().data.recheck_waiting();
}

fn connect(node: &Node, patience: Duration) -> TcpStream {
    let client = TcpStream::connect(node.client_addr()).expect("it listens");
    client.set_read_timeout(Some(patience)).expect("it is a socket");
    client
}

/// The commands of a batch lock their slots early: a lock that this thread holds is no sign of a promotion.
#[test]
fn while_a_promotion_is_pending_a_batch_for_other_slots_is_redirected() {
    let (one, two) = start_two();
    one.shared().data.roles_ahead.fetch_add(1, AcqRel);
    let mut client = connect(&one, Duration::from_secs(2));
    let keys = foreign_keys(&one);
    assert!(keys.len() > 10, "{keys:?}");
    let batch: String = keys.iter().map(|key| format!("GET {key}\r\n")).collect();
    client.write_all(batch.as_bytes()).expect("the node reads");
    let mut replies = BufReader::new(client).lines();
    for key in keys {
        let reply = replies.next().expect("a line").expect("the node answers at once");
        assert!(reply.starts_with("-MOVED "), "{key}: {reply}");
    }
    stop(&two);
    stop(&one);
}

/// Slots follow a new map before it is published. The other node, which knows it already, would send the client back.
#[test]
fn a_node_whose_slot_is_ahead_of_its_map_does_not_redirect() {
    let (one, two) = start_two();
    let keys = foreign_keys(&one);
    let key = keys.first().expect("the other node serves half of all keys");
    one.shared().data.roles_ahead.fetch_add(1, AcqRel);
    set_role(&one, key.as_bytes(), Role::Serving);
    let mut client = connect(&one, Duration::from_millis(300));
    client.write_all(format!("GET {key}\r\n").as_bytes()).expect("the node reads");
    let mut reply = [0; 6];
    let early = client.read(&mut reply).map_err(|error| error.kind());
    let text = String::from_utf8_lossy(&reply);
    assert!(matches!(early, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "it says {text}");
    set_role(&one, key.as_bytes(), Role::Backup);
    client.set_read_timeout(None).expect("it is a socket");
    client.read_exact(&mut reply).expect("the node answers");
    assert_eq!(reply, *b"-MOVED");
    stop(&two);
    stop(&one);
}

#[test]
fn a_command_that_comes_between_a_duty_and_its_map_waits_for_the_map() {
    let node = start(Settings::default());
    let mut client = TcpStream::connect(node.client_addr()).expect("it listens");
    set_role(&node, b"k", Role::Backup);
    client.write_all(b"GET k\r\n").expect("the node reads");
    client.set_read_timeout(Some(Duration::from_millis(200))).expect("it is a socket");
    let mut reply = [0; 5];
    let early = client.read(&mut reply).map_err(|error| error.kind());
    let told = String::from_utf8_lossy(&reply);
    assert!(matches!(early, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "it says {told}");
    set_role(&node, b"k", Role::Serving);
    client.set_read_timeout(None).expect("it is a socket");
    client.read_exact(&mut reply).expect("the node answers");
    assert_eq!(reply, *b"$-1\r\n");
    stop(&node);
}

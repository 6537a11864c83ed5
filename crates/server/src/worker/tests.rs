//! Tests of states that a client can see but cannot bring about.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use cluster::data::Plane;
use cluster::replication::Role;
use placement::Slot;
use settings::{Settings, SidePort};

use crate::{Node, NodeOptions};

#[test]
fn a_command_that_comes_between_a_duty_and_its_map_waits_for_the_map() {
    let settings = Settings { port: 0, http_port: SidePort::Off, ..Settings::default() };
    let options = NodeOptions { settings, memory: Arc::new(AtomicU64::new(0)), config_file: None };
    let node = Node::start(options).expect("a free port");
    let set_role = |role| {
        let mut state = node.shared().data.keyspace.lock_one(Slot::of(b"k"));
        let reign = state.replica().reign();
        state.parts_for_tests().1.become_for_tests(role, reign);
        drop(state);
        node.shared().data.recheck_waiting();
    };
    let mut client = TcpStream::connect(node.client_addr()).expect("it listens");
    set_role(Role::Backup);
    client.write_all(b"GET k\r\n").expect("the node reads");
    client.set_read_timeout(Some(Duration::from_millis(200))).expect("it is a socket");
    let mut reply = [0; 5];
    let early = client.read(&mut reply).map_err(|error| error.kind());
    let told = String::from_utf8_lossy(&reply);
    assert!(matches!(early, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut)), "it says {told}");
    set_role(Role::Serving);
    client.set_read_timeout(None).expect("it is a socket");
    client.read_exact(&mut reply).expect("the node answers");
    assert_eq!(reply, *b"$-1\r\n");
    node.shutdown();
    node.wait();
}

//! The thinnest slice: a node in this process, a socket, SET and GET.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use server::{Node, NodeOptions};
use settings::{Settings, SidePort};

fn start() -> Node {
    let settings =
        Settings { port: 0, http_port: SidePort::Off, io_threads: 2, ..Settings::default() };
    let options = NodeOptions { settings, memory: Arc::new(AtomicU64::new(0)), config_file: None };
    Node::start(options).expect("a free port")
}

fn ask(stream: &mut TcpStream, request: &[u8], reply: &[u8]) {
    stream.write_all(request).expect("the node reads");
    let mut got = vec![0; reply.len()];
    stream.read_exact(&mut got).expect("the node answers");
    assert_eq!(String::from_utf8_lossy(&got), String::from_utf8_lossy(reply));
}

#[test]
fn a_value_set_on_one_connection_is_read_on_another() {
    let node = start();
    let mut one = TcpStream::connect(node.client_addr()).expect("it listens");
    let mut two = TcpStream::connect(node.client_addr()).expect("it listens");
    ask(&mut one, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhello\r\n", b"+OK\r\n");
    ask(&mut two, b"GET k\r\n", b"$5\r\nhello\r\n");
    node.shutdown();
    node.wait();
}

#[test]
fn a_large_value_and_a_long_pipeline_come_back_whole() {
    let node = start();
    let mut stream = TcpStream::connect(node.client_addr()).expect("it listens");
    let value = vec![b'x'; 5_000_000];
    let mut request = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n", value.len()).into_bytes();
    request.extend_from_slice(&value);
    request.extend_from_slice(b"\r\n");
    ask(&mut stream, &request, b"+OK\r\n");
    let mut reply = format!("${}\r\n", value.len()).into_bytes();
    reply.extend_from_slice(&value);
    reply.extend_from_slice(b"\r\n");
    ask(&mut stream, b"GET k\r\n", &reply);
    let pipeline = b"PING\r\n".repeat(10_000);
    ask(&mut stream, &pipeline, &b"+PONG\r\n".repeat(10_000));
    node.shutdown();
    node.wait();
}

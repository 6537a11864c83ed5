//! A node in this process, and a client that sends lines and returns replies as redis-cli shows them.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use resp::ReplyParser;
use server::{Node, NodeOptions};
use settings::{Settings, SidePort};

pub(crate) struct TestNode(Node);

impl TestNode {
    pub(crate) fn start(settings: Settings) -> TestNode {
        TestNode::start_with(settings, None)
    }

    pub(crate) fn start_with(settings: Settings, config_file: Option<PathBuf>) -> TestNode {
        let settings = Settings { port: 0, http_port: SidePort::Off, io_threads: 2, ..settings };
        let options = NodeOptions { settings, memory: Arc::new(AtomicU64::new(0)), config_file };
        TestNode(Node::start(options).expect("a free port"))
    }

    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.0.client_addr()).expect("it listens");
        stream.set_nodelay(true).expect("a socket");
        Client { stream, buffer: Vec::new(), parser: ReplyParser::default() }
    }

    pub(crate) fn wait(&self) {
        self.0.wait();
    }
}

impl Drop for TestNode {
    fn drop(&mut self) {
        self.0.shutdown();
        self.0.wait();
    }
}

pub(crate) struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
    parser: ReplyParser,
}

/// Timeout longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(15);

impl Client {
    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.receive()
    }

    pub(crate) fn send(&mut self, line: &str) {
        self.send_raw(format!("{line}\r\n").as_bytes());
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the node reads");
    }

    pub(crate) fn receive(&mut self) -> String {
        self.receive_within(PATIENCE).expect("a reply")
    }

    pub(crate) fn hears_nothing_for(&mut self, time: Duration) -> bool {
        self.receive_within(time).is_none()
    }

    pub(crate) fn is_closed_soon(&mut self) -> bool {
        self.stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        match self.stream.read(&mut [0; 64]) {
            Ok(count) => count == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        }
    }

    fn receive_within(&mut self, time: Duration) -> Option<String> {
        self.stream.set_read_timeout(Some(time)).expect("a socket");
        loop {
            let parsed = self.parser.next(&self.buffer, 0).expect("well formed replies");
            if let Some((value, end)) = parsed {
                self.buffer.drain(..end);
                return Some(value.to_string());
            }
            let mut bytes = [0; 16 * 1024];
            match self.stream.read(&mut bytes) {
                Ok(0) => panic!("the node has closed the connection"),
                Ok(count) => self.buffer.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) => panic!("{error}"),
            }
        }
    }
}

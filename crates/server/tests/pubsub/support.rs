//! A node in this process, and clients that exchange raw bytes with it.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use resp::{ReplyParser, Value};
use server::{Node, NodeOptions};
use settings::{Settings, SidePort};

/// A node that is stopped when the test ends.
pub(crate) struct Running(Node);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.shutdown();
        self.0.wait();
    }
}

/// Starts a node with these settings changed.
pub(crate) fn start(io_threads: u16, changes: &[(&str, &str)]) -> Running {
    start_with(io_threads, changes, Arc::default())
}

pub(crate) fn start_with(
    io_threads: u16,
    changes: &[(&str, &str)],
    memory: Arc<AtomicU64>,
) -> Running {
    let mut settings =
        Settings { port: 0, http_port: SidePort::Off, io_threads, ..Settings::default() };
    for (name, value) in changes {
        settings.set(name, value).expect("a valid setting");
    }
    let options = NodeOptions { settings, memory, config_file: None };
    Running(Node::start(options).expect("a free port"))
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
    parser: ReplyParser,
}

/// Timeout long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

impl Running {
    pub(crate) fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.0.client_addr()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream.set_nodelay(true).expect("a socket");
        Client { stream, buffer: Vec::new(), parser: ReplyParser::default() }
    }

    /// Connects a client, sends one command and reads `replies` replies.
    pub(crate) fn subscriber(&self, line: &str, replies: usize) -> Client {
        let mut client = self.connect();
        client.send(line);
        for _ in 0..replies {
            client.next();
        }
        client
    }
}

impl Client {
    pub(crate) fn send(&mut self, line: &str) {
        self.stream.write_all(format!("{line}\r\n").as_bytes()).expect("the node reads");
    }

    /// Sends a command that is too long for a line.
    pub(crate) fn send_args(&mut self, args: &[&str]) {
        let args: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
        let mut bytes = Vec::new();
        resp::encode_command(&mut bytes, &args);
        self.stream.write_all(&bytes).expect("the node reads");
    }

    /// Sends a line, and returns its first reply as text on one line.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.next()
    }

    /// Returns the next reply or message, on one line.
    pub(crate) fn next(&mut self) -> String {
        flat(&self.try_next().expect("the connection is open"))
    }

    /// Returns the next reply or message; `None` if the node has closed the connection.
    pub(crate) fn try_next(&mut self) -> Option<Value> {
        loop {
            if let Some((value, end)) = self.parser.next(&self.buffer, 0).expect("well formed") {
                self.buffer.drain(..end);
                return Some(value);
            }
            let mut chunk = [0; 64 * 1024];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(count) => self.buffer.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    /// Asserts that no unread message has arrived: the reply to a PING comes next.
    pub(crate) fn expect_silence(&mut self) {
        let reply = self.ask("PING silence");
        assert!(reply == "silence" || reply == "pong silence", "something came: {reply}");
    }
}

fn flat(value: &Value) -> String {
    if let Value::Array(items) | Value::Push(items) = value {
        return items.iter().map(flat).collect::<Vec<_>>().join(" ");
    }
    if let Value::Integer(number) = value {
        return number.to_string();
    }
    value.text().map_or_else(|| value.to_string(), |text| String::from_utf8_lossy(text).into())
}

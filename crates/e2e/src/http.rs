//! A minimal HTTP client: one request per connection.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

/// Sends a request and returns the reply; `None` if the node is gone or does not answer in time.
pub fn try_ask(port: u16, method: &str, path: &str, body: &str) -> Option<Reply> {
    exchange(port, method, path, "", body)
}

fn exchange(port: u16, method: &str, path: &str, headers: &str, body: &str) -> Option<Reply> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(15))).ok()?;
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\
         {headers}Content-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).ok()?;
    // A node that refuses a long body does not read all of it.
    let _ = stream.write_all(body.as_bytes());
    let mut bytes = Vec::new();
    let read = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").filter(|_| read.is_ok() || !text.is_empty())?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Reply { status, head: head.to_owned(), body: body.to_owned() })
}

pub fn ask(port: u16, method: &str, path: &str, body: &str) -> Reply {
    try_ask(port, method, path, body).unwrap_or_else(|| panic!("{method} {path}: no answer"))
}

/// Sends a request with a password or a token.
pub fn ask_as(port: u16, secret: &str, method: &str, path: &str, body: &str) -> Reply {
    let headers = format!("Authorization: Bearer {secret}\r\n");
    let reply = exchange(port, method, path, &headers, body);
    reply.unwrap_or_else(|| panic!("{method} {path}: no answer"))
}

/// Returns the body of a page, which must exist.
pub fn get(port: u16, path: &str) -> String {
    let reply = ask(port, "GET", path, "");
    assert_eq!(reply.status, 200, "{path}: {}", reply.head);
    reply.body
}

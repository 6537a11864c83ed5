//! Finds the peer ports of a cluster by asking `CLUSTER NODES` at a client address. The small part of RESP
//! that this needs is implemented here, slowly and with limits. Called by `joining.rs` and, on a node that
//! waits with its log, by `enter.rs`.

use std::fmt;
use std::io::{self, Read, Write};
use std::time::Duration;

use cluster::map::NodeId;
use commands::cluster::format_node_id;
use resp::{ReplyParser, Value};
use settings::{JoinAddress, Secret};

use super::dialer;
use super::handshake::Timed;

/// Timeout of the question and its answer.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// Maximum size of a reply. A thousand nodes are described in a tenth of this.
const REPLY_BYTES_MAX: usize = 4 << 20;

/// The reason why no peer port is known.
#[derive(Debug)]
pub(super) enum DirectoryError {
    Io(io::Error),
    /// The answer does not come from a node of a cluster; its text.
    NoNode(String),
    /// The node wants a password, or another one.
    Password,
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DirectoryError::Io(error) => write!(f, "no answer ({error})"),
            DirectoryError::NoNode(answer) => {
                write!(f, "the server at this address is not a cluster node ({answer})")
            }
            DirectoryError::Password => f.write_str(
                "missing or wrong client password; set requirepass-file to the cluster's password",
            ),
        }
    }
}

impl From<io::Error> for DirectoryError {
    fn from(error: io::Error) -> DirectoryError {
        DirectoryError::Io(error)
    }
}

/// Returns the hosts and peer ports of a cluster's nodes; first the node at that very address.
pub(super) fn peers_at(
    at: &JoinAddress,
    password: &Secret,
) -> Result<Vec<(String, u16)>, DirectoryError> {
    let nodes = nodes_of(&lines_at(at, password)?, &at.host);
    if nodes.is_empty() {
        return Err(DirectoryError::NoNode("it has no peer port".to_owned()));
    }
    Ok(nodes)
}

/// Returns whether a node serves at that address whose cluster does not list this node.
pub(crate) fn is_unknown_at(at: &JoinAddress, password: &Secret, node: NodeId) -> bool {
    lines_at(at, password).is_ok_and(|lines| !lines.contains(&format_node_id(node)))
}

/// Returns the answer to `CLUSTER NODES`.
fn lines_at(at: &JoinAddress, password: &Secret) -> Result<String, DirectoryError> {
    let stream = dialer::connect(&at.host, at.port)?;
    let mut stream = Timed::within(&stream, ANSWER_MAX);
    let mut replies = ReplyReader::default();
    if !password.is_empty() {
        stream.write_all(&request(&["AUTH", password.expose()]))?;
        // A node without a password answers with an error of its own, and needs none.
        let reply = replies.next(&mut stream)?;
        if let Value::Error(error) = reply
            && !error.starts_with(b"ERR AUTH")
        {
            return Err(DirectoryError::Password);
        }
    }
    stream.write_all(&request(&["CLUSTER", "NODES"]))?;
    text_of(replies.next(&mut stream)?)
}

fn text_of(reply: Value) -> Result<String, DirectoryError> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if let Value::Error(error) = reply {
        let locked = error.starts_with(b"NOAUTH");
        let no_node = || DirectoryError::NoNode(text(error));
        return Err(if locked { DirectoryError::Password } else { no_node() });
    }
    if let Value::Bulk(lines) = reply {
        return Ok(text(lines));
    }
    Err(DirectoryError::NoNode("it does not support CLUSTER NODES".to_owned()))
}

/// Parses the nodes out of such a text; the answering node comes first, under the host at which it just answered.
fn nodes_of(lines: &str, answered_at: &str) -> Vec<(String, u16)> {
    let mut mine = Vec::new();
    let mut others = Vec::new();
    for line in lines.lines() {
        let mut words = line.split(' ').skip(1);
        let (Some(address), Some(flags)) = (words.next(), words.next()) else { continue };
        if flags == "slave" {
            continue; // Each node is listed as a master as well.
        }
        let Some((client, peer_port)) = address.split_once('@') else { continue };
        let peer_port = peer_port.split(',').next().and_then(|port| port.parse::<u16>().ok());
        let Some(peer_port) = peer_port.filter(|port| *port != 0) else { continue };
        let host = client.rsplit_once(':').map_or(client, |(host, _)| host);
        if flags.split(',').any(|flag| flag == "myself") {
            mine.push((answered_at.to_owned(), peer_port));
            mine.push((host.to_owned(), peer_port));
        } else {
            others.push((host.to_owned(), peer_port));
        }
    }
    mine.dedup();
    mine.retain(|(host, _)| !host.is_empty());
    mine.into_iter().chain(others).collect()
}

fn request(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

/// Reads replies from a stream.
#[derive(Default)]
struct ReplyReader {
    parser: ReplyParser,
    bytes: Vec<u8>,
}

impl ReplyReader {
    fn next(&mut self, from: &mut impl Read) -> Result<Value, DirectoryError> {
        loop {
            match self.parser.next(&self.bytes, 0) {
                Ok(Some((value, end))) => {
                    self.bytes.drain(..end);
                    return Ok(value);
                }
                Ok(None) if self.bytes.len() < REPLY_BYTES_MAX => {}
                Ok(None) | Err(_) => {
                    return Err(DirectoryError::NoNode("it does not speak RESP".to_owned()));
                }
            }
            let mut buffer = [0; 16 << 10];
            let count = from.read(&mut buffer)?;
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            self.bytes.extend_from_slice(&buffer[..count]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answering_node_comes_first_under_the_address_it_answered_at() {
        let lines = "aa 10.0.0.2:7001@17001 master - 0 0 1 connected 0-99\n\
                     bb 10.0.0.1:7000@17000,name myself,master - 0 0 1 connected 100-16383\n\
                     cc ::1:7002@17002 master - 0 0 1 connected\n\
                     dd 10.0.0.4:7003@0 master - 0 0 1 connected\n\
                     ee 10.0.0.2:9001@17001 slave bb 0 0 1 connected\n";
        let nodes = nodes_of(lines, "db1");
        let expected = [("db1", 17000), ("10.0.0.1", 17000), ("10.0.0.2", 17001), ("::1", 17002)];
        assert_eq!(nodes, expected.map(|(host, port)| (host.to_owned(), port)));
    }

    #[test]
    fn what_is_no_list_of_nodes_gives_none() {
        for lines in ["", "hello", "a b c", "a b@c d", "x :0@99999 myself"] {
            assert_eq!(nodes_of(lines, "h"), vec![], "{lines}");
        }
    }
}

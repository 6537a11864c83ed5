//! Identifies the process on a taken port. Called by `serve.rs`: "address already in use" leaves the reader
//! to find out by what, and we can just ask.

use std::fmt;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Timeout of the connection and of each answer. On the same machine a tenth of it is plenty.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
const ANSWER_BYTES_MAX: u64 = 16 * 1024;
/// Number of ports tried in the search for a free one.
const PORTS_TRIED: u16 = 100;

const QUESTION: &[u8] = b"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n";

/// The kind of process that answers on a port.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Neighbour {
    OpenCluster {
        version: String,
    },
    Valkey {
        version: String,
    },
    Redis {
        version: String,
    },
    /// Speaks RESP, but has no INFO.
    Resp,
    /// Speaks RESP, but answers no more without a password.
    Locked,
    Web,
    /// Answers, but not in RESP.
    Stranger,
    Silent,
}

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Neighbour::OpenCluster { version } => {
                write!(f, "an OpenCluster node ({version}) answers there")
            }
            Neighbour::Valkey { version } => write!(f, "a Valkey {version} answers there"),
            Neighbour::Redis { version } => write!(f, "a Redis {version} answers there"),
            Neighbour::Resp => f.write_str("something that speaks RESP answers there"),
            Neighbour::Locked => {
                f.write_str("something that speaks RESP and wants a password answers there")
            }
            Neighbour::Web => f.write_str("a web server answers there"),
            Neighbour::Stranger => f.write_str("something that does not speak RESP answers there"),
            Neighbour::Silent => f.write_str("a process that does not answer listens there"),
        }
    }
}

/// Asks the process that listens on `addr` what it is.
pub(crate) fn who_answers(addr: SocketAddr) -> Neighbour {
    let Ok(mut stream) = TcpStream::connect_timeout(&reachable(addr), ANSWER_WITHIN) else {
        return Neighbour::Silent;
    };
    let answer = ask(&mut stream).unwrap_or_default();
    recognise(&String::from_utf8_lossy(&answer))
}

/// Returns an address to connect to: a wildcard address does not work everywhere; loopback is part of it.
pub(crate) fn reachable(addr: SocketAddr) -> SocketAddr {
    let ip = match addr.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    SocketAddr::new(ip, addr.port())
}

/// Returns everything received until the answer is complete or too long, or the time is up.
fn ask(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(QUESTION)?;
    let deadline = Instant::now() + ANSWER_WITHIN;
    let (mut answer, mut chunk) = (Vec::new(), [0; 1024]);
    while (answer.len() as u64) < ANSWER_BYTES_MAX && Instant::now() < deadline {
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(n) => answer.extend_from_slice(&chunk[..n]),
        }
        if is_whole(&answer) {
            break;
        }
    }
    Ok(answer)
}

/// Returns whether both answers are there: the second ends with the section's empty line, or is an error.
fn is_whole(answer: &[u8]) -> bool {
    let mut lines = answer.split_inclusive(|byte| *byte == b'\n');
    let refused = lines.nth(1).is_some_and(|line| line.starts_with(b"-") && line.ends_with(b"\n"));
    refused || answer.ends_with(b"\r\n\r\n") || answer.starts_with(b"HTTP/")
}

fn recognise(answer: &str) -> Neighbour {
    let field = |name: &str| {
        let line = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(|version| version.trim().to_owned())
    };
    // Each of them also reports a redis_version, for clients that look for no other.
    if let Some(version) = field("opencluster_version") {
        return Neighbour::OpenCluster { version };
    }
    if let Some(version) = field("valkey_version") {
        return Neighbour::Valkey { version };
    }
    if let Some(version) = field("redis_version") {
        return Neighbour::Redis { version };
    }
    match answer {
        "" => Neighbour::Silent,
        _ if answer.starts_with("+PONG") => Neighbour::Resp,
        _ if answer.starts_with("-NOAUTH") => Neighbour::Locked,
        _ if answer.starts_with("HTTP/") => Neighbour::Web,
        _ => Neighbour::Stranger,
    }
}

/// Returns a free port near a taken one, to suggest; another process may take it before the reader does. The
/// ports at these `offsets` from it must be free, too.
pub(crate) fn free_port_after(addr: SocketAddr, offsets: &[u16]) -> Option<u16> {
    let is_free = |port: u16| TcpListener::bind((addr.ip(), port)).is_ok();
    let fits = |port: &u16| {
        let beside = offsets.iter().map(|offset| port.checked_add(*offset));
        is_free(*port) && beside.into_iter().all(|port| port.is_some_and(is_free))
    };
    let first = addr.port().checked_add(1)?;
    (first..first.saturating_add(PORTS_TRIED)).find(fits)
}

#[cfg(test)]
mod tests;

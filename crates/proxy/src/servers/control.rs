//! A blocking connection to a server: commands out, complete answers in. Used by the watcher of the map, by
//! the migrator, and by `fleet status` and `fleet check`.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleet::{Address, Kind};
use mio::{Events, Poll, Token};
use resp::{ReplyParser, Value};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::access::Access;
use crate::stream::{ClusterStream, ServerStream};

/// Maximum number of bytes per read from the socket.
const CHUNK_BYTES: usize = 64 * 1024;

/// A blocking connection. Unusable after an error: a command may be half sent, an answer half received.
pub struct Control {
    stream: Stream,
    parser: ReplyParser,
    /// Received bytes; the first `taken` of them are consumed.
    input: Vec<u8>,
    taken: usize,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    Cluster(Box<Waiting>),
}

/// A connection to a cluster, with blocking reads.
struct Waiting {
    stream: ServerStream,
    poll: Poll,
    events: Events,
    patience: Duration,
}

impl Waiting {
    fn connect(address: &Address, access: &Access, patience: Duration) -> io::Result<Waiting> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let stream = ClusterStream::connect(address, access, registry, Token(0))?;
        let stream = ServerStream::Cluster(Box::new(stream));
        Ok(Waiting { stream, poll, events: Events::with_capacity(16), patience })
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let until = Instant::now() + self.patience;
        loop {
            self.stream.flush()?;
            match self.stream.read(into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            match self.poll.poll(&mut self.events, Some(left)) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }
}

impl Control {
    /// Connects and authenticates. `patience` is the timeout for connecting and for each answer after it.
    pub fn connect(address: &Address, access: &Access, patience: Duration) -> io::Result<Control> {
        let stream = match address.kind {
            Kind::Plain => connect_plain(address, access, patience)?,
            Kind::Cluster => {
                Stream::Cluster(Box::new(Waiting::connect(address, access, patience)?))
            }
        };
        let mut control =
            Control { stream, parser: ReplyParser::default(), input: Vec::new(), taken: 0 };
        if let Some(command) = access.auth_command()
            && let Value::Error(text) = control.call(&command)?
        {
            let text = String::from_utf8_lossy(&text).into_owned();
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        Ok(control)
    }

    /// Sends one command and waits for its answer. A server's error is an answer.
    pub fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Value> {
        let mut bytes = Vec::new();
        put_command(&mut bytes, args);
        self.send(&bytes)?;
        self.receive()
    }

    /// Sends several commands at once and waits for all their answers.
    pub fn pipeline<A: AsRef<[u8]>>(&mut self, commands: &[Vec<A>]) -> io::Result<Vec<Value>> {
        let mut bytes = Vec::new();
        for command in commands {
            put_command(&mut bytes, command);
        }
        self.send(&bytes)?;
        commands.iter().map(|_| self.receive()).collect()
    }

    /// Sends bytes that are already in wire format.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(tcp) => tcp.write_all(bytes),
            Stream::Tls(tls) => tls.write_all(bytes).and_then(|()| tls.flush()),
            // A cluster stream accepts all bytes.
            Stream::Cluster(cluster) => cluster.stream.write(bytes).map(drop),
        }
        .map_err(explained)
    }

    /// Waits for the next answer.
    pub fn receive(&mut self) -> io::Result<Value> {
        loop {
            let parsed = self.parser.next(&self.input, self.taken);
            let parsed = parsed.map_err(|error| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("it does not speak RESP: {error}"),
                )
            })?;
            if let Some((value, end)) = parsed {
                self.taken = end;
                if self.taken == self.input.len() {
                    self.input.clear();
                    self.taken = 0;
                }
                return Ok(value);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.input.drain(..self.taken);
        self.taken = 0;
        let old = self.input.len();
        self.input.resize(old + CHUNK_BYTES, 0);
        let read = match &mut self.stream {
            Stream::Plain(tcp) => tcp.read(&mut self.input[old..]),
            Stream::Tls(tls) => tls.read(&mut self.input[old..]),
            Stream::Cluster(cluster) => cluster.read(&mut self.input[old..]),
        };
        self.input.truncate(old + *read.as_ref().unwrap_or(&0));
        match read.map_err(explained)? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection")),
            _ => Ok(()),
        }
    }
}

fn connect_plain(address: &Address, access: &Access, patience: Duration) -> io::Result<Stream> {
    let tcp = TcpStream::connect_timeout(&resolve(address)?, patience)?;
    tcp.set_nodelay(true)?;
    tcp.set_read_timeout(Some(patience))?;
    tcp.set_write_timeout(Some(patience))?;
    Ok(match &access.tls {
        None => Stream::Plain(tcp),
        Some(config) => {
            let connection = tls_connection(config, address)?;
            Stream::Tls(Box::new(StreamOwned::new(connection, tcp)))
        }
    })
}

/// Replaces a socket's timeout, which appears as "would block", by a readable error.
fn explained(error: io::Error) -> io::Error {
    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) {
        return io::Error::new(io::ErrorKind::TimedOut, "it did not answer in time");
    }
    error
}

fn put_command<A: AsRef<[u8]>>(to: &mut Vec<u8>, args: &[A]) {
    let args: Vec<&[u8]> = args.iter().map(AsRef::as_ref).collect();
    resp::encode_command(to, &args);
}

/// Returns the first address that a server's name resolves to. May query the network and block.
pub(crate) fn resolve(address: &Address) -> io::Result<SocketAddr> {
    let nothing = || io::Error::new(io::ErrorKind::NotFound, "its name resolves to no address");
    (address.host.as_str(), address.port).to_socket_addrs()?.next().ok_or_else(nothing)
}

/// Starts TLS with the server at this address, which must prove that it is the named host.
pub(crate) fn tls_connection(
    config: &Arc<ClientConfig>,
    address: &Address,
) -> io::Result<ClientConnection> {
    let name = ServerName::try_from(address.host.clone()).map_err(io::Error::other)?;
    ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)
}

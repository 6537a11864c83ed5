//! A non-blocking connection to a server: one socket, or one per node of a cluster. The workers' links use it.

mod cluster;

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

use fleet::Address;
use mio::{Registry, Token};
use net::{Keepalive, Stream, must_wait};

pub(crate) use self::cluster::ClusterStream;
use crate::servers::{Access, tls_connection};

pub(crate) enum ServerStream {
    Single(Stream),
    Cluster(Box<ClusterStream>),
}

/// Opens one socket, which is still connecting, with TLS if the servers are contacted that way.
pub(crate) fn connect(to: SocketAddr, address: &Address, access: &Access) -> io::Result<Stream> {
    let tls = access.tls.as_ref().map(|config| tls_connection(config, address)).transpose()?;
    Stream::connect(to, Keepalive::System, tls)
}

impl ServerStream {
    /// Registers the socket. A cluster registers its sockets itself as it opens them.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        match self {
            ServerStream::Single(stream) => stream.register(registry, token),
            ServerStream::Cluster(_) => Ok(()),
        }
    }

    pub(crate) fn deregister(&mut self, registry: &Registry) {
        match self {
            ServerStream::Single(stream) => stream.deregister(registry),
            ServerStream::Cluster(cluster) => cluster.deregister(),
        }
    }

    /// Returns whether a read that did not fill its buffer has taken everything available.
    pub(crate) fn short_read_is_all(&self) -> bool {
        match self {
            ServerStream::Single(stream) => stream.short_read_is_all(),
            ServerStream::Cluster(_) => false,
        }
    }
}

impl Read for ServerStream {
    /// Reads available bytes. Zero bytes mean the end of the stream, `WouldBlock` means none yet.
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            ServerStream::Single(stream) => stream.read(into),
            ServerStream::Cluster(cluster) => cluster.read(into),
        }
    }
}

impl Write for ServerStream {
    /// Writes what the socket accepts; `WouldBlock` if that is nothing.
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            ServerStream::Single(stream) => stream.write(from),
            ServerStream::Cluster(cluster) => cluster.write(from),
        }
    }

    /// Sends TLS's own messages, and bytes still buffered from earlier writes.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            ServerStream::Single(stream) => stream.flush(),
            ServerStream::Cluster(cluster) => cluster.flush(),
        }
    }
}

/// Bytes to be sent, and the number already sent.
#[derive(Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
}

/// Maximum capacity that an empty buffer keeps.
const KEPT_BYTES_MAX: usize = 256 * 1024;

impl Outbox {
    /// Returns the buffer to which bytes to be sent are appended.
    #[inline]
    pub(crate) fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Returns the number of bytes not sent yet.
    #[inline]
    pub(crate) fn unsent(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Sends what the stream accepts.
    pub(crate) fn flush(&mut self, stream: &mut impl Write) -> io::Result<()> {
        while self.sent < self.bytes.len() {
            match stream.write(&self.bytes[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if must_wait(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.sent = 0;
        match stream.flush() {
            Err(error) if !must_wait(&error) => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

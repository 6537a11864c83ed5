//! A non-blocking connection to a server: one socket, or one per node of a cluster. The workers' links use it.

mod cluster;

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use fleet::Address;
use mio::{Registry, Token};
use net::{Keepalive, SendBuffer, Stream};

pub(crate) use self::cluster::ClusterStream;
use crate::servers::{Access, tls_connection};

/// Maximum capacity that an empty buffer to a server keeps.
const KEPT_BYTES_MAX: usize = 256 * 1024;

/// Bytes to be sent to a server.
pub(crate) type ServerBuffer = SendBuffer<KEPT_BYTES_MAX>;

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

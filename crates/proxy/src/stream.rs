//! A non-blocking connection to a server: one socket, with or without TLS, or one per node of a cluster. The
//! workers' links use it.

mod cluster;

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;

use fleet::Address;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustls::ClientConnection;
use socket2::SockRef;

pub(crate) use self::cluster::ClusterStream;
use crate::servers::{Access, tls_connection};

pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<Tls>),
    Cluster(Box<ClusterStream>),
}

pub(crate) struct Tls {
    tcp: TcpStream,
    connection: ClientConnection,
}

impl Stream {
    /// Opens one socket, which is still connecting.
    pub(crate) fn connect_plain(
        to: SocketAddr,
        address: &Address,
        access: &Access,
    ) -> io::Result<Stream> {
        let tcp = TcpStream::connect(to)?;
        let reference = SockRef::from(&tcp);
        reference.set_tcp_nodelay(true)?;
        reference.set_keepalive(true)?;
        Ok(match &access.tls {
            None => Stream::Plain(tcp),
            Some(config) => {
                let connection = tls_connection(config, address)?;
                Stream::Tls(Box::new(Tls { tcp, connection }))
            }
        })
    }

    /// Registers the socket. A cluster registers its sockets itself as it opens them.
    pub(crate) fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self {
            Stream::Plain(_) | Stream::Tls(_) => registry.register(self.tcp(), token, interest),
            Stream::Cluster(_) => Ok(()),
        }
    }

    pub(crate) fn deregister(&mut self, registry: &Registry) {
        match self {
            Stream::Plain(_) | Stream::Tls(_) => {
                let _ = registry.deregister(self.tcp()); // It is gone either way.
            }
            Stream::Cluster(cluster) => cluster.deregister(),
        }
    }

    fn tcp(&mut self) -> &mut TcpStream {
        match self {
            Stream::Plain(tcp) => tcp,
            Stream::Tls(tls) => &mut tls.tcp,
            Stream::Cluster(_) => unreachable!("it has several, which it looks after itself"),
        }
    }

    /// Reads available bytes. Zero bytes mean the end of the stream, `WouldBlock` means none yet.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(tcp) => retried(|| tcp.read(into)),
            Stream::Tls(tls) => tls.read(into),
            Stream::Cluster(cluster) => cluster.read(into),
        }
    }

    /// Returns whether a read that did not fill its buffer has taken everything available.
    pub(crate) fn short_read_is_all(&self) -> bool {
        matches!(self, Stream::Plain(_))
    }

    /// Writes what the socket accepts; `WouldBlock` if that is nothing.
    pub(crate) fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(tcp) => retried(|| tcp.write(from)),
            Stream::Tls(tls) => tls.write(from),
            Stream::Cluster(cluster) => cluster.write(from),
        }
    }

    /// Sends TLS's own messages, and bytes still buffered from earlier writes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(tls) => tls.flush(),
            Stream::Cluster(cluster) => cluster.flush(),
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
    pub(crate) fn flush(&mut self, stream: &mut Stream) -> io::Result<()> {
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

/// Returns whether to wait. A connection that is not established yet behaves like one with nothing to read or write.
pub(crate) fn must_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected)
}

impl Tls {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // A server that closes without a TLS close_notify has closed all the same.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            let Tls { tcp, connection } = self;
            retried(|| connection.read_tls(tcp))?;
            if let Err(error) = connection.process_new_packets() {
                let _ = connection.write_tls(tcp); // Send the alert if possible.
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
            self.flush()?;
        }
    }

    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.flush()?;
        if self.connection.wants_write() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = self.connection.writer().write(from)?;
        self.flush()?;
        if taken == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        let Tls { tcp, connection } = self;
        while connection.wants_write() {
            match retried(|| connection.write_tls(tcp)) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                written => written.map(drop)?,
            }
        }
        Ok(())
    }
}

fn retried<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

//! A non-blocking connection: a socket, with or without TLS. Everything above it reads and writes bytes and
//! does not know the difference.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustls::{ClientConnection, Connection};

use crate::configure::{Keepalive, configure};
use crate::tls::Tls;

/// A non-blocking connection. A read or write that was interrupted is repeated; one for which the other end is
/// not ready returns `WouldBlock`.
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

impl From<TcpStream> for Stream {
    fn from(tcp: TcpStream) -> Stream {
        Stream::Plain(tcp)
    }
}

impl Stream {
    /// Opens and configures a socket, which is still connecting. With `tls`, the handshake takes place with the
    /// first reads and writes.
    pub fn connect(
        to: SocketAddr,
        keepalive: Keepalive,
        tls: Option<ClientConnection>,
    ) -> io::Result<Stream> {
        let tcp = TcpStream::connect(to)?;
        configure(&tcp, keepalive)?;
        Ok(match tls {
            None => Stream::Plain(tcp),
            Some(connection) => Stream::tls(tcp, connection),
        })
    }

    /// Puts TLS on a socket, as either end of it.
    pub fn tls(tcp: TcpStream, connection: impl Into<Connection>) -> Stream {
        Stream::Tls(Box::new(Tls::new(tcp, connection.into())))
    }

    /// Registers the socket. epoll reports at once if it is readable already.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(self.tcp_mut(), token, Interest::READABLE | Interest::WRITABLE)
    }

    pub fn deregister(&mut self, registry: &Registry) {
        let _ = registry.deregister(self.tcp_mut()); // The socket is closed either way.
    }

    /// Closes the connection for both ends.
    pub fn shut_down(&self) {
        let _ = self.tcp().shutdown(Shutdown::Both); // The other end may have done so.
    }

    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.tcp().peer_addr()
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp().local_addr()
    }

    /// Returns whether a read that did not fill its buffer has taken everything available.
    #[inline]
    pub fn short_read_is_all(&self) -> bool {
        matches!(self, Stream::Plain(_))
    }

    /// Returns whether the stream has accepted bytes that the socket has not. The caller flushes them when the
    /// socket is writable again.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        match self {
            Stream::Plain(_) => false,
            Stream::Tls(tls) => tls.has_unsent(),
        }
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            Stream::Plain(tcp) => tcp,
            Stream::Tls(tls) => tls.tcp(),
        }
    }

    fn tcp_mut(&mut self) -> &mut TcpStream {
        match self {
            Stream::Plain(tcp) => tcp,
            Stream::Tls(tls) => tls.tcp_mut(),
        }
    }
}

impl Read for Stream {
    /// Reads available bytes. Zero bytes mean the end of the stream.
    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(tcp) => repeated(|| tcp.read(into)),
            Stream::Tls(tls) => tls.read(into),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(tcp) => repeated(|| tcp.write(from)),
            Stream::Tls(tls) => tls.write(from),
        }
    }

    #[inline]
    fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Stream::Plain(tcp) => repeated(|| tcp.write_vectored(from)),
            Stream::Tls(tls) => tls.write_vectored(from),
        }
    }

    /// Sends what the stream has accepted and TLS's own messages, as far as the socket takes them.
    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(tls) => tls.flush(),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tcp().as_fd()
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        self.tcp().as_raw_fd()
    }
}

/// Returns whether to wait. A connection that is not established yet behaves like one with nothing to read or write.
pub fn must_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected)
}

/// Repeats a call until no signal interrupts it.
#[inline]
pub(crate) fn repeated<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Shutdown;

    use super::*;
    use crate::testing::{await_read, pair, server_tls, tls_pair};

    #[test]
    fn an_interrupted_call_is_repeated_and_other_errors_are_returned() {
        let mut errors =
            vec![ErrorKind::WouldBlock, ErrorKind::Interrupted, ErrorKind::Interrupted];
        let failed: io::Result<()> = repeated(|| Err(errors.pop().unwrap().into()));
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(errors.is_empty());
    }

    #[test]
    fn a_plain_stream_reads_what_is_there_and_then_would_block() {
        let (here, there) = pair();
        let (mut here, mut there) = (Stream::from(here), Stream::from(there));
        let pieces = [IoSlice::new(b"one "), IoSlice::new(b"two")];
        assert_eq!(there.write_vectored(&pieces).unwrap(), 7);
        let mut buffer = [0; 100];
        assert_eq!(await_read(&mut here, &mut buffer).unwrap(), 7);
        assert_eq!(&buffer[..7], b"one two");
        assert!(here.short_read_is_all() && !here.has_unsent());
        let empty = here.read(&mut buffer).unwrap_err();
        assert!(must_wait(&empty), "{empty}");
        there.shut_down();
        assert_eq!(await_read(&mut here, &mut buffer).unwrap(), 0);
    }

    /// Sends `bytes` from one end to the other, and reads them in `room` bytes at a time.
    fn carry(from: &mut Stream, to: &mut Stream, bytes: &[u8], room: usize) -> Vec<u8> {
        let (mut sent, mut got) = (0, Vec::new());
        let mut buffer = vec![0; room];
        while got.len() < bytes.len() {
            if sent < bytes.len() {
                match from.write(&bytes[sent..]) {
                    Ok(count) => sent += count,
                    Err(error) => assert!(must_wait(&error), "{error}"),
                }
            }
            from.flush().unwrap();
            match to.read(&mut buffer) {
                Ok(count) => got.extend_from_slice(&buffer[..count]),
                Err(error) => assert!(must_wait(&error), "{error}"),
            }
            // The sender takes part in the handshake as well.
            match from.read(&mut [0]) {
                Ok(count) => panic!("{count} bytes came back"),
                Err(error) => assert!(must_wait(&error), "{error}"),
            }
        }
        got
    }

    #[test]
    fn either_end_can_send_over_tls_more_than_the_socket_takes_at_once() {
        let (mut client, mut server) = tls_pair();
        let bytes: Vec<u8> = (0..5_000_000_u32).map(|number| (number % 251) as u8).collect();
        assert!(carry(&mut client, &mut server, &bytes, 1_000_000) == bytes);
        assert!(carry(&mut server, &mut client, &bytes, 4_096) == bytes);
    }

    #[test]
    fn a_short_read_of_tls_may_leave_bytes_behind() {
        let (mut client, mut server) = tls_pair();
        assert_eq!(carry(&mut client, &mut server, b"hello", 100), b"hello");
        assert!(!server.short_read_is_all());
        let pieces = [IoSlice::new(b"a"), IoSlice::new(b"bc")];
        let mut sent = client.write_vectored(&pieces).unwrap();
        sent += if sent < 3 { client.write(&b"abc"[sent..]).unwrap() } else { 0 };
        assert_eq!(sent, 3);
        let mut got = Vec::new();
        while got.len() < 3 {
            let mut buffer = [0; 1];
            let count = await_read(&mut server, &mut buffer).unwrap();
            got.extend_from_slice(&buffer[..count]);
        }
        assert_eq!(got, b"abc");
    }

    #[test]
    fn tls_that_ends_without_a_farewell_has_ended_all_the_same() {
        let (mut client, mut server) = tls_pair();
        assert_eq!(carry(&mut client, &mut server, b"hello", 100), b"hello");
        client.tcp().shutdown(Shutdown::Write).unwrap();
        assert_eq!(await_read(&mut server, &mut [0; 10]).unwrap(), 0);
    }

    #[test]
    fn bytes_that_are_not_tls_are_an_error() {
        let (client, server) = pair();
        let mut client = Stream::from(client);
        let mut server = Stream::tls(server, server_tls());
        client.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap();
        let error = await_read(&mut server, &mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn what_the_socket_does_not_take_is_still_unsent() {
        let (mut client, mut server) = tls_pair();
        assert_eq!(carry(&mut client, &mut server, b"hello", 100), b"hello");
        let block = vec![b'x'; 64 * 1024];
        let mut sent = 0;
        let full = loop {
            match client.write(&block) {
                Ok(count) => sent += count,
                Err(error) => break error,
            }
        };
        assert!(must_wait(&full) && client.has_unsent());
        let mut buffer = vec![0; 1 << 20];
        let mut got = 0;
        while got < sent {
            client.flush().unwrap();
            got += match server.read(&mut buffer) {
                Ok(count) => count,
                Err(error) => {
                    assert!(must_wait(&error), "{error}");
                    0
                }
            };
        }
        assert_eq!(got, sent);
        assert!(!client.has_unsent());
    }
}

//! TLS on a non-blocking socket, at either end. Used through [`crate::Stream`].

use std::io::{self, ErrorKind, IoSlice, Read, Write};

use mio::net::TcpStream;
use rustls::Connection;

use crate::stream::repeated;

/// A socket and the state of TLS on it.
pub struct Tls {
    tcp: TcpStream,
    connection: Connection,
}

impl Tls {
    pub(crate) fn new(tcp: TcpStream, connection: Connection) -> Tls {
        Tls { tcp, connection }
    }

    pub(crate) fn tcp(&self) -> &TcpStream {
        &self.tcp
    }

    pub(crate) fn tcp_mut(&mut self) -> &mut TcpStream {
        &mut self.tcp
    }

    pub(crate) fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // An end that closes without a TLS close_notify has closed all the same.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            let Tls { tcp, connection } = self;
            repeated(|| connection.read_tls(tcp))?;
            if let Err(error) = connection.process_new_packets() {
                let _ = connection.write_tls(tcp); // Send the alert if possible.
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
            self.flush()?;
        }
    }

    pub(crate) fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.accept(|connection| connection.writer().write(from))
    }

    pub(crate) fn write_vectored(&mut self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        self.accept(|connection| connection.writer().write_vectored(from))
    }

    /// Encrypts bytes and sends them, unless the socket has not taken the previous ones yet.
    fn accept(
        &mut self,
        encrypt: impl FnOnce(&mut Connection) -> io::Result<usize>,
    ) -> io::Result<usize> {
        self.flush()?;
        if self.connection.wants_write() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = encrypt(&mut self.connection)?;
        self.flush()?;
        if taken == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Tls { tcp, connection } = self;
        while connection.wants_write() {
            match repeated(|| connection.write_tls(tcp)) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                written => written.map(drop)?,
            }
        }
        Ok(())
    }
}

//! A socket to a server that never waits, with or without TLS. Called by the workers' links.

use std::io::{self, ErrorKind, Read, Write};

use mio::net::TcpStream;
use rustls::ClientConnection;

pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<Tls>),
}

pub(crate) struct Tls {
    tcp: TcpStream,
    connection: ClientConnection,
}

impl Stream {
    pub(crate) fn new(tcp: TcpStream, connection: Option<ClientConnection>) -> Stream {
        match connection {
            None => Stream::Plain(tcp),
            Some(connection) => Stream::Tls(Box::new(Tls { tcp, connection })),
        }
    }

    pub(crate) fn tcp(&mut self) -> &mut TcpStream {
        match self {
            Stream::Plain(tcp) => tcp,
            Stream::Tls(tls) => &mut tls.tcp,
        }
    }

    /// Reads what is there. Zero bytes are the end of the stream, `WouldBlock` means none yet.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(tcp) => retried(|| tcp.read(into)),
            Stream::Tls(tls) => tls.read(into),
        }
    }

    /// Whether a read that did not fill its buffer has taken all there was.
    pub(crate) fn short_read_is_all(&self) -> bool {
        matches!(self, Stream::Plain(_))
    }

    /// Writes what the socket takes; `WouldBlock` if that is nothing.
    pub(crate) fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(tcp) => retried(|| tcp.write(from)),
            Stream::Tls(tls) => tls.write(from),
        }
    }

    /// Sends what TLS itself has to say, and what it still holds of earlier writes.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(tls) => tls.flush(),
        }
    }
}

impl Tls {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // A server that hangs up without saying so in TLS has hung up all the same.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            let Tls { tcp, connection } = self;
            retried(|| connection.read_tls(tcp))?;
            if let Err(error) = connection.process_new_packets() {
                let _ = connection.write_tls(tcp); // The alert, as far as it goes.
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

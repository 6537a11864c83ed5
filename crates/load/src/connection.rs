//! One socket: its unsent bytes, its unanswered requests, its partial reply. Driven by `run.rs`.
use std::io::{self, Read, Write};
use std::net::SocketAddr;

use mio::net::TcpStream;

use crate::pace::Awaited;
use crate::replies::{self, Counts};
use crate::tally::Tally;

pub(crate) struct Connection {
    stream: TcpStream,
    /// Bytes that the socket did not accept. Empty except for requests larger than its buffer.
    unsent: Vec<u8>,
    /// The start of a reply whose end has not arrived.
    partial: Vec<u8>,
    pub(crate) awaited: Awaited,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Connection {
            stream: TcpStream::from_std(stream),
            unsent: Vec::new(),
            partial: Vec::new(),
            awaited: Awaited::default(),
        })
    }

    pub(crate) fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Sends what the socket accepts now, and keeps the rest for `flush`.
    #[inline]
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let sent = if self.unsent.is_empty() { self.write(bytes)? } else { 0 };
        self.unsent.extend_from_slice(&bytes[sent..]);
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.unsent.is_empty() {
            return Ok(());
        }
        let unsent = std::mem::take(&mut self.unsent);
        let sent = self.write(&unsent)?;
        self.unsent = unsent;
        self.unsent.drain(..sent);
        Ok(())
    }

    /// Writes until the socket accepts no more: it is edge-triggered, and reports writability only after that.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut sent = 0;
        while sent < bytes.len() {
            match self.stream.write(&bytes[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }

    /// Reads everything available, through `scratch`, and returns how many replies that completed.
    #[inline]
    pub(crate) fn receive(&mut self, scratch: &mut [u8], tally: &mut Tally) -> io::Result<u64> {
        let mut counts = Counts::default();
        loop {
            let kept = self.partial.len();
            if kept == scratch.len() {
                return Err(io::Error::other("a reply exceeds the receive buffer"));
            }
            let Some(read) = self.read(&mut scratch[kept..])? else { break };
            scratch[..kept].copy_from_slice(&self.partial);
            let filled = &scratch[..kept + read];
            let used = replies::count(filled, &mut counts)
                .map_err(|error| io::Error::other(format!("cannot parse the reply: {error}")))?;
            if counts.errors > 0 && tally.first_error.is_none() {
                tally.first_error = replies::first_error(filled);
            }
            self.partial.clear();
            self.partial.extend_from_slice(&filled[used..]);
            // A read that left room has emptied the socket: a second read is not needed to learn that.
            if kept + read < scratch.len() {
                break;
            }
        }
        tally.add(counts);
        Ok(counts.replies)
    }

    #[inline]
    fn read(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match self.stream.read(into) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => return Ok(Some(count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

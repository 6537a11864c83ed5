//! A connection to a node, on behalf of one client of the any-port.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use resp::{ReplySkipper, encode_command};

/// A node that does not answer for so long is not waited for: what became of the command is unknown.
const PATIENCE: Duration = Duration::from_secs(30);
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
const READ_BYTES: usize = 64 * 1024;

pub(super) struct Upstream {
    pub stream: TcpStream,
    unread: Vec<u8>,
    at: usize,
    skipper: ReplySkipper,
    unsent: Vec<u8>,
}

impl Upstream {
    /// Connects, and says again what the client has said of itself (HELLO, AUTH, CLIENT SETNAME).
    pub(super) fn connect(addr: (&str, u16), introduction: &[Vec<u8>]) -> io::Result<Upstream> {
        use std::net::ToSocketAddrs;
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for addr in addr.to_socket_addrs()? {
            match TcpStream::connect_timeout(&addr, CONNECT_WITHIN) {
                Ok(stream) => return Upstream::introduce(stream, introduction),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn introduce(stream: TcpStream, introduction: &[Vec<u8>]) -> io::Result<Upstream> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (unread, skipper) = (Vec::new(), ReplySkipper::default());
        let mut upstream = Upstream { stream, unread, at: 0, skipper, unsent: Vec::new() };
        for command in introduction {
            upstream.unsent.extend_from_slice(command);
        }
        upstream.flush()?;
        for _ in introduction {
            upstream.reply()?;
        }
        Ok(upstream)
    }

    pub(super) fn queue<A: AsRef<[u8]>>(&mut self, args: &[A]) {
        let args: Vec<&[u8]> = args.iter().map(AsRef::as_ref).collect();
        encode_command(&mut self.unsent, &args);
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        if !self.unsent.is_empty() {
            self.stream.write_all(&self.unsent)?;
            self.unsent.clear();
        }
        Ok(())
    }

    /// The next reply, as it came.
    pub(super) fn reply(&mut self) -> io::Result<Vec<u8>> {
        loop {
            let end = self.skipper.next(&self.unread, self.at);
            let end = end.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            if let Some(end) = end {
                let reply = self.unread[self.at..end].to_vec();
                self.at = end;
                if self.at == self.unread.len() {
                    self.unread.clear();
                    self.at = 0;
                }
                return Ok(reply);
            }
            self.unread.drain(..self.at);
            self.at = 0;
            let old = self.unread.len();
            self.unread.resize(old + READ_BYTES, 0);
            let read = self.stream.read(&mut self.unread[old..]);
            self.unread.truncate(old + *read.as_ref().unwrap_or(&0));
            if read? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// What has come and nobody has asked for.
    pub(super) fn take_unread(&mut self) -> Vec<u8> {
        self.unread.drain(..self.at);
        self.at = 0;
        core::mem::take(&mut self.unread)
    }
}

//! A blocking client that hides nothing: it sends any bytes, and returns every byte of an answer.
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use resp::{ReplyParser, Value};

/// Timeout for an answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// Timeout for connecting. The system establishes a connection by itself; one that takes longer goes nowhere.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// An answer, raw and parsed. RESP2's two nulls differ only in the raw form.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub raw: Vec<u8>,
    pub value: Value,
}

#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    /// Bytes received and not yet consumed.
    buffer: Vec<u8>,
    parser: ReplyParser,
    patience: Duration,
}

impl Client {
    pub fn try_connect(port: u16) -> io::Result<Client> {
        Client::connect((Ipv4Addr::LOCALHOST, port).into(), PATIENCE)
    }

    /// Connects to any address. `patience` is the timeout for an answer.
    pub fn connect(to: SocketAddr, patience: Duration) -> io::Result<Client> {
        Client::connect_within(CONNECT_WITHIN, to, patience)
    }

    /// Like `connect`, for a machine that itself may be gone: `within` is the timeout for connecting.
    pub fn connect_within(
        within: Duration,
        to: SocketAddr,
        patience: Duration,
    ) -> io::Result<Client> {
        let stream = TcpStream::connect_timeout(&to, within)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Client { stream, buffer: Vec::new(), parser: ReplyParser::default(), patience })
    }

    /// Returns whether the connection is open: false once the other end is known to have closed it.
    pub fn is_open(&self) -> bool {
        let looked = self.stream.set_nonblocking(true).and_then(|()| self.stream.peek(&mut [0]));
        let is_quiet = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        let open = looked.map_or_else(|error| is_quiet(&error), |count| count > 0);
        open && self.stream.set_nonblocking(false).is_ok()
    }

    /// Sends a command written as one would type it, words separated by spaces, and returns its answer.
    ///
    /// # Panics
    /// Panics if there is no answer.
    pub fn run(&mut self, line: &str) -> Value {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.call(&words).value
    }

    /// Sends a command and returns its answer.
    ///
    /// # Panics
    /// Panics if there is no answer.
    pub fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Answer {
        let answer = self.send(args).and_then(|()| self.receive());
        answer.unwrap_or_else(|error| {
            let shown: Vec<_> =
                args.iter().map(|arg| String::from_utf8_lossy(arg.as_ref())).collect();
            panic!("no answer to {shown:?} from {:?}: {error}", self.stream.peer_addr())
        })
    }

    /// Returns the document behind `opencluster status`.
    ///
    /// # Panics
    /// Panics if the node does not return one.
    pub fn status(&mut self) -> serde_json::Value {
        let answer = self.run("CLUSTER STATUS");
        let (Value::Bulk(text) | Value::Verbatim { text, .. }) = &answer else {
            panic!("no document: {answer:?}")
        };
        serde_json::from_slice(text).expect("CLUSTER STATUS is JSON")
    }

    pub fn send<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<()> {
        let args: Vec<&[u8]> = args.iter().map(AsRef::as_ref).collect();
        let mut bytes = Vec::new();
        resp::encode_command(&mut bytes, &args);
        self.send_raw(&bytes)
    }

    pub fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Returns the next answer or push. `UnexpectedEof` if the server has closed the connection.
    pub fn receive(&mut self) -> io::Result<Answer> {
        loop {
            if let Some(answer) = self.take()? {
                return Ok(answer);
            }
            self.fill()?;
        }
    }

    /// Returns the next answer or push, if one arrives within `patience`.
    pub fn receive_within(&mut self, patience: Duration) -> io::Result<Option<Answer>> {
        self.stream.set_read_timeout(Some(patience))?;
        let received = self.receive();
        self.stream.set_read_timeout(Some(self.patience))?;
        match received {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the socket itself, for a test that misuses it.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    fn take(&mut self) -> io::Result<Option<Answer>> {
        let parsed = self.parser.next(&self.buffer, 0);
        let parsed = parsed.map_err(|error| {
            let text = format!("{error:?} in {}", self.buffer.escape_ascii());
            io::Error::new(io::ErrorKind::InvalidData, text)
        })?;
        Ok(parsed.map(|(value, end)| Answer { raw: self.buffer.drain(..end).collect(), value }))
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 * 1024];
        match self.stream.read(&mut chunk)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.buffer.extend_from_slice(&chunk[..count]);
                Ok(())
            }
        }
    }
}

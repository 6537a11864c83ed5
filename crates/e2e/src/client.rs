//! A blocking client that hides nothing: it sends any bytes, and shows every byte of an answer.
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use resp::{ReplyParser, Value};

/// An answer that takes longer is not coming.
const PATIENCE: Duration = Duration::from_secs(20);
/// The system makes a connection by itself; one that takes longer goes nowhere.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);

/// An answer as it came and as it is understood. RESP2's two nulls differ only as they came.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub raw: Vec<u8>,
    pub value: Value,
}

#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    /// Received and not yet taken.
    buffer: Vec<u8>,
    parser: ReplyParser,
    patience: Duration,
}

impl Client {
    pub fn try_connect(port: u16) -> io::Result<Client> {
        Client::connect((Ipv4Addr::LOCALHOST, port).into(), PATIENCE)
    }

    /// To any address; an answer is waited for no longer than `patience`.
    pub fn connect(to: SocketAddr, patience: Duration) -> io::Result<Client> {
        Client::connect_within(CONNECT_WITHIN, to, patience)
    }

    /// The same, where the machine itself may be gone.
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

    /// Whether the other end has not closed the connection, as far as is known here.
    pub fn is_open(&self) -> bool {
        let looked = self.stream.set_nonblocking(true).and_then(|()| self.stream.peek(&mut [0]));
        let is_quiet = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        let open = looked.map_or_else(|error| is_quiet(&error), |count| count > 0);
        open && self.stream.set_nonblocking(false).is_ok()
    }

    /// Sends a command written as one would type it, words apart by spaces, and takes its answer.
    ///
    /// # Panics
    /// If there is none.
    pub fn run(&mut self, line: &str) -> Value {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.call(&words).value
    }

    /// Sends a command and takes its answer.
    ///
    /// # Panics
    /// If there is none.
    pub fn call<A: AsRef<[u8]>>(&mut self, args: &[A]) -> Answer {
        let answer = self.send(args).and_then(|()| self.receive());
        answer.unwrap_or_else(|error| {
            let shown: Vec<_> =
                args.iter().map(|arg| String::from_utf8_lossy(arg.as_ref())).collect();
            panic!("no answer to {shown:?} from {:?}: {error}", self.stream.peer_addr())
        })
    }

    /// The document behind `opencluster status`.
    ///
    /// # Panics
    /// If the node gives none.
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

    /// The next answer or push. `UnexpectedEof` if the server has closed the connection.
    pub fn receive(&mut self) -> io::Result<Answer> {
        loop {
            if let Some(answer) = self.take()? {
                return Ok(answer);
            }
            self.fill()?;
        }
    }

    /// The next answer or push, if one comes within `patience`.
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

    /// The socket itself, for a test that misuses it.
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

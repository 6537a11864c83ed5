//! A server that receives callbacks, and accepts all of them. One thread serves all connections: a
//! thread for each would have to be woken for every callback, and the bench would measure that.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Ipv4Addr;
use std::thread;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

const LISTENER: Token = Token(usize::MAX);
const YES: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Starts the server, and returns the URI for callbacks.
pub(super) fn start() -> io::Result<String> {
    let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let uri = format!("http://{}/pop", listener.local_addr()?);
    let poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    thread::spawn(move || serve(poll, &listener).expect("the sink of callbacks has failed"));
    Ok(uri)
}

struct Caller {
    stream: TcpStream,
    /// Bytes read that are not a whole request yet.
    open: Vec<u8>,
}

fn serve(mut poll: Poll, listener: &TcpListener) -> io::Result<()> {
    let mut callers: Vec<Option<Caller>> = Vec::new();
    let mut events = Events::with_capacity(1024);
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            if event.token() == LISTENER {
                accept(&poll, listener, &mut callers)?;
            } else if let Some(caller) = &mut callers[event.token().0]
                && !caller.answer()
            {
                callers[event.token().0] = None; // The caller has closed the connection.
            }
        }
    }
}

fn accept(
    poll: &Poll,
    listener: &TcpListener,
    callers: &mut Vec<Option<Caller>>,
) -> io::Result<()> {
    loop {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        stream.set_nodelay(true)?;
        poll.registry().register(&mut stream, Token(callers.len()), Interest::READABLE)?;
        callers.push(Some(Caller { stream, open: Vec::new() }));
    }
}

impl Caller {
    /// Answers all requests received. Returns false once the connection is closed.
    fn answer(&mut self) -> bool {
        let mut bytes = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => self.open.extend(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        while let Some(length) = request_length(&self.open) {
            self.open.drain(..length);
            // A caller waits for its answer before its next request: there is room for these few bytes.
            if self.stream.write_all(YES).is_err() {
                return false;
            }
        }
        true
    }
}

/// Returns the length of the first request, if it is complete.
fn request_length(bytes: &[u8]) -> Option<usize> {
    let head = bytes.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    let lines = std::str::from_utf8(&bytes[..head]).ok()?.lines();
    let body = lines.filter_map(|line| line.split_once(':')).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let length = head + body.unwrap_or(0);
    (bytes.len() >= length).then_some(length)
}

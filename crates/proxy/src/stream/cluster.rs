//! A connection to a cluster: a socket to each of its nodes, around `fleet::cluster::Session`, which routes
//! the commands. For its user it is one stream.

use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

use fleet::Address;
use fleet::cluster::Session;
use mio::{Registry, Token};
use net::{Stream, must_wait};
use resp::ReplySkipper;

use super::{ServerBuffer, connect};
use crate::servers::{Access, Learnt, resolve};

/// Maximum number of bytes per read from a node.
const CHUNK_BYTES: usize = 64 * 1024;

pub(crate) struct ClusterStream {
    session: Session,
    /// Sockets, indexed by the session's node numbers.
    sockets: Vec<Option<Socket>>,
    registry: Registry,
    /// Token shared by all sockets: an event on any of them means that this stream has something to do.
    token: Token,
    access: Access,
    learnt: Arc<Learnt>,
    seed: Address,
}

struct Socket {
    stream: Stream,
    skipper: ReplySkipper,
    /// The beginning of an incomplete answer.
    input: Vec<u8>,
    output: ServerBuffer,
}

impl ClusterStream {
    /// Starts with the named node, or with one that it reported earlier.
    pub(crate) fn connect(
        address: &Address,
        access: &Access,
        registry: Registry,
        token: Token,
    ) -> io::Result<ClusterStream> {
        let learnt = Arc::clone(&access.learnt);
        let seed = learnt.seed(address);
        let auth = access.auth_command().map(|command| {
            let mut bytes = Vec::new();
            resp::encode_command(&mut bytes, &command);
            bytes
        });
        let session = Session::new(&seed, auth);
        let (seed, access) = (address.clone(), access.clone());
        let mut stream =
            ClusterStream { session, sockets: Vec::new(), registry, token, access, learnt, seed };
        stream.turn().inspect_err(|_| stream.learnt.pass_over(&stream.seed))?;
        Ok(stream)
    }

    pub(super) fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.session.push(from).map_err(io::Error::other)?;
        self.turn()?;
        Ok(from.len())
    }

    pub(super) fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.session.output().is_empty() {
            self.hear().inspect_err(|_| self.learnt.pass_over(&self.seed))?;
        }
        let output = self.session.output();
        if output.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        let count = output.len().min(into.len());
        into[..count].copy_from_slice(&output[..count]);
        output.drain(..count);
        Ok(count)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.turn()
    }

    pub(super) fn deregister(&mut self) {
        for socket in self.sockets.iter_mut().flatten() {
            socket.stream.deregister(&self.registry);
        }
    }

    /// Reads everything available from all nodes, and sends what follows from it.
    fn hear(&mut self) -> io::Result<()> {
        let mut buffer = vec![0; CHUNK_BYTES];
        for node in 0..self.sockets.len() {
            while let Some(socket) = &mut self.sockets[node] {
                match socket.stream.read(&mut buffer) {
                    Ok(0) => self.lose(node, "it closed the connection")?,
                    Ok(count) => self.heard(node, count, &buffer)?,
                    Err(error) if must_wait(&error) => break,
                    Err(error) => self.lose(node, &error.to_string())?,
                }
            }
        }
        self.turn()
    }

    fn heard(&mut self, node: usize, count: usize, buffer: &[u8]) -> io::Result<()> {
        let Some(socket) = &mut self.sockets[node] else { return Ok(()) };
        socket.input.extend_from_slice(&buffer[..count]);
        let mut at = 0;
        loop {
            let end = socket.skipper.next(&socket.input, at).map_err(|error| {
                let text = format!("it does not speak RESP: {error}");
                io::Error::new(ErrorKind::InvalidData, text)
            })?;
            let Some(end) = end else { break };
            let told = self.session.on_reply(node, &socket.input[at..end]);
            told.map_err(io::Error::other)?;
            at = end;
        }
        socket.input.drain(..at);
        self.learnt.learn(&self.seed, self.session.addresses());
        Ok(())
    }

    fn lose(&mut self, node: usize, why: &str) -> io::Result<()> {
        if let Some(mut socket) = self.sockets[node].take() {
            socket.stream.deregister(&self.registry);
        }
        self.session.on_lost(node, why).map_err(io::Error::other)
    }

    /// Connects to the nodes the session wants, and sends its bytes for each node.
    fn turn(&mut self) -> io::Result<()> {
        while let Some((node, address)) = self.session.next_to_connect() {
            if self.sockets.len() <= node {
                self.sockets.resize_with(node + 1, || None);
            }
            match self.open(&address) {
                Ok(socket) => self.sockets[node] = Some(socket),
                Err(error) => self.lose(node, &error.to_string())?,
            }
        }
        for node in 0..self.sockets.len() {
            let Some(socket) = &mut self.sockets[node] else { continue };
            socket.output.bytes_mut().append(&mut self.session.take_outgoing(node));
            if let Err(error) = socket.output.flush(&mut socket.stream) {
                self.lose(node, &error.to_string())?;
            }
        }
        Ok(())
    }

    fn open(&mut self, address: &Address) -> io::Result<Socket> {
        let mut stream = connect(resolve(address)?, address, &self.access)?;
        stream.register(&self.registry, self.token)?;
        let skipper = ReplySkipper::default();
        Ok(Socket { stream, skipper, input: Vec::new(), output: ServerBuffer::default() })
    }
}

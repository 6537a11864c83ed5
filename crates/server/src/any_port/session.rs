//! One client of the any-port: its socket, and those to the nodes on its behalf. All decisions are in
//! `pipeline.rs`; this file carries bytes.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use commands::Args;
use resp::{Limits, Output, Parsed, RequestParser, Span};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::pipeline::{OUTPUT_BYTES_MAX, Pipeline};
use super::routes::NodeAddress;
use super::upstream::UpstreamId;
use super::{Home, LOOK_EVERY};

const READ_BYTES: usize = 64 * 1024;
/// An input buffer larger than this is freed when it is empty.
const INPUT_BYTES_KEPT: usize = 1024 * 1024;
/// Timeout for a node that does not answer, and for a client that does not read its last replies.
const PATIENCE: Duration = Duration::from_secs(30);
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// Pause before a command is sent again: a handover takes milliseconds.
const RETRY_PAUSE: Duration = Duration::from_millis(2);
/// Time limit for retries; after that the client gets the redirect.
const RETRY_WITHIN: Duration = Duration::from_secs(5);
/// Time after which a command that may wait for keys has found none. A client that has closed its side may still read
/// a reply that comes earlier.
const BLOCKED_AFTER: Duration = Duration::from_millis(10);
/// Maximum number of pieces in a gathered write.
const PIECES: usize = 64;

pub(super) struct AnyPortSession<'h, H> {
    home: &'h H,
    client: TcpStream,
    sockets: BTreeMap<UpstreamId, TcpStream>,
    pipeline: Pipeline,
    parser: RequestParser,
    spans: Vec<Span>,
    input: Vec<u8>,
    /// Number of input bytes that have become requests.
    taken: usize,
    /// True if all complete requests of the input are taken.
    needs_more: bool,
    /// True if the client sends nothing more.
    has_ended: bool,
    /// The node whose reply is waited for, and the time since which it has sent nothing.
    waiting: Option<(UpstreamId, Instant)>,
    /// Set while a command may wait for keys at a node: the number of requests answered before it, and the time since
    /// which it may wait.
    blocked: Option<(u64, Instant)>,
    /// The end of the pause before a retry.
    pause_until: Option<Instant>,
    /// The number of requests answered at the first retry of a request, and the time of that retry.
    retrying: Option<(u64, Instant)>,
    /// The time at which the last reply was complete.
    finished: Option<Instant>,
}

impl<'h, H: Home> AnyPortSession<'h, H> {
    pub(super) fn new(home: &'h H, client: TcpStream) -> io::Result<AnyPortSession<'h, H>> {
        client.set_nodelay(true)?;
        client.set_nonblocking(true)?;
        Ok(AnyPortSession {
            home,
            client,
            sockets: BTreeMap::new(),
            pipeline: Pipeline::default(),
            parser: RequestParser::default(),
            spans: Vec::new(),
            input: Vec::new(),
            taken: 0,
            needs_more: true,
            has_ended: false,
            waiting: None,
            blocked: None,
            pause_until: None,
            retrying: None,
            finished: None,
        })
    }

    /// Serves the client until it disconnects or has to be disconnected.
    pub(super) fn run(mut self) {
        // An error here can be reported to no one.
        while self.turn().unwrap_or(false) {}
    }

    /// Makes all possible progress, then waits for a socket. Returns false at the end.
    fn turn(&mut self) -> io::Result<bool> {
        self.take_requests();
        self.connect();
        let pipeline = &self.pipeline;
        self.sockets.retain(|id, _| pipeline.upstreams().any(|(open, _)| open == *id));
        self.write_to_nodes();
        self.write_to_client()?;
        if self.pipeline.is_finished() {
            let since = *self.finished.get_or_insert_with(Instant::now);
            if self.pipeline.output.is_empty() || since.elapsed() > PATIENCE {
                return Ok(false);
            }
        }
        self.note_blocked();
        if self.home.is_stopping() && (self.pipeline.is_idle() || self.blocked.is_some()) {
            return Ok(false);
        }
        self.wait()?;
        Ok(true)
    }

    /// Gives requests to the pipeline, as many as it accepts.
    fn take_requests(&mut self) {
        if self.pipeline.tied().is_some() {
            return self.forward_raw();
        }
        while !self.needs_more && self.pipeline.wants_request() {
            self.spans.clear();
            let limits = if self.home.wants_password() && !self.pipeline.has_credentials() {
                Limits::BEFORE_AUTH
            } else {
                Limits::FULL
            };
            let parsed = self.parser.next(&mut self.input, self.taken, &limits, &mut self.spans);
            match parsed {
                Ok(Parsed::Request { end, args }) => {
                    self.taken = end;
                    if args > 0 {
                        let args = Args::new(&self.input, &self.spans);
                        if resp::is_http(args.at(0)) {
                            return self.pipeline.abandon();
                        }
                        self.pipeline.request(self.home.table(), args, self.home);
                    }
                    if self.pipeline.tied().is_some() {
                        return self.forward_raw();
                    }
                }
                Ok(Parsed::Incomplete { .. }) => self.drop_taken(),
                Err(error) => self.pipeline.refuse_rest(error.reply(), self.home),
            }
        }
    }

    /// Drops the consumed input; the incomplete rest is kept until more arrives.
    fn drop_taken(&mut self) {
        self.input.drain(..self.taken);
        self.taken = 0;
        self.needs_more = true;
        if self.input.is_empty() && self.input.capacity() > INPUT_BYTES_KEPT {
            self.input = Vec::new();
        }
        if self.has_ended || self.input.len() as u64 > self.home.query_bytes_max() {
            self.pipeline.end_input();
        }
    }

    /// Passes a subscribed client's bytes to its node unchanged.
    fn forward_raw(&mut self) {
        let upstream = self.pipeline.tied().and_then(|id| self.pipeline.upstream(id));
        let Some(upstream) = upstream else { return };
        if upstream.unsent.len() < OUTPUT_BYTES_MAX {
            upstream.unsent.extend_from_slice(&self.input[self.taken..]);
            self.input.clear();
            self.taken = 0;
            self.needs_more = true;
            if self.has_ended {
                self.pipeline.end_input();
            }
        }
    }

    fn connect(&mut self) {
        while let Some((id, address)) = self.pipeline.next_unconnected() {
            match connect(&address) {
                Ok(socket) => {
                    self.sockets.insert(id, socket);
                }
                Err(_) => self.pipeline.unreachable(id, self.home),
            }
        }
    }

    fn write_to_nodes(&mut self) {
        let mut lost = Vec::new();
        for (id, socket) in &mut self.sockets {
            let Some(upstream) = self.pipeline.upstream(*id) else { continue };
            if write(socket, &mut upstream.unsent).is_err() {
                lost.push(*id);
            }
        }
        for id in lost {
            self.lose(id);
        }
    }

    fn write_to_client(&mut self) -> io::Result<()> {
        write(&mut self.client, &mut self.pipeline.output)
    }

    fn lose(&mut self, id: UpstreamId) {
        self.sockets.remove(&id);
        self.pipeline.lost(id, self.home);
    }

    /// Waits until a socket is ready, and reads.
    fn wait(&mut self) -> io::Result<()> {
        self.look_for_the_silent();
        let (wants_input, timeout) = (self.wants_input(), self.timeout());
        let mut ready = Vec::new();
        {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, wants_input);
            flags.set(PollFlags::OUT, !self.pipeline.output.is_empty());
            flags.set(PollFlags::RDHUP, self.is_waiting_for_keys());
            let mut ids = vec![None];
            let mut fds = vec![PollFd::new(&self.client, flags)];
            for (id, socket) in &self.sockets {
                let flags = self.interest(*id);
                if !flags.is_empty() {
                    ids.push(Some(*id));
                    fds.push(PollFd::new(socket, flags));
                }
            }
            match poll(&mut fds, Some(&timeout)) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            ready.extend(ids.into_iter().zip(fds.iter().map(PollFd::revents)));
        }
        for (id, flags) in ready {
            match id {
                None => self.on_client(flags, wants_input)?,
                Some(id) => self.on_node(id, flags),
            }
        }
        if self.pause_until.is_some_and(|until| Instant::now() >= until) {
            self.pause_until = None;
            self.retry();
        }
        Ok(())
    }

    /// Sends the oldest request again, unless that has been tried for too long.
    fn retry(&mut self) {
        let answered = self.pipeline.answered();
        let since = match self.retrying {
            Some((number, since)) if number == answered => since,
            Some(_) | None => Instant::now(),
        };
        self.retrying = Some((answered, since));
        let waited = self.blocked.map(|(_, since)| since.elapsed());
        if since.elapsed() > RETRY_WITHIN && waited.is_none() {
            self.pipeline.give_up(self.home);
        } else {
            self.pipeline.retry(waited.unwrap_or_default(), self.home);
        }
    }

    /// Notes since when the oldest command may wait for keys.
    fn note_blocked(&mut self) {
        let answered = self.pipeline.answered();
        let same = self.blocked.filter(|(before, _)| *before == answered);
        let is_blocked = self.pipeline.is_blocked();
        self.blocked = is_blocked.then(|| same.unwrap_or_else(|| (answered, Instant::now())));
    }

    /// Returns whether the oldest command waits for keys at its node, as far as can be told.
    fn is_waiting_for_keys(&self) -> bool {
        self.blocked.is_some_and(|(_, since)| since.elapsed() >= BLOCKED_AFTER)
    }

    fn wants_input(&self) -> bool {
        let has_room = match self.pipeline.tied() {
            Some(_) => true,
            None => self.pipeline.wants_request(),
        };
        self.needs_more && has_room && !self.has_ended
    }

    /// Returns the events of a node's socket that matter now.
    fn interest(&self, id: UpstreamId) -> PollFlags {
        let mut flags = PollFlags::empty();
        for (open, upstream) in self.pipeline.upstreams() {
            if open == id {
                flags.set(PollFlags::OUT, !upstream.unsent.is_empty());
                // An idle connection is read to notice that the node has closed it.
                let is_read = self.pipeline.reads_from() == Some(id);
                flags.set(PollFlags::IN, is_read || self.is_spare(id));
            }
        }
        flags
    }

    /// Returns true if no reply from the connection is needed.
    fn is_spare(&self, id: UpstreamId) -> bool {
        let mut upstreams = self.pipeline.upstreams();
        self.pipeline.tied() != Some(id)
            && upstreams.any(|(open, upstream)| open == id && !upstream.owes())
    }

    fn timeout(&mut self) -> Timespec {
        let has_work =
            !self.needs_more && self.pipeline.tied().is_none() && self.pipeline.wants_request();
        let timeout = if has_work {
            Duration::ZERO
        } else if self.pipeline.is_pausing() {
            let now = Instant::now();
            let until = *self.pause_until.get_or_insert(now + RETRY_PAUSE);
            until.saturating_duration_since(now)
        } else if self.blocked.is_some() && !self.is_waiting_for_keys() {
            BLOCKED_AFTER
        } else {
            LOOK_EVERY
        };
        Timespec::try_from(timeout).expect("less than a second fits")
    }

    /// Drops a node that has owed a reply for too long.
    fn look_for_the_silent(&mut self) {
        let wanted = self.pipeline.reads_from().filter(|_| self.pipeline.tied().is_none());
        match (wanted, self.waiting) {
            (None, _) => self.waiting = None,
            (Some(id), Some((waited, since))) if id == waited => {
                // A node that serves the slot may keep a command waiting for as long as it likes.
                if self.pipeline.is_blocked() && !self.pipeline.has_moved_on(self.home) {
                    self.waiting = Some((id, Instant::now()));
                } else if since.elapsed() > PATIENCE {
                    self.lose(id);
                }
            }
            (Some(id), _) => self.waiting = Some((id, Instant::now())),
        }
    }

    fn on_client(&mut self, flags: PollFlags, wants_input: bool) -> io::Result<()> {
        if flags.contains(PollFlags::RDHUP) {
            // Nobody will read what the waiting command would take: the node must notice.
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if wants_input && flags.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            return self.read_from_client();
        }
        if flags.intersects(PollFlags::HUP | PollFlags::ERR) {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }

    fn read_from_client(&mut self) -> io::Result<()> {
        let old = self.input.len();
        self.input.resize(old + READ_BYTES, 0);
        let read = self.client.read(&mut self.input[old..]);
        self.input.truncate(old + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => self.has_ended = true,
            Ok(_) => {}
            Err(error) if is_early(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
        self.needs_more = false;
        Ok(())
    }

    fn on_node(&mut self, id: UpstreamId, flags: PollFlags) {
        let broken = flags.intersects(PollFlags::HUP | PollFlags::ERR);
        let is_idle = self.pipeline.upstream(id).is_some_and(|upstream| upstream.is_idle());
        let is_read = self.pipeline.reads_from() == Some(id) || self.is_spare(id);
        if is_idle && self.pipeline.tied() != Some(id) {
            // No reply is due: anything that arrives means that the connection has ended.
            if broken || flags.contains(PollFlags::IN) {
                self.lose(id);
            }
        } else if is_read && (broken || flags.contains(PollFlags::IN)) {
            self.read_from_node(id);
        } else if broken {
            self.lose(id);
        }
    }

    fn read_from_node(&mut self, id: UpstreamId) {
        let Some(socket) = self.sockets.get_mut(&id) else { return };
        let mut bytes = vec![0; READ_BYTES];
        match socket.read(&mut bytes) {
            Ok(0) => self.lose(id),
            Ok(count) => {
                if self.pipeline.reads_from() == Some(id) {
                    self.waiting = Some((id, Instant::now()));
                }
                self.pipeline.receive(id, &bytes[..count], self.home);
            }
            Err(error) if is_early(&error) => {}
            Err(_) => self.lose(id),
        }
    }
}

fn connect(address: &NodeAddress) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for addr in (address.host.as_str(), address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&addr, CONNECT_WITHIN) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                socket.set_nonblocking(true)?;
                return Ok(socket);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Writes as much as the socket accepts.
fn write(socket: &mut TcpStream, output: &mut Output) -> io::Result<()> {
    while !output.is_empty() {
        let written = {
            let chunks = output.chunks(output.mark()).take(PIECES);
            let pieces: Vec<IoSlice<'_>> = chunks.map(IoSlice::new).collect();
            socket.write_vectored(&pieces)
        };
        match written {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => output.advance(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if is_early(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    output.trim(READ_BYTES);
    Ok(())
}

/// Returns true if the socket is only not ready yet.
fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

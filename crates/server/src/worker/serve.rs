//! A connection's part in a round (`round.rs`): the worker reads its input, runs it batch by batch, and
//! sends the replies.

use std::io::{self, IoSlice, Write};

use commands::{Args, Request};
use net::Stream;
use resp::{Limits, Output, Parsed, Reply, Span};
use smallvec::SmallVec;

use super::connection::Connection;
use super::execute::EarlyLocks;
use super::timing::BatchTime;
use super::{READ_BYTES, Worker};
use crate::counters::count;
use crate::keyspace::Keyspace;

/// Maximum number of bytes of a large request that are read at once.
const LARGE_READ_BYTES: usize = 1024 * 1024;
/// Maximum number of commands parsed, looked up and prefetched before the first of them runs.
pub(super) const BATCH_MAX: usize = 32;
/// Capacity that the list of arguments keeps between turns.
const SPANS_MAX: usize = 4_096;
/// Maximum number of empty outputs kept for the next round.
const SPARES_MAX: usize = 256;
/// Memory that an output keeps when it is empty.
const SPARE_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of pieces in one vectored write.
const PIECES_MAX: usize = 64;

/// The connection is to be closed; no error is reported.
pub(crate) struct Closed;

/// The treatment of the rest of a connection's input.
enum InputRest {
    /// Keep it: it is the beginning of a request.
    Keep,
    /// Drop it: the connection is closing.
    Forget,
    /// Run it later: the client must read its replies first, or a request or a publisher waits.
    PutOff,
}

impl Worker<'_> {
    /// Sends the round's replies of all connections, one after the other. A reply sent while other
    /// connections are still being read would wake its client alone; this way clients wake up together.
    pub(super) fn send_replies(&mut self) {
        let mut to_send = core::mem::take(&mut self.to_send);
        let may_serve = to_send.is_empty() || self.shared.data.lease.is_valid();
        for index in to_send.drain(..) {
            let Some(connection) = self.connections.get_mut(index) else { continue };
            // Without a lease another node may have served meanwhile: the reply may be wrong.
            let aborted = connection.gate.check_lease(may_serve).is_err();
            if aborted || self.finish(index).is_err() {
                self.close(index);
            }
        }
        self.to_send = to_send;
    }

    fn finish(&mut self, index: usize) -> Result<(), Closed> {
        // Before the replies: a client that has seen one may ask another thread about this connection.
        self.connections[index].update_card(self.env.now);
        self.flush(index)?;
        let connection = &self.connections[index];
        if connection.session.closing && !connection.has_unsent() {
            return Err(Closed);
        }
        if !connection.output.is_empty() && self.is_over(index) {
            return Err(Closed);
        }
        let connection = &self.connections[index];
        // A waiting connection is resumed by an event of its own.
        if connection.readiness.readable
            && connection.waiting.is_none()
            && !connection.has_much_unread()
        {
            self.again.push(index);
        }
        if !connection.output.is_empty() {
            connection.client.left_unread(connection.output.len());
        }
        Ok(())
    }

    /// Reads once, behind the input left over from earlier, and runs all complete requests.
    pub(super) fn read_on(&mut self, index: usize) -> Result<(), Closed> {
        let mut input = core::mem::take(&mut self.connections[index].input);
        let old = input.len();
        input.resize(old + (old / 2).clamp(READ_BYTES, LARGE_READ_BYTES), 0);
        let filled = old + self.read(index, &mut input[old..])?;
        input.truncate(filled);
        let (used, rest) = self.run_all(index, &mut input);
        match rest {
            InputRest::Forget => input = Vec::new(),
            InputRest::Keep | InputRest::PutOff => drop(input.drain(..used)),
        }
        if input.len() as u64 > self.settings.client_query_buffer_limit {
            return Err(Closed);
        }
        if input.is_empty() {
            input = Vec::new();
        }
        self.connections[index].input = input;
        Ok(())
    }

    /// Runs all complete requests in `bytes`, and keeps the rest.
    pub(super) fn run_fresh(&mut self, index: usize, bytes: &mut [u8]) {
        let (used, rest) = self.run_all(index, bytes);
        if !matches!(rest, InputRest::Forget) {
            self.connections[index].input = bytes[used..].to_vec();
        }
    }

    /// Reads as much as fits. Nothing to read is no error; the end of the stream is.
    pub(super) fn read(&mut self, index: usize, into: &mut [u8]) -> Result<usize, Closed> {
        let connection = &mut self.connections[index];
        let read = connection.stream.read_noting(into, &mut connection.readiness);
        let filled = read.map_err(|_| Closed)?;
        connection.last_active = self.env.now;
        count(&self.shared.counters.threads[self.number].bytes_in, filled as u64);
        Ok(filled)
    }

    /// Runs the requests in `bytes`, and returns how far it came.
    fn run_all(&mut self, index: usize, bytes: &mut [u8]) -> (usize, InputRest) {
        let mut spans = core::mem::take(&mut self.spans);
        let done = self.run_batches(index, bytes, &mut spans);
        spans.clear();
        spans.shrink_to(SPANS_MAX);
        self.spans = spans;
        done
    }

    fn run_batches(
        &mut self,
        index: usize,
        bytes: &mut [u8],
        spans: &mut Vec<Span>,
    ) -> (usize, InputRest) {
        let mut at = 0;
        loop {
            if self.connections[index].has_much_unread() {
                // If the client reads it all at once, epoll will not report the socket again.
                self.connections[index].readiness.readable = true;
                return (at, InputRest::PutOff);
            }
            if self.must_wait(index) {
                self.connections[index].readiness.readable = true;
                return (at, InputRest::PutOff);
            }
            spans.clear();
            // A command of this round may have started a pause.
            self.paused = self.shared.pauses.scope(self.env.now);
            let rules = self.rules(index);
            let connection = &mut self.connections[index];
            let parsed = rules.parse_batch(index, connection, bytes, at, spans);
            self.run_batch(bytes, spans, &parsed.jobs);
            at = parsed.end;
            let connection = &mut self.connections[index];
            if connection.waiting.is_some() {
                connection.readiness.readable = true;
                return (at, InputRest::PutOff);
            }
            if connection.session.closing {
                return (at, InputRest::Forget);
            }
            match parsed.then {
                BatchEnd::More => {}
                BatchEnd::Wait => return (at, InputRest::Keep),
                BatchEnd::Refuse(text) => {
                    let protocol = connection.session.protocol;
                    Reply::new(&mut connection.output, protocol).error(text);
                    connection.session.closing = true;
                    return (at, InputRest::Forget);
                }
            }
        }
    }

    /// Returns how a connection's requests are read. Unauthenticated clients get small limits and no batching:
    /// the next request may be AUTH.
    #[inline]
    pub(super) fn rules(&self, index: usize) -> Rules {
        let unknown = self.env.password_required && !self.connections[index].session.authenticated;
        let limits = if unknown { Limits::BEFORE_AUTH } else { Limits::FULL };
        Rules {
            limits: Limits { bulk_bytes_max: self.env.string_bytes_max, ..limits },
            one_by_one: unknown,
        }
    }

    /// Runs a batch: looks up all its commands, prefetches the memory they need, then runs one by one.
    pub(super) fn run_batch(&mut self, bytes: &[u8], spans: &[Span], jobs: &[Job]) {
        let shared = self.shared;
        let is_in_cluster = !self.env.cluster.serves_all();
        let mut requests: SmallVec<[Request<'_>; BATCH_MAX]> = SmallVec::new();
        let mut from = 0;
        for job in jobs {
            let args = Args::new(bytes, &spans[from..from + job.args]);
            from += job.args;
            let request = Request::prepare(args, &shared.table, &shared.data.keyspace.seed);
            if let Some(key) = &request.key {
                shared.data.keyspace.prefetch_slot(key);
                if is_in_cluster {
                    shared.data.keyspace.prefetch_behind(key);
                }
            }
            requests.push(request);
        }
        let mut held = if requests.len() > 1 {
            lock_early(&shared.data.keyspace, &requests)
        } else {
            EarlyLocks::new()
        };
        if !shared.watching.monitors.is_empty() {
            self.show_to_monitors(jobs, &requests);
        }
        let mut time = BatchTime::start();
        let mut place = 0;
        for jobs in jobs.chunk_by(|one, other| one.index == other.index) {
            let end = place + jobs.len();
            self.run_for(jobs[0].index, place, &requests[place..end], &mut held, &mut time);
            place = end;
        }
        self.note_batch(jobs, &requests, time.end());
        self.post();
        count(&shared.counters.threads[self.number].commands, requests.len() as u64);
    }

    /// Sends the output that may leave. The part that the socket does not take stays for the next turn.
    pub(super) fn flush(&mut self, index: usize) -> Result<(), Closed> {
        let connection = &mut self.connections[index];
        let limit = connection.gate.limit(connection.output.mark());
        let sent = send(&mut connection.stream, &mut connection.output, limit)?;
        count(&self.shared.counters.threads[self.number].bytes_out, sent);
        if connection.output.is_empty() {
            let mut spare = core::mem::take(&mut connection.output);
            spare.trim(SPARE_BYTES_MAX);
            if spare.capacity() > 0 && self.spares.len() < SPARES_MAX {
                self.spares.push(spare);
            }
        }
        Ok(())
    }
}

/// Takes the locks of a batch that are free, and prefetches the memory its commands need: first all
/// entries, then all items, so that the waits for memory overlap.
#[inline]
fn lock_early<'s>(keyspace: &'s Keyspace, requests: &[Request<'_>]) -> EarlyLocks<'s> {
    let mut held: EarlyLocks<'s> = SmallVec::new();
    for request in requests {
        let key = request.key.as_ref().filter(|_| request.has_one_key());
        let guard = key.and_then(|key| keyspace.try_lock(key.slot()));
        if let (Some(key), Some(state)) = (key, &guard) {
            state.table().prefetch_entry(key);
        }
        held.push(guard);
    }
    for (request, guard) in requests.iter().zip(&held) {
        if let (Some(key), Some(state)) = (&request.key, guard) {
            state.table().prefetch_item(key);
        }
    }
    held
}

fn send(stream: &mut Stream, output: &mut Output, until: resp::Mark) -> Result<u64, Closed> {
    let mut sent = 0;
    loop {
        let wrote = {
            let mut pieces: SmallVec<[IoSlice<'_>; 8]> = SmallVec::new();
            pieces.extend(output.chunks(until).take(PIECES_MAX).map(IoSlice::new));
            match pieces.as_slice() {
                [] => return stream.flush().map(|()| sent).map_err(|_| Closed),
                [piece] => stream.write(piece),
                several => stream.write_vectored(several),
            }
        };
        match wrote {
            Ok(0) => return Err(Closed),
            Ok(count) => {
                output.advance(count);
                sent += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(sent),
            Err(_) => return Err(Closed),
        }
    }
}

/// A request of a batch: the index of its connection, and the number of its arguments.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub index: usize,
    pub args: usize,
}

/// The current rules for reading a connection's requests.
pub(super) struct Rules {
    pub limits: Limits,
    pub one_by_one: bool,
}

/// A batch of one connection's requests in a buffer.
pub(super) struct Batch {
    pub jobs: SmallVec<[Job; BATCH_MAX]>,
    /// The end of the last request.
    end: usize,
    then: BatchEnd,
}

enum BatchEnd {
    /// The batch is full; there may be more.
    More,
    /// The rest of the next request has not come yet.
    Wait,
    /// The bytes that follow are no request; the text is the error reply.
    Refuse(Vec<u8>),
}

impl Rules {
    fn parse_batch(
        &self,
        index: usize,
        connection: &mut Connection,
        bytes: &mut [u8],
        from: usize,
        spans: &mut Vec<Span>,
    ) -> Batch {
        let mut batch = Batch { jobs: SmallVec::new(), end: from, then: BatchEnd::More };
        let batch_max = if self.one_by_one { 1 } else { BATCH_MAX };
        while batch.jobs.len() < batch_max {
            match connection.parser.next(bytes, batch.end, &self.limits, spans) {
                Ok(Parsed::Request { end, args }) => {
                    batch.end = end;
                    if args > 0 {
                        batch.jobs.push(Job { index, args });
                    } else if self.one_by_one {
                        break;
                    }
                }
                Ok(Parsed::Incomplete { .. }) => {
                    batch.then = BatchEnd::Wait;
                    break;
                }
                Err(error) => {
                    batch.then = BatchEnd::Refuse(error.reply());
                    break;
                }
            }
        }
        batch
    }
}

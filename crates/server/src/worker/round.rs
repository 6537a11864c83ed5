//! A round of a worker: it reads all ready connections, then runs their requests, then (in `serve.rs`)
//! sends their replies. So the requests of many connections form one batch, whose waits for memory
//! overlap as those of a pipeline do.

use core::mem::take;

use resp::{Parsed, Span};
use smallvec::SmallVec;

use super::serve::{BATCH_MAX, Job};
use super::{READ_BYTES, Worker};

/// The range of the round's buffer that holds the input of one connection.
pub(super) struct Region {
    index: usize,
    start: usize,
    end: usize,
}

impl Worker<'_> {
    /// Serves the connections in `ready`, each of which may be named more than once.
    pub(super) fn serve_all(&mut self, ready: &mut Vec<usize>) {
        self.round += 1;
        let mut buffer = take(&mut self.buffer);
        let mut regions = take(&mut self.regions);
        let mut free = 0;
        for index in ready.drain(..) {
            if !self.begin(index) {
                continue;
            }
            self.to_send.push(index);
            if !self.connections[index].input.is_empty() {
                if self.read_on(index).is_err() {
                    self.close(index);
                }
                continue;
            }
            if buffer.len() - free < READ_BYTES {
                self.run_regions(&mut buffer, &mut regions);
                free = 0;
            }
            match self.read(index, &mut buffer[free..free + READ_BYTES]) {
                Ok(filled) => {
                    regions.push(Region { index, start: free, end: free + filled });
                    free += filled;
                }
                Err(_) => self.close(index),
            }
        }
        self.run_regions(&mut buffer, &mut regions);
        self.buffer = buffer;
        self.regions = regions;
    }

    /// Begins a connection's turn, and returns whether the connection is to be read now.
    fn begin(&mut self, index: usize) -> bool {
        let Some(connection) = self.connections.get_mut(index) else { return false };
        if connection.round == self.round {
            return false;
        }
        connection.round = self.round;
        connection.readiness.readable = true;
        if connection.has_unsent() && self.flush(index).is_err() {
            self.close(index);
            return false;
        }
        let connection = &self.connections[index];
        if connection.session.closing {
            if !connection.has_unsent() {
                self.close(index);
            }
            return false;
        }
        if connection.waiting.is_some() {
            if connection.session.key_wait.is_some() && connection.readiness.hung_up {
                self.close(index); // It must not take an element that nobody will read.
            }
            return false; // An event of its own resumes it.
        }
        if connection.has_much_unread() {
            return false; // epoll reports it again when it is writable.
        }
        if self.must_wait(index) {
            self.awaiting_delivery.push(index);
            return false;
        }
        true
    }

    /// Runs the requests that were read: single requests of several connections together, the rest
    /// connection by connection.
    fn run_regions(&mut self, buffer: &mut [u8], regions: &mut Vec<Region>) {
        let mut spans = take(&mut self.spans);
        let mut jobs: SmallVec<[Job; BATCH_MAX]> = SmallVec::new();
        regions.retain(|region| {
            let Some(job) = self.single(buffer, region, &mut spans) else { return true };
            jobs.push(job);
            if jobs.len() == BATCH_MAX {
                self.run_batch(buffer, &spans, &jobs);
                jobs.clear();
                spans.clear();
            }
            false
        });
        if !jobs.is_empty() {
            self.run_batch(buffer, &spans, &jobs);
            spans.clear();
        }
        self.spans = spans;
        for region in regions.drain(..) {
            self.run_fresh(region.index, &mut buffer[region.start..region.end]);
        }
    }

    /// Returns the request of a region that holds exactly one, and pushes its arguments to `spans`.
    /// Any other region is left to be parsed again.
    fn single(&mut self, buffer: &mut [u8], region: &Region, spans: &mut Vec<Span>) -> Option<Job> {
        let before = spans.len();
        let rules = self.rules(region.index);
        // An inline command is unquoted in place, so it can be parsed only once.
        if rules.one_by_one || buffer.get(region.start) != Some(&b'*') {
            return None;
        }
        let parser = &mut self.connections[region.index].parser;
        match parser.next(&mut buffer[..region.end], region.start, &rules.limits, spans) {
            Ok(Parsed::Request { end, args }) if end == region.end && args > 0 => {
                Some(Job { index: region.index, args })
            }
            Ok(_) | Err(_) => {
                spans.truncate(before);
                None
            }
        }
    }
}

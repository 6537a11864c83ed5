//! Runs a plan and returns a tally: one thread drives all its connections from one epoll loop.
//!
//! Closed loop: each connection sends `pipeline` requests, waits for all replies, sends again; this measures a
//! server's cost and its maximum throughput. Open loop: requests are sent by the schedule of `pace.rs`, independent
//! of the replies; this measures how long users wait. Called by both binaries.
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use crate::connection::Connection;
use crate::keys::{KeySpace, Popularity};
use crate::pace::{Nanos, Pacer};
use crate::process::{self, Core};
use crate::request::{Batch, Operation, Requests};
use crate::tally::Tally;

/// Size of the one buffer for all replies: larger than a pipeline's worth of small replies, small
/// enough to stay in the second-level cache.
const SCRATCH_BYTES_MIN: usize = 128 * 1024;
/// Time without a reply after which a server counts as dead.
const SILENCE_MAX: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub address: SocketAddr,
    pub connections: usize,
    pub requests: Requests,
    pub style: Loop,
    pub seed: u64,
}

impl Plan {
    /// Returns the plan that SETs each key of this one once, if run for as many requests.
    pub fn filling(self) -> Plan {
        let keys = KeySpace { popularity: Popularity::Sequence, ..self.requests.keys };
        let requests = Requests { operation: Operation::Set, keys, ..self.requests };
        Plan { requests, style: Loop::Closed { pipeline: 64 }, ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loop {
    Closed { pipeline: usize },
    Open { per_second: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    Elapsed(Duration),
    Requests(u64),
}

/// Open connections, ready to run a plan repeatedly.
pub struct Load {
    plan: Plan,
    poll: Poll,
    connections: Vec<Connection>,
    batch: Batch,
    scratch: Vec<u8>,
}

impl Load {
    pub fn connect(plan: Plan) -> io::Result<Load> {
        assert!(plan.connections > 0, "a load needs a connection");
        let poll = Poll::new()?;
        let mut connections = Vec::with_capacity(plan.connections);
        for index in 0..plan.connections {
            let mut connection = Connection::open(plan.address)?;
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(connection.stream(), Token(index), interest)?;
            connections.push(connection);
        }
        let longest = match plan.style {
            Loop::Closed { pipeline } => pipeline,
            Loop::Open { .. } => 1,
        };
        Ok(Load {
            batch: Batch::new(plan.requests, longest, plan.seed),
            scratch: vec![0; SCRATCH_BYTES_MIN.max(2 * plan.requests.value_bytes)],
            plan,
            poll,
            connections,
        })
    }

    /// Sends requests until the limit, and returns when all are answered.
    pub fn run(&mut self, until: Until) -> io::Result<Tally> {
        match self.plan.style {
            Loop::Closed { pipeline } => Closed::new(self, pipeline, until).run(),
            Loop::Open { per_second } => Open::new(self, per_second, until).run(),
        }
    }

    fn fail(&self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("{}: {error}", self.plan.address))
    }
}

/// Runs each load on its own thread and core, and merges their tallies.
pub fn run_together(loads: Vec<(Load, Core)>, until: Until) -> io::Result<Tally> {
    let threads: Vec<_> = loads
        .into_iter()
        .map(|(mut load, core)| {
            std::thread::spawn(move || {
                process::pin_this_thread(&[core])?;
                load.run(until)
            })
        })
        .collect();
    let mut all = Tally::default();
    for thread in threads {
        all.merge(thread.join().expect("a load thread does not panic")?);
    }
    Ok(all)
}

struct Closed<'a> {
    load: &'a mut Load,
    pipeline: u64,
    started: Instant,
    /// Number of requests that may still be sent; after `last_send`, none is.
    left: u64,
    last_send: Nanos,
    waiting: usize,
    tally: Tally,
}

impl<'a> Closed<'a> {
    fn new(load: &'a mut Load, pipeline: usize, until: Until) -> Closed<'a> {
        let (left, last_send) = match until {
            Until::Elapsed(time) => (u64::MAX, Nanos(time.as_nanos() as u64)),
            Until::Requests(count) => (count, Nanos(u64::MAX)),
        };
        let tally = Tally::default();
        let started = Instant::now();
        Closed { load, pipeline: pipeline as u64, started, left, last_send, waiting: 0, tally }
    }

    fn run(mut self) -> io::Result<Tally> {
        let mut events = Events::with_capacity(1024);
        for index in 0..self.load.connections.len() {
            let now = self.now();
            self.send(index, now).map_err(|error| self.load.fail(&error))?;
        }
        while self.waiting > 0 {
            self.load.poll.poll(&mut events, Some(SILENCE_MAX))?;
            if events.is_empty() {
                return Err(self.load.fail(&io::ErrorKind::TimedOut.into()));
            }
            for event in &events {
                self.turn(event.token().0).map_err(|error| self.load.fail(&error))?;
            }
        }
        self.tally.elapsed = self.started.elapsed();
        Ok(self.tally)
    }

    fn turn(&mut self, index: usize) -> io::Result<()> {
        let connection = &mut self.load.connections[index];
        connection.flush()?;
        let replies = connection.receive(&mut self.load.scratch, &mut self.tally)?;
        if replies == 0 {
            return Ok(());
        }
        let now = self.now();
        let connection = &mut self.load.connections[index];
        take_replies(connection, replies, now, &mut self.tally)?;
        if connection.awaited.is_empty() {
            self.waiting -= 1;
            self.send(index, now)?;
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self, index: usize, now: Nanos) -> io::Result<()> {
        let requests = self.pipeline.min(self.left);
        if requests == 0 || now >= self.last_send {
            return Ok(());
        }
        let connection = &mut self.load.connections[index];
        connection.awaited.sent(requests, now);
        connection.send(self.load.batch.next(requests as usize))?;
        self.left -= requests;
        self.waiting += 1;
        Ok(())
    }

    #[inline]
    fn now(&self) -> Nanos {
        Nanos(self.started.elapsed().as_nanos() as u64)
    }
}

struct Open<'a> {
    load: &'a mut Load,
    pacer: Pacer,
    started: Instant,
    next_connection: usize,
    tally: Tally,
}

impl<'a> Open<'a> {
    fn new(load: &'a mut Load, per_second: u64, until: Until) -> Open<'a> {
        let total = match until {
            Until::Elapsed(time) => (time.as_secs_f64() * per_second as f64) as u64,
            Until::Requests(count) => count,
        };
        let pacer = Pacer::new(per_second, total);
        Open { load, pacer, started: Instant::now(), next_connection: 0, tally: Tally::default() }
    }

    /// Spins: a sleep until the next request is due would be off by a timer's slack each time.
    fn run(mut self) -> io::Result<Tally> {
        let mut events = Events::with_capacity(1024);
        let mut heard = Nanos(0);
        while !self.is_done() {
            self.send_due().map_err(|error| self.load.fail(&error))?;
            self.load.poll.poll(&mut events, Some(Duration::ZERO))?;
            let now = self.now();
            for event in &events {
                self.turn(event.token().0).map_err(|error| self.load.fail(&error))?;
                heard = now;
            }
            if now.since(heard) > SILENCE_MAX.as_nanos() as u64 {
                return Err(self.load.fail(&io::ErrorKind::TimedOut.into()));
            }
        }
        self.tally.elapsed = self.started.elapsed();
        Ok(self.tally)
    }

    fn send_due(&mut self) -> io::Result<()> {
        let now = self.now();
        while let Some(intended) = self.pacer.due(now) {
            let connection = &mut self.load.connections[self.next_connection];
            connection.awaited.sent(1, intended);
            connection.send(self.load.batch.next(1))?;
            self.next_connection = (self.next_connection + 1) % self.load.connections.len();
        }
        Ok(())
    }

    fn turn(&mut self, index: usize) -> io::Result<()> {
        let connection = &mut self.load.connections[index];
        connection.flush()?;
        let replies = connection.receive(&mut self.load.scratch, &mut self.tally)?;
        let now = self.now();
        take_replies(&mut self.load.connections[index], replies, now, &mut self.tally)
    }

    fn is_done(&self) -> bool {
        self.pacer.is_done() && self.load.connections.iter().all(|c| c.awaited.is_empty())
    }

    fn now(&self) -> Nanos {
        Nanos(self.started.elapsed().as_nanos() as u64)
    }
}

#[inline]
fn take_replies(
    connection: &mut Connection,
    replies: u64,
    now: Nanos,
    tally: &mut Tally,
) -> io::Result<()> {
    if connection.awaited.answered(replies, now, |nanos, requests| tally.record(nanos, requests)) {
        return Ok(());
    }
    Err(io::Error::other("more replies than requests"))
}

#[cfg(test)]
mod tests;

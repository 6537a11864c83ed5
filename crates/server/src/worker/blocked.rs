//! Connections that wait for keys: BLPOP and others.
//!
//! The command has put its connection in the lines of its keys (`cluster::serving`), and is parked like others
//! (`waiting.rs`), except that only its own events touch it: a key may be ready or the slot has moved away
//! (`Mail::Resume`: the command runs again), its deadline (the reply is a null), CLIENT UNBLOCK, the end of the connection.
//! It leaves the lines when its command is answered, and that wakes the next in line.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use cluster::serving::{WaitNumber, leave_line};
use commands::{Block, KeyWait, Request, UNBLOCKED, Unblock};
use net::Stream;
use resp::Reply;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Worker;
use super::waiting::ParkReason;
use crate::wait_until::WaitUntil;

/// The connections of a worker that wait for keys.
#[derive(Default)]
pub(super) struct BlockedList {
    /// The deadlines, with the indices of their connections.
    deadlines: BTreeSet<(Instant, usize)>,
    /// Connections for which a key may be ready, in the order in which they were woken.
    pub woken: Vec<usize>,
}

impl BlockedList {
    pub(super) fn is_empty(&self) -> bool {
        self.deadlines.is_empty() && self.woken.is_empty()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Takes out a connection whose deadline has passed.
    fn pop_late(&mut self) -> Option<usize> {
        let (deadline, _) = self.deadlines.first()?;
        if *deadline > Instant::now() {
            return None;
        }
        self.deadlines.pop_first().map(|(_, index)| index)
    }
}

impl Worker<'_> {
    /// Parks a request whose command has to wait for keys.
    #[cold]
    pub(super) fn block(&mut self, index: usize, request: &Request<'_>) {
        self.note_handover_wait(index);
        self.park(index, request, ParkReason::Keys, None);
        let connection = &mut self.connections[index];
        let Some(wait) = &connection.session.key_wait else { return };
        if connection.readiness.hung_up {
            self.again.push(index); // Nothing else will report it.
        }
        if connection.key_wait_until.is_some() {
            return; // It goes on waiting, and its deadline stays.
        }
        let until = deadline_of(wait);
        connection.key_wait_until = Some(until);
        connection.client.begin_key_wait(wait.number, until.at().is_some());
        if let Some(deadline) = until.at() {
            self.waits.blocked.deadlines.insert((deadline, index));
        }
    }

    /// Runs the commands again for which a key may be ready, and ends the waits that last too long.
    pub(super) fn resume_blocked(&mut self) {
        for index in core::mem::take(&mut self.waits.blocked.woken) {
            let waiting = self.connections.get(index).and_then(|it| it.waiting.as_ref());
            if waiting.is_none_or(|waiting| waiting.reason != ParkReason::Keys) {
                continue; // Something else holds it up, or it is gone.
            }
            if has_hung_up(&self.connections[index].stream) {
                self.close(index); // Nobody will read the element: the next in line gets it.
            } else {
                self.resume(index);
            }
        }
        while let Some(index) = self.waits.blocked.pop_late() {
            self.unblock(index, Unblock::AsTimeout);
        }
    }

    /// Ends a wait for CLIENT UNBLOCK, unless it has ended already.
    pub(super) fn on_unblock(&mut self, index: usize, number: WaitNumber, how: Unblock) {
        let wait = self.connections.get(index).and_then(|it| it.session.key_wait.as_ref());
        if wait.is_some_and(|wait| wait.number == number) {
            self.unblock(index, how);
        }
    }

    /// Ends the wait of a connection without running its command, and goes on with the requests behind it.
    fn unblock(&mut self, index: usize, how: Unblock) {
        self.end_key_wait(index);
        let connection = self.connections.get_mut(index);
        let Some(mut waiting) = connection.and_then(|it| it.waiting.take()) else { return };
        let Some(args) = waiting.requests.pop_front() else { return };
        let (table, seed) = (&self.shared.table, &self.shared.data.keyspace.seed);
        let request = Request::prepare(args.args(), table, seed);
        let connection = &mut self.connections[index];
        let (session, output) = (&mut connection.session, &mut connection.output);
        let muted = session.begin_muted(output);
        let mut reply = Reply::new(output, session.protocol);
        match how {
            Unblock::AsTimeout => reply.null_array(),
            Unblock::WithError => {
                reply.error(UNBLOCKED.text());
                self.outcome.errors.push(UNBLOCKED);
                self.shared.watching.commands[self.number].failed(request.command);
            }
        }
        if let Some(start) = muted {
            session.end_muted(output, start);
        }
        if request.is_timed_alone() {
            self.note_alone(index, &request, Duration::ZERO);
        }
        self.run_parked(index, &waiting.requests);
    }

    /// Takes a connection out of the lines of its keys, if it is in any: its command is answered, or it is closed.
    pub(super) fn end_key_wait(&mut self, index: usize) {
        let Some(connection) = self.connections.get_mut(index) else { return };
        let Some(wait) = connection.session.key_wait.take() else { return };
        connection.client.take_key_wait();
        let until = connection.key_wait_until.take();
        if let Some(deadline) = until.and_then(WaitUntil::at) {
            self.waits.blocked.deadlines.remove(&(deadline, index));
        }
        for key in &wait.keys {
            leave_line(&self.shared.data, key, wait.wanted, wait.number);
        }
    }
}

/// Returns the end of a wait that begins now. One that the clock cannot name never comes.
fn deadline_of(wait: &KeyWait) -> WaitUntil {
    let deadline = match wait.block {
        Block::For(timeout) => Instant::now().checked_add(timeout),
        Block::Not | Block::ForEver => None,
    };
    deadline.map_or(WaitUntil::ForEver, WaitUntil::At)
}

/// Returns whether the other end has closed the connection, even if there is unread input before its end.
fn has_hung_up(stream: &Stream) -> bool {
    let mut socket = [PollFd::new(stream, PollFlags::RDHUP)];
    let ended = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    match poll(&mut socket, Some(&Timespec::default())) {
        Ok(_) => socket[0].revents().intersects(ended),
        Err(_) => false, // Then reading will notice it.
    }
}

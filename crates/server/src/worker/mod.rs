//! An I/O thread: one epoll loop over its own connections. What is ready is read, parsed, run and
//! answered, connection by connection; nothing is handed to another thread on the way.
//!
//! `serve.rs` has a connection's turn, `execute.rs` one command under its locks, `connection.rs` what
//! a connection keeps between its turns; `publish.rs` and `hear.rs` are the two ends of pub/sub.
//! `waiting.rs` has the commands that cannot run yet, `release.rs` the replies that wait for backups, `links.rs`
//! what other nodes send. `timing.rs` notes how long commands took, `monitor.rs` shows them, `idle.rs` closes
//! idle connections.
mod connection;
mod down;
mod execute;
mod idle;
mod monitor;
mod timing;
mod hear;
mod links;
mod publish;
mod release;
mod round;
mod serve;
mod unread;
mod waiting;
#[cfg(test)]
mod tests;

use core::sync::atomic::Ordering::Relaxed;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cluster::map::{Ack, NodeId};
use cluster::serving::EffectLog;
use commands::settings::Settings;
use commands::{Outcome, PauseScope, Surroundings};
use mio::event::Event;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};
use resp::{Output, Span};
use slab::Slab;
use store::UnixMillis;

use self::connection::Connection;
use self::down::Fence;
use self::links::{Answers, Incoming};
use self::round::Region;
use self::waiting::WaitList;
use crate::accept::{Accepted, configure};
use crate::clients::Place;
use crate::clock;
use crate::data::Later;
use crate::evictor::Evictor;
use crate::mailbox::{Mail, Mailbox};
use crate::prompt::be_prompt;
use crate::pubsub::Branch;
use crate::shared::{Shared, count};
use crate::surroundings::surroundings;

const WAKER: Token = Token(usize::MAX);
const LISTENER: Token = Token(usize::MAX - 1);
/// From here on are the tokens of what is no connection of a client.
const CONNECTIONS_MAX: usize = links::INTAKES;
const EVENTS_MAX: usize = 1_024;
/// How much is read from one connection before the next has its turn.
const READ_BYTES: usize = 64 * 1024;
/// What is read from many connections before their requests run.
const BUFFER_BYTES: usize = 4 * READ_BYTES;
/// The longest sleep: time for idle connections and for stopping to be noticed.
const SLEEP: Duration = Duration::from_millis(100);
/// How long connections wait that have published more than others could deliver.
const BREATH: Duration = Duration::from_millis(1);

pub(crate) struct Worker<'s> {
    number: usize,
    shared: &'s Shared,
    poll: Poll,
    /// Only the first worker listens.
    listener: Option<TcpListener>,
    /// Somebody may wait to be accepted although the system will not say so again.
    accept_again: bool,
    connections: Slab<Connection>,
    /// Connections with more to do although the system will not say so again.
    again: Vec<usize>,
    /// Connections that wait until what they published is delivered.
    patient: Vec<usize>,
    /// Connections that leave much unread, and may not do so for long.
    slow: Vec<usize>,
    /// What CLIENT PAUSE has stopped.
    paused: Option<PauseScope>,
    /// Connections whose requests cannot run yet.
    waits: WaitList,
    /// Primaries that have fallen silent.
    pending: Arc<BTreeSet<NodeId>>,
    /// Writes to a bucket with fewer copies wait.
    min_copies: usize,
    /// Whether replies wait for backups at all.
    waits_for_backups: bool,
    /// Connections whose replies wait for backups.
    holding: Vec<usize>,
    /// The number of the map that was last looked at.
    map_seen: u64,
    /// Whether this node may serve.
    fence: Fence,
    /// Events of writes that are not safe yet.
    later: Later,
    /// The answers to what this node sends, of the links that are this worker's.
    answers: Vec<Answers>,
    /// What other nodes send, of those that are this worker's.
    incoming: Slab<Incoming>,
    /// Of those, the ones with more to do although the system will not say so again.
    intakes_again: Vec<usize>,
    /// When to look for idle connections again.
    idle_due: UnixMillis,
    /// Counts the rounds, so that a connection has one turn in each.
    round: u64,
    /// Where connections without unfinished input are read into.
    buffer: Vec<u8>,
    /// What of it belongs to whom; empty between rounds.
    regions: Vec<Region>,
    /// Empty outputs with their memory, for the connections that have something to say in a round.
    spares: Vec<Output>,
    /// The places of a batch's arguments; empty between turns.
    spans: Vec<Span>,
    /// Connections whose turn is over and whose replies are to be sent.
    answered: Vec<usize>,
    around: Surroundings,
    /// As they were at the beginning of this round.
    settings: Arc<Settings>,
    evictor: Evictor,
    /// Its part of pub/sub.
    branch: Branch,
    outcome: Outcome,
    /// What the command at hand has done; empty between commands.
    effects: EffectLog,
    chance: u64,
}

/// The poll of a worker to be, and the mailbox others reach it by.
pub(crate) fn prepare() -> io::Result<(Poll, Mailbox)> {
    let poll = Poll::new()?;
    let waker = Waker::new(poll.registry(), WAKER)?;
    Ok((poll, Mailbox::new(waker)))
}

impl<'s> Worker<'s> {
    pub(crate) fn new(number: usize, shared: &'s Shared, poll: Poll) -> Worker<'s> {
        let around = surroundings(shared);
        let settings = shared.settings.load_full();
        let branch = Branch::new(shared.mailboxes.len());
        let chance = shared.seed.hash(&number.to_le_bytes());
        Worker {
            number,
            shared,
            poll,
            listener: None,
            accept_again: false,
            connections: Slab::new(),
            again: Vec::new(),
            patient: Vec::new(),
            slow: Vec::new(),
            paused: None,
            waits: WaitList::default(),
            pending: Arc::default(),
            min_copies: 1,
            waits_for_backups: true,
            holding: Vec::new(),
            map_seen: 0,
            fence: Fence::default(),
            later: Later::default(),
            answers: Vec::new(),
            incoming: Slab::new(),
            intakes_again: Vec::new(),
            idle_due: UnixMillis(0),
            round: 0,
            buffer: vec![0; BUFFER_BYTES],
            regions: Vec::new(),
            spares: Vec::new(),
            spans: Vec::new(),
            answered: Vec::new(),
            around,
            settings,
            evictor: Evictor::default(),
            branch,
            outcome: Outcome::default(),
            effects: EffectLog::default(),
            chance,
        }
    }

    /// Runs until the node stops.
    pub(crate) fn run(mut self) {
        be_prompt();
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.shared.is_stopping() {
            if let Err(error) = self.poll.poll(&mut events, Some(self.sleep())) {
                assert_eq!(error.kind(), io::ErrorKind::Interrupted, "epoll failed: {error}");
                continue;
            }
            self.look_around();
            self.notice_new_map();
            self.look_at_lease();
            let mut ready = self.connections_to_resume();
            for event in &events {
                if let Token(index @ ..CONNECTIONS_MAX) = event.token() {
                    self.note_hang_up(index, event);
                    ready.push(index);
                }
            }
            // Behind the connections: a new one may take the place of one that was closed, and what
            // the system says of that place is not said of it.
            for event in &events {
                match event.token() {
                    WAKER => self.read_mail(),
                    LISTENER => self.accept(),
                    Token(token @ links::LINKS..) => self.on_link(links::link_of(token)),
                    Token(token @ links::INTAKES..) => self.on_intake(token - links::INTAKES),
                    Token(_) => {}
                }
            }
            for key in core::mem::take(&mut self.intakes_again) {
                self.on_intake(key);
            }
            if core::mem::take(&mut self.accept_again) {
                self.accept();
            }
            self.resume_waiting();
            self.serve_all(&mut ready);
            self.announce_holding();
            self.shared.data.links.flush();
            self.answer();
            self.release();
            self.hear();
            self.close_idle();
            self.settle();
        }
        self.say_goodbye();
    }

    /// Takes in the time and the settings.
    fn look_around(&mut self) {
        self.around = surroundings(self.shared);
        self.settings = self.shared.settings.load_full();
        let settings = self.around.cluster.map().settings();
        self.waits_for_backups = settings.ack == Ack::Backup;
        self.min_copies = usize::from(settings.min_copies);
        self.pending = self.shared.data.pending.load_full();
    }

    /// What is to be done once for every map.
    fn notice_new_map(&mut self) {
        let number = self.shared.data.map_number();
        if core::mem::replace(&mut self.map_seen, number) != number {
            self.dismiss_strangers();
        }
    }

    /// How long to wait for the system to report anything.
    fn sleep(&self) -> Duration {
        if !self.again.is_empty() || !self.branch.is_quiet() || self.has_unread_intakes() {
            return Duration::ZERO;
        }
        if !self.patient.is_empty() || self.has_intakes() {
            return BREATH;
        }
        if self.waits.is_empty() {
            return SLEEP;
        }
        if self.waits.has_answers() {
            return Duration::ZERO;
        }
        let pause = self.paused.map(|_| self.shared.pauses.left(clock::now()));
        [pause, self.until_deadline()].into_iter().flatten().fold(SLEEP, Duration::min)
    }

    fn connections_to_resume(&mut self) -> Vec<usize> {
        let mut indices = core::mem::take(&mut self.again);
        indices.append(&mut self.patient);
        indices
    }

    fn note_hang_up(&mut self, index: usize, event: &Event) {
        if let Some(connection) = self.connections.get_mut(index) {
            connection.hung_up |= event.is_read_closed();
        }
    }

    /// Closes a connection that somebody else wants closed, and that may be gone.
    fn close_if(&mut self, id: u64, index: usize) {
        if self.connections.get(index).is_some_and(|connection| connection.session.id == id) {
            self.close(index);
        }
    }

    fn read_mail(&mut self) {
        for mail in self.shared.mailboxes[self.number].take() {
            match mail {
                Mail::Listen(listener) => self.listen(listener),
                Mail::Adopt(accepted) => self.adopt(accepted),
                Mail::Close { id, index } => self.close_if(id, index),
                Mail::Resume { id, index } => self.on_answer(id, index),
                Mail::Show { id, index, line } => self.show(id, index, &line),
                Mail::Deliver(message) => self.branch.receive(message),
                Mail::AdoptLink(id, stream) => self.adopt_link(id, stream),
                Mail::AdoptIntake { peer, stream, connection } => {
                    self.adopt_intake(peer, stream, connection);
                }
            }
        }
    }

    fn listen(&mut self, mut listener: TcpListener) {
        let registered = self.poll.registry().register(&mut listener, LISTENER, Interest::READABLE);
        registered.expect("a listening socket can be polled");
        self.listener = Some(listener);
        // Who has come before that is not announced again.
        self.accept_again = true;
    }

    fn accept(&mut self) {
        let Some(listener) = self.listener.take() else { return };
        loop {
            let (stream, address) = match listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Out of descriptors, mostly. The system does not tell twice of who waits: ask again.
                Err(_) => {
                    self.accept_again = true;
                    break;
                }
            };
            let settings = self.shared.settings.load();
            if self.shared.client_count() >= settings.maxclients as usize {
                self.shared.rejected.fetch_add(1, Relaxed);
                serve::refuse(stream);
                continue;
            }
            if configure(&stream, &settings).is_err() {
                continue; // It has gone already.
            }
            self.shared.accepted.fetch_add(1, Relaxed);
            let id = self.shared.next_client.fetch_add(1, Relaxed);
            self.hand_out(Accepted { id, stream, address });
        }
        self.listener = Some(listener);
    }

    /// Gives a new connection to the worker with the fewest.
    fn hand_out(&mut self, accepted: Accepted) {
        let loads = self.shared.connections.iter().map(|count| count.load(Relaxed));
        let (to, _) = loads.enumerate().min_by_key(|(_, load)| *load).expect("there are workers");
        self.shared.connections[to].fetch_add(1, Relaxed);
        if to == self.number {
            self.adopt(accepted);
        } else {
            self.shared.mailboxes[to].send(Mail::Adopt(accepted));
        }
    }

    fn adopt(&mut self, accepted: Accepted) {
        let entry = self.connections.vacant_entry();
        let token = Token(entry.key());
        let place = Place { worker: self.number, index: entry.key() };
        let mut connection = Connection::new(accepted, place, clock::now());
        connection.session.authenticated = !self.around.password_required;
        let interest = Interest::READABLE | Interest::WRITABLE;
        // The system says at once that it is readable, if it is.
        if self.poll.registry().register(&mut connection.stream, token, interest).is_ok() {
            self.shared.clients.enter(Arc::clone(&connection.card));
            entry.insert(connection);
        } else {
            self.shared.connections[self.number].fetch_sub(1, Relaxed);
        }
    }

    fn close(&mut self, index: usize) {
        let mut connection = self.connections.remove(index);
        let _ = self.poll.registry().deregister(&mut connection.stream);
        self.shared.clients.leave(connection.session.id);
        self.shared.watching.monitors.leave(connection.session.id);
        self.stop_listening(index, &connection.session);
        self.shared.connections[self.number].fetch_sub(1, Relaxed);
    }

    /// Carries off what the round's commands have left behind.
    fn settle(&mut self) {
        self.settle_statistics();
        let counters = &self.shared.counters[self.number];
        let outcome = &mut self.outcome;
        count(&counters.hits, core::mem::take(&mut outcome.hits));
        count(&counters.misses, core::mem::take(&mut outcome.misses));
        count(&counters.expired, core::mem::take(&mut outcome.expired));
        count(&counters.evicted, core::mem::take(&mut outcome.evicted));
        count(&counters.changes, core::mem::take(&mut outcome.changes));
        self.shared.memory.grow(core::mem::take(&mut outcome.grown_bytes));
        for garbage in outcome.garbage.drain(..) {
            self.shared.discard(garbage);
        }
    }

    /// Lets the last replies go out before the node stops.
    fn say_goodbye(&mut self) {
        let indices: Vec<usize> = self.connections.iter().map(|(index, _)| index).collect();
        for index in indices {
            let _ = self.flush(index);
        }
    }
}

//! An I/O thread: one epoll loop over its own connections. The worker reads, parses, runs and answers the
//! requests of ready connections, one connection after the other, without handing anything to another thread.
//!
//! `round.rs` reads all ready connections and batches their requests, `serve.rs` handles one connection's part,
//! `execute.rs` one command under its locks; `down.rs` refuses commands without a lease; `connection.rs` is a
//! connection's state between turns. `publish.rs` and `deliver.rs` are the sending and receiving end of pub/sub.
//! `waiting.rs` parks commands that cannot run yet, `blocked.rs` those that wait for keys (BLPOP), `release.rs` holds replies that wait for backups, `links.rs`
//! reads from other nodes. `timing.rs` records how long commands took, `monitor.rs` sends them to monitors,
//! `idle.rs` closes idle connections.
mod blocked;
mod connection;
mod down;
mod execute;
mod idle;
mod monitor;
mod timing;
mod deliver;
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
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use cluster::map::{Ack, NodeId};
use cluster::serving::EffectLog;
use commands::{ClientPort, CommandEnv, Outcome, PauseScope};
use mio::event::Event;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Token};
use net::{Acceptor, Keepalive, LISTENER, Poller, SECOND_LISTENER, Stream, WAKER};
use placement::SplitMix64;
use resp::{Output, Span};
use settings::Settings;
use slab::Slab;
use store::UnixMillis;

use self::connection::Connection;
use self::down::Fence;
use self::links::{Incoming, LinkAnswers};
use self::round::Region;
use self::waiting::WaitList;
use crate::accept::Accepted;
use crate::clients::ConnectionRef;
use crate::clock;
use crate::counters::count;
use crate::data::{Later, SlotSet};
use crate::evictor::Evictor;
use crate::mailbox::{Mail, WorkerMailbox};
use crate::prompt::request_short_time_slices;
use crate::pubsub::Branch;
use crate::shared::Shared;

/// Tokens from here on do not belong to client connections.
const CONNECTIONS_MAX: usize = links::INTAKES;
const EVENTS_MAX: usize = 1_024;
/// Maximum number of bytes read from one connection before the next has its turn.
const READ_BYTES: usize = 64 * 1024;
/// Number of bytes read from many connections before their requests run.
const BUFFER_BYTES: usize = 4 * READ_BYTES;
/// Longest sleep, so that the worker notices idle connections and a stop of the node.
const SLEEP: Duration = Duration::from_millis(100);
/// Sleep while connections wait that have published more than the other workers could deliver.
const BREATH: Duration = Duration::from_millis(1);

pub(crate) struct Worker<'s> {
    number: usize,
    shared: &'s Shared,
    poller: Poller,
    /// Only the first worker listens: on the client port, and on the replica port if there is one.
    acceptor: Acceptor,
    replica_acceptor: Acceptor,
    connections: Slab<Connection>,
    /// Ready connections; epoll is edge-triggered and will not report them again.
    again: Vec<usize>,
    /// Connections that wait until the messages they published are delivered.
    awaiting_delivery: Vec<usize>,
    /// Connections above their soft output limit; they are closed if they stay there for too long.
    slow: Vec<usize>,
    /// The commands that CLIENT PAUSE has stopped.
    paused: Option<PauseScope>,
    /// Connections whose requests cannot run yet.
    waits: WaitList,
    /// Primaries that have fallen silent.
    pending: Arc<BTreeSet<NodeId>>,
    /// Minimum number of copies; writes to a bucket with fewer wait.
    min_copies: usize,
    /// True if replies wait for backups at all.
    waits_for_backups: bool,
    /// Connections whose replies wait for backups.
    withholding: Vec<usize>,
    /// The number of the last map that this worker has seen.
    map_seen: u64,
    /// The state of the lease: without one, this node serves nothing.
    fence: Fence,
    /// Key events of writes that are not acknowledged yet.
    later: Later,
    /// The answers to frames that this node sends, on the links of this worker.
    link_answers: Vec<LinkAnswers>,
    /// Streams of frames from other nodes that this worker reads.
    incoming: Slab<Incoming>,
    /// The ready ones among them; epoll is edge-triggered and will not report them again.
    intakes_again: Vec<usize>,
    /// Time of the next search for idle connections.
    idle_due: UnixMillis,
    /// Number of the current round; a connection has one turn in each.
    round: u64,
    /// Buffer into which connections without unfinished input are read.
    buffer: Vec<u8>,
    /// The parts of the buffer that belong to each connection; empty between rounds.
    regions: Vec<Region>,
    /// Empty outputs with their memory, reused by connections that have replies in a round.
    spares: Vec<Output>,
    /// The positions of a batch's arguments in its bytes; empty between turns.
    spans: Vec<Span>,
    /// Connections whose turn is over and whose replies are to be sent.
    to_send: Vec<usize>,
    env: CommandEnv,
    /// The settings at the beginning of this round.
    settings: Arc<Settings>,
    evictor: Evictor,
    /// Slots with a copy on a node that is full, if writes to them are refused.
    full_slots: Option<Arc<SlotSet>>,
    /// This worker's part of pub/sub.
    branch: Branch,
    outcome: Outcome,
    /// The effects of the current command; empty between commands.
    effects: EffectLog,
    rng: SplitMix64,
}

/// Creates the poller of a future worker, and the mailbox through which other threads reach it.
pub(crate) fn prepare() -> io::Result<(Poller, WorkerMailbox)> {
    let (poller, waker) = Poller::new()?;
    Ok((poller, WorkerMailbox::new(waker)))
}

impl<'s> Worker<'s> {
    pub(crate) fn new(number: usize, shared: &'s Shared, poller: Poller) -> Worker<'s> {
        let env = shared.command_env();
        let settings = shared.settings.load_full();
        let branch = Branch::new(shared.mailboxes.len());
        let rng = SplitMix64::new(shared.data.keyspace.seed.hash(&number.to_le_bytes()));
        Worker {
            number,
            shared,
            poller,
            acceptor: Acceptor::default(),
            replica_acceptor: Acceptor::default(),
            connections: Slab::new(),
            again: Vec::new(),
            awaiting_delivery: Vec::new(),
            slow: Vec::new(),
            paused: None,
            waits: WaitList::default(),
            pending: Arc::default(),
            min_copies: 1,
            waits_for_backups: true,
            withholding: Vec::new(),
            map_seen: 0,
            fence: Fence::default(),
            later: Later::default(),
            link_answers: Vec::new(),
            incoming: Slab::new(),
            intakes_again: Vec::new(),
            idle_due: UnixMillis(0),
            round: 0,
            buffer: vec![0; BUFFER_BYTES],
            regions: Vec::new(),
            spares: Vec::new(),
            spans: Vec::new(),
            to_send: Vec::new(),
            env,
            settings,
            evictor: Evictor::default(),
            full_slots: None,
            branch,
            outcome: Outcome::default(),
            effects: EffectLog::default(),
            rng,
        }
    }

    /// Runs until the node stops.
    pub(crate) fn run(mut self) {
        request_short_time_slices();
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.shared.is_stopping() {
            let timeout = self.sleep();
            self.poller.wait(&mut events, Some(timeout));
            self.count_pulse();
            self.refresh_copies();
            self.notice_new_map();
            self.look_at_lease();
            let mut ready = self.connections_to_resume();
            for event in &events {
                if let Token(index @ ..CONNECTIONS_MAX) = event.token() {
                    self.note_event(index, event);
                    ready.push(index);
                }
            }
            // After the connections: a new connection may take the index of a closed one, and the events
            // reported for that index do not belong to it.
            for event in &events {
                match event.token() {
                    WAKER => self.read_mail(),
                    LISTENER => self.acceptor.note_ready(),
                    SECOND_LISTENER => self.replica_acceptor.note_ready(),
                    Token(token @ links::LINKS..) => {
                        self.on_link(links::link_of(token), event);
                    }
                    Token(token @ links::INTAKES..) => {
                        self.on_intake(token - links::INTAKES, Some(event));
                    }
                    Token(_) => {}
                }
            }
            for key in core::mem::take(&mut self.intakes_again) {
                self.on_intake(key, None);
            }
            self.accept();
            self.resume_waiting();
            self.serve_all(&mut ready);
            self.announce_awaiting_acks();
            self.shared.data.links.flush();
            self.send_replies();
            self.release();
            self.deliver_published();
            self.close_idle();
            self.flush_counters();
            self.count_pulse();
        }
        self.send_last_replies();
    }

    /// Records that a round begins or ends: a worker that does not finish one is stalled.
    #[inline]
    fn count_pulse(&self) {
        count(&self.shared.counters.threads[self.number].pulse, 1);
    }

    /// Refreshes this worker's copies of the time, the map and the settings.
    fn refresh_copies(&mut self) {
        self.env = self.shared.command_env();
        self.settings = self.shared.settings.load_full();
        let settings = self.env.cluster.map().settings();
        self.waits_for_backups = settings.ack == Ack::Backup;
        self.min_copies = usize::from(settings.min_copies);
        self.pending = self.shared.data.pending.load_full();
        self.full_slots = self.shared.data.crowding.full_slots.load_full();
    }

    /// Does the work that is due once for every map.
    fn notice_new_map(&mut self) {
        let number = self.shared.data.map_number();
        if core::mem::replace(&mut self.map_seen, number) != number {
            self.drop_foreign_shard_subscriptions();
        }
    }

    /// Returns how long to wait for epoll to report anything.
    fn sleep(&self) -> Duration {
        if !self.again.is_empty() || !self.branch.is_quiet() || self.has_unread_intakes() {
            return Duration::ZERO;
        }
        if !self.awaiting_delivery.is_empty() || self.has_intakes_to_retry() {
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
        indices.append(&mut self.awaiting_delivery);
        indices
    }

    fn note_event(&mut self, index: usize, event: &Event) {
        if let Some(connection) = self.connections.get_mut(index) {
            connection.readiness.note(event);
        }
    }

    /// Closes a connection that another thread wants closed, unless it is gone already.
    fn close_if(&mut self, id: u64, index: usize) {
        if self.connections.get(index).is_some_and(|connection| connection.session.id == id) {
            self.close(index);
        }
    }

    fn read_mail(&mut self) {
        for mail in self.shared.mailboxes[self.number].take() {
            match mail {
                Mail::Listen(listener, port) => self.listen(listener, port),
                Mail::Adopt(accepted) => self.adopt(accepted),
                Mail::Close { id, index } => self.close_if(id, index),
                Mail::Resume { id, index } => self.on_answer(id, index),
                Mail::Unblock { index, number, how } => self.on_unblock(index, number, how),
                Mail::Show { id, index, line } => self.show(id, index, &line),
                Mail::Deliver(message) => self.branch.receive(message),
                Mail::AdoptLink(id, stream) => self.adopt_link(id, stream),
                Mail::AdoptIntake { peer, stream, connection } => {
                    self.adopt_intake(peer, stream, connection);
                }
            }
        }
    }

    fn listen(&mut self, listener: TcpListener, port: ClientPort) {
        let registry = self.poller.registry();
        match port {
            ClientPort::Ordinary => self.acceptor.listen(listener, LISTENER, registry),
            ClientPort::Replica => {
                self.replica_acceptor.listen(listener, SECOND_LISTENER, registry);
            }
        }
    }

    /// Accepts the next connection, on either port.
    fn accept_one(&mut self) -> Option<(TcpStream, SocketAddr, ClientPort)> {
        let on = |port| move |(stream, address)| (stream, address, port);
        let ordinary = self.acceptor.accept().map(on(ClientPort::Ordinary));
        ordinary.or_else(|| self.replica_acceptor.accept().map(on(ClientPort::Replica)))
    }

    fn accept(&mut self) {
        while let Some((stream, address, port)) = self.accept_one() {
            let settings = self.shared.settings.load();
            if self.shared.counters.client_count() >= settings.maxclients as usize {
                self.shared.counters.rejected.fetch_add(1, Relaxed);
                net::refuse(stream);
                continue;
            }
            if net::configure(&stream, Keepalive::after(settings.tcp_keepalive)).is_err() {
                continue; // The client has gone already.
            }
            self.shared.counters.accepted.fetch_add(1, Relaxed);
            let id = self.shared.next_client.fetch_add(1, Relaxed);
            self.hand_out(Accepted { id, stream: Stream::from(stream), address, port });
        }
    }

    /// Gives a new connection to the worker with the fewest connections.
    fn hand_out(&mut self, accepted: Accepted) {
        let to = net::take_least_loaded(&self.shared.counters.connections);
        if to == self.number {
            self.adopt(accepted);
        } else {
            self.shared.mailboxes[to].send(Mail::Adopt(accepted));
        }
    }

    fn adopt(&mut self, accepted: Accepted) {
        let entry = self.connections.vacant_entry();
        let token = Token(entry.key());
        let place = ConnectionRef { worker: self.number, index: entry.key() };
        let mut connection = Connection::new(accepted, place, clock::now());
        connection.session.authenticated = !self.env.password_required;
        if connection.stream.register(self.poller.registry(), token).is_ok() {
            self.shared.clients.enter(Arc::clone(&connection.client));
            entry.insert(connection);
        } else {
            self.shared.counters.connections[self.number].fetch_sub(1, Relaxed);
        }
    }

    fn close(&mut self, index: usize) {
        self.end_key_wait(index);
        let mut connection = self.connections.remove(index);
        connection.stream.deregister(self.poller.registry());
        self.shared.clients.leave(connection.session.id);
        self.shared.watching.monitors.leave(connection.session.id);
        self.end_subscriptions(index, &connection.session);
        self.shared.counters.connections[self.number].fetch_sub(1, Relaxed);
    }

    /// Adds the round's counts to the shared ones, and hands its garbage to the janitor.
    fn flush_counters(&mut self) {
        self.record_statistics();
        let counters = &self.shared.counters.threads[self.number];
        let outcome = &mut self.outcome;
        count(&counters.hits, core::mem::take(&mut outcome.hits));
        count(&counters.misses, core::mem::take(&mut outcome.misses));
        count(&counters.expired, core::mem::take(&mut outcome.expired));
        count(&counters.evicted, core::mem::take(&mut outcome.evicted));
        count(&counters.changes, core::mem::take(&mut outcome.changes));
        self.shared.data.keyspace.memory.grow(core::mem::take(&mut outcome.grown_bytes));
        for garbage in outcome.garbage.drain(..) {
            self.shared.data.keyspace.discard(garbage);
        }
    }

    /// Sends the last replies before the node stops.
    fn send_last_replies(&mut self) {
        let indices: Vec<usize> = self.connections.iter().map(|(index, _)| index).collect();
        for index in indices {
            let _ = self.flush(index);
        }
    }
}

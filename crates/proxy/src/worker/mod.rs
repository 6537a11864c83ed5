//! An I/O thread of the proxy: one epoll loop over its own clients and its own links to the servers.
//!
//! A round takes in all answers that have arrived, then all requests, and then writes to each server and each
//! client once. In this way many clients' requests share one write to their server, and a server's answers to many
//! clients share one read. Nothing is handed to another thread on the way.
//!
//! The path of a request: `round.rs` reads and parses it, `dispatch.rs` decides what to do with it, `link.rs`
//! carries it, `deliver.rs` brings the answer back, and `replies.rs` puts it in order.

mod round; //       Start here: reads clients and parses their requests.
mod dispatch; //    Starts each request.
mod link; //        A connection to a server: two queues.
mod links; //       Opens links, detects dead ones, renames them at a change of maps.
mod greeting; //    The greeting on a new link before commands.
mod deliver; //     Passes a server's answers to their receivers.
mod replies; //     Puts a client's answers in order.
mod client; //      The state of a client.
mod gather; //      Requests that run on several servers; merges their answers.
mod jobs; //        Requests on moving keys.
mod own; //         Links that serve one client or job at a time: WATCH, BLPOP.
mod transaction; // MULTI to EXEC.
mod pubsub; //      Channels: one listening link per server, shared by the worker's clients.
mod local; //       Requests that the proxy answers itself.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use fleet::Known;
use mio::event::Event;
use mio::net::TcpListener;
use mio::{Events, Token};
use net::{Acceptor, Keepalive, LISTENER, Mailbox, Poller, Stream, WAKER};
use resp::Span;
use slab::Slab;

use self::client::Client;
use self::gather::Gather;
use self::jobs::Jobs;
use self::link::Link;
use self::links::Doors;
use self::pubsub::PubSub;
use crate::shared::{Fleet, Newcomer, Shared};

const EVENTS_MAX: usize = 1_024;
/// Maximum number of bytes read from one socket before the next has its turn.
const READ_BYTES: usize = 64 * 1024;
/// Number of clients served before the links are flushed. More save system calls; fewer let the servers start
/// while we continue.
const SERVED_PER_FLUSH: usize = 16;
/// Longest sleep, and interval between checks of conditions that cause no event.
const TICK: Duration = Duration::from_millis(50);

pub(crate) struct Worker<'s> {
    number: usize,
    shared: &'s Shared,
    poller: Poller,
    /// The listening socket. Only the first worker has it.
    acceptor: Acceptor,
    clients: Slab<Client>,
    links: Slab<Link>,
    doors: Doors,
    /// Idle links of purpose `Own`, ready for the next user.
    free: Vec<usize>,
    /// The fleet as of the beginning of this round.
    fleet: Arc<Fleet>,
    now: Instant,
    next_tick: Instant,
    round: u64,
    /// Read buffer; bytes are copied on from here.
    buffer: Vec<u8>,
    /// Positions of a request's arguments; empty between requests.
    spans: Vec<Span>,
    /// Sockets with more to read; epoll is edge-triggered and will not report them again.
    clients_again: Vec<usize>,
    links_again: Vec<usize>,
    /// Clients with requests that could not run yet.
    put_off: Vec<usize>,
    /// True if something has changed that those clients may be waiting for.
    stirred: bool,
    /// Clients and links to be flushed at the end of the round.
    touched_clients: Vec<usize>,
    touched_links: Vec<usize>,
    gathers: Slab<Gather>,
    jobs: Jobs,
    /// Facts learnt about moving keys in this epoch.
    known: Known,
    pubsub: PubSub,
    /// Number of requests started since the counter was last updated.
    begun: u64,
}

/// Creates the poller of a future worker, and the mailbox through which others reach it.
pub(crate) fn prepare() -> io::Result<(Poller, Mailbox<Newcomer>)> {
    let (poller, waker) = Poller::new()?;
    Ok((poller, Mailbox::new(waker)))
}

/// Returns the token of a client. Clients have even tokens, links odd ones.
fn client_token(index: usize) -> Token {
    Token(index * 2)
}

fn link_token(index: usize) -> Token {
    Token(index * 2 + 1)
}

impl<'s> Worker<'s> {
    pub(crate) fn new(number: usize, shared: &'s Shared, poller: Poller) -> Worker<'s> {
        let now = Instant::now();
        Worker {
            number,
            shared,
            poller,
            acceptor: Acceptor::default(),
            clients: Slab::new(),
            links: Slab::new(),
            doors: Doors::default(),
            free: Vec::new(),
            fleet: shared.fleet.load_full(),
            now,
            next_tick: now,
            round: 0,
            buffer: vec![0; READ_BYTES],
            spans: Vec::new(),
            clients_again: Vec::new(),
            links_again: Vec::new(),
            put_off: Vec::new(),
            stirred: false,
            touched_clients: Vec::new(),
            touched_links: Vec::new(),
            gathers: Slab::new(),
            jobs: Jobs::default(),
            known: Known::default(),
            pubsub: PubSub::default(),
            begun: 0,
        }
    }

    /// Runs until the proxy stops.
    pub(crate) fn run(mut self, listener: Option<TcpListener>) {
        if let Some(listener) = listener {
            self.acceptor.listen(listener, LISTENER, self.poller.registry());
        }
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.shared.is_stopping() {
            let timeout = self.sleep();
            self.poller.wait(&mut events, Some(timeout));
            self.one_round(&events);
        }
        self.send_last_replies();
    }

    fn one_round(&mut self, events: &Events) {
        self.now = Instant::now();
        self.round += 1;
        self.look_at_the_map();
        let mut ready = std::mem::take(&mut self.clients_again);
        let mut ready_links = std::mem::take(&mut self.links_again);
        let mut mail = false;
        for event in events {
            match event.token() {
                WAKER => mail = true,
                LISTENER => self.acceptor.note_ready(),
                Token(token) if token % 2 == 0 => {
                    self.note_client(token / 2, event);
                    ready.push(token / 2);
                }
                Token(token) => {
                    self.note_link(token / 2, event);
                    ready_links.push(token / 2);
                }
            }
        }
        for index in ready_links {
            self.read_link(index);
            self.flush_answered();
        }
        for (number, index) in ready.into_iter().enumerate() {
            self.serve(index);
            if number % SERVED_PER_FLUSH == SERVED_PER_FLUSH - 1 {
                self.flush_links();
            }
        }
        if self.now >= self.next_tick {
            self.next_tick = self.now + TICK;
            self.tick();
        }
        self.run_waiting_jobs();
        self.resume_put_off();
        // After the events: a new socket may reuse the token of a closed one, and events reported for that
        // token are not about the new socket.
        if mail {
            self.read_mail();
        }
        self.accept();
        self.flush_links();
        self.flush_clients();
        self.shared.commands[self.number].fetch_add(std::mem::take(&mut self.begun), Relaxed);
    }

    fn sleep(&self) -> Duration {
        if !self.clients_again.is_empty() || !self.links_again.is_empty() || self.stirred {
            return Duration::ZERO;
        }
        let due = self.jobs.next_due().map_or(self.next_tick, |due| due.min(self.next_tick));
        due.saturating_duration_since(Instant::now())
    }

    /// Performs the periodic checks.
    fn tick(&mut self) {
        self.check_links();
        // Clients that wait for a switch of maps may have reached their timeout.
        self.stirred |= !self.put_off.is_empty();
    }

    fn note_client(&mut self, index: usize, event: &Event) {
        if let Some(client) = self.clients.get_mut(index) {
            client.readiness.note(event);
        }
    }

    fn note_link(&mut self, index: usize, event: &Event) {
        if let Some(link) = self.links.get_mut(index) {
            link.readiness.note(event);
            link.readiness.hung_up |= event.is_error();
            if event.is_writable() {
                self.touch_link(index);
            }
        }
    }

    fn touch_link(&mut self, index: usize) {
        let link = &mut self.links[index];
        if !link.touched {
            link.touched = true;
            self.touched_links.push(index);
        }
    }

    fn touch_client(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if !client.touched {
            client.touched = true;
            self.touched_clients.push(index);
        }
    }

    fn flush_links(&mut self) {
        let mut touched = std::mem::take(&mut self.touched_links);
        for index in touched.drain(..) {
            let Some(link) = self.links.get_mut(index) else { continue };
            link.touched = false;
            if let Err(error) = link.flush() {
                self.lose_link(index, &error.to_string());
            }
        }
        touched.append(&mut self.touched_links);
        self.touched_links = touched;
    }

    /// Sends to the clients that have all their answers, so that they continue while we do. The others may
    /// get more in this round.
    fn flush_answered(&mut self) {
        let mut touched = std::mem::take(&mut self.touched_clients);
        touched.retain(|index| {
            let Some(client) = self.clients.get_mut(*index) else { return false };
            if client.gone || client.closing || client.replies.awaited() > 0 {
                return true;
            }
            if client.flush().is_err() || !client.replies.output.is_empty() {
                return true;
            }
            client.touched = false;
            false
        });
        touched.append(&mut self.touched_clients);
        self.touched_clients = touched;
    }

    fn flush_clients(&mut self) {
        let mut touched = std::mem::take(&mut self.touched_clients);
        for index in touched.drain(..) {
            let Some(client) = self.clients.get_mut(index) else { continue };
            client.touched = false;
            if client.gone {
                self.forget_if_done(index);
                continue;
            }
            let flushed = client.flush();
            // It may have waited for buffer space.
            self.stirred |= client.put_off;
            let limits = &self.shared.options.limits;
            let told_all = client.replies.awaited() == 0 && client.replies.output.is_empty();
            if flushed.is_err()
                || client.replies.held_bytes() > limits.unread_bytes_hard_max
                || client.closing && told_all
            {
                self.close_client(index);
            }
        }
        touched.append(&mut self.touched_clients);
        self.touched_clients = touched;
    }

    fn read_mail(&mut self) {
        for newcomer in self.shared.mailboxes[self.number].take() {
            self.adopt(newcomer);
        }
    }

    fn accept(&mut self) {
        while let Some((stream, _)) = self.acceptor.accept() {
            if self.shared.clients.load(Relaxed) >= self.shared.options.limits.clients_max {
                net::refuse(stream);
                continue;
            }
            if net::configure(&stream, Keepalive::Off).is_err() {
                continue; // The client has already disconnected.
            }
            self.shared.clients.fetch_add(1, Relaxed);
            let id = self.shared.next_client.fetch_add(1, Relaxed);
            self.hand_out(Newcomer { id, stream: Stream::from(stream) });
        }
    }

    /// Gives a new client to the worker with the fewest clients.
    fn hand_out(&mut self, newcomer: Newcomer) {
        let to = net::take_least_loaded(&self.shared.loads);
        if to == self.number {
            self.adopt(newcomer);
        } else {
            self.shared.mailboxes[to].send(newcomer);
        }
    }

    fn adopt(&mut self, newcomer: Newcomer) {
        let authenticated = self.shared.options.password.is_none();
        let mut client = Client::new(newcomer.stream, newcomer.id, authenticated);
        let entry = self.clients.vacant_entry();
        let token = client_token(entry.key());
        if client.stream.register(self.poller.registry(), token).is_ok() {
            entry.insert(client);
        } else {
            self.shared.loads[self.number].fetch_sub(1, Relaxed);
            self.shared.clients.fetch_sub(1, Relaxed);
        }
    }

    /// Closes a client's connection. Answers that it still awaits are discarded when they arrive.
    fn close_client(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if client.gone {
            return;
        }
        client.gone = true;
        client.replies.forget();
        client.input = Vec::new();
        client.stream.deregister(self.poller.registry());
        client.stream.shut_down();
        self.shared.clients.fetch_sub(1, Relaxed);
        self.shared.loads[self.number].fetch_sub(1, Relaxed);
        self.stop_listening(index);
        self.give_up_own(index);
        self.forget_if_done(index);
    }

    fn forget_if_done(&mut self, index: usize) {
        let client = &self.clients[index];
        if client.gone && client.replies.awaited() == 0 && !client.busy && !client.touched {
            self.clients.remove(index);
        }
    }

    /// Sends the last answers before the proxy stops.
    fn send_last_replies(&mut self) {
        for (_, client) in &mut self.clients {
            let _ = client.flush();
        }
    }
}

//! The worker's links to the servers: opens them, supervises them, renames them when the maps change, and
//! reopens lost ones with back-off. `greeting.rs` has the greeting of a new link.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use fleet::{Epoch, Kind, Server};
use resp::Protocol;

use super::link::{Awaiter, Hello, Link, LinkState, LinkTo, Purpose};
use super::{Worker, link_token};
use crate::stream::{ClusterStream, ServerStream, connect};

/// Timeout for connecting and greeting.
const GREETING_MAX: Duration = Duration::from_secs(2);
/// Back-off before a server is tried again: first, and maximum.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// The links for the commands of all clients: one per server and protocol.
#[derive(Default)]
pub(super) struct Doors {
    by_server: Vec<[Door; 2]>,
    /// The epoch to which all links were renamed last.
    named: Option<Epoch>,
}

#[derive(Default)]
struct Door {
    link: Option<usize>,
    /// Time of the next attempt, after the link was lost.
    closed: Option<Closed>,
}

struct Closed {
    until: Instant,
    wait: Duration,
    why: String,
}

/// Reason why a command cannot be sent now.
pub(super) enum Way {
    /// The link is being opened.
    Wait,
    /// The error for the requester.
    Refuse(String),
}

impl Doors {
    fn at(&mut self, server: Server, protocol: Protocol) -> &mut Door {
        while self.by_server.len() <= server.0 {
            self.by_server.push(Default::default());
        }
        &mut self.by_server[server.0][place(protocol)]
    }

    /// Returns the link to this server, if it has one.
    #[inline]
    fn open(&self, server: Server, protocol: Protocol) -> Option<usize> {
        self.by_server.get(server.0)?[place(protocol)].link
    }
}

fn place(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Resp2 => 0,
        Protocol::Resp3 => 1,
    }
}

impl Worker<'_> {
    /// Returns the link for commands to this server.
    #[inline]
    pub(super) fn shared_link(&mut self, server: Server, protocol: Protocol) -> Result<usize, Way> {
        if let Some(index) = self.doors.open(server, protocol) {
            let link = &self.links[index];
            if link.state == LinkState::Up
                && link.unsent() <= self.shared.options.limits.unsent_bytes_max
            {
                return Ok(index);
            }
        }
        Err(self.why_no_link(server, protocol))
    }

    fn why_no_link(&mut self, server: Server, protocol: Protocol) -> Way {
        let now = self.now;
        let door = self.doors.at(server, protocol);
        match (&door.closed, door.link) {
            (Some(closed), Some(_)) => Way::Refuse(away(&self.fleet, server, &closed.why)),
            (Some(closed), None) if closed.until > now => {
                Way::Refuse(away(&self.fleet, server, &closed.why))
            }
            (None, Some(index)) if self.links[index].state == LinkState::Up => {
                Way::Refuse(away(&self.fleet, server, "its send buffer is full"))
            }
            (None, Some(_)) => Way::Wait,
            (_, None) => self.open_door(server, protocol),
        }
    }

    fn open_door(&mut self, server: Server, protocol: Protocol) -> Way {
        let to = LinkTo { server, protocol, purpose: Purpose::Shared };
        match self.open_link(to) {
            Ok(index) => {
                self.doors.at(server, protocol).link = Some(index);
                Way::Wait
            }
            Err(why) => {
                self.close_door(server, protocol, &why);
                Way::Refuse(away(&self.fleet, server, &why))
            }
        }
    }

    fn close_door(&mut self, server: Server, protocol: Protocol, why: &str) {
        let now = self.now;
        let door = self.doors.at(server, protocol);
        door.link = None;
        let wait = door.closed.as_ref().map_or(RETRY_FIRST, |closed| closed.wait * 2);
        let wait = wait.min(RETRY_MAX);
        door.closed = Some(Closed { until: now + wait, wait, why: why.to_owned() });
    }

    pub(super) fn open_link(&mut self, to: LinkTo) -> Result<usize, String> {
        let fleet = Arc::clone(&self.fleet);
        let known = fleet.servers.get(to.server.0).ok_or("it is not in the list of servers")?;
        let text = |error: std::io::Error| error.to_string();
        let (access, registry) = (&self.shared.options.access, self.poller.registry());
        let entry = self.links.vacant_entry();
        let index = entry.key();
        let mut stream = match (known.address.kind, to.purpose) {
            // Every node receives what is published at any other.
            (Kind::Plain, _) | (Kind::Cluster, Purpose::Listening) => {
                let socket = known.socket.ok_or("its name resolves to no address")?;
                let stream = connect(socket, &known.address, access);
                ServerStream::Single(stream.map_err(text)?)
            }
            (Kind::Cluster, Purpose::Shared | Purpose::Own) => {
                let registry = registry.try_clone().map_err(text)?;
                let token = link_token(index);
                let stream = ClusterStream::connect(&known.address, access, registry, token);
                ServerStream::Cluster(Box::new(stream.map_err(text)?))
            }
        };
        stream.register(registry, link_token(index)).map_err(text)?;
        entry.insert(Link::new(stream, to, self.now));
        self.greet(index);
        Ok(index)
    }

    /// Handles a link that came up: requests that waited for it may continue.
    pub(super) fn link_is_up(&mut self, index: usize) {
        let Link { server, protocol, purpose, .. } = self.links[index];
        if purpose == Purpose::Shared {
            self.doors.at(server, protocol).closed = None;
        }
        self.stirred = true;
        self.jobs.stirred = true;
    }

    /// Closes an unusable link. Every receiver of an answer there gets an error.
    pub(super) fn lose_link(&mut self, index: usize, why: &str) {
        let mut link = self.links.remove(index);
        if link.state == LinkState::Up && link.holder.is_some() | !link.awaiting.is_empty() {
            self.shared.counts.links_lost.fetch_add(1, Relaxed);
        }
        link.stream.deregister(self.poller.registry());
        match link.purpose {
            Purpose::Shared => self.close_door(link.server, link.protocol, why),
            Purpose::Own => self.own_is_lost(index),
            Purpose::Listening => self.listening_is_lost(index, why),
        }
        let address = &self.fleet.servers[link.server.0].address;
        let text = match link.state {
            LinkState::Greeting => away(&self.fleet, link.server, why),
            LinkState::Up => format!(
                "ERR server {address} was lost before it answered ({why}); the command may have run"
            ),
        };
        for awaiter in link.awaiting {
            self.disappoint(awaiter, &text);
        }
        if let Some(holder) = link.holder {
            self.holder_lost(holder, &text);
        }
        self.stirred = true;
        self.jobs.stirred = true;
    }

    /// Checks for silent links, and retries servers that were unreachable.
    pub(super) fn check_links(&mut self) {
        let (now, limits) = (self.now, self.shared.options.limits);
        let silent = |link: &Link| {
            let silence = now.saturating_duration_since(link.since);
            match link.state {
                LinkState::Greeting => silence > GREETING_MAX && link.ahead.is_none(),
                LinkState::Up => {
                    !link.awaiting.is_empty()
                        && !link.patient
                        && silence > limits.server_silence_max
                }
            }
        };
        let lost: Vec<usize> =
            self.links.iter().filter(|(_, link)| silent(link)).map(|(index, _)| index).collect();
        for index in lost {
            if self.links.contains(index) {
                self.lose_link(index, "it did not answer in time");
            }
        }
        self.open_doors();
        self.listen_again();
    }

    /// Opens the links to all servers that have keys, so that the first command need not wait.
    pub(super) fn open_doors(&mut self) {
        for server in self.fleet.view.walk() {
            for protocol in [Protocol::Resp2, Protocol::Resp3] {
                let now = self.now;
                let door = self.doors.at(server, protocol);
                let used = protocol == Protocol::Resp2 || door.closed.is_some();
                let due = door.closed.as_ref().is_none_or(|closed| closed.until <= now);
                if used && due && door.link.is_none() {
                    self.open_door(server, protocol);
                }
            }
        }
    }

    /// Takes over the fleet as the watcher last published it.
    pub(super) fn look_at_the_map(&mut self) {
        let fleet = self.shared.fleet.load();
        if Arc::ptr_eq(&fleet, &self.fleet) {
            return self.rename_links();
        }
        let before = std::mem::replace(&mut self.fleet, Arc::clone(&fleet));
        drop(fleet);
        if before.view.epoch() != self.fleet.view.epoch() {
            self.known.forget();
            self.leave_epoch();
        }
        self.welcome_the_ahead();
        self.open_doors();
        self.move_channels();
        self.rename_links();
        self.stirred = true;
    }

    /// Renames every link to say that we no longer act on the previous map. The server executes commands in
    /// order, so the rename follows everything in flight. Jobs are finished first; nothing new starts
    /// meanwhile on keys that move.
    pub(super) fn rename_links(&mut self) {
        let epoch = self.fleet.view.epoch();
        if self.doors.named == Some(epoch) || self.jobs.any_before(epoch) {
            return;
        }
        self.doors.named = Some(epoch);
        let free = |link: &Link| {
            link.state == LinkState::Up && link.purpose != Purpose::Listening && !link.patient
        };
        let links = self.links.iter().filter(|(_, link)| free(link) && link.epoch != epoch);
        for index in links.map(|(index, _)| index).collect::<Vec<_>>() {
            self.rename_link(index);
        }
    }

    pub(super) fn rename_link(&mut self, index: usize) {
        let epoch = self.fleet.view.epoch();
        let name = fleet::names::connection(&self.shared.id, epoch);
        let link = &mut self.links[index];
        link.epoch = epoch;
        let command: [&[u8]; 3] = [b"CLIENT", b"SETNAME", name.as_bytes()];
        link.push_command(self.now, &command, Awaiter::Greeting(Hello::Name));
        self.touch_link(index);
    }
}

/// Returns the error for clients of a server that cannot be reached.
pub(super) fn away(fleet: &crate::shared::Fleet, server: Server, why: &str) -> String {
    let address = fleet.servers.get(server.0).map(|known| known.address.to_string());
    let address = address.unwrap_or_else(|| server.0.to_string());
    format!("ERR server {address} is unreachable: {why}")
}

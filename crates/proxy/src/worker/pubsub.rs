//! Channels. Each belongs to the server that its name hashes to, like a key; patterns are subscribed on every
//! server. A worker has one listening link per server for all of its clients, and forwards each message unchanged.
//!
//! While maps are switched, a channel is subscribed at its old and at its new server, because publishers use
//! one of them. Delivery is at most once, as in Redis; messages published while a listening link is being
//! reopened are missed.

mod topics;

use std::collections::BTreeSet;
use std::time::Duration;

use fleet::view::Phase;
use fleet::{Server, command::Merge};
use resp::Protocol;

pub(super) use self::topics::{Kind, Name, PubSub};
use super::Worker;
use super::dispatch::Ran;
use super::gather::{array_items, bulk};
use super::link::{Awaiter, LinkState, LinkTo, Purpose};
use super::round::encoded;

/// Interval between attempts to reopen lost listening links.
const LISTEN_AGAIN: Duration = Duration::from_millis(500);
/// Maximum unread bytes of a subscriber; beyond, it is disconnected.
const UNHEARD_BYTES_MAX: usize = 32 << 20;

/// A client's subscriptions.
#[derive(Default)]
pub(crate) struct Subscriptions {
    names: BTreeSet<Name>,
    /// Names not confirmed to the client yet: their servers have not confirmed all of them.
    unconfirmed: Vec<Name>,
}

impl Subscriptions {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the count reported to the client: channels and patterns together, sharded channels separately.
    fn count(&self, kind: Kind) -> i64 {
        let sharded = kind == Kind::Sharded;
        self.names.iter().filter(|name| (name.kind == Kind::Sharded) == sharded).count() as i64
    }
}

impl Worker<'_> {
    pub(super) fn channel(&mut self, index: usize, args: &[&[u8]]) -> Ran {
        let word = args[0].to_ascii_lowercase();
        match word.as_slice() {
            b"subscribe" => self.subscribe(index, Kind::Channel, args),
            b"psubscribe" => self.subscribe(index, Kind::Pattern, args),
            b"ssubscribe" => self.subscribe(index, Kind::Sharded, args),
            b"unsubscribe" => self.unsubscribe(index, Kind::Channel, &args[1..]),
            b"punsubscribe" => self.unsubscribe(index, Kind::Pattern, &args[1..]),
            b"sunsubscribe" => self.unsubscribe(index, Kind::Sharded, &args[1..]),
            b"publish" | b"spublish" => self.publish(index, args),
            _ => self.ask_about_channels(index, args),
        }
    }

    fn publish(&mut self, index: usize, args: &[&[u8]]) -> Ran {
        let [_, channel, _] = args else {
            return self.refuse(index, "ERR wrong number of arguments for 'publish' command");
        };
        let server = self.fleet.view.channel(channel);
        let link = match self.shared_link(server, self.clients[index].protocol) {
            Ok(link) => link,
            Err(way) => return self.no_way(index, way),
        };
        let ticket = self.clients[index].replies.expect();
        let awaiter = Awaiter::Client { client: index as u32, ticket };
        self.links[link].push_command(self.now, args, awaiter);
        self.touch_link(link);
        Ran::Done
    }

    fn ask_about_channels(&mut self, index: usize, args: &[&[u8]]) -> Ran {
        if args.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"channels")) {
            let servers = self.fleet.view.walk();
            return self.everywhere(index, &servers, Merge::Union, args);
        }
        let text = "ERR only PUBSUB CHANNELS is supported: a fleet's server counts proxies, not \
                    their clients";
        self.refuse(index, text)
    }

    fn subscribe(&mut self, index: usize, kind: Kind, args: &[&[u8]]) -> Ran {
        if args.len() < 2 {
            let name = String::from_utf8_lossy(args[0]).to_lowercase();
            return self
                .refuse(index, &format!("ERR wrong number of arguments for '{name}' command"));
        }
        let names: Vec<Name> =
            args[1..].iter().map(|name| Name { kind, text: name.to_vec() }).collect();
        if names.iter().any(|name| self.servers_of(name).is_empty()) {
            let text = "ERR sharded channels of a cluster are not supported through the proxy; use \
                        SUBSCRIBE";
            return self.refuse(index, text);
        }
        for name in &names {
            self.pubsub.topics.entry(name.clone()).or_default().clients.insert(index);
            self.listen_for(name);
        }
        let client = &mut self.clients[index];
        client.subscriptions.unconfirmed = names;
        client.busy = true;
        self.confirm_client(index);
        Ran::Done
    }

    /// Returns the servers at which a name must be subscribed.
    fn servers_of(&self, name: &Name) -> BTreeSet<Server> {
        let view = &self.fleet.view;
        if name.is_everywhere() {
            return view.walk().into_iter().collect();
        }
        let at = |map: &placement::ServerMap| Server(map.server_of(&name.text));
        let here = view.channel(&name.text);
        let mut servers: BTreeSet<Server> = match view.phase() {
            Phase::Settled => [here].into(),
            Phase::Announced { next: other }
            | Phase::Migrating { previous: other }
            | Phase::TurningBack { previous: other } => [here, at(other)].into(),
        };
        // The node we listen to receives all channels of its cluster, but only its own sharded ones.
        servers.retain(|server| name.kind != Kind::Sharded || !view.is_cluster(*server));
        servers
    }

    /// Ensures that a name is subscribed at the right servers.
    fn listen_for(&mut self, name: &Name) {
        let wanted = self.servers_of(name);
        let topic = self.pubsub.topics.get(name).expect("somebody listens to it");
        let left: Vec<Server> =
            topic.at.keys().filter(|at| !wanted.contains(at)).copied().collect();
        let new: Vec<Server> = wanted.into_iter().filter(|at| !topic.at.contains_key(at)).collect();
        for server in left {
            let topic = self.pubsub.topics.get_mut(name).expect("somebody listens to it");
            topic.at.remove(&server);
            self.say_listening(server, name.kind.leave(), &name.text);
        }
        for server in new {
            let topic = self.pubsub.topics.get_mut(name).expect("somebody listens to it");
            topic.at.insert(server, false);
            // A link that is not up yet subscribes when it comes up.
            self.say_listening(server, name.kind.enter(), &name.text);
        }
    }

    fn say_listening(&mut self, server: Server, word: &[u8], name: &[u8]) {
        let link = self.pubsub.links.get(&server).copied();
        let Some(link) = link else {
            self.open_listening(server);
            return;
        };
        if self.links[link].state == LinkState::Up {
            // On such a link the answers themselves say what they are about.
            self.links[link].push_unanswered(&[word, name]);
            self.touch_link(link);
        }
    }

    /// Opens the link to a server that has names to subscribe.
    fn open_listening(&mut self, server: Server) {
        if self.pubsub.names_at(server).is_empty() {
            return;
        }
        let to = LinkTo { server, protocol: Protocol::Resp2, purpose: Purpose::Listening };
        if let Ok(link) = self.open_link(to) {
            self.pubsub.links.insert(server, link);
        }
    }

    pub(super) fn listening_is_up(&mut self, index: usize) {
        let server = self.links[index].server;
        let names = self.pubsub.names_at(server);
        for name in names {
            self.links[index].push_unanswered(&[name.kind.enter(), &name.text]);
        }
        self.touch_link(index);
    }

    /// Handles a lost listening link. Clients that await a confirmation from it get an error; the others are
    /// subscribed again as soon as the server is back.
    pub(super) fn listening_is_lost(&mut self, index: usize, why: &str) {
        let Some(server) = self.pubsub.forget_link(index) else { return };
        let text = super::links::away(&self.fleet, server, why);
        let waiting = |subscriptions: &Subscriptions| {
            subscriptions.unconfirmed.iter().any(|name| self.pubsub.is_at(name, server))
        };
        let clients = self.clients.iter().filter(|(_, client)| waiting(&client.subscriptions));
        for client in clients.map(|(client, _)| client).collect::<Vec<_>>() {
            for name in std::mem::take(&mut self.clients[client].subscriptions.unconfirmed) {
                self.leave_topic(client, &name);
            }
            self.clients[client].busy = false;
            let ticket = self.clients[client].replies.expect();
            self.answer_error(client, ticket, &text);
        }
    }

    /// Retries servers whose listening links were lost.
    pub(super) fn listen_again(&mut self) {
        if self.pubsub.again_at.is_some_and(|again| self.now < again) {
            return;
        }
        self.pubsub.again_at = Some(self.now + LISTEN_AGAIN);
        for server in self.pubsub.servers_without_link() {
            self.open_listening(server);
        }
    }

    /// Moves subscriptions after a change of maps, because channels may belong to other servers.
    pub(super) fn move_channels(&mut self) {
        for name in self.pubsub.topics.keys().cloned().collect::<Vec<_>>() {
            self.listen_for(&name);
        }
    }

    /// Handles a message on a listening link.
    pub(super) fn heard(&mut self, index: usize, reply: &[u8]) {
        let server = self.links[index].server;
        let items = array_items(reply).unwrap_or_default();
        let texts: Vec<Option<&[u8]>> = items.iter().map(|item| bulk(item)).collect();
        let [Some(word), Some(name), ..] = texts.as_slice() else {
            return self.lose_link(index, &String::from_utf8_lossy(reply));
        };
        let kind = match *word {
            b"message" | b"subscribe" => Kind::Channel,
            b"pmessage" | b"psubscribe" => Kind::Pattern,
            b"smessage" | b"ssubscribe" => Kind::Sharded,
            _ => return, // An unsubscribe was confirmed.
        };
        let name = Name { kind, text: name.to_vec() };
        if word.ends_with(b"message") {
            self.pass_on(&name, reply);
        } else {
            self.confirm(&name, server);
        }
    }

    fn pass_on(&mut self, name: &Name, reply: &[u8]) {
        let Some(topic) = self.pubsub.topics.get(name) else { return };
        let mut cut_off = Vec::new();
        for index in &topic.clients {
            let client = &mut self.clients[*index];
            match client.protocol {
                Protocol::Resp2 => client.replies.push(reply),
                Protocol::Resp3 => {
                    client.replies.push(b">");
                    client.replies.push(&reply[1..]);
                }
            }
            if client.replies.held_bytes() > UNHEARD_BYTES_MAX {
                cut_off.push(*index);
            } else if !client.touched {
                client.touched = true;
                self.touched_clients.push(*index);
            }
        }
        cut_off.into_iter().for_each(|index| self.close_client(index));
    }

    fn confirm(&mut self, name: &Name, server: Server) {
        let Some(topic) = self.pubsub.topics.get_mut(name) else { return };
        if let Some(confirmed) = topic.at.get_mut(&server) {
            *confirmed = true;
        }
        for client in topic.clients.iter().copied().collect::<Vec<_>>() {
            self.confirm_client(client);
        }
    }

    /// Confirms a client's subscriptions, once all of them are confirmed by the servers.
    fn confirm_client(&mut self, index: usize) {
        let unconfirmed = &self.clients[index].subscriptions.unconfirmed;
        if unconfirmed.is_empty() || !unconfirmed.iter().all(|name| self.pubsub.is_confirmed(name))
        {
            return;
        }
        let client = &mut self.clients[index];
        client.busy = false;
        for name in std::mem::take(&mut client.subscriptions.unconfirmed) {
            let client = &mut self.clients[index];
            client.subscriptions.names.insert(name.clone());
            let count = client.subscriptions.count(name.kind);
            self.acknowledge(index, name.kind.enter(), Some(&name.text), count);
        }
        self.stirred = true;
    }

    fn acknowledge(&mut self, index: usize, word: &[u8], name: Option<&[u8]>, count: i64) {
        let protocol = self.clients[index].protocol;
        let message = encoded(protocol, |reply| {
            reply.push(3);
            reply.bulk(&word.to_ascii_lowercase());
            match name {
                Some(name) => reply.bulk(name),
                None => reply.null(),
            }
            reply.integer(count);
        });
        let ticket = self.clients[index].replies.expect();
        self.answer_client(index, ticket, &message);
    }

    fn unsubscribe(&mut self, index: usize, kind: Kind, names: &[&[u8]]) -> Ran {
        let subscriptions = &self.clients[index].subscriptions;
        let of_kind = |name: &&Name| name.kind == kind;
        let names: Vec<Name> = if names.is_empty() {
            subscriptions.names.iter().filter(of_kind).cloned().collect()
        } else {
            names.iter().map(|name| Name { kind, text: name.to_vec() }).collect()
        };
        if names.is_empty() {
            let count = subscriptions.count(kind);
            self.acknowledge(index, kind.leave(), None, count);
        }
        for name in names {
            self.clients[index].subscriptions.names.remove(&name);
            self.leave_topic(index, &name);
            let count = self.clients[index].subscriptions.count(kind);
            self.acknowledge(index, kind.leave(), Some(&name.text), count);
        }
        Ran::Done
    }

    fn leave_topic(&mut self, index: usize, name: &Name) {
        let Some(topic) = self.pubsub.topics.get_mut(name) else { return };
        topic.clients.remove(&index);
        if !topic.clients.is_empty() {
            return;
        }
        let topic = self.pubsub.topics.remove(name).expect("it was just there");
        for server in topic.at.into_keys() {
            self.say_listening(server, name.kind.leave(), &name.text);
        }
    }

    /// Ends all subscriptions of a client that is gone or resets.
    pub(super) fn stop_listening(&mut self, index: usize) {
        let subscriptions = std::mem::take(&mut self.clients[index].subscriptions);
        if !subscriptions.unconfirmed.is_empty() {
            self.clients[index].busy = false;
        }
        for name in subscriptions.names.iter().chain(&subscriptions.unconfirmed) {
            self.leave_topic(index, name);
        }
    }
}

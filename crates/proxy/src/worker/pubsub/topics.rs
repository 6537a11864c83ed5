//! Names that a worker's clients are subscribed to, the clients, and the servers where each name is subscribed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use fleet::Server;

#[derive(Default)]
pub(crate) struct PubSub {
    pub topics: BTreeMap<Name, Topic>,
    /// The listening link of each server that has one.
    pub links: BTreeMap<Server, usize>,
    /// Time of the next attempt to open missing links.
    pub again_at: Option<Instant>,
}

#[derive(Default)]
pub(crate) struct Topic {
    pub clients: BTreeSet<usize>,
    /// Servers where it is subscribed; true if the server has confirmed it.
    pub at: BTreeMap<Server, bool>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Name {
    pub kind: Kind,
    pub text: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    Channel,
    Pattern,
    Sharded,
}

impl Kind {
    pub(crate) fn enter(self) -> &'static [u8] {
        match self {
            Kind::Channel => b"SUBSCRIBE",
            Kind::Pattern => b"PSUBSCRIBE",
            Kind::Sharded => b"SSUBSCRIBE",
        }
    }

    pub(crate) fn leave(self) -> &'static [u8] {
        match self {
            Kind::Channel => b"UNSUBSCRIBE",
            Kind::Pattern => b"PUNSUBSCRIBE",
            Kind::Sharded => b"SUNSUBSCRIBE",
        }
    }
}

impl Name {
    /// Returns whether the name must be subscribed everywhere: a pattern matches channels of any server, and
    /// keyspace events come from the servers of the keys.
    pub(crate) fn is_everywhere(&self) -> bool {
        match self.kind {
            Kind::Pattern => true,
            Kind::Channel => self.text.starts_with(b"__key"),
            Kind::Sharded => false,
        }
    }
}

impl PubSub {
    /// Returns whether all servers at which a name is subscribed have confirmed it.
    pub(crate) fn is_confirmed(&self, name: &Name) -> bool {
        self.topics.get(name).is_some_and(|topic| topic.at.values().all(|confirmed| *confirmed))
    }

    pub(crate) fn is_at(&self, name: &Name, server: Server) -> bool {
        self.topics.get(name).is_some_and(|topic| topic.at.contains_key(&server))
    }

    pub(crate) fn names_at(&self, server: Server) -> Vec<Name> {
        let at = |topic: &Topic| topic.at.contains_key(&server);
        self.topics.iter().filter(|(_, topic)| at(topic)).map(|(name, _)| name.clone()).collect()
    }

    /// Forgets a lost listening link. Returns its server, if it was the link in use.
    pub(crate) fn forget_link(&mut self, link: usize) -> Option<Server> {
        let (server, _) = self.links.iter().find(|(_, index)| **index == link)?;
        let server = *server;
        self.links.remove(&server);
        for topic in self.topics.values_mut() {
            if let Some(confirmed) = topic.at.get_mut(&server) {
                *confirmed = false;
            }
        }
        Some(server)
    }

    /// Returns the servers that have names to subscribe but no link.
    pub(crate) fn servers_without_link(&self) -> BTreeSet<Server> {
        let wanted = self.topics.values().flat_map(|topic| topic.at.keys());
        wanted.filter(|server| !self.links.contains_key(server)).copied().collect()
    }
}

//! What every server of a fleet keeps about the fleet: the keys `server.config.*`, read into a
//! [`Config`], compared between servers, and the reasons to stop where they do not fit together.
//!
//! The shells read [`KEYS`] with one MGET and hand the values to [`Config::read`]; `view.rs` makes
//! of it what a proxy acts on, `switch.rs` changes it.

use std::fmt;
use std::str::FromStr;

use placement::{ServerMap, ServerMapError};
use resp::Value;

/// A server of the fleet: its place in the list of addresses. Never another's, even when it is gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Server(pub usize);

impl Server {
    /// The server whose word about the configuration decides; the others repeat it.
    pub const FIRST: Server = Server(0);
}

/// Counts the maps of a fleet: it rises when one is announced, and when that is undone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// Older than any map: of a connection that has not looked yet.
    pub const NONE: Epoch = Epoch(0);

    pub const fn new(number: u64) -> Epoch {
        Epoch(number)
    }

    pub const fn number(self) -> u64 {
        self.0
    }

    #[must_use]
    pub const fn next(self) -> Epoch {
        Epoch(self.0 + 1)
    }
}

/// `server.config.migration.status`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    NotStarted,
    InProgress,
    Completed,
}

impl Status {
    pub fn text(self) -> &'static str {
        match self {
            Status::NotStarted => "0",
            Status::InProgress => "1",
            Status::Completed => "2",
        }
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Status::NotStarted => "not started",
            Status::InProgress => "in progress",
            Status::Completed => "completed",
        }
    }
}

pub const SERVERS: &str = "server.config.servers";
pub const CURRENT: &str = "server.config.current";
pub const PREVIOUS: &str = "server.config.previous";
pub const STATUS: &str = "server.config.migration.status";
pub const EPOCH: &str = "server.config.epoch";
/// Only while a map is announced.
pub const NEXT: &str = "server.config.next";
/// Only while a migrator runs; expires by itself.
pub const LOCK: &str = "server.config.lock";

/// In the order in which [`Config::read`] takes their values.
pub const KEYS: [&str; 7] = [SERVERS, CURRENT, PREVIOUS, STATUS, EPOCH, NEXT, LOCK];

/// Those that every server of a fleet has at any time.
const LASTING: usize = 5;

/// What one server says of the fleet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Grows at its end only.
    pub servers: Vec<Address>,
    /// May be shorter than the list of servers; those beyond it have weight 0. So too below.
    pub current: ServerMap,
    /// Equal to `current` but while a migration is in progress.
    pub previous: ServerMap,
    pub status: Status,
    pub epoch: Epoch,
    /// The map that is announced, until it is switched to or given up.
    pub next: Option<ServerMap>,
    pub lock: Option<Lock>,
}

impl Config {
    /// The first configuration of a fleet.
    pub fn first(servers: Vec<Address>, map: ServerMap) -> Config {
        Config {
            servers,
            previous: map.clone(),
            current: map,
            status: Status::NotStarted,
            epoch: Epoch::new(1),
            next: None,
            lock: None,
        }
    }

    /// Reads the answer to `MGET` of [`KEYS`]. `None`: this server belongs to no fleet.
    pub fn read(answer: &Value) -> Result<Option<Config>, ConfigError> {
        let values = texts(answer)?;
        if values[..LASTING].iter().all(Option::is_none) {
            return Ok(None);
        }
        let lasting = |index: usize| {
            values[index].as_deref().ok_or_else(|| ConfigError::Missing(KEYS[index]))
        };
        let config = Config {
            servers: addresses(lasting(0)?)?,
            current: map(CURRENT, lasting(1)?)?,
            previous: map(PREVIOUS, lasting(2)?)?,
            status: status(lasting(3)?)?,
            epoch: epoch(lasting(4)?)?,
            next: values[5].as_deref().map(|text| map(NEXT, text)).transpose()?,
            lock: values[6].as_deref().map(Lock::read),
        };
        config.check()?;
        Ok(Some(config))
    }

    fn check(&self) -> Result<(), ConfigError> {
        let maps = [(CURRENT, Some(&self.current)), (PREVIOUS, Some(&self.previous))];
        for (key, map) in maps.into_iter().chain([(NEXT, self.next.as_ref())]) {
            let weights = map.map_or(0, |map| map.weights().len());
            if weights > self.servers.len() {
                let text = map.map(ToString::to_string).unwrap_or_default();
                return Err(ConfigError::Beyond { key, text, servers: self.servers.len() });
            }
        }
        Ok(())
    }

    /// What a server that keeps this configuration holds: key and value, without the lock.
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let servers: Vec<String> = self.servers.iter().map(ToString::to_string).collect();
        let mut pairs = vec![
            (SERVERS, servers.join(",")),
            (CURRENT, self.current.to_string()),
            (PREVIOUS, self.previous.to_string()),
            (STATUS, self.status.text().to_owned()),
            (EPOCH, self.epoch.number().to_string()),
        ];
        pairs.extend(self.next.as_ref().map(|next| (NEXT, next.to_string())));
        pairs
    }

    /// The first difference between what the first server says and what `other` says, if there is
    /// one. The lock is not compared: it comes and goes on one server after the other.
    pub fn difference(&self, other: &Config) -> Option<Difference> {
        let (ours, theirs) = (self.pairs(), other.pairs());
        let value = |pairs: &[(&'static str, String)], key: &str| {
            pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| value.clone())
        };
        KEYS.into_iter().find_map(|key| {
            let (first, other) = (value(&ours, key), value(&theirs, key));
            (first != other).then_some(Difference { key, first, other })
        })
    }

    /// Whether this is the fleet of these servers, the first of which are named.
    pub fn begins_with(&self, servers: &[Address]) -> bool {
        let same = self.servers.iter().zip(servers).all(|(ours, named)| ours.is_at(named));
        same && servers.len() <= self.servers.len()
    }

    /// Whether a server has a share of the keys in some map that counts. One that has none may be
    /// away: nobody needs it.
    pub fn needs(&self, server: Server) -> bool {
        let maps = [Some(&self.current), Some(&self.previous), self.next.as_ref()];
        maps.into_iter().flatten().any(|map| weight(map, server) > 0)
    }
}

/// A server's weight in a map that may be shorter than the list of servers.
pub fn weight(map: &ServerMap, server: Server) -> u32 {
    map.weights().get(server.0).copied().unwrap_or(0)
}

fn texts(answer: &Value) -> Result<Vec<Option<String>>, ConfigError> {
    let Value::Array(items) = answer else {
        return Err(ConfigError::Answer(answer.to_string()));
    };
    if items.len() != KEYS.len() {
        return Err(ConfigError::Answer(answer.to_string()));
    }
    Ok(items
        .iter()
        .map(|item| item.text().map(|text| String::from_utf8_lossy(text).into_owned()))
        .collect())
}

fn addresses(text: &str) -> Result<Vec<Address>, ConfigError> {
    Address::list(text).map_err(|_| wrong(SERVERS, text))
}

fn map(key: &'static str, text: &str) -> Result<ServerMap, ConfigError> {
    text.parse().map_err(|error| ConfigError::Map { key, error })
}

fn status(text: &str) -> Result<Status, ConfigError> {
    [Status::NotStarted, Status::InProgress, Status::Completed]
        .into_iter()
        .find(|status| status.text() == text)
        .ok_or_else(|| wrong(STATUS, text))
}

fn epoch(text: &str) -> Result<Epoch, ConfigError> {
    text.parse().map(Epoch::new).map_err(|_| wrong(EPOCH, text))
}

fn wrong(key: &'static str, text: &str) -> ConfigError {
    ConfigError::Wrong { key, text: text.to_owned() }
}

/// `HOST:PORT` of a server, as everybody who talks to it writes it. `HOST:PORT+HOST:PORT/cluster` is a
/// cluster, by some of its nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Address {
    pub host: String,
    pub port: u16,
    pub kind: Kind,
    /// Of a cluster: more of its nodes, for when the first is gone.
    pub others: Vec<Address>,
}

/// What stands behind an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Kind {
    /// One server, which holds all that is sent to it.
    Plain,
    /// A node of an OpenCluster, which tells where a key is.
    Cluster,
}

const CLUSTER: &str = "/cluster";
/// More nodes of a cluster that its address names.
const OTHERS_MAX: usize = 4;

impl Address {
    /// Of one server.
    pub fn plain(host: &str, port: u16) -> Address {
        Address { host: host.to_owned(), port, kind: Kind::Plain, others: Vec::new() }
    }

    /// The cluster to which the server at this address belongs.
    #[must_use]
    pub fn as_cluster(&self) -> Address {
        Address { kind: Kind::Cluster, ..self.clone() }
    }

    /// The same cluster by more of its nodes: as many as are worth writing down.
    #[must_use]
    pub fn with_nodes(&self, nodes: impl IntoIterator<Item = Address>) -> Address {
        let new = nodes.into_iter().filter(|node| !node.is_at(self));
        Address { others: new.take(OTHERS_MAX).collect(), ..self.clone() }
    }

    /// The nodes a cluster is named by.
    pub fn nodes(&self) -> impl Iterator<Item = Address> {
        let first = Address::plain(&self.host, self.port);
        std::iter::once(first).chain(self.others.iter().cloned())
    }

    /// Whether both lead to the same socket.
    pub fn is_at(&self, other: &Address) -> bool {
        (&self.host, self.port) == (&other.host, other.port)
    }

    /// Reads `host:port,host:port`: at least one, none twice.
    pub fn list(text: &str) -> Result<Vec<Address>, AddressError> {
        let addresses: Vec<Address> = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        for (index, address) in addresses.iter().enumerate() {
            if addresses[..index].iter().any(|other| other.is_at(address)) {
                return Err(AddressError::Twice(address.clone()));
            }
        }
        Ok(addresses)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)?;
        } else {
            write!(f, "{}:{}", self.host, self.port)?;
        }
        match self.kind {
            Kind::Plain => Ok(()),
            Kind::Cluster => {
                self.others.iter().try_for_each(|other| write!(f, "+{other}"))?;
                f.write_str(CLUSTER)
            }
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Address, AddressError> {
        let wrong = || AddressError::Wrong(text.to_owned());
        if let Some(nodes) = text.strip_suffix(CLUSTER) {
            let nodes: Vec<Address> = nodes.split('+').map(str::parse).collect::<Result<_, _>>()?;
            return Ok(nodes[0].as_cluster().with_nodes(nodes));
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bare.unwrap_or(host);
        let plain = !host.is_empty()
            && !host.contains(|letter: char| letter.is_whitespace() || "/+".contains(letter))
            && (bare.is_some() || !host.contains(':'));
        let port = port.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?;
        if plain { Ok(Address::plain(host, port)) } else { Err(wrong()) }
    }
}

/// Why a text is no list of servers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AddressError {
    Wrong(String),
    Twice(Address),
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Wrong(text) => {
                write!(f, "{text:?} is no server; servers are written host:port,host:port")
            }
            AddressError::Twice(address) => write!(f, "the server {address} is named twice"),
        }
    }
}

impl std::error::Error for AddressError {}

/// Who migrates: a token nobody else has, and words about its holder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lock {
    pub token: String,
    /// Such as `host-a, process 4711`.
    pub holder: String,
}

impl Lock {
    fn read(text: &str) -> Lock {
        let (token, holder) = text.split_once(' ').unwrap_or((text, "somebody unknown"));
        Lock { token: token.to_owned(), holder: holder.to_owned() }
    }

    /// As it stands on the servers.
    pub fn text(&self) -> String {
        format!("{} {}", self.token, self.holder)
    }
}

/// The same key with two values on two servers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    pub key: &'static str,
    pub first: Option<String>,
    pub other: Option<String>,
}

impl Difference {
    /// One line, with the servers' names.
    pub fn text(&self, first: &Address, other: &Address) -> String {
        let shown = |value: &Option<String>| {
            value.as_ref().map_or_else(|| "nothing".to_owned(), |value| format!("{value:?}"))
        };
        let (key, here, there) = (self.key, shown(&self.first), shown(&self.other));
        format!("the servers disagree: {key} is {here} on {first} and {there} on {other}")
    }
}

/// Why a server's configuration cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// The answer was not that of a Redis server to MGET.
    Answer(String),
    /// Some of the lasting keys are there, this one is not: evicted, or deleted by hand.
    Missing(&'static str),
    Wrong {
        key: &'static str,
        text: String,
    },
    Map {
        key: &'static str,
        error: ServerMapError,
    },
    /// A map with more weights than there are servers.
    Beyond {
        key: &'static str,
        text: String,
        servers: usize,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Answer(text) => write!(f, "it answers MGET with {text}"),
            ConfigError::Missing(key) => write!(f, "its key {key} is missing"),
            ConfigError::Wrong { key, text } => write!(f, "its key {key} cannot be {text:?}"),
            ConfigError::Map { key, error } => write!(f, "its key {key} is wrong: {error}"),
            ConfigError::Beyond { key, text, servers } => {
                write!(f, "its key {key} is {text}, but there are only {servers} servers")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests;

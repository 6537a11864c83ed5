//! The configuration that every server of a fleet stores: the keys `server.config.*`. They are read into a
//! [`Config`] and compared between servers; an error says why they are inconsistent.
//!
//! The shells read [`KEYS`] with one MGET and pass the values to [`Config::read`]. `view.rs` turns the result
//! into the view that a proxy acts on; `switch.rs` changes it.

use std::fmt;
use std::str::FromStr;

use placement::{ServerMap, ServerMapError};
use resp::Value;

/// A server of the fleet, by its index in the list of addresses. An index is never reused, even after its
/// server is gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Server(pub usize);

impl Server {
    /// The server whose configuration is authoritative; the others repeat it.
    pub const FIRST: Server = Server(0);
}

/// Epoch of the fleet's maps. It rises when a map is announced and when an announcement is undone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Epoch(u64);

impl Epoch {
    /// Older than any map: the epoch of a connection that has not checked its server's epoch yet.
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

/// Value of `server.config.migration.status`.
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

    /// Human-readable text.
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
/// The announced map. Exists only while a map is announced.
pub const NEXT: &str = "server.config.next";
/// The number of each server's process when the migration began (`run_id`), `-` where it is not known. Exists only
/// while a migration is in progress.
pub const RUNS: &str = "server.config.runs";
/// The running migrator's lock. Exists only while a migrator runs; expires by itself.
pub const LOCK: &str = "server.config.lock";

/// All configuration keys, in the order in which [`Config::read`] takes their values.
pub const KEYS: [&str; 8] = [SERVERS, CURRENT, PREVIOUS, STATUS, EPOCH, NEXT, RUNS, LOCK];

/// Number of leading [`KEYS`] that every server of a fleet always has.
const LASTING: usize = 5;

/// The fleet's configuration as one server stores it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// Addresses of all servers. The list only grows at its end.
    pub servers: Vec<Address>,
    /// The map in force. May be shorter than the list of servers: servers beyond its end have weight 0. The
    /// same holds for the maps below.
    pub current: ServerMap,
    /// The map before `current`; equal to `current` unless a migration is in progress.
    pub previous: ServerMap,
    pub status: Status,
    pub epoch: Epoch,
    /// The announced map, until it is switched to or withdrawn.
    pub next: Option<ServerMap>,
    /// The number of each server's process when the migration began. A server that has another one has restarted,
    /// perhaps with older data: keys that are gone from there may be back.
    pub runs: Vec<Option<String>>,
    pub lock: Option<Lock>,
}

impl Config {
    /// Returns the first configuration of a fleet.
    pub fn first(servers: Vec<Address>, map: ServerMap) -> Config {
        Config {
            servers,
            previous: map.clone(),
            current: map,
            status: Status::NotStarted,
            epoch: Epoch::new(1),
            next: None,
            runs: Vec::new(),
            lock: None,
        }
    }

    /// Reads the answer to `MGET` of [`KEYS`]. `None` means that this server belongs to no fleet.
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
            runs: values[6].as_deref().map_or(Ok(Vec::new()), runs)?,
            lock: values[7].as_deref().map(Lock::read),
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

    /// Returns the keys and values that a server with this configuration stores, without the lock.
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
        if self.runs.iter().any(Option::is_some) {
            let runs = self.runs.iter().map(|run| run.as_deref().unwrap_or(UNKNOWN_RUN));
            pairs.push((RUNS, runs.collect::<Vec<_>>().join(",")));
        }
        pairs
    }

    /// Returns the first difference between the first server's configuration and `other`, if there is one.
    /// The lock is not compared: it appears and disappears on one server after the other.
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

    /// Returns the number that the process of a server must have, if that is known.
    pub fn run_of(&self, server: Server) -> Option<&str> {
        self.runs.get(server.0)?.as_deref()
    }

    /// Returns whether this fleet's list of servers begins with `servers`.
    pub fn begins_with(&self, servers: &[Address]) -> bool {
        let same = self.servers.iter().zip(servers).all(|(ours, named)| ours.is_at(named));
        same && servers.len() <= self.servers.len()
    }

    /// Returns whether a server has a share of the keys in any relevant map. A server without one may be
    /// down: nobody needs it.
    pub fn needs(&self, server: Server) -> bool {
        let maps = [Some(&self.current), Some(&self.previous), self.next.as_ref()];
        maps.into_iter().flatten().any(|map| weight(map, server) > 0)
    }
}

/// Returns a server's weight in a map that may be shorter than the list of servers.
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

const UNKNOWN_RUN: &str = "-";

fn runs(text: &str) -> Result<Vec<Option<String>>, ConfigError> {
    let run = |text: &str| match text {
        UNKNOWN_RUN => Some(None),
        _ if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_alphanumeric()) => None,
        _ => Some(Some(text.to_owned())),
    };
    let runs: Option<Vec<_>> = text.split(',').map(run).collect();
    runs.ok_or_else(|| wrong(RUNS, text))
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

/// Address of a server: `HOST:PORT`, spelled the same by everyone who connects to it.
/// `HOST:PORT+HOST:PORT/cluster` is a cluster, named by some of its nodes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Address {
    pub host: String,
    pub port: u16,
    pub kind: Kind,
    /// More nodes of a cluster, for use when the first is gone.
    pub others: Vec<Address>,
}

/// Kind of server behind an address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub enum Kind {
    /// A single server, which holds all keys that are sent to it.
    Plain,
    /// A node of an OpenCluster, which redirects to the node that holds a key.
    Cluster,
}

const CLUSTER: &str = "/cluster";
/// Maximum number of additional nodes in a cluster's address.
const OTHERS_MAX: usize = 4;

impl Address {
    /// Returns the address of a single server.
    pub fn plain(host: &str, port: u16) -> Address {
        Address { host: host.to_owned(), port, kind: Kind::Plain, others: Vec::new() }
    }

    /// Returns the address of the cluster that the server at this address belongs to.
    #[must_use]
    pub fn as_cluster(&self) -> Address {
        Address { kind: Kind::Cluster, ..self.clone() }
    }

    /// Returns the same cluster's address with more of its nodes, at most `OTHERS_MAX`.
    #[must_use]
    pub fn with_nodes(&self, nodes: impl IntoIterator<Item = Address>) -> Address {
        let new = nodes.into_iter().filter(|node| !node.is_at(self));
        Address { others: new.take(OTHERS_MAX).collect(), ..self.clone() }
    }

    /// Returns the nodes named in a cluster's address.
    pub fn nodes(&self) -> impl Iterator<Item = Address> {
        let first = Address::plain(&self.host, self.port);
        std::iter::once(first).chain(self.others.iter().cloned())
    }

    /// Returns whether both addresses lead to the same socket.
    pub fn is_at(&self, other: &Address) -> bool {
        (&self.host, self.port) == (&other.host, other.port)
    }

    /// Reads `host:port,host:port`: at least one address, none twice.
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

/// Reason why a text is not a list of servers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AddressError {
    Wrong(String),
    Twice(Address),
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Wrong(text) => {
                write!(f, "{text:?} is not a server address; expected host:port,host:port")
            }
            AddressError::Twice(address) => write!(f, "the server {address} is named twice"),
        }
    }
}

impl std::error::Error for AddressError {}

/// The lock of the running migrator: a unique token, and a description of its holder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lock {
    pub token: String,
    /// Description of the holder, such as `host-a, process 4711`.
    pub holder: String,
}

impl Lock {
    fn read(text: &str) -> Lock {
        let (token, holder) = text.split_once(' ').unwrap_or((text, "somebody unknown"));
        Lock { token: token.to_owned(), holder: holder.to_owned() }
    }

    /// Returns the lock's text as the servers store it.
    pub fn text(&self) -> String {
        format!("{} {}", self.token, self.holder)
    }
}

/// A key that has different values on two servers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    pub key: &'static str,
    pub first: Option<String>,
    pub other: Option<String>,
}

impl Difference {
    /// Describes the difference in one line, with the servers' names.
    pub fn text(&self, first: &Address, other: &Address) -> String {
        let shown = |value: &Option<String>| {
            value.as_ref().map_or_else(|| "nothing".to_owned(), |value| format!("{value:?}"))
        };
        let (key, here, there) = (self.key, shown(&self.first), shown(&self.other));
        format!("the servers disagree: {key} is {here} on {first} and {there} on {other}")
    }
}

/// Reason why a server's configuration cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigError {
    /// The answer was not a Redis server's answer to MGET.
    Answer(String),
    /// Some of the permanent keys exist, but this one does not: it was evicted, or deleted by hand.
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
            ConfigError::Wrong { key, text } => {
                write!(f, "its key {key} has the invalid value {text:?}")
            }
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

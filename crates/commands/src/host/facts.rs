//! The data that commands and the node exchange through [`Host`](super::Host). Plain values; the commands format them.

use std::time::Duration;

use cluster::map::NodeId;
use resp::Protocol;
use settings::ChangeError;
use store::{Database, UnixMillis};
use timers::TimerAnswer;

use crate::{Histogram, OwnedArgs, Session, Space, Spec, SubscriptionKind};

/// A node at one moment. Counters count from its start, or from the last CONFIG RESETSTAT.
#[derive(Clone, Default, Debug)]
pub struct NodeFacts {
    pub identity: Identity,
    pub uptime: Duration,
    pub clients: ClientNumbers,
    pub memory: MemoryFigures,
    /// Physical memory of the machine in bytes.
    pub machine_bytes: u64,
    pub traffic: Traffic,
    /// The databases that have keys, in ascending order.
    pub keyspace: Vec<(Database, KeyspaceNumbers)>,
    pub cpu: CpuTimes,
}

/// The identity and the addresses of the node.
#[derive(Clone, Default, Debug)]
pub struct Identity {
    /// Forty hexadecimal digits, new at each start.
    pub id: String,
    pub version: &'static str,
    pub os: String,
    pub process: u32,
    pub executable: String,
    pub config_file: String,
    /// The address announced to clients.
    pub host: String,
    pub port: u16,
    pub peer_port: u16,
    pub io_threads: usize,
}

#[derive(Clone, Copy, Default, Debug)]
pub struct ClientNumbers {
    pub connected: usize,
    pub max: u64,
    pub pubsub: usize,
    /// Clients that wait in a blocking command, and those among them with a timeout.
    pub blocked: usize,
    pub with_timeout: usize,
    pub input_bytes_max: usize,
    pub output_bytes_max: usize,
}

/// The node's memory at one moment, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryFigures {
    /// Bytes allocated from the allocator.
    pub allocated: u64,
    /// Maximum of `allocated` so far.
    pub peak: u64,
    /// Bytes allocated before the first client connected.
    pub startup: u64,
    /// Bytes in pages that contain allocations.
    pub active: u64,
    /// Bytes in physical pages that the allocator holds.
    pub resident: u64,
    /// Resident memory of the process as the operating system reports it.
    pub process: u64,
    /// Bytes queued for other nodes: not data, and not counted against `maxmemory`.
    pub links: u64,
    /// Buffers of all connections.
    pub clients: u64,
}

#[derive(Clone, Copy, Default, Debug)]
pub struct Traffic {
    pub connections_accepted: u64,
    pub connections_rejected: u64,
    pub commands: u64,
    pub commands_per_second: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub bytes_in_per_second: u64,
    pub bytes_out_per_second: u64,
    pub expired: u64,
    pub evicted: u64,
    pub hits: u64,
    pub misses: u64,
    pub changes: u64,
    pub errors: u64,
    pub channels: usize,
    pub patterns: usize,
    pub sharded_channels: usize,
}

#[derive(Clone, Copy, Default, Debug)]
pub struct KeyspaceNumbers {
    pub keys: u64,
    pub expiring: u64,
    /// In milliseconds, estimated from a few keys.
    pub average_ttl: u64,
}

#[derive(Clone, Copy, Default, Debug)]
pub struct CpuTimes {
    pub user: Duration,
    pub system: Duration,
    pub user_children: Duration,
    pub system_children: Duration,
}

/// The calls of a command, and their duration.
#[derive(Clone)]
pub struct CommandCounts {
    pub spec: &'static Spec,
    /// Number of runs, including the failed ones.
    pub calls: u64,
    pub time: Duration,
    pub failed: u64,
    /// Calls refused before they ran.
    pub rejected: u64,
    pub histogram: Histogram,
}

/// One connection, as `CLIENT LIST` shows it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ClientFacts {
    pub id: u64,
    pub address: String,
    pub local_address: String,
    pub descriptor: i64,
    pub name: Vec<u8>,
    pub age_seconds: u64,
    pub idle_seconds: u64,
    pub database: Database,
    pub is_monitor: bool,
    pub is_closing: bool,
    /// True if it waits for keys.
    pub is_blocked: bool,
    pub no_evict: bool,
    pub no_touch: bool,
    pub channels: usize,
    pub patterns: usize,
    pub sharded_channels: usize,
    /// Commands queued since MULTI.
    pub queued: Option<usize>,
    pub queued_bytes: usize,
    /// Bytes of incomplete requests.
    pub input_bytes: usize,
    /// Unsent replies, and the memory they take.
    pub output_bytes: usize,
    pub output_capacity: usize,
    pub total_bytes: usize,
    /// The full name of the last command.
    pub last_command: Option<&'static str>,
    pub is_resp3: bool,
    pub library_name: Vec<u8>,
    pub library_version: Vec<u8>,
}

impl ClientFacts {
    /// Returns the facts known from a connection's own state.
    pub fn of_session(session: &Session) -> ClientFacts {
        ClientFacts {
            id: session.id,
            name: session.name.clone(),
            database: session.database,
            is_monitor: session.is_monitor,
            is_closing: session.closing,
            no_evict: session.no_evict,
            no_touch: session.no_touch,
            channels: session.subscriptions.count(SubscriptionKind::Channel),
            patterns: session.subscriptions.count(SubscriptionKind::Pattern),
            sharded_channels: session.subscriptions.count(SubscriptionKind::ShardChannel),
            queued: session.queue.as_ref().map(|queue| queue.commands.len()),
            queued_bytes: session.queue.as_ref().map_or(0, |queue| queue.bytes),
            is_resp3: session.protocol == Protocol::Resp3,
            library_name: session.library_name.clone(),
            library_version: session.library_version.clone(),
            ..ClientFacts::default()
        }
    }
}

/// A pause: its end, and the commands it affects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    pub until: UnixMillis,
    pub scope: PauseScope,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PauseScope {
    Writes,
    All,
}

/// The way a blocked command ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unblock {
    AsTimeout,
    WithError,
}

/// A message to be published on a channel.
#[derive(Clone, Copy, Debug)]
pub struct Post<'a> {
    pub space: Space,
    pub channel: &'a [u8],
    pub payload: &'a [u8],
}

/// An entry of the slow log.
#[derive(Clone, Debug)]
pub struct SlowCommand {
    pub id: u64,
    pub unix_seconds: u64,
    pub micros: u64,
    /// Long arguments are truncated.
    pub args: OwnedArgs,
    pub client_address: String,
    pub client_name: Vec<u8>,
}

/// Records of an operation that took longer than the threshold.
#[derive(Clone, Debug)]
pub struct LatencyEvent {
    pub name: &'static str,
    /// The maximum since the start, even if it is no longer among the samples.
    pub millis_max: u64,
    /// The latest samples, at most one per second, the oldest first; never empty.
    pub samples: Vec<LatencySample>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatencySample {
    pub unix_seconds: u64,
    pub millis: u64,
}

/// The maximum time a command may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Block {
    Not,
    For(Duration),
    ForEver,
}

/// The result of [`Host::count_acknowledged`](super::Host::count_acknowledged).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Acknowledged {
    By(usize),
    /// Nothing is replied; the command runs again.
    Waiting,
}

/// Number and duration of the waits of commands for a handover.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StallFacts {
    pub count: u64,
    pub longest_micros: u64,
    pub total_micros: u64,
}

/// A connection to another node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkFacts {
    pub direction: LinkDirection,
    /// The id of the node at the other end.
    pub node: NodeId,
    /// Bytes sent but not yet acknowledged, or waiting to be sent.
    pub unsent_bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkDirection {
    To,
    From,
}

/// The state of a request to the timers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Nothing is replied; the command runs again when the answer has arrived.
    Waiting,
    Answered(TimerAnswer),
    /// The request was not sent: its callback target is not allowed.
    Forbidden(String),
}

/// The state of a change of settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SettingsChange {
    Done,
    /// The other nodes have to agree. Nothing is replied; the command runs again when they have.
    Waiting,
    /// One of the settings was refused, and none was changed.
    Refused(ChangeError),
    /// The cluster did not decide; the text says why, and whether the change may still take effect.
    Failed(String),
}

/// The mode of expiry: expired keys are removed when they are due, or only on access.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ActiveExpiry {
    #[default]
    On,
    Off,
}

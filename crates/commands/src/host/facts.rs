//! The node's facts about itself: the numbers behind INFO, CLUSTER and MEMORY. Plain data; the commands format it.

use std::time::Duration;

use super::{Histogram, MemoryFigures};
use crate::Spec;

/// Access to the node's facts and statistics.
pub trait Facts {
    fn facts(&self) -> NodeFacts;

    /// Returns the identity alone, as it is in the facts.
    fn identity(&self) -> Identity;

    /// Returns the statistics of each command and subcommand that was ever called.
    fn command_counts(&self) -> Vec<CommandCounts>;

    /// Returns the number of error replies by error code, in the order of the codes.
    fn error_counts(&self) -> Vec<(String, u64)>;

    /// Resets all statistics.
    fn reset_statistics(&mut self);

    /// Returns the time of day to the microsecond, since 1970.
    fn time(&self) -> Duration;
}

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
    pub keyspace: KeyspaceNumbers,
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
    pub input_bytes_max: usize,
    pub output_bytes_max: usize,
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

//! What a node knows about itself: the numbers behind INFO, CLUSTER and MEMORY. Plain data; how it is
//! shown is up to the commands.

use std::time::Duration;

use super::{Histogram, MemoryFigures};
use crate::Spec;

/// Whoever counts.
pub trait Facts {
    fn facts(&self) -> NodeFacts;

    /// The same as in the facts, for who needs no more.
    fn identity(&self) -> Identity;

    /// What each command and subcommand has been asked for, those never asked for left out.
    fn command_counts(&self) -> Vec<CommandCounts>;

    /// How often each code of an error was replied, in the order of the codes.
    fn error_counts(&self) -> Vec<(String, u64)>;

    /// Begins counting anew.
    fn reset_statistics(&mut self);

    /// The time of day to the microsecond, since 1970.
    fn time(&self) -> Duration;
}

/// A node at one moment. Counters count from its start, or from the last CONFIG RESETSTAT.
#[derive(Clone, Default, Debug)]
pub struct NodeFacts {
    pub identity: Identity,
    pub uptime: Duration,
    pub clients: ClientNumbers,
    pub memory: MemoryFigures,
    /// Bytes of physical memory that the machine has.
    pub machine_bytes: u64,
    pub traffic: Traffic,
    pub keyspace: KeyspaceNumbers,
    pub cpu: CpuTimes,
}

/// Who the node is and where it listens.
#[derive(Clone, Default, Debug)]
pub struct Identity {
    /// Forty hexadecimal digits, new at each start.
    pub id: String,
    pub version: &'static str,
    pub os: String,
    pub process: u32,
    pub executable: String,
    pub config_file: String,
    /// The address clients are told.
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
    /// Milliseconds, estimated from a few keys.
    pub average_ttl: u64,
}

#[derive(Clone, Copy, Default, Debug)]
pub struct CpuTimes {
    pub user: Duration,
    pub system: Duration,
    pub user_children: Duration,
    pub system_children: Duration,
}

/// What a command has been asked for, and how long it took.
#[derive(Clone)]
pub struct CommandCounts {
    pub spec: &'static Spec,
    /// Runs, the failed ones included.
    pub calls: u64,
    pub time: Duration,
    pub failed: u64,
    /// Refused before they ran.
    pub rejected: u64,
    pub histogram: Histogram,
}

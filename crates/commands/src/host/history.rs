//! The slow log, and the events of the latency monitor.

use crate::OwnedArgs;

/// Access to the slow log and the latency monitor.
pub trait History {
    /// Returns at most `count` entries of the slow log, the newest first.
    fn slow_commands(&self, count: usize) -> Vec<SlowCommand>;

    fn slow_command_count(&self) -> usize;

    fn forget_slow_commands(&mut self);

    /// Returns the records of each event, in the order of their names.
    fn latency_events(&self) -> Vec<LatencyEvent>;

    /// Deletes all records of the event with this name. Returns false if there are none.
    fn forget_latency_event(&mut self, name: &str) -> bool;
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

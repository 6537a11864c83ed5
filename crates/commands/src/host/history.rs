//! What was slow: the slow log, and the events of the latency monitor.

use crate::OwnedArgs;

/// Whoever remembers.
pub trait History {
    /// The newest entries of the slow log first, `count` at most.
    fn slow_commands(&self, count: usize) -> Vec<SlowCommand>;

    fn slow_command_count(&self) -> usize;

    fn forget_slow_commands(&mut self);

    /// What has been recorded of each event, in the order of their names.
    fn latency_events(&self) -> Vec<LatencyEvent>;

    /// Forgets all events of this name. False if there are none.
    fn forget_latency_event(&mut self, name: &str) -> bool;
}

/// An entry of the slow log.
#[derive(Clone, Debug)]
pub struct SlowCommand {
    pub id: u64,
    pub unix_seconds: u64,
    pub micros: u64,
    /// Long ones cut short.
    pub args: OwnedArgs,
    pub client_address: String,
    pub client_name: Vec<u8>,
}

/// How often and how long something that should be quick was not.
#[derive(Clone, Debug)]
pub struct LatencyEvent {
    pub name: &'static str,
    /// The longest since the start, even if it is no longer among the samples.
    pub millis_max: u64,
    /// The last ones, at most one a second, the oldest first; never empty.
    pub samples: Vec<LatencySample>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatencySample {
    pub unix_seconds: u64,
    pub millis: u64,
}

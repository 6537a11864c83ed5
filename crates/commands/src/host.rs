//! The node's interface for commands: everything besides the keys and the command's own connection. A command reaches
//! it as `Context::host`. The server implements it (`server/src/host.rs`), tests have their own implementation
//! (`testing/host.rs`). `host/facts.rs` has the data that goes through it.

mod facts;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cluster::control::OperatorRequest;
use cluster::map::{DocumentWrite, Epoch, MapStep, NodeId, StepError};
use cluster::serving::{WaitNumber, Waiter};
use cluster::status::{Health, Status};
use settings::Settings;
use timers::TimerRequest;

pub use facts::{
    Acknowledged, ActiveExpiry, Asked, Block, ClientFacts, ClientNumbers, CommandCounts, CpuTimes,
    Identity, KeyspaceNumbers, LatencyEvent, LatencySample, LinkDirection, LinkFacts,
    MemoryFigures, NodeFacts, Pause, PauseScope, Post, SettingsChange, SlowCommand, StallFacts,
    Traffic, Unblock,
};

use crate::{DocumentsChange, ScriptLog, Session, Space, SubscriptionKind};

/// The node, as commands see it. One trait, since every command gets all of it and every node implements all of it.
pub trait Host {
    // Connections: CLIENT, MONITOR.

    /// Returns the connection that runs this command.
    fn this_client(&self, session: &Session) -> ClientFacts;

    /// Returns all connections, the oldest first. This one is described by its session, since the shared records
    /// may be slightly stale.
    fn clients(&self, session: &Session) -> Vec<ClientFacts>;

    /// Closes another connection. Returns false if it is already gone.
    fn kill_client(&mut self, id: u64) -> bool;

    /// Pauses commands until the given time. A second pause only lengthens and widens the first.
    fn pause_clients(&mut self, pause: Pause);

    /// Ends all pauses.
    fn unpause_clients(&mut self);

    /// Ends the wait of a connection that is blocked in a command. Returns false if it is not blocked.
    fn unblock_client(&mut self, id: u64, how: Unblock) -> bool;

    /// Returns the address at which this connection is woken when it waits for keys.
    fn waiter(&self) -> Waiter;

    /// Returns a place in line for keys, behind all earlier ones.
    fn next_wait_number(&mut self) -> WaitNumber;

    /// Makes this connection a monitor, which receives every command that runs.
    fn start_monitor(&mut self, session: &mut Session);

    // Subscriptions and messages: SUBSCRIBE, PUBLISH, PUBSUB.

    /// Adds a new subscription of this connection to a name.
    fn subscribe(&mut self, session: &Session, kind: SubscriptionKind, name: &Arc<[u8]>);

    /// Removes an existing subscription of this connection to a name.
    fn unsubscribe(&mut self, session: &Session, kind: SubscriptionKind, name: &[u8]);

    /// Sends a message to all subscribers and returns their number. A connection that is subscribed to the channel
    /// and to matching patterns receives it, and counts, several times.
    fn publish(&mut self, session: &Session, post: Post<'_>) -> usize;

    /// Returns the number of subscribers that a message would have now.
    fn count_receivers(&self, post: Post<'_>) -> usize;

    /// Returns the channels with subscribers whose names match the pattern.
    fn channels(&self, space: Space, pattern: Option<&[u8]>) -> Vec<Arc<[u8]>>;

    /// Returns the number of connections subscribed to this channel by its name.
    fn subscribers(&self, space: Space, channel: &[u8]) -> usize;

    /// Returns the number of different patterns with subscribers.
    fn pattern_count(&self) -> usize;

    // Settings: CONFIG, AUTH.

    fn settings(&self) -> Arc<Settings>;

    /// Returns whether this connection may present a password now. After many wrong ones its address has to wait.
    fn may_log_in(&self) -> bool;

    /// Records a wrong password.
    fn note_wrong_password(&mut self);

    /// Changes several settings, all or none of them. If some are cluster-wide, all nodes agree on them first; unless
    /// `block` is `Block::Not`, the command waits for that.
    fn change_settings(&mut self, changes: &[(&str, &str)], block: Block) -> SettingsChange;

    /// Writes the changed settings to the file the node was started with. The error is a complete error reply.
    fn rewrite_settings(&mut self) -> Result<(), String>;

    // Scripts: SCRIPT LOAD, `redis.log`.

    /// Writes documents of the cluster, all or none. Unless `block` is `Block::Not`, the command waits for that.
    fn write_documents(&mut self, writes: Vec<DocumentWrite>, block: Block) -> DocumentsChange;

    /// Writes a line of a script to the node's log.
    fn log_script(&mut self, level: ScriptLog, text: &str);

    // Facts and statistics: INFO, MEMORY, TIME, CONFIG RESETSTAT.

    fn facts(&self) -> NodeFacts;

    /// Returns the identity alone, as it is in the facts.
    fn identity(&self) -> Identity;

    /// Returns the memory figures alone, as they are in the facts.
    fn memory(&self) -> MemoryFigures;

    /// Returns the statistics of each command and subcommand that was ever called.
    fn command_counts(&self) -> Vec<CommandCounts>;

    /// Returns the number of error replies by error code, in the order of the codes.
    fn error_counts(&self) -> Vec<(String, u64)>;

    /// Resets all statistics.
    fn reset_statistics(&mut self);

    /// Returns the time of day to the microsecond, since 1970.
    fn time_of_day(&self) -> Duration;

    // Slow commands: SLOWLOG, LATENCY.

    /// Returns at most `count` entries of the slow log, the newest first.
    fn slow_commands(&self, count: usize) -> Vec<SlowCommand>;

    fn slow_command_count(&self) -> usize;

    fn forget_slow_commands(&mut self);

    /// Returns the records of each event, in the order of their names.
    fn latency_events(&self) -> Vec<LatencyEvent>;

    /// Deletes all records of the event with this name. Returns false if there are none.
    fn forget_latency_event(&mut self, name: &str) -> bool;

    // The cluster: CLUSTER, WAIT.

    /// Returns the complete status of the cluster.
    fn cluster_status(&self) -> Status;

    /// Returns the verdict about the cluster's health, by what this node knows already.
    fn cluster_health(&self) -> Health;

    /// Requests an operation that the nodes then perform together, asynchronously. `Err` gives the reason for a
    /// refusal in one line.
    fn ask_cluster(&mut self, request: OperatorRequest) -> Result<(), String>;

    /// Returns the epoch of the map. Subscribers of the map's channel receive every later change.
    fn map_epoch(&self) -> Epoch;

    /// Returns the changes of the map since an epoch of this history.
    fn map_since(&self, epoch: Epoch, history: Option<&str>) -> Result<MapStep, StepError>;

    /// Returns the primaries that are unreachable: this node's backup copies of their slots may be stale.
    fn pending_primaries(&self) -> BTreeSet<NodeId>;

    /// Returns the connections to other nodes.
    fn links(&self) -> Vec<LinkFacts>;

    /// Returns the keys that both sides of a split had changed before they merged, as JSON, the latest last.
    fn conflicts(&self) -> Vec<String>;

    /// Counts the backups that have acknowledged everything this connection has written. If they are fewer than
    /// wanted, and `block` allows waiting, the command runs again when more have acknowledged.
    fn count_acknowledged(&mut self, wanted: i64, block: Block) -> Acknowledged;

    /// Returns statistics about commands that had to wait for a handover of their bucket.
    fn handover_stalls(&self) -> StallFacts;

    // Timers: TIMER.*.

    /// Sends a request for this connection; if its command runs again after that, returns the answer.
    fn ask_timers(&mut self, wish: TimerRequest) -> Asked;

    // The process: SHUTDOWN, DEBUG.

    /// Asks the node to stop. It sends no further replies.
    fn shut_down(&mut self);

    /// Blocks this thread for a while, so that it serves no client.
    fn sleep(&mut self, pause: Duration);

    /// Switches the removal of expired keys that nobody accesses.
    fn set_active_expiry(&mut self, active: ActiveExpiry);
}

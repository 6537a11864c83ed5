//! The commands: their entries in the table, their parsing, and their execution on locked slots, which produces a
//! reply and effects; also the state of a connection. Pure: sockets, locks, the clock and random numbers belong to
//! the caller (`server/src/worker/execute.rs`, and tests).
//!
//! The path of one command: [`Request::prepare`] (finds the command and its keys), [`admit`] (decides whether it
//! may run now, and which slots to lock), then [`run`], which calls the function named in the table. To add a
//! command: one entry in the `SPECS` of a family below, one function beside it.
mod short_names; //  Commands by their names, as words.
mod spec; //        A command as data, and the table of all of them.
mod request; //     A request with its command and its first key.
mod args; //        Arguments as positions in a buffer.
mod admit; //       Decides whether a command may run now, and which slots it needs.
mod context; //     The context of a running command.
mod execute; //     Executes one command, from admission to its tickets.
mod keys; //        The locked slots, as commands see them: read, write, notify.
mod outcome; //     The results of a command besides its reply.
mod session; //     A connection's state.
mod host; //        The node's interface for commands.
mod histogram; //   Durations of commands.
mod error; //       Error replies, in Redis's words.
mod strings; //     SET, GET and the other string commands.
mod bits; //        SETBIT, BITCOUNT, BITFIELD and the other bit commands.
mod hyperloglog; // PFADD, PFCOUNT, PFMERGE.
mod hashes; //      HSET, HGET and the other hash commands.
mod lists; //       LPUSH, LPOP and the other list commands.
mod sorted_sets; // ZADD, ZRANGE and the other commands on sorted sets.
mod geo; //         GEOADD, GEOSEARCH and the other geo commands.
mod sets; //        SADD, SMEMBERS and the other set commands.
mod sort; //        SORT: elements in order, by themselves or by values of other keys.
mod blocking; //    Commands that wait for keys.
mod streams; //     XADD, XREADGROUP and the other stream commands.
mod sample; //      Random samples without repetition.
mod keyspace; //    DEL, EXPIRE, SCAN: keys of any type.
mod transactions; // MULTI, EXEC, WATCH.
mod scripts; //     EVAL, SCRIPT.
mod rdb; //         Values in Redis's serialisation format.
mod glob; //        Glob patterns.
mod connection; //  PING, AUTH, HELLO and other commands about the connection itself.
mod client; //      CLIENT: this connection and the others.
mod pubsub; //      SUBSCRIBE, PUBLISH, keyspace notifications.
mod command; //     COMMAND: describes this table to clients.
mod config; //      CONFIG: reads and changes the settings.
mod info; //        INFO.
mod server; //      TIME, SHUTDOWN, SLOWLOG and other commands about the node as a whole.
pub mod cluster; //   CLUSTER, and the owners of slots.
mod timer; //       TIMER.SET and the other timer commands.
mod shown; //       Arguments with secrets removed.
mod help; //        HELP of every container of subcommands.
#[cfg(any(test, feature = "testing"))]
pub mod testing; // A node without sockets, for tests and fuzzing.

pub use admit::{LockSet, needs_memory};
pub use args::{Args, OwnedArgs};
pub use blocking::{KeyWait, UNBLOCKED, remaining_timeout, timeout_index};
pub use context::{Context, Ending, Run, run};
pub use error::Error;
pub use execute::{CommandResources, Executed, OwnHost, ServingRules, TakeLocks, execute};
pub use glob::glob_matches;
pub use histogram::Histogram;
pub use host::{
    Acknowledged, ActiveExpiry, Asked, Block, ClientFacts, ClientNumbers, CommandCounts, CpuTimes,
    Host, Identity, KeyspaceNumbers, LatencyEvent, LatencySample, LinkDirection, LinkFacts,
    MemoryFigures, NodeFacts, Pause, PauseScope, Post, SettingsChange, SlowCommand, StallFacts,
    Traffic, Unblock,
};
pub use keys::{CommandEnv, Keys, Slots};
pub use outcome::{Announcement, Event, Outcome};
pub use pubsub::{Space, SubscriptionKind, Subscriptions, dismiss};
#[cfg(any(test, feature = "testing"))]
pub use rdb::fuzz_payload;
pub use request::Request;
pub use scripts::{BUSY, DocumentsChange, ScriptLog, follow_scripts};
pub use session::{ClientPort, Queued, ReplyMode, Session, Watched};
pub use shown::visible_args;
#[cfg(any(test, feature = "testing"))]
pub use sort::fuzz_pattern;
pub use spec::{CommandId, Flag, Flags, Group, KeySpec, Spec, Table};

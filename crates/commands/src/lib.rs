//! What a command does: its entry in the table, its parsing, its run on locked slots, which leaves a
//! reply and effects; and the state of a connection. Pure: sockets, locks, the clock and chance belong
//! to whoever calls (`server/src/worker/execute.rs`, and tests).
//!
//! The way of one command: [`Request::prepare`] (which command, which keys), [`admit`] (may it run
//! now, and which slots must be locked), then [`run`], which calls the function named in the table.
//! To add a command: one entry in the `SPECS` of a family below, one function beside it.
pub mod settings; // What can be configured: names, kinds, defaults, help.
mod spec; //        A command as data, and the table of all of them.
mod request; //     A request that has found its command and its keys.
mod args; //        Arguments: places in a buffer.
mod admit; //       May this command run now, on this connection? Which slots does it need?
mod context; //     What a running command has at hand.
mod execute; //     One command from admission to its tickets.
mod keys; //        The locked slots, as commands see them: read, write, notify.
mod outcome; //     What a command leaves behind besides its reply.
mod session; //     A connection's state.
mod host; //        What a command may ask of the node around it.
mod error; //       Error replies, in Redis's words.
mod strings; //     SET, GET and their kin.
mod bits; //        SETBIT, BITCOUNT, BITFIELD and their kin.
mod keyspace; //    DEL, EXPIRE, SCAN: keys whatever they hold.
mod transactions; // MULTI, EXEC, WATCH.
mod rdb; //         Values in Redis's serialised form.
mod glob; //        Patterns of names.
mod connection; //  PING, AUTH, HELLO and what else a connection says of itself.
mod client; //      CLIENT: this connection and the others.
mod pubsub; //      SUBSCRIBE, PUBLISH, keyspace notifications.
mod command; //     COMMAND: this table, told to clients.
mod config; //      CONFIG: the settings, read and changed.
mod info; //        INFO.
mod server; //      TIME, SHUTDOWN, SLOWLOG and what else concerns the node as a whole.
pub mod cluster; //   CLUSTER, and whose a slot is.
mod timer; //       TIMER.SET and its kin.
mod shown; //       Arguments as others may see them.
mod help; //        HELP of every container of subcommands.
#[cfg(any(test, feature = "testing"))]
pub mod testing; // A node without sockets, for tests and fuzzing.

pub use admit::{Locks, Verdict, admit, needs_memory};
pub use args::{Args, OwnedArgs};
pub use context::{Context, Ending, Run, run};
pub use error::Error;
pub use execute::{Executed, OwnHost, ServingRules, Workbench, execute};
pub use glob::glob_matches;
pub use host::{
    Acknowledged, ActiveExpiry, Asked, Block, ChangeError, ClientFacts, ClientNumbers, Clients,
    Cluster, CommandCounts, Configuration, Control, CpuTimes, Debugging, Facts, Histogram, History,
    Host, Identity, KeyspaceNumbers, LatencyEvent, LatencySample, LinkDirection, LinkFacts, Memory,
    MemoryFigures, NodeFacts, Pause, PauseScope, Post, PubSub, SlowCommand, StallFacts,
    TimerKeeper, Traffic, Unblock, changed_settings,
};
pub use keys::{Keys, Slots, Surroundings, roll};
pub use outcome::{Event, Outcome};
pub use pubsub::{Kind, Space, Subscriptions, dismiss};
pub use request::Request;
pub use session::{Queued, Replies, Session, Watched};
pub use shown::shown_args;
pub use spec::{CommandId, Flag, Flags, Group, KeySpec, Spec, Table};

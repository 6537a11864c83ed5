//! The fleet: plain Redis servers behind a proxy. Keys move between them, command by command, while
//! applications keep running. This crate has no I/O, no clock and no randomness.
//!
//! Users of the modules:
//!
//! * The proxy reads the first server's [`Config`] ([`config::KEYS`] with one MGET), makes a [`View`]
//!   of it and asks [`decide`] about every command. Most are [`Plan::Forward`]. A moving key needs a job:
//!   [`ReadJob`] or [`WriteJob`] (or [`BringJob`], before a transaction or a blocking command). Facts that a
//!   job has learnt go into [`Known`], which is cleared with every new epoch.
//! * The migrator moves keys with [`MoveJob`] and [`BigMoveJob`].
//! * Both run jobs by the rules at the top of `job.rs`. The tests run the same jobs against in-memory
//!   servers, in every interleaving.
//! * [`Config`] changes only through `switch.rs`: the migrator announces a map, the proxies release the keys
//!   it moves ([`switch::Follower`] says what to do and when), then the migrator switches to it.
//!
//! The guarantee: no read returns a value older than one already returned or acknowledged, before, during and
//! after a migration, whichever process dies at whatever moment.

pub mod config; //  The fleet's configuration, stored on every server.
pub mod names; //   Names of keys and connections that are the fleet's own.
pub mod command; // Properties of Redis commands that matter to a fleet.
pub mod view; //    The maps of one epoch, and the place of each key under them.
pub mod known; //   Facts learnt about moving keys.
pub mod plan; //    The decision about each command.
pub mod scan; //    One cursor over many servers.
pub mod job; //     Sequences of commands driven by their answers, without sockets.
pub mod read; //    A read of a moving key.
pub mod write; //   A write of moving keys.
pub mod moving; //  Moves keys from one server to another.
pub mod big; //     Moves a large key, element by element.
pub mod switch; //  Switches from one map to the next.
pub mod cluster; // A cluster as one of the fleet's servers.

#[cfg(test)]
mod races; // Model checking: every interleaving of all actors' steps.

pub use big::BigMoveJob;
pub use command::Command;
pub use config::{Address, Config, Epoch, Kind, Server, Status};
pub use job::{Answer, Ask, Job, Lane, Step};
pub use known::{Knowledge, Known};
pub use moving::{MoveJob, Outcome, Token};
pub use plan::{Plan, decide};
pub use read::ReadJob;
pub use view::{Place, Route, View};
pub use write::{BringJob, Wanted, WriteJob};

//! The fleet: plain Redis servers behind a proxy, and how a key moves between them, command by
//! command, while applications go on. No I/O, no clock, no chance.
//!
//! Who uses what:
//!
//! * The proxy reads the first server's [`Config`] ([`config::KEYS`] with one MGET), makes a [`View`]
//!   of it and asks [`decide`] about every command. Most are [`Plan::Forward`]. A key on its way needs
//!   a job: [`ReadJob`] or [`WriteJob`] (or [`BringJob`], before a transaction or a command that
//!   waits). What a job learnt goes into [`Known`], which is emptied with every new epoch.
//! * The migrator moves keys with [`MoveJob`] and [`BigMoveJob`].
//! * Both run jobs by the rules at the top of `job.rs`. The tests run the same jobs against servers in
//!   memory, in every order.
//! * [`Config`] changes only through `switch.rs`: the migrator announces a map, proxies let go of the
//!   keys it moves ([`switch::Follower`] tells them what to do when), and then it is switched to.
//!
//! The promise: no read returns a value older than one already returned or acknowledged, before,
//! during and after a migration, whoever dies at whatever moment.

pub mod config; //  What the servers keep about the fleet.
pub mod names; //   Names of keys and connections that are the fleet's own.
pub mod command; // What a Redis command is to a fleet.
pub mod view; //    The maps of one epoch, and where a key is under them.
pub mod known; //   What has been learnt about moving keys.
pub mod plan; //    What to do with a command.
pub mod scan; //    One cursor over many servers.
pub mod job; //     Commands that follow from answers, without sockets.
pub mod read; //    A read of a key on its way.
pub mod write; //   A write of keys on their way.
pub mod moving; //  Keys from one server to another.
pub mod big; //     A large key, element by element.
pub mod switch; //  From one map to the next.
pub mod cluster; // A cluster as one of the servers.

#[cfg(test)]
mod races; // Every order of everybody's steps.

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

//! Switches maps so that no two proxies ever act on different ones.
//!
//! ~~~text
//! migrator  every server: epoch n+1, next = the new map             "announced"
//! proxies   stop commands on keys that move, drain those in flight,
//!           then name their connections fleet:ID:n+1
//! migrator  CLIENT LIST of every server until no name is below n+1;
//!           after 2 s it kills the remaining ones
//! migrator  every server, the first one last: previous, current, status 1, no next
//! proxies   see it on the first server, and resume
//! ~~~
//!
//! A connection's name is binding: until it is renamed or closed, commands under an older map may still
//! arrive over it. This needs no clock, only names and one configuration per server. The first server's
//! configuration decides; the others repeat it.
//!
//! `follow.rs` is the proxy's side, `change.rs` and `barrier.rs` are the migrator's, and `lock.rs` says who
//! may change anything. If the migrator dies after announcing, its lock expires and any proxy withdraws the
//! announcement.

mod follow; //  A proxy's reaction to a changed configuration.
mod change; //  Writes the configuration, server by server, each write on a condition.
mod barrier; // Waits until nobody acts on an older map.
mod lock; //    One migrator at a time.

pub use barrier::{BARRIER_PATIENCE_MS, BarrierJob};
pub use change::{ChangeJob, Holder};
pub use follow::{Agreement, Follow, Follower};
pub use lock::{LAPSED, LOCK_MS, ReleaseJob, RenewJob, TakeLockJob};

use placement::ServerMap;

use crate::config::{Address, Config, Status};

impl Config {
    /// Returns this configuration with a new map announced, possibly over more servers.
    #[must_use]
    pub fn announced(&self, next: ServerMap, servers: Vec<Address>) -> Config {
        let epoch = self.epoch.next();
        Config { servers, epoch, next: Some(next), lock: None, ..self.clone() }
    }

    /// Returns the configuration with the announced map in force: keys begin to move.
    ///
    /// # Panics
    /// Panics if no map is announced.
    #[must_use]
    pub fn switched(&self) -> Config {
        let next = self.next.clone().expect("only an announced map is switched to");
        let previous = self.current.clone();
        let status = Status::InProgress;
        Config { current: next, previous, status, next: None, lock: None, ..self.clone() }
    }

    /// Returns the configuration after the migration: all keys are at their server under the current map.
    #[must_use]
    pub fn ended(&self) -> Config {
        let previous = self.current.clone();
        let (status, runs) = (Status::Completed, Vec::new());
        Config { previous, status, next: None, runs, lock: None, ..self.clone() }
    }

    /// Returns the configuration with the announcement withdrawn.
    #[must_use]
    pub fn undone(&self) -> Config {
        Config { epoch: self.epoch.next(), next: None, lock: None, ..self.clone() }
    }
}

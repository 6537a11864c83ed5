//! Switching maps, so that no two proxies ever act on different ones.
//!
//! ~~~text
//! migrator  every server: epoch n+1, next = the new map             "announced"
//! proxies   stop commands on keys that move, let those in flight end,
//!           then name their connections fleet:ID:n+1
//! migrator  CLIENT LIST of every server until no name is below n+1;
//!           after 2 s it ends those that are left
//! migrator  every server, the first one last: previous, current, status 1, no next
//! proxies   see it on the first server, and go on
//! ~~~
//!
//! A connection's name is its word: until it is renamed or ended, commands under an older map may
//! still arrive over it. No clock is involved, and nothing but names and one configuration a server.
//! The first server's word decides; the others repeat it.
//!
//! `follow.rs` is the proxy's side, `change.rs` and `barrier.rs` the migrator's, `lock.rs` says who
//! may change anything. If the migrator dies after announcing, its lock lapses and any proxy takes
//! the announcement back.

mod follow; //  What a proxy does when the configuration changes.
mod change; //  Writing the configuration, server by server, each write on a condition.
mod barrier; // Waiting until nobody acts on an older map.
mod lock; //    One migrator at a time.

pub use barrier::{BARRIER_PATIENCE_MS, BarrierJob};
pub use change::{ChangeJob, Holder};
pub use follow::{Agreement, Follow, Follower};
pub use lock::{LAPSED, LOCK_MS, ReleaseJob, RenewJob, TakeLockJob};

use placement::ServerMap;

use crate::config::{Address, Config, Status};

impl Config {
    /// This configuration with a new map announced, perhaps over more servers.
    #[must_use]
    pub fn announced(&self, next: ServerMap, servers: Vec<Address>) -> Config {
        let epoch = self.epoch.next();
        Config { servers, epoch, next: Some(next), lock: None, ..self.clone() }
    }

    /// The announced map in force: keys begin to move.
    ///
    /// # Panics
    /// If none is announced.
    #[must_use]
    pub fn switched(&self) -> Config {
        let next = self.next.clone().expect("only an announced map is switched to");
        let previous = self.current.clone();
        let status = Status::InProgress;
        Config { current: next, previous, status, next: None, lock: None, ..self.clone() }
    }

    /// All keys are where the current map has them.
    #[must_use]
    pub fn ended(&self) -> Config {
        let previous = self.current.clone();
        Config { previous, status: Status::Completed, next: None, lock: None, ..self.clone() }
    }

    /// The announcement taken back.
    #[must_use]
    pub fn undone(&self) -> Config {
        Config { epoch: self.epoch.next(), next: None, lock: None, ..self.clone() }
    }
}

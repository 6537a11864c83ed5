//! The operator's options for the migrator.

use fleet::Address;
use placement::ServerMap;

use crate::servers::Access;

#[derive(Clone, Debug)]
pub struct MigrateOptions {
    /// The fleet's servers, or the first of them.
    pub servers: Vec<Address>,
    pub access: Access,
    pub goal: Goal,
    /// Servers that join the fleet, appended to its list.
    pub add: Vec<Address>,
    /// Maximum bytes per second.
    pub rate: Option<u64>,
    /// Size above which keys stay at their old server and are listed.
    pub skip_larger_than: Option<u64>,
    pub busy: Busy,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Goal {
    Map(ServerMap),
    /// Continue the migration in progress.
    Resume,
    /// Go back to the map before the migration in progress.
    Abort,
}

/// Behaviour while another migrator runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Busy {
    Refuse,
    Wait,
}

//! What an operator asks of the migrator.

use fleet::Address;
use placement::ServerMap;

use crate::servers::Access;

#[derive(Clone, Debug)]
pub struct MigrateOptions {
    /// The fleet's servers, or the first of them.
    pub servers: Vec<Address>,
    pub access: Access,
    pub goal: Goal,
    /// Servers that become part of the fleet, behind those it has.
    pub add: Vec<Address>,
    /// At most so many bytes a second.
    pub rate: Option<u64>,
    /// Keys larger than this stay where they are, and are listed.
    pub skip_larger_than: Option<u64>,
    pub busy: Busy,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Goal {
    Map(ServerMap),
    /// Go on with the migration in progress.
    Resume,
    /// Go back to the map before the migration in progress.
    Abort,
}

/// What to do while another migrator runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Busy {
    Refuse,
    Wait,
}

//! Operator commands for a fleet besides running proxies: inspect, check, repair. The migrator is in
//! `migrate`; it starts with the same inspection.

mod look; //   Each server's state and its configuration of the fleet.
mod walk; //   Walks all keys of a server, page by page.
mod status; // Shares, keys, memory, and the progress of a migration.
mod check; //  Misplaced keys, duplicate keys, servers that disagree.

pub use check::{CheckOptions, CheckReport, Finding, Mend, check};
pub use look::{AdminError, Facts, Look, Seen};
pub use status::{ServerStatus, StatusReport, status};

pub(crate) use look::{Info, PATIENCE, list, look_at_new, refused_at, refused_info, unsuitable};
pub(crate) use walk::{Go, pages};

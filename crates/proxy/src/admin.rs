//! What an operator does with a fleet besides running proxies: look at it, check it, mend it. The
//! migrator is in `migrate`; it begins with the same look.

mod look; //   What each server says of itself and of the fleet.
mod walk; //   All keys of a server, page by page.
mod status; // Shares, keys, memory, and how far a migration is.
mod check; //  Keys in wrong places, keys twice, servers that disagree.

pub use check::{CheckOptions, CheckReport, Finding, Mend, check};
pub use look::{AdminError, Facts, Look, Seen};
pub use status::{ServerStatus, StatusReport, status};

pub(crate) use look::{Info, PATIENCE, list, look_at_new, refused_at, refused_info, unsuitable};
pub(crate) use walk::{Go, pages};

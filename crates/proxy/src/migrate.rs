//! The migrator: from one map of a fleet to the next, while applications go on.
//!
//! [`plan`] says what would move. [`run`] takes the lock, has the new map announced and switched to
//! (`switching.rs`), moves the keys (`moving.rs`, the jobs are `fleet`'s) and writes that it is done.
//! It can be killed at any moment; [`Goal::Resume`] goes on from wherever that was.

mod options; //   What an operator asks for.
mod estimate; //  How many keys move, from where to where, and how large they are.
mod progress; //  How far it is, for those who watch.
mod switching; // The lock, the announcement, the barrier, the switch.
mod lanes; //     Connections that carry the epoch in their names.
mod courtesy; //  Whether the servers have other work.
mod moving; //    Keys found, weighed, batched and carried over.
mod run; //       The whole of it, in order.

pub use estimate::{Estimate, Load};
pub use options::{Busy, Goal, MigrateOptions};
pub use progress::{Left, Outcome, Phase, Progress, Report};
pub use run::{MigrationPlan, plan, run};

pub(crate) use lanes::{Broken, Lanes};
pub(crate) use switching::{Switching, random_id};

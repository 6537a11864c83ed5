//! The migrator: takes a fleet from one map to the next, while applications keep running.
//!
//! [`plan`] says what would move. [`run`] takes the lock, announces the new map and switches to it
//! (`switching.rs`), moves the keys (`moving.rs`; the jobs are in `fleet`) and records the end. It can be
//! killed at any moment; [`Goal::Resume`] continues from there.

mod options; //   The operator's options.
mod estimate; //  Estimates the number, routes and sizes of the keys that move.
mod progress; //  Progress, for observers.
mod switching; // The lock, the announcement, the barrier, the switch.
mod lanes; //     Connections that carry the epoch in their names.
mod courtesy; //  Detects whether the servers have other work.
mod moving; //    Finds, weighs, batches and moves keys.
mod run; //       The whole migration, in order.

pub use estimate::{Estimate, Load};
pub use options::{Busy, Goal, MigrateOptions};
pub use progress::{Left, Outcome, Phase, Progress, Report};
pub use run::{MigrationPlan, plan, run};

pub(crate) use lanes::{Broken, Lanes};
pub(crate) use switching::{Switching, random_id};

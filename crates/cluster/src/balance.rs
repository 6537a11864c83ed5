//! Balance: what moves when the machines change, and who moves it.
//!
//! Every node makes the same plan from the same map (`plan.rs`) and carries out the moves in which it
//! is the giver, one at a time (`decide.rs`, `balancer.rs`). Nobody can ask for a bucket.
//! `docs/balance.md` says why it always ends, and why it moves as little as possible.

pub mod share; //   How much of everything is whose.
pub mod plan; //    How it shall be in the end, with as few copies made as can be.
pub mod decide; //  The next move of one node, and the rule behind it.
mod backoff; //     Nodes to which nothing is copied for a while.
mod balancer; //    A node's part in it: look, ask, agree, carry out.
mod engagement; //  A node's part in one move.
mod message; //     What nodes say to each other, and all that goes in and out.
mod levels; //      What a node tells another about itself.
mod pace; //        How often a node looks.
pub mod split; //   When buckets are split.

pub use balancer::Balancer;
pub use decide::{Decision, Rule, Step, StepKind, View};
pub use engagement::{Engagement, Part};
pub use levels::{Condition, FillProgress, LoadLevels, Readiness, Vitals};
pub use message::{Attempt, Effect, Input, Message, Offered, Refused, Timer};
pub use pace::Pace;
pub use plan::{BucketPlan, NewCopy, Plan};

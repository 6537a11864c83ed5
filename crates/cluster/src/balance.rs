//! Balance: which buckets move when members change, and which node moves them.
//!
//! Every node computes the same plan from the same map (`plan.rs`) and carries out the moves in which
//! it is the giver, one at a time (`decide.rs`, `balancer.rs`). No node can request a bucket.
//! `docs/balance.md` explains why balancing always terminates, and why it moves as little as possible.

pub mod share; //   Each node's share of all copies.
pub mod plan; //    The target placement, reached with the fewest copies.
pub mod decide; //  The next move of one node, and the rule behind it.
mod bundle; //       Buckets that move together.
mod backoff; //     Nodes to which nothing is copied for a while.
mod balancer; //    A node's part in balancing: collect load levels, agree on a move, carry it out.
mod engagement; //  A node's part in one move.
mod message; //     Messages between nodes; inputs and effects of the balancer.
mod levels; //      Load levels: a node's report about itself.
pub mod memory; //  Who has room, and who makes room.
mod pace; //        Interval between load-balancing events.
mod shed; //        Moves for want of memory.
mod sizes; //       Sizes of buckets, as nodes report them.
pub mod split; //   Splitting of buckets.

pub use balancer::Balancer;
pub use decide::{Decision, PlanView, Reason, Step, StepKind};
pub use engagement::{Engagement, MoveRole};
pub use levels::{Condition, FillProgress, LoadLevels, MoveReadiness, Vitals};
pub use memory::{Debt, MAKE_ROOM_FOR, MemoryLevel, MemoryReport};
pub use message::{BalanceAction, BalanceInput, BalanceMessage, MoveId, Offered, Refused, Timer};
pub use pace::Pace;
pub use plan::{BucketPlan, NewCopy, Plan};
pub use sizes::{BucketSize, SizeReport, Sizes};

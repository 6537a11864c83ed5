//! Balance: what moves when the machines change, and who moves it.
//!
//! Read in this order: `share.rs` what is whose; `plan.rs` how it shall be in the end.

pub mod share; // How much of everything is whose.
pub mod plan; //  How it shall be in the end, with as few copies made as can be.

pub use plan::{BucketPlan, NewCopy, Plan};

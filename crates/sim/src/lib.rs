//! A whole cluster in one thread under virtual time, and the checkers of the invariants.
//!
//! Nothing here is used by a real node. The code under test is `cluster`; what judges it is kept apart
//! from it and does not use its arithmetic.

mod rng; //             Chance from a seed.
pub mod lower_bound; // The fewest copies that any plan could make.

pub use rng::Rng;

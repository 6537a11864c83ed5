//! A whole cluster in one thread under virtual time, and the checkers of the invariants.
//!
//! Nothing here is used by a real node. The code under test is `cluster`; the checkers are kept apart from it
//! and do not use its arithmetic.

mod weather; //         Delays of messages and durations of fills.
mod log; //             The log of map changes, and the map at every entry.
mod world; //           Nodes, messages in flight, time.
mod checkers; //        Invariants, checked without knowledge of the code.
pub mod lower_bound; // The fewest copies that any plan could make.
pub mod ranges; //      The number of ranges of slots in a map.
pub mod grow; //        A cluster that grows and shrinks, step by step, and the cost of each step.
pub mod picture; //     A map as a picture.
pub mod svg; //         Growth as a drawing.
pub mod compare; //     Ways to place keys, side by side.
pub mod timers; //      Timers, in a small world of their own.
pub mod store; //       The store: nodes that replicate, move buckets and die, and clients that check them.

pub use sim_engine::Rng;
pub use weather::Weather;
pub use world::{Moved, World};

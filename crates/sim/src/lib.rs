//! A whole cluster in one thread under virtual time, and the checkers of the invariants.
//!
//! Nothing here is used by a real node. The code under test is `cluster`; what judges it is kept apart
//! from it and does not use its arithmetic.

mod rng; //             Chance from a seed.
mod weather; //         How messages travel and how long a fill takes.
mod log; //             The log of map changes, and the map at every entry.
mod world; //           Nodes, messages in flight, time.
mod checkers; //        What must hold, told by somebody who does not know the code.
pub mod lower_bound; // The fewest copies that any plan could make.
pub mod grow; //        A cluster that grows and shrinks, step by step, and what each step took.
pub mod picture; //     A map as the picture everybody asks for.
pub mod svg; //         Growth as a drawing.
pub mod compare; //     Ways to place keys, side by side.
pub mod timers; //      Timers: their own small world.
pub mod store; //       The store: nodes that replicate, move buckets and die, and clients that watch.

pub use rng::Rng;
pub use weather::Weather;
pub use world::{Moved, World};

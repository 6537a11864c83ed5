//! The timers' part of the simulator: the real core of many nodes in one thread, with a false network,
//! false clocks, a false map and a false place to call back to; and who judges it.
//!
//! `run::run(seed)` is one history from one number. What judges it (`checkers.rs`) sees only what a
//! client and the called party can see.

mod world; //        Nodes, messages, time, the map's authority.
mod history; //      What was asked, answered and called, as outsiders saw it.
mod weather; //      Which faults a seed brings, and how bad the network is.
mod clients; //      Who sets, changes and deletes timers.
pub mod checkers; // What must hold.
pub mod run; //      One history from a seed.

pub use clients::Plan;
pub use history::{Asked, Called, History, Outcome};
pub use weather::{Sky, Weather};
pub use world::World;

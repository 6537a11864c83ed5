//! The timers' part of the simulator: the real core of many nodes in one thread, with a simulated network,
//! simulated clocks, a simulated map and a simulated target of callbacks; and the checkers.
//!
//! `run::run(seed)` is one history from one number. The checkers (`checkers.rs`) see only what a client and
//! the called party can see.

mod world; //        Nodes, messages, time, the map's authority.
mod history; //      Requests, answers and calls, as outsiders saw them.
mod weather; //      Faults and network quality of a seed.
mod clients; //      Clients that set, change and delete timers.
pub mod checkers; // Invariants.
pub mod run; //      One history from a seed.

pub use clients::Plan;
pub use history::{Asked, Called, History, Outcome};
pub use weather::{Sky, Weather};
pub use world::World;

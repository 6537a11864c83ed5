//! The engine under the simulated worlds: events in the order of virtual time, random numbers from a seed, clocks
//! that run fast or slow, and three kinds of transport. The same seed gives the same history.
//!
//! A world (`sim/src/world.rs`, `sim/src/store/world.rs`, `sim/src/timers/world.rs`,
//! `cluster/src/control/tests/world.rs`) has the nodes and the present time; it pops an event, sets its time to the
//! event's, lets a node handle it, and pushes the consequences. Paused nodes are a matter of the world as well: it alone
//! knows which inputs wait and which of them come first afterwards.
//!
//! This is a crate of its own because `sim` and the tests inside `cluster` both use it (those of `fleet` draw from it).
//! `sim` depends on `cluster`, so tests inside `cluster` that used `sim` would link a second `cluster`, whose types are
//! not theirs. The boundary also keeps the engine free of clusters: nodes, events and points in time are type
//! parameters, and `cargo xtask tidy` lets it depend on `placement` alone, for the random numbers.

mod rng; //     Random numbers from a seed.
mod queue; //   Future events, ordered by time.
mod clock; //   Clocks that run fast or slow.
mod network; // Messages that arrive late, twice or never, in any order.
mod links; //   Messages that keep their order, on links that break.
mod streams; // Bytes that keep their order, on streams that are opened and break.

pub use clock::ClockRate;
pub use links::Links;
pub use network::{Network, Quality};
pub use queue::Queue;
pub use rng::Rng;
pub use streams::{Stream, StreamId, Streams, Way};

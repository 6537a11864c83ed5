//! Our load generator: open and closed loop, HDR histogram, no coordinated omission.
//!
//! A [`Plan`] says what to send and when; [`Load::connect`] opens the connections and [`Load::run`] drives them from
//! one thread, so that a measurement around `run` covers the requests and nothing else. A request must cost less here
//! than in the server under test, or the figures are the generator's own: requests are encoded once and patched in
//! place, replies are skipped and not parsed.
//!
//! Called by `src/bin/load.rs` (one run against any server) and `src/bin/bench` (our node beside Redis and Valkey).
//! The modules that decide, `keys`, `request` and `pace`, use no socket and no clock.
pub mod run; //     Start here: a plan in, a tally out.
mod connection; //  One socket: unsent bytes, unanswered requests.
pub mod tally; //   Counts and latencies of replies.
pub mod keys; //    The choice of the next key: uniform, Zipf, or sequential.
pub mod request; // The bytes to send, encoded once and patched in place.
mod replies; //     The bytes received, counted and discarded.
pub mod pace; //    The schedule of an open loop, and the start of each latency.
pub mod client; //  One command, one reply: for PING, INFO and the like.
pub mod slots; //   The node of each slot, from `CLUSTER SLOTS`.
pub mod process; // The cost of a server process: CPU, memory, and the cores it may use.
pub mod kept; //    Figures as docs/bench keeps them.
pub mod availability; // Anomalies and outages of chaos runs.
pub mod recovery; // Recovery times of a cluster, measured by `cargo xtask chaos`.

pub use keys::{KeySpace, Popularity};
pub use request::Operation;
pub use run::{Load, Loop, Plan, Until};
pub use tally::Tally;

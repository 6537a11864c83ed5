//! Our load generator: open and closed loop, HDR histogram, no coordinated omission.
//!
//! A [`Plan`] says what to send and when; [`Load::connect`] opens the connections and [`Load::run`]
//! drives them from one thread, so that what is measured around `run` is the requests and nothing
//! else. It must cost less a request than the server under test, or the figures are its own:
//! requests are encoded once and patched in place, replies are skipped and not parsed.
//!
//! Called by `src/bin/load.rs` (one run against any server) and `src/bin/bench` (our node beside
//! Redis and Valkey). What decides, in `keys`, `request` and `pace`, touches no socket and no clock.
pub mod run; //     Start here: a plan in, a tally out.
mod connection; //  One socket: what is unsent, what is unanswered.
pub mod tally; //   What came back, and how long it took.
pub mod keys; //    Which key next: uniform, Zipf, or one after the other.
pub mod request; // The bytes to send, encoded once and patched in place.
mod replies; //     The bytes that come back, counted and thrown away.
pub mod pace; //    When to send in an open loop, and since when a reply is awaited.
pub mod client; //  One command, one reply: for PING, INFO and the like.
pub mod slots; //   Where `CLUSTER SLOTS` says that each slot is.
pub mod process; // What a server process costs: CPU, memory, and the cores it may use.
pub mod kept; //    Figures as docs/bench keeps them.
pub mod availability; // Anomalies and outages of chaos runs.
pub mod recovery; // How fast a cluster recovers: what `cargo xtask chaos` has measured.

pub use keys::{KeySpace, Popularity};
pub use request::Operation;
pub use run::{Load, Loop, Plan, Until};
pub use tally::Tally;

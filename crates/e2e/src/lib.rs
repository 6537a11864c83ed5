//! End-to-end tests with real processes on loopback: few, slow, and the last word on what a client
//! sees. The tests are in tests/; this is what they share.
//!
//! Start at `server.rs` (a node or a Redis server of one's own), then `client.rs`. What the tests
//! need from outside is installed by `cargo xtask test`; without it they fail and say what to
//! install.
mod server; // a node, or a Redis server, for one test
mod ports; //  those they listen on
mod cluster; // several nodes, for one test
mod client; // a blocking client that shows every byte
pub mod http; // a client of HTTP, as small as it can be
mod wait; //   for what becomes so by itself
mod tools; //  redis-cli, Python, Node and Chromium, and where they are
mod effort; // how much work a test does
mod rng; //    chance that can be repeated
pub mod chaos; // a cluster that is broken at random, and what it promises

pub use client::{Answer, Client};
pub use cluster::{Cluster, Share};
pub use effort::Effort;
pub use ports::free_ports;
pub use rng::Rng;
pub use server::{Server, node_binary, opencluster, raise_fd_limit};
pub use tools::{CHROMIUM, NODE, PYTHON, REDIS_BENCHMARK, REDIS_CLI, Tool};
pub use wait::wait_until;

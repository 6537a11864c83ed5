//! End-to-end tests with real processes on loopback: few, slow, and the authority on what a client
//! sees. The tests are in tests/; this library holds what they share.
//!
//! Start at `server.rs` (a node or a Redis server for one test), then `client.rs`. The external
//! programs that the tests need are installed by `cargo xtask test`; without them the tests fail
//! and name the program to install.
mod server; // a node, or a Redis server, for one test
mod ports; //  the ports they listen on
mod cluster; // several nodes, for one test
mod client; // a blocking client that shows every byte
mod map_follower; // a client that keeps the map from pushes
pub mod http; // a minimal HTTP client
mod wait; //   for a condition that becomes true by itself
mod tools; //  redis-cli, Python, Node and Chromium, and their paths
mod effort; // the amount of work a test does
mod rng; //    random numbers repeatable from a seed
pub mod chaos; // a cluster that is broken at random, and checks of its promises

pub use client::{Answer, Client};
pub use cluster::{Cluster, Share, voters_of};
pub use effort::Effort;
pub use map_follower::MapFollower;
pub use ports::free_ports;
pub use rng::Rng;
pub use server::{Server, node_binary, opencluster, raise_fd_limit};
pub use tools::{CHROMIUM, NODE, PYTHON, REDIS_BENCHMARK, REDIS_CLI, Tool};
pub use wait::wait_until;

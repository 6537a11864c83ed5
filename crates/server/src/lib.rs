//! A node: listeners, I/O threads, slot locks, HTTP; the shell around the thinking crates.
pub mod http; // Health checks, metrics and the start page.

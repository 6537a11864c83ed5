//! Waiting for what becomes so by itself, on a machine that may be busy.

use std::time::{Duration, Instant};

/// Waits until something is so. If it is not within this time the claim was wrong.
pub fn wait_until(claim: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < within, "not within {within:?}: {claim}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

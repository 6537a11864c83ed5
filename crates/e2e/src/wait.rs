//! Waiting for conditions that become true by themselves, on a machine that may be busy.

use std::time::{Duration, Instant};

/// Waits until a condition holds. Panics if it does not hold within this time.
pub fn wait_until(claim: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < within, "not within {within:?}: {claim}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

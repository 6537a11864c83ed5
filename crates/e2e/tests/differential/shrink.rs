//! Shortens a failing sequence: leaves out smaller and smaller parts as long as it still fails.
use std::time::{Duration, Instant};

use crate::lockstep::{Lockstep, Mismatch, Step};

/// Time limit: shrinking is only a convenience for the reader.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Returns the shortest sequence found whose last step is answered differently, and the difference.
pub(crate) fn shrink(
    pair: &mut Lockstep,
    steps: &[Step],
    mismatch: Mismatch,
) -> (Vec<Step>, Mismatch) {
    let mut short = steps.to_vec();
    let mut found = mismatch;
    let mut chunk = short.len() / 2;
    let begun = Instant::now();
    while chunk > 0 {
        let mut start = 0;
        while start < short.len() && begun.elapsed() < TIME_MAX {
            let mut without = short.clone();
            without.drain(start..(start + chunk).min(short.len()));
            match pair.play(&without) {
                Err(mismatch) => {
                    without.truncate(mismatch.at + 1);
                    (short, found) = (without, mismatch);
                }
                Ok(()) => start += chunk,
            }
        }
        chunk /= 2;
    }
    (short, found)
}

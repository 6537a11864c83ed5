//! Makes a failing sequence short: leaves out ever smaller parts as long as it still fails.
use std::time::{Duration, Instant};

use crate::lockstep::{Lockstep, Mismatch, Step};

/// Shrinking is for the reader's comfort; it may not take for ever.
const TIME_MAX: Duration = Duration::from_secs(20);

/// The shortest sequence found in which the last step is answered differently, and how.
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

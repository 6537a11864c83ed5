//! Estimates the number of distinct elements from the registers: Otmar Ertl, "New cardinality estimation algorithms for
//! HyperLogLog sketches" (2017), with the same floating-point operations as Redis, so that the numbers are equal.

use super::sketch::{COUNTED_BITS, REGISTERS, Registers};

/// 1 / (2 ln 2)
const ALPHA: f64 = 0.721_347_520_444_481_7;

/// Returns the estimate.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded, not negative"
)]
pub(super) fn estimate(registers: &Registers) -> u64 {
    let mut counts = [0u32; 64];
    for register in registers {
        counts[usize::from(register & 63)] += 1;
    }
    let all = REGISTERS as f64;
    let mut sum = all * tau((all - f64::from(counts[COUNTED_BITS + 1])) / all);
    for count in counts[1..=COUNTED_BITS].iter().rev() {
        sum = (sum + f64::from(*count)) * 0.5;
    }
    sum += all * sigma(f64::from(counts[0]) / all);
    (ALPHA * all * all / sum).round() as u64
}

fn sigma(mut x: f64) -> f64 {
    if x >= 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before: f64 = z;
        z += x * y;
        y += y;
        if before.to_bits() == z.to_bits() {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before: f64 = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if before.to_bits() == z.to_bits() {
            return z / 3.0;
        }
    }
}

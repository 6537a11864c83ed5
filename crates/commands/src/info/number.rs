//! Formats sizes for people.

/// Formats a number of bytes with a unit and two decimals, as Redis does: `919.09K`.
pub(super) fn human_bytes(bytes: u64) -> String {
    const UNITS: [(u32, char); 5] = [(50, 'P'), (40, 'T'), (30, 'G'), (20, 'M'), (10, 'K')];
    let fits = |(shift, _): &(u32, char)| bytes >= 1 << shift;
    match UNITS.into_iter().find(fits) {
        Some((shift, unit)) => {
            #[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
            let amount = bytes as f64 / (1u64 << shift) as f64;
            format!("{amount:.2}{unit}")
        }
        None => format!("{bytes}B"),
    }
}

/// Returns `part / whole`, or 0 if `whole` is 0.
#[expect(clippy::cast_precision_loss, reason = "two decimals are shown")]
pub(super) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_redis_writes_them() {
        assert_eq!(human_bytes(0), "0B");
        assert_eq!(human_bytes(1_023), "1023B");
        assert_eq!(human_bytes(941_144), "919.09K");
        assert_eq!(human_bytes(25_276_518_400), "23.54G");
    }
}

//! Numbers as text, as C's `printf` and `strtod` have them.

/// Returns a number as `printf("%.*g")` writes it, with `precision` significant digits.
pub(crate) fn format_general(number: f64, precision: usize) -> String {
    if number.is_nan() {
        return if number.is_sign_negative() { "-nan" } else { "nan" }.to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-inf" } else { "inf" }.to_owned();
    }
    let precision = precision.max(1);
    let scientific = format!("{:.*e}", precision - 1, number);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let limit = i32::try_from(precision).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= limit {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(digits), exponent.abs());
    }
    let decimals = usize::try_from(limit - 1 - exponent).unwrap_or(0);
    trimmed(&format!("{number:.decimals$}")).to_owned()
}

/// Returns the text without zeros at the end of its fraction.
fn trimmed(digits: &str) -> &str {
    if !digits.contains('.') {
        return digits;
    }
    digits.trim_end_matches('0').trim_end_matches('.')
}

/// Returns a number as an integer, as a C cast on x86-64 does: out of range it is the smallest one.
pub(crate) fn to_integer(number: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0; // 2 to the 63rd
    if (-LIMIT..LIMIT).contains(&number) { number as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_printf_writes_them() {
        for (number, precision, text) in [
            (0.0, 14, "0"),
            (-0.0, 14, "-0"),
            (1.0, 14, "1"),
            (0.1, 17, "0.10000000000000001"),
            (0.1, 14, "0.1"),
            (1e15, 14, "1e+15"),
            (1e20, 17, "1e+20"),
            (123_456_789.0, 17, "123456789"),
            (1e-5, 14, "1e-05"),
            (0.0001, 14, "0.0001"),
            (1.5e300, 14, "1.5e+300"),
            (3.0, 1, "3"),
            (99.99, 3, "100"),
            (f64::INFINITY, 14, "inf"),
        ] {
            assert_eq!(format_general(number, precision), text);
        }
    }

    #[test]
    fn a_number_that_is_no_integer_is_the_smallest_one() {
        assert_eq!(to_integer(-1.9), -1);
        assert_eq!(to_integer(1e300), i64::MIN);
        assert_eq!(to_integer(f64::NAN), i64::MIN);
        assert_eq!(to_integer(-9_223_372_036_854_775_808.0), i64::MIN);
    }
}

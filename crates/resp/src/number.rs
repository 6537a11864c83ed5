//! Integers and floating-point numbers as Redis reads and writes them.
//!
//! Lengths in requests and replies go through [`parse_integer`], and so do the integers that `commands` finds in
//! arguments and values: there must be one definition of an integer.

use std::io::Write as _;

/// Reads a number as strictly as Redis does: no sign but `-`, no leading zero, no `-0`, no spaces, nothing beyond
/// 64 bits. The accepted texts are exactly those that formatting a number produces.
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    if text == b"0" {
        return Some(0);
    }
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.len() > 19 || !matches!(digits.first(), Some(b'1'..=b'9')) {
        return None;
    }
    // 19 digits always fit an unsigned 64-bit integer.
    let mut magnitude = 0u64;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        magnitude = magnitude * 10 + u64::from(digit);
    }
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// Appends a number as Redis 7.0 prints one in replies: C's `%.17g`, and `inf`, `-inf`, `nan`.
pub fn write_double(to: &mut Vec<u8>, number: f64) {
    // Above this limit a double does not hold every integer, and the general case must round.
    const INTEGERS_EXACT_BELOW: f64 = 1e15;
    if number.fract() == 0.0 && number.abs() < INTEGERS_EXACT_BELOW {
        if number == 0.0 && number.is_sign_negative() {
            to.push(b'-');
        }
        #[expect(clippy::cast_possible_truncation, reason = "an integer below 1e15")]
        let integer = number as i64;
        to.extend_from_slice(itoa::Buffer::new().format(integer).as_bytes());
    } else if number.is_nan() {
        to.extend_from_slice(b"nan");
    } else if number.is_infinite() {
        to.extend_from_slice(if number > 0.0 { b"inf" } else { b"-inf" });
    } else {
        write_17_digits(to, number);
    }
}

/// Writes `%.17g`: 17 significant digits without trailing zeros, in scientific notation when the exponent is below
/// -4 or not below 17.
fn write_17_digits(to: &mut Vec<u8>, number: f64) {
    // Rust's `e` notation with 16 decimals has the right digits: `-d.dddddddddddddddde-N`.
    let mut text = [0u8; 32];
    let mut rest = &mut text[..];
    write!(rest, "{:.16e}", number.abs()).expect("at most 24 bytes");
    let unused = rest.len();
    let text = &text[..text.len() - unused];
    let mut digits = [0u8; 17];
    digits[0] = text[0];
    digits[1..].copy_from_slice(&text[2..18]);
    let exponent = parse_integer(&text[19..]).expect("an exponent follows the 'e'");
    let significant = digits.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);

    if number < 0.0 {
        to.push(b'-');
    }
    if (-4..17).contains(&exponent) {
        write_fixed(to, &digits[..significant], exponent);
    } else {
        write_scientific(to, &digits[..significant], exponent);
    }
}

fn write_fixed(to: &mut Vec<u8>, digits: &[u8], exponent: i64) {
    let Ok(exponent) = usize::try_from(exponent) else {
        to.extend_from_slice(b"0.");
        to.extend((exponent..-1).map(|_| b'0'));
        to.extend_from_slice(digits);
        return;
    };
    let whole = exponent + 1;
    if digits.len() <= whole {
        to.extend_from_slice(digits);
        to.resize(to.len() + whole - digits.len(), b'0');
    } else {
        to.extend_from_slice(&digits[..whole]);
        to.push(b'.');
        to.extend_from_slice(&digits[whole..]);
    }
}

fn write_scientific(to: &mut Vec<u8>, digits: &[u8], exponent: i64) {
    to.push(digits[0]);
    if digits.len() > 1 {
        to.push(b'.');
        to.extend_from_slice(&digits[1..]);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(to, "e{sign}{:02}", exponent.abs()).expect("a vector takes any bytes");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_writing_gives_back_is_an_integer() {
        for text in ["0", "1", "-1", "10", "9223372036854775807", "-9223372036854775808"] {
            let number = parse_integer(text.as_bytes()).expect(text);
            assert_eq!(number.to_string(), text);
        }
        for text in [
            "",
            "-",
            "+1",
            "-0",
            "00",
            "01",
            "-01",
            " 1",
            "1 ",
            "1a",
            "a",
            "1.0",
            "1e3",
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551616",
            "99999999999999999999",
        ] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn doubles_look_as_redis_7_0_prints_them() {
        // The expected texts are the replies of ZSCORE of redis-server 7.0.15, except for the last two.
        for (number, text) in [
            (3.0, "3"),
            (2.5, "2.5"),
            (-2.5, "-2.5"),
            (0.1, "0.10000000000000001"),
            (2.675, "2.6749999999999998"),
            (0.0001, "0.0001"),
            (1e-5, "1.0000000000000001e-05"),
            (1e15, "1000000000000000"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (1.5e17, "1.5e+17"),
            (1e21, "1e+21"),
            (123_456_789_012_345_678.0, "1.2345678901234568e+17"),
            (1e300, "1.0000000000000001e+300"),
            (5e-324, "4.9406564584124654e-324"),
            (0.0, "0"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
            (-0.0, "-0"),
        ] {
            let mut written = Vec::new();
            write_double(&mut written, number);
            assert_eq!(String::from_utf8(written).unwrap(), text);
        }
    }
}

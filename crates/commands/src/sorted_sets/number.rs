//! Floating-point numbers in arguments, read as C's `strtod` reads them.

/// A number as `strtod` reads it.
struct CNumber {
    value: f64,
    /// True if the number was too large, or so small that it became zero (`ERANGE`).
    is_out_of_range: bool,
}

/// Reads a score, a weight or an increment. `None` for NaN, and for what is out of range.
pub(crate) fn parse_float(text: &[u8]) -> Option<f64> {
    let number = parse(text).filter(|number| !number.is_out_of_range)?;
    (!number.value.is_nan()).then_some(number.value)
}

/// Reads a limit of a range, less strictly, as Redis does: spaces may come before it, nothing at all is 0, and what is too
/// large is infinite.
pub(super) fn parse_limit(text: &[u8]) -> Option<f64> {
    parse_leniently(text).map(|number| number.value)
}

/// Reads a value by which SORT sorts: as a limit, but what is too large is no number.
pub(crate) fn parse_weight(text: &[u8]) -> Option<f64> {
    let number = parse_leniently(text).filter(|number| !number.is_out_of_range)?;
    Some(number.value)
}

fn parse_leniently(text: &[u8]) -> Option<CNumber> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(CNumber { value: 0.0, is_out_of_range: false });
    }
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    let start = text.iter().position(|byte| !is_space(byte))?;
    parse(&text[start..]).filter(|number| !number.value.is_nan())
}

fn parse(text: &[u8]) -> Option<CNumber> {
    let (is_negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] | rest => (false, rest),
    };
    let magnitude = if is_word(unsigned, &["inf", "infinity"]) {
        CNumber { value: f64::INFINITY, is_out_of_range: false }
    } else if is_word(unsigned, &["nan"]) {
        CNumber { value: f64::NAN, is_out_of_range: false }
    } else if let [b'0', b'x' | b'X', digits @ ..] = unsigned {
        parse_hexadecimal(digits)?
    } else {
        parse_decimal(unsigned)?
    };
    let value = if is_negative { -magnitude.value } else { magnitude.value };
    Some(CNumber { value, ..magnitude })
}

fn is_word(text: &[u8], words: &[&str]) -> bool {
    words.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
}

fn parse_decimal(text: &[u8]) -> Option<CNumber> {
    // Rust's own grammar is that of C without the words and the hexadecimal form.
    let is_plain = text.iter().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(byte));
    let begins = text.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.');
    let text = core::str::from_utf8(text).ok().filter(|_| is_plain && begins)?;
    let value: f64 = text.parse().ok()?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let is_out_of_range = value.is_infinite() || value == 0.0 && !is_zero;
    Some(CNumber { value, is_out_of_range })
}

/// Reads hexadecimal digits with an optional point, and an optional exponent of two after `p`.
fn parse_hexadecimal(text: &[u8]) -> Option<CNumber> {
    let mut parts = text.splitn(2, |byte| matches!(byte, b'p' | b'P'));
    let digits = parts.next()?;
    let mut exponent: i64 = match parts.next() {
        Some(text) => parse_exponent(text)?,
        None => 0,
    };
    let (mut mantissa, mut is_inexact, mut is_fraction, mut count) = (0u128, false, false, 0);
    for byte in digits {
        if *byte == b'.' && !is_fraction {
            is_fraction = true;
            continue;
        }
        let digit = char::from(*byte).to_digit(16)?;
        count += 1;
        if mantissa >> 120 == 0 {
            mantissa = mantissa << 4 | u128::from(digit);
            exponent -= if is_fraction { 4 } else { 0 };
        } else {
            is_inexact |= digit != 0;
            exponent += if is_fraction { 0 } else { 4 };
        }
    }
    if count == 0 {
        return None;
    }
    let value = scale((mantissa | u128::from(is_inexact)) as f64, exponent);
    let is_out_of_range = value.is_infinite() || value == 0.0 && mantissa != 0;
    Some(CNumber { value, is_out_of_range })
}

/// Reads an exponent; one that is too long for a number is as good as any other that is out of range.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] | rest => (1, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add = |number: i64, digit: &u8| (number * 10 + i64::from(digit - b'0')).min(1 << 40);
    Some(sign * digits.iter().fold(0, add))
}

/// Multiplies by a power of two, in steps that are themselves in range.
fn scale(mut value: f64, exponent: i64) -> f64 {
    const STEP: i64 = 1_000;
    let mut rest = exponent.clamp(-4 * STEP, 4 * STEP);
    while rest != 0 {
        let step = rest.clamp(-STEP, STEP);
        value *= 2f64.powi(i32::try_from(step).unwrap_or(0));
        rest -= step;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_read_as_redis_reads_them() {
        let good = [
            ("1", 1.0),
            ("-0", -0.0),
            ("+7", 7.0),
            ("007", 7.0),
            ("1.", 1.0),
            (".5", 0.5),
            ("5.0e3", 5_000.0),
            ("-2.5E-3", -0.0025),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("0x10", 16.0),
            ("0x1.8p1", 3.0),
            ("-0xAp-1", -5.0),
            ("4.9e-324", 4.9e-324),
            ("0e999", 0.0),
            ("0x1p-1074", 4.9e-324),
        ];
        for (text, value) in good {
            let read = parse_float(text.as_bytes()).expect(text);
            assert_eq!(read.to_bits(), f64::to_bits(value), "{text}");
        }
        let bad = [
            "",
            "-",
            "+",
            ".",
            "e5",
            "1e",
            "1e+",
            " 1",
            "1 ",
            "1a",
            "nan",
            "-nan",
            "1e400",
            "1e-400",
            "0x",
            "0x1p",
            "0x1p99999",
            "0xg",
            "--1",
            "infinit",
            "1_000",
            "1.2.3",
        ];
        for text in bad {
            assert_eq!(parse_float(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn weights_of_sort_are_read_less_strictly() {
        for (text, value) in [("", 0.0), (" 3", 3.0), ("2\0x", 2.0), ("-inf", f64::NEG_INFINITY)] {
            assert_eq!(parse_weight(text.as_bytes()), Some(value), "{text:?}");
        }
        for text in [" ", "3 ", "nan", "abc", "1e400", "1e-400"] {
            assert_eq!(parse_weight(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn limits_are_read_less_strictly() {
        let good =
            [("", 0.0), (" 3", 3.0), ("\t-1", -1.0), ("1e400", f64::INFINITY), ("2\0x", 2.0)];
        for (text, value) in good {
            assert_eq!(parse_limit(text.as_bytes()), Some(value), "{text:?}");
        }
        for text in [" ", "3 ", "nan", "abc", "(", "1x"] {
            assert_eq!(parse_limit(text.as_bytes()), None, "{text:?}");
        }
    }
}

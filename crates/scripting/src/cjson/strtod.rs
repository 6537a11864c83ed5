//! Reading a number from the beginning of a text, as `strtod` does it.

/// Returns the number at the beginning of the text and its length; a length of 0 if there is none.
pub(super) fn strtod(text: &[u8]) -> (f64, usize) {
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let is_negative = text.first() == Some(&b'-');
    let (magnitude, len) = magnitude(&text[sign..]);
    if len == 0 {
        return (0.0, 0);
    }
    (if is_negative { -magnitude } else { magnitude }, sign + len)
}

fn magnitude(text: &[u8]) -> (f64, usize) {
    let begins =
        |word: &[u8]| text.len() >= word.len() && text[..word.len()].eq_ignore_ascii_case(word);
    if begins(b"infinity") {
        return (f64::INFINITY, 8);
    }
    if begins(b"inf") {
        return (f64::INFINITY, 3);
    }
    if begins(b"nan") {
        return (f64::NAN, 3);
    }
    if begins(b"0x") {
        let (number, len) = hexadecimal(&text[2..]);
        return if len == 0 { (0.0, 1) } else { (number, len + 2) };
    }
    decimal(text)
}

fn decimal(text: &[u8]) -> (f64, usize) {
    let digits = |from: usize| text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(0);
    let mut len = whole;
    let mut fraction = 0;
    if text.get(len) == Some(&b'.') {
        fraction = digits(len + 1);
        len += 1 + fraction;
    }
    if whole + fraction == 0 {
        return (0.0, 0);
    }
    if matches!(text.get(len), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(len + 1), Some(b'-' | b'+')));
        let exponent = if len + 1 + sign <= text.len() { digits(len + 1 + sign) } else { 0 };
        if exponent > 0 {
            len += 1 + sign + exponent;
        }
    }
    let text = str::from_utf8(&text[..len]).unwrap_or_default();
    (text.parse().unwrap_or(0.0), len)
}

/// Reads the digits behind `0x`, with a fraction and a power of two.
fn hexadecimal(text: &[u8]) -> (f64, usize) {
    let mut number = 0.0_f64;
    let (mut len, mut digits, mut scale) = (0, 0, 0_i32);
    let mut in_fraction = false;
    while let Some(byte) = text.get(len) {
        if *byte == b'.' && !in_fraction {
            in_fraction = true;
        } else if let Some(digit) = char::from(*byte).to_digit(16) {
            number = number * 16.0 + f64::from(digit);
            scale -= if in_fraction { 4 } else { 0 };
            digits += 1;
        } else {
            break;
        }
        len += 1;
    }
    if digits == 0 {
        return (0.0, 0);
    }
    if matches!(text.get(len), Some(b'p' | b'P')) {
        let sign = usize::from(matches!(text.get(len + 1), Some(b'-' | b'+')));
        let from = (len + 1 + sign).min(text.len());
        let count = text[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count > 0 {
            let digits = str::from_utf8(&text[from..from + count]).unwrap_or_default();
            let power: i32 = digits.parse().unwrap_or(i32::MAX / 2);
            scale = scale.saturating_add(if text[len + 1] == b'-' { -power } else { power });
            len = from + count;
        }
    }
    (number * 2.0_f64.powi(scale), len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_strtod_reads_them() {
        for (text, number, len) in [
            ("12", 12.0, 2),
            ("-1.5e3x", -1500.0, 6),
            ("1e", 1.0, 1),
            ("1.", 1.0, 2),
            (".5", 0.5, 2),
            ("0x1F", 31.0, 4),
            ("0x", 0.0, 1),
            ("0x1.8p1", 3.0, 7),
            ("-Infinity", f64::NEG_INFINITY, 9),
            ("x", 0.0, 0),
            ("-", 0.0, 0),
            ("", 0.0, 0),
        ] {
            assert_eq!(strtod(text.as_bytes()), (number, len), "{text}");
        }
        assert!(strtod(b"nan").0.is_nan());
    }
}

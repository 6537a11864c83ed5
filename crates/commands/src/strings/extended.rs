//! The floating-point numbers of INCRBYFLOAT. Redis computes them as C's `long double`, which on x86-64 has a
//! significand of 64 bits and an exponent of 15 bits; Rust has no such type, and `f64` would turn 0.1 + 0.2 into
//! 0.30000000000000004. So this module computes them with integers and the same rounding: every digit is the one
//! that Redis prints on x86-64. (On machines with another `long double`, Redis itself prints other last digits.)

mod big; // Integers of any size.

use big::Big;

/// A number, finite or not; never NaN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extended {
    negative: bool,
    magnitude: Magnitude,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Magnitude {
    /// `mantissa * 2^exponent`. The mantissa's top bit is set, except for the smallest numbers, whose exponent is
    /// `EXPONENT_MIN`. So comparing exponents first finds the greater of two numbers.
    Finite {
        exponent: i32,
        mantissa: u64,
    },
    Infinite,
}

const EXPONENT_MIN: i32 = -16_445;
const EXPONENT_MAX: i32 = 16_320;
const MANTISSA_BITS: i32 = 64;

/// Maximum length of a number's text, as in Redis.
const TEXT_BYTES_MAX: usize = 5 * 1024 - 1;

/// Decimal exponents beyond these limits are certainly out of range.
const DECIMAL_EXPONENT_MAX: i64 = 4_940;
const DECIMAL_EXPONENT_MIN: i64 = -4_960;

/// Maximum number of digits after the decimal point, as in Redis.
const DECIMALS: usize = 17;
const DECIMALS_SCALE: u128 = 10u128.pow(17);

impl Extended {
    pub(crate) const ZERO: Extended = Extended { negative: false, magnitude: Magnitude::ZERO };

    /// Parses the same texts as C's `strtold`: decimal and hexadecimal numbers, and infinity by name. `None` if the
    /// text is not a number, or the number is too large, or so small that it rounds to zero.
    pub(crate) fn parse(text: &[u8]) -> Option<Extended> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let (negative, unsigned) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let magnitude = if let [b'0', b'x' | b'X', digits @ ..] = unsigned {
            parse_hexadecimal(digits)?
        } else if is_infinity(unsigned) {
            Magnitude::Infinite
        } else {
            parse_decimal(unsigned)?
        };
        Some(Extended { negative, magnitude })
    }

    pub(crate) fn is_finite(self) -> bool {
        self.magnitude != Magnitude::Infinite
    }

    /// Returns the nearest double, approximately; one that is too small is not rounded to zero.
    pub(crate) fn approximate(self) -> f64 {
        let size = match self.magnitude {
            Magnitude::ZERO => 0.0,
            #[expect(clippy::cast_precision_loss, reason = "the nearest double is wanted")]
            Magnitude::Finite { exponent, mantissa } => {
                (mantissa as f64 * 2f64.powi(exponent)).max(f64::MIN_POSITIVE)
            }
            Magnitude::Infinite => f64::INFINITY,
        };
        if self.negative { -size } else { size }
    }

    /// Returns the sum, rounded to the nearest number; `None` if it is undefined.
    pub(crate) fn plus(self, other: Extended) -> Option<Extended> {
        use Magnitude::{Finite, Infinite};
        match (self.magnitude, other.magnitude) {
            (Infinite, Infinite) => (self.negative == other.negative).then_some(self),
            (Infinite, Finite { .. }) => Some(self),
            (Finite { .. }, Infinite) => Some(other),
            (
                Finite { exponent: own_exponent, mantissa: own },
                Finite { exponent: other_exponent, mantissa: theirs },
            ) => {
                let (greater, lesser) = if (own_exponent, own) >= (other_exponent, theirs) {
                    (self, other)
                } else {
                    (other, self)
                };
                Some(add_lesser(greater, lesser))
            }
        }
    }

    /// Formats the number in decimal, with at most 17 digits after the point and no trailing zeros. Must be finite.
    pub(crate) fn to_text(self) -> String {
        let Magnitude::Finite { exponent, mantissa } = self.magnitude else {
            unreachable!("only finite numbers are stored");
        };
        let digits = if exponent >= 0 {
            Big::from(mantissa).shifted_left(exponent.unsigned_abs()).to_decimal()
        } else {
            fixed_point(mantissa, exponent.unsigned_abs())
        };
        if self.negative && digits != "0" { format!("-{digits}") } else { digits }
    }
}

impl Magnitude {
    const ZERO: Magnitude = Magnitude::Finite { exponent: EXPONENT_MIN, mantissa: 0 };

    /// Returns the parsed magnitude of a number that is not zero: if rounding made it zero or infinite, it was out
    /// of range.
    fn in_range(self) -> Option<Magnitude> {
        (self != Magnitude::ZERO && self != Magnitude::Infinite).then_some(self)
    }
}

/// A number before rounding: `significand * 2^exponent`, and slightly more if `inexact`. In that case the
/// significand has at least two bits more than a mantissa.
#[derive(Clone, Copy)]
struct Unrounded {
    significand: u128,
    exponent: i32,
    inexact: bool,
}

impl Unrounded {
    /// Returns the nearest magnitude; of two equally near ones the even one.
    fn round(self) -> Magnitude {
        let Unrounded { significand, exponent, inexact } = self;
        let bits = (u128::BITS - significand.leading_zeros()).cast_signed();
        // Number of low bits that do not fit the mantissa; if negative: number of zeros appended.
        let excess = (bits - MANTISSA_BITS).max(EXPONENT_MIN - exponent);
        let mut mantissa = if excess <= 0 {
            significand << excess.unsigned_abs()
        } else {
            shift_right_to_even(significand, excess.unsigned_abs(), inexact)
        };
        let mut exponent = exponent + excess;
        if mantissa >> MANTISSA_BITS != 0 {
            (mantissa, exponent) = (mantissa >> 1, exponent + 1);
        }
        if mantissa != 0 && exponent > EXPONENT_MAX {
            return Magnitude::Infinite;
        }
        let mantissa = u64::try_from(mantissa).expect("64 bits are left");
        Magnitude::Finite {
            exponent: if mantissa == 0 { EXPONENT_MIN } else { exponent },
            mantissa,
        }
    }
}

/// Returns `number / 2^shift`, rounded to the nearest, of two equally near ones to the even one. `inexact`: the
/// number was slightly more.
fn shift_right_to_even(number: u128, shift: u32, inexact: bool) -> u128 {
    if shift > u128::BITS {
        return 0;
    }
    let kept = number.checked_shr(shift).unwrap_or(0);
    let lost = number - kept.checked_shl(shift).unwrap_or(0);
    let half = 1u128 << (shift - 1);
    let up = lost > half || lost == half && (inexact || kept & 1 == 1);
    kept + u128::from(up)
}

/// Adds two finite numbers; the first must not be the smaller one by magnitude.
fn add_lesser(greater: Extended, lesser: Extended) -> Extended {
    let (
        Magnitude::Finite { exponent, mantissa },
        Magnitude::Finite { exponent: lesser_exponent, mantissa: lesser_mantissa },
    ) = (greater.magnitude, lesser.magnitude)
    else {
        unreachable!("the caller has told infinities apart");
    };
    // 63 extra bits below: bits lost beyond them only matter for the last rounding.
    let room = |mantissa: u64| u128::from(mantissa) << 63;
    let distance = (exponent - lesser_exponent).unsigned_abs();
    let added = room(lesser_mantissa).checked_shr(distance).unwrap_or(0);
    let inexact = added.checked_shl(distance).unwrap_or(0) != room(lesser_mantissa);
    let significand = if greater.negative == lesser.negative {
        room(mantissa) + added
    } else {
        room(mantissa) - added - u128::from(inexact)
    };
    let magnitude = Unrounded { significand, exponent: exponent - 63, inexact }.round();
    Extended { negative: greater.negative, magnitude }
}

/// Formats `mantissa / 2^shift` with [`DECIMALS`] digits after the point, without trailing zeros.
fn fixed_point(mantissa: u64, shift: u32) -> String {
    let scaled = shift_right_to_even(u128::from(mantissa) * DECIMALS_SCALE, shift, false);
    let (whole, decimals) = (scaled / DECIMALS_SCALE, scaled % DECIMALS_SCALE);
    let text = format!("{whole}.{decimals:0DECIMALS$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn is_infinity(text: &[u8]) -> bool {
    text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity")
}

/// The digits before and after the point, and the exponent after a letter.
struct Parts<'a> {
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Parts<'a> {
    /// Splits a number's text. `None` if it has no digit, or invalid characters.
    fn of(text: &'a [u8], is_digit: fn(&u8) -> bool, letter: u8) -> Option<Parts<'a>> {
        let (number, exponent) =
            match text.iter().position(|byte| byte.eq_ignore_ascii_case(&letter)) {
                Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
                None => (text, 0),
            };
        let (whole, fraction) = match number.iter().position(|byte| *byte == b'.') {
            Some(at) => (&number[..at], &number[at + 1..]),
            None => (number, &number[number.len()..]),
        };
        let digits = || whole.iter().chain(fraction);
        let some = digits().next().is_some();
        (some && digits().all(is_digit)).then_some(Parts { whole, fraction, exponent })
    }

    /// Returns all digits without leading zeros.
    fn significant(&self) -> impl Iterator<Item = u8> + Clone {
        self.whole.iter().chain(self.fraction).copied().skip_while(|digit| *digit == b'0')
    }
}

/// Parses an integer with or without a sign. All numbers with many digits are equally out of range.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    const FAR: i64 = 1_000_000;
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let size = digits.iter().fold(0, |sum, digit| (sum * 10 + i64::from(digit - b'0')).min(FAR));
    Some(if negative { -size } else { size })
}

fn parse_decimal(text: &[u8]) -> Option<Magnitude> {
    let parts = Parts::of(text, u8::is_ascii_digit, b'e')?;
    let count = parts.significant().count() as i64;
    if count == 0 {
        return Some(Magnitude::ZERO);
    }
    let exponent = parts.exponent - parts.fraction.len() as i64;
    if !(DECIMAL_EXPONENT_MIN..=DECIMAL_EXPONENT_MAX).contains(&(count + exponent)) {
        return None;
    }
    let number = Big::from_decimal(parts.significant());
    let power = Big::power_of_ten(u32::try_from(exponent.abs()).expect("checked to be near"));
    let unrounded = if exponent < 0 { quotient(number, power) } else { leading(&(number * power)) };
    unrounded.round().in_range()
}

fn parse_hexadecimal(text: &[u8]) -> Option<Magnitude> {
    let parts = Parts::of(text, u8::is_ascii_hexdigit, b'p')?;
    if parts.significant().next().is_none() {
        return Some(Magnitude::ZERO);
    }
    let exponent = parts.exponent - 4 * parts.fraction.len() as i64;
    let number = Big::from_hexadecimal(parts.significant());
    let unrounded = leading(&number);
    // The exponent is limited such that the result stays out of range, however many digits there are.
    let exponent = i32::try_from(exponent).expect("parse_exponent has limited it");
    Unrounded { exponent: unrounded.exponent + exponent, ..unrounded }.round().in_range()
}

/// Returns the leading bits of an integer.
fn leading(number: &Big) -> Unrounded {
    let (significand, dropped) = number.leading_bits();
    let exponent = dropped.cast_signed();
    let inexact = number.has_bits_below(dropped);
    Unrounded { significand, exponent, inexact }
}

/// Number of bits of a quotient: two more than a mantissa, one more if the first is zero, one spare.
const QUOTIENT_BITS: i32 = 68;

/// Returns the leading bits of `number / divisor`, by long division.
fn quotient(number: Big, divisor: Big) -> Unrounded {
    let shift = number.bits().cast_signed() - divisor.bits().cast_signed();
    // Both get the same number of bits, so the quotient is between a half and two.
    let (mut rest, divisor) = if shift < 0 {
        (number.shifted_left(shift.unsigned_abs()), divisor)
    } else {
        (number, divisor.shifted_left(shift.unsigned_abs()))
    };
    let mut significand = 0u128;
    for _ in 0..QUOTIENT_BITS {
        let fits = rest.subtract_if_not_less(&divisor);
        significand = significand << 1 | u128::from(fits);
        rest.double();
    }
    Unrounded { significand, exponent: shift - (QUOTIENT_BITS - 1), inexact: !rest.is_zero() }
}

#[cfg(test)]
mod tests;

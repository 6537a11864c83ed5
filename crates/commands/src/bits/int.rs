//! Integers of one to 64 bits that begin at any bit of a string.

use super::parse_bit;
use crate::Error;
use crate::keys::Keys;

/// The type and position of an integer: `i5` or `u12`, at a bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct FieldPlace {
    sign: Sign,
    width: u32,
    bit: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sign {
    Signed,
    Unsigned,
}

/// The handling of a number that is too large or too small for its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

impl Overflow {
    pub(super) fn parse(word: &[u8]) -> Result<Overflow, Error> {
        let names: [(&[u8], Overflow); 3] =
            [(b"wrap", Overflow::Wrap), (b"sat", Overflow::Saturate), (b"fail", Overflow::Fail)];
        let named = names.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
        named
            .map(|(_, overflow)| *overflow)
            .ok_or(const { Error::fixed("ERR Invalid OVERFLOW type specified") })
    }
}

/// Size of the window in bytes: a 64-bit integer at an unaligned bit spans nine bytes.
const WINDOW_BYTES: usize = 9;
const WINDOW_BITS: u32 = WINDOW_BYTES as u32 * 8;

/// The bytes around an integer; zeros beyond the end of the string.
pub(super) type FieldWindow = [u8; WINDOW_BYTES];

impl FieldPlace {
    /// Parses a type and a position, as in `u8 #2`.
    pub(super) fn parse(keys: &Keys<'_>, kind: &[u8], at: &[u8]) -> Result<FieldPlace, Error> {
        const BAD: Error = Error::fixed(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported \
             but i64 is.",
        );
        let (sign, width, width_max) = match kind {
            [b'i', width @ ..] => (Sign::Signed, width, 64),
            [b'u', width @ ..] => (Sign::Unsigned, width, 63),
            _ => return Err(BAD),
        };
        let width = resp::parse_integer(width)
            .filter(|width| (1..=width_max).contains(width))
            .and_then(|width| u32::try_from(width).ok())
            .ok_or(BAD)?;
        Ok(FieldPlace { sign, width, bit: parse_bit(keys, at, Some(width))? })
    }

    pub(super) fn first_byte(self) -> usize {
        self.bit / 8
    }

    /// Returns the number of bytes it touches.
    pub(super) fn bytes(self) -> usize {
        self.last_byte() - self.first_byte() + 1
    }

    pub(super) fn last_byte(self) -> usize {
        (self.bit + self.width as usize - 1) / 8
    }

    /// Returns the part of a string that contains the integer.
    pub(super) fn window(self, string: &[u8]) -> FieldWindow {
        let mut window = [0; WINDOW_BYTES];
        let from = string.get(self.first_byte()..).unwrap_or(&[]);
        let len = from.len().min(WINDOW_BYTES);
        window[..len].copy_from_slice(&from[..len]);
        window
    }

    /// Returns the number stored there.
    pub(super) fn get(self, window: &FieldWindow) -> i64 {
        let raw = wide(window) >> self.shift() & self.mask();
        self.wrapped(raw.cast_signed())
    }

    /// Writes a number that fits.
    pub(super) fn set(self, window: &mut FieldWindow, number: i64) {
        let raw = i128::from(number).cast_unsigned() & self.mask();
        let all = wide(window) & !(self.mask() << self.shift()) | raw << self.shift();
        window.copy_from_slice(&all.to_be_bytes()[16 - WINDOW_BYTES..]);
    }

    /// Returns SET's argument as Redis interprets it: an unsigned integer treats a negative number as a huge
    /// positive one. So does a signed one if the number is so low that its distance from the maximum overflows 64
    /// bits: Redis then saturates at the maximum, and so do we.
    pub(super) fn widened(self, number: i64) -> i128 {
        let is_far_below =
            self.width < 64 && self.max() - i128::from(number) > i128::from(i64::MAX);
        match self.sign {
            Sign::Signed if is_far_below => i128::from(number) + (1 << 64),
            Sign::Signed => number.into(),
            Sign::Unsigned => number.cast_unsigned().into(),
        }
    }

    /// Returns the greatest number that fits.
    fn max(self) -> i128 {
        match self.sign {
            Sign::Signed => (1 << (self.width - 1)) - 1,
            Sign::Unsigned => (1 << self.width) - 1,
        }
    }

    /// Returns the number made to fit; `None` if it does not fit and `overflow` is `Fail`.
    pub(super) fn fitted(self, number: i128, overflow: Overflow) -> Option<i64> {
        let max = self.max();
        let min = match self.sign {
            Sign::Signed => -max - 1,
            Sign::Unsigned => 0,
        };
        match overflow {
            Overflow::Wrap => Some(self.wrapped(number)),
            Overflow::Saturate => Some(self.wrapped(number.clamp(min, max))),
            Overflow::Fail => (min..=max).contains(&number).then(|| self.wrapped(number)),
        }
    }

    /// Returns the lowest bits of the number, interpreted as this type.
    fn wrapped(self, number: i128) -> i64 {
        let unused = i128::BITS - self.width;
        let top = number << unused;
        let number = match self.sign {
            Sign::Signed => top >> unused,
            Sign::Unsigned => (top.cast_unsigned() >> unused).cast_signed(),
        };
        i64::try_from(number).expect("at most 64 bits with a sign, 63 without")
    }

    fn mask(self) -> u128 {
        (1 << self.width) - 1
    }

    /// Returns the distance in bits from the integer's end to the window's end.
    fn shift(self) -> u32 {
        WINDOW_BITS - (self.bit % 8) as u32 - self.width
    }
}

fn wide(window: &FieldWindow) -> u128 {
    window.iter().fold(0, |wide, byte| wide << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_its_neighbours_stay() {
        for bit in 0..8 {
            for width in 1..=64 {
                let place = FieldPlace { sign: Sign::Signed, width, bit };
                let mut window = [0xFF; WINDOW_BYTES];
                place.set(&mut window, 0);
                let cleared: u32 = window.iter().map(|byte| byte.count_zeros()).sum();
                assert_eq!((place.get(&window), cleared), (0, width));
                place.set(&mut window, -1);
                assert_eq!((place.get(&window), window), (-1, [0xFF; WINDOW_BYTES]));
            }
        }
    }

    #[test]
    fn a_number_is_made_to_fit() {
        let place = |sign, width| FieldPlace { sign, width, bit: 0 };
        let (signed, unsigned) = (place(Sign::Signed, 8), place(Sign::Unsigned, 8));
        assert_eq!(signed.fitted(128, Overflow::Wrap), Some(-128));
        assert_eq!(signed.fitted(128, Overflow::Saturate), Some(127));
        assert_eq!(signed.fitted(-129, Overflow::Saturate), Some(-128));
        assert_eq!(signed.fitted(128, Overflow::Fail), None);
        assert_eq!(unsigned.fitted(-1, Overflow::Wrap), Some(255));
        assert_eq!(unsigned.fitted(-1, Overflow::Saturate), Some(0));
        assert_eq!(unsigned.fitted(unsigned.widened(-1), Overflow::Saturate), Some(255));
        assert_eq!(signed.fitted(signed.widened(-1_000), Overflow::Saturate), Some(-128));
        assert_eq!(signed.fitted(signed.widened(i64::MIN), Overflow::Saturate), Some(127));
        let widest = place(Sign::Signed, 64);
        let beyond = i128::from(i64::MAX) + 1;
        assert_eq!(widest.fitted(beyond, Overflow::Wrap), Some(i64::MIN));
        assert_eq!(widest.fitted(beyond, Overflow::Fail), None);
    }
}

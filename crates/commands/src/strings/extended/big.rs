//! Integers of any size, with the few operations that exact conversions need.

use core::cmp::Ordering;
use core::ops::Mul;

/// The binary digits in words, the lowest first; the last word is never zero, and zero has no words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Big(Vec<u64>);

/// The largest power of ten in a word, and its exponent.
const DECIMAL_CHUNK: u64 = 10u64.pow(19);
const DECIMAL_CHUNK_DIGITS: usize = 19;

impl From<u64> for Big {
    fn from(number: u64) -> Big {
        let mut big = Big(vec![number]);
        big.trim();
        big
    }
}

impl Big {
    pub(super) fn from_decimal(digits: impl Iterator<Item = u8>) -> Big {
        let mut big = Big(Vec::new());
        let (mut scale, mut chunk) = (1u64, 0u64);
        for digit in digits {
            (scale, chunk) = (scale * 10, chunk * 10 + u64::from(digit - b'0'));
            if scale == DECIMAL_CHUNK {
                big.multiply_add(scale, chunk);
                (scale, chunk) = (1, 0);
            }
        }
        big.multiply_add(scale, chunk);
        big
    }

    pub(super) fn from_hexadecimal(digits: impl Iterator<Item = u8>) -> Big {
        let mut big = Big(Vec::new());
        for digit in digits {
            let value = char::from(digit).to_digit(16).expect("the caller has checked the digits");
            big.multiply_add(16, u64::from(value));
        }
        big
    }

    pub(super) fn power_of_ten(exponent: u32) -> Big {
        let mut big = Big(vec![1]);
        let chunk = DECIMAL_CHUNK_DIGITS as u32;
        for _ in 0..exponent / chunk {
            big.multiply_add(DECIMAL_CHUNK, 0);
        }
        big.multiply_add(10u64.pow(exponent % chunk), 0);
        big
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of binary digits.
    pub(super) fn bits(&self) -> u32 {
        let Some(last) = self.0.last() else { return 0 };
        self.0.len() as u32 * u64::BITS - last.leading_zeros()
    }

    /// Returns the first 128 bits, or all if there are fewer, and the number of bits that follow them.
    pub(super) fn leading_bits(&self) -> (u128, u32) {
        let dropped = self.bits().saturating_sub(u128::BITS);
        let (first, offset) = (dropped / u64::BITS, dropped % u64::BITS);
        let word = |at: usize| u128::from(self.0.get(first as usize + at).copied().unwrap_or(0));
        let low = (word(0) | word(1) << 64) >> offset;
        let high = word(2).checked_shl(u128::BITS - offset).unwrap_or(0);
        (low | high, dropped)
    }

    /// Returns whether any of the lowest `count` bits is set.
    pub(super) fn has_bits_below(&self, count: u32) -> bool {
        let (words, offset) = ((count / u64::BITS) as usize, count % u64::BITS);
        let partial = self.0.get(words).is_some_and(|word| word & ((1u64 << offset) - 1) != 0);
        partial || self.0.iter().take(words).any(|word| *word != 0)
    }

    #[must_use]
    pub(super) fn shifted_left(&self, count: u32) -> Big {
        let (words, offset) = ((count / u64::BITS) as usize, count % u64::BITS);
        let mut shifted = vec![0; words];
        let mut carried = 0u64;
        for word in &self.0 {
            let wide = u128::from(*word) << offset | u128::from(carried);
            shifted.push(low_word(wide));
            carried = high_word(wide);
        }
        shifted.push(carried);
        let mut big = Big(shifted);
        big.trim();
        big
    }

    pub(super) fn double(&mut self) {
        self.multiply_add(2, 0);
    }

    /// Subtracts `other` if the result is not negative, and returns whether it did.
    pub(super) fn subtract_if_not_less(&mut self, other: &Big) -> bool {
        if self.order(other) == Ordering::Less {
            return false;
        }
        let mut borrowed = false;
        for (at, word) in self.0.iter_mut().enumerate() {
            let taken = other.0.get(at).copied().unwrap_or(0);
            let (less, first) = word.overflowing_sub(taken);
            let (less, second) = less.overflowing_sub(u64::from(borrowed));
            *word = less;
            borrowed = first || second;
        }
        self.trim();
        true
    }

    pub(super) fn to_decimal(&self) -> String {
        let mut rest = self.clone();
        let mut chunks = Vec::new();
        while !rest.is_zero() {
            chunks.push(rest.divide(DECIMAL_CHUNK));
        }
        let Some(first) = chunks.pop() else { return "0".to_owned() };
        let mut text = first.to_string();
        for chunk in chunks.iter().rev() {
            text.push_str(&format!("{chunk:0DECIMAL_CHUNK_DIGITS$}"));
        }
        text
    }

    fn order(&self, other: &Big) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    fn multiply_add(&mut self, factor: u64, addend: u64) {
        let mut carried = addend;
        for word in &mut self.0 {
            let wide = u128::from(*word) * u128::from(factor) + u128::from(carried);
            *word = low_word(wide);
            carried = high_word(wide);
        }
        self.0.push(carried);
        self.trim();
    }

    /// Divides by `divisor` and returns the remainder.
    fn divide(&mut self, divisor: u64) -> u64 {
        let mut rest = 0u64;
        for word in self.0.iter_mut().rev() {
            let wide = u128::from(rest) << 64 | u128::from(*word);
            *word = low_word(wide / u128::from(divisor));
            rest = low_word(wide % u128::from(divisor));
        }
        self.trim();
        rest
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }
}

impl Mul for Big {
    type Output = Big;

    fn mul(self, other: Big) -> Big {
        let mut product = vec![0u64; self.0.len() + other.0.len()];
        for (at, word) in self.0.iter().enumerate() {
            let mut carried = 0u64;
            for (place, factor) in product[at..].iter_mut().zip(other.0.iter().chain([&0])) {
                let wide = u128::from(*word) * u128::from(*factor)
                    + u128::from(*place)
                    + u128::from(carried);
                *place = low_word(wide);
                carried = high_word(wide);
            }
        }
        let mut big = Big(product);
        big.trim();
        big
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is what is asked for")]
fn low_word(wide: u128) -> u64 {
    wide as u64
}

fn high_word(wide: u128) -> u64 {
    low_word(wide >> 64)
}

//! A value as it is read out of an item ([`Value`]) and as it is handed in ([`NewValue`]).
//!
//! Strings for now. A collection will be one more variant here, one more kind in `item.rs`, and the
//! effects that change it in `effect.rs`.

use std::borrow::Cow;
use std::sync::Arc;

use crate::item::SharedValue;

/// A value inside the store, borrowed while the slot is locked.
#[derive(Clone, Copy)]
pub enum Value<'a> {
    /// A string inside the item's own block.
    Bytes(&'a [u8]),
    /// A string that is the shortest decimal form of a number.
    Integer(i64),
    /// A large string in a block of its own, shared with replies and fills under way.
    Shared(SharedValue<'a>),
}

/// What `OBJECT ENCODING` says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    Int,
    Embstr,
    Raw,
}

impl Encoding {
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Int => "int",
            Encoding::Embstr => "embstr",
            Encoding::Raw => "raw",
        }
    }
}

impl<'a> Value<'a> {
    /// The string's bytes; formatted if it is kept as a number.
    pub fn to_bytes(self) -> Cow<'a, [u8]> {
        match self {
            Value::Bytes(bytes) => Cow::Borrowed(bytes),
            Value::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
            Value::Shared(shared) => Cow::Borrowed(shared.bytes()),
        }
    }

    /// The string's length in bytes.
    pub fn len(self) -> usize {
        match self {
            Value::Bytes(bytes) => bytes.len(),
            Value::Integer(number) => decimal_len(number),
            Value::Shared(shared) => shared.bytes().len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// A value on its way into the store.
#[derive(Clone, Debug)]
pub enum NewValue<'a> {
    /// A string as a client sent it, known not to be a number in its shortest form.
    Plain(&'a [u8]),
    /// A string that some command computed; `OBJECT ENCODING` says `raw` whatever its length.
    Raw(&'a [u8]),
    Integer(i64),
    /// A large string that already has a block of its own.
    Shared(Arc<Vec<u8>>),
}

impl<'a> NewValue<'a> {
    /// A string from a client: kept as a number if it is one in its shortest form.
    #[inline]
    pub fn text(bytes: &'a [u8]) -> NewValue<'a> {
        match parse_integer(bytes) {
            Some(number) => NewValue::Integer(number),
            None => NewValue::Plain(bytes),
        }
    }
}

/// The longest decimal form of an `i64`.
const INTEGER_DIGITS_MAX: usize = 20;

/// Reads a number in its shortest decimal form: no sign but `-`, no leading zeros, no spaces.
#[inline]
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [] => return None,
        [b'0'] => return if negative { None } else { Some(0) },
        [b'1'..=b'9', ..] if text.len() <= INTEGER_DIGITS_MAX => {}
        _ => return None,
    }
    let mut magnitude: u64 = 0;
    for digit in digits {
        let value = digit.wrapping_sub(b'0');
        if value > 9 {
            return None;
        }
        magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(value))?;
    }
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

fn decimal_len(number: i64) -> usize {
    let digits = number.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1);
    digits + usize::from(number < 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_shortest_form_is_a_number() {
        let numbers: [(&str, i64); 6] = [
            ("0", 0),
            ("7", 7),
            ("-1", -1),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
            ("1000", 1000),
        ];
        for (text, number) in numbers {
            assert_eq!(parse_integer(text.as_bytes()), Some(number));
            assert_eq!(decimal_len(number), text.len());
        }
        let others = [
            "",
            "-",
            "-0",
            "00",
            "01",
            "+1",
            " 1",
            "1 ",
            "1.0",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
            "999999999999999999999",
            "a",
        ];
        for text in others {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text:?}");
        }
    }
}

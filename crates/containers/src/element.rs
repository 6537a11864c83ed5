//! One element as bytes: a tag, a length if the tag does not contain it, and the bytes themselves. Called by all other
//! modules; also the form in which elements travel between nodes.
//!
//! ~~~text
//! 00..7F                a string of 0 to 127 bytes
//! 80..BF                a number from 0 to 63
//! C0 C1 C2 C3           a number of 1, 2, 4 or 8 bytes
//! C4 C5                 a string, its length in 2 or 4 bytes
//! C6                    no element: a deadline follows, and then the element (`deadline.rs`)
//! ~~~
//!
//! A string that is the shortest decimal form of a number is stored as that number, so equal elements have equal
//! bytes. (A score that is no whole number is the one exception: `score.rs`.)

use std::borrow::Cow;

use crate::deadline::{MARK_BYTES, split_mark};

const STRING_TAG_MAX: u8 = 0x7F;
const SMALL_NUMBER: u8 = 0x80;
const SMALL_NUMBER_MAX: u8 = 0xBF;
const NUMBER_8: u8 = 0xC0;
const NUMBER_16: u8 = 0xC1;
const NUMBER_32: u8 = 0xC2;
const NUMBER_64: u8 = 0xC3;
const STRING_16: u8 = 0xC4;
const STRING_32: u8 = 0xC5;
/// Begins the deadline of a hash's field.
pub(crate) const TIMED: u8 = 0xC6;

/// Maximum length of the decimal form of an `i64`.
const DECIMAL_BYTES_MAX: usize = 20;

/// One element: a number, or a string that is not the decimal form of one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Element<'a> {
    Integer(i64),
    Bytes(&'a [u8]),
}

impl<'a> Element<'a> {
    /// Returns the element of a text: a number if the text is the shortest form of one.
    #[inline]
    pub fn of(text: &'a [u8]) -> Element<'a> {
        match decimal(text) {
            Some(number) => Element::Integer(number),
            None => Element::Bytes(text),
        }
    }

    /// Reads an element; returns it and the remaining bytes. `None` if the bytes are incomplete or have no meaning.
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Option<(Element<'a>, &'a [u8])> {
        let (tag, rest) = bytes.split_first()?;
        let string = |length: usize, rest: &'a [u8]| {
            let (string, rest) = rest.split_at_checked(length)?;
            Some((Element::Bytes(string), rest))
        };
        match *tag {
            length @ 0..=STRING_TAG_MAX => string(length.into(), rest),
            tag @ SMALL_NUMBER..=SMALL_NUMBER_MAX => {
                Some((Element::Integer((tag - SMALL_NUMBER).into()), rest))
            }
            NUMBER_8 => number(rest, i8::from_le_bytes),
            NUMBER_16 => number(rest, i16::from_le_bytes),
            NUMBER_32 => number(rest, i32::from_le_bytes),
            NUMBER_64 => number(rest, i64::from_le_bytes),
            STRING_16 => {
                let (length, rest) = rest.split_first_chunk()?;
                string(u16::from_le_bytes(*length).into(), rest)
            }
            STRING_32 => {
                let (length, rest) = rest.split_first_chunk()?;
                string(u32::from_le_bytes(*length) as usize, rest)
            }
            _ => None,
        }
    }

    /// Appends the element.
    #[inline]
    pub fn write(self, out: &mut Vec<u8>) {
        let encoded = Encoded::of(self);
        out.extend_from_slice(encoded.head());
        out.extend_from_slice(encoded.body);
    }

    /// Returns the length of the text.
    pub fn len(self) -> usize {
        match self {
            Element::Integer(number) => itoa::Buffer::new().format(number).len(),
            Element::Bytes(bytes) => bytes.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self == Element::Bytes(&[])
    }

    /// Calls `read` with the text.
    #[inline]
    pub fn with_text<R>(self, read: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Element::Integer(number) => read(itoa::Buffer::new().format(number).as_bytes()),
            Element::Bytes(bytes) => read(bytes),
        }
    }

    pub fn to_text(self) -> Cow<'a, [u8]> {
        match self {
            Element::Integer(number) => {
                Cow::Owned(itoa::Buffer::new().format(number).as_bytes().to_vec())
            }
            Element::Bytes(bytes) => Cow::Borrowed(bytes),
        }
    }

    /// Returns whether this is the only form of its text.
    pub(crate) fn is_canonical(self) -> bool {
        match self {
            Element::Integer(_) => true,
            Element::Bytes(bytes) => decimal(bytes).is_none(),
        }
    }
}

#[inline]
fn number<'a, const BYTES: usize, N: Into<i64>>(
    rest: &'a [u8],
    from: impl Fn([u8; BYTES]) -> N,
) -> Option<(Element<'a>, &'a [u8])> {
    let (number, rest) = rest.split_first_chunk::<BYTES>()?;
    Some((Element::Integer(from(*number).into()), rest))
}

/// Returns the offset behind the element at `at` and its deadline, in bytes that this crate has written.
#[inline]
pub(crate) fn skip(bytes: &[u8], at: usize) -> usize {
    let length = |count: usize| {
        let mut length = [0; 4];
        length[..count].copy_from_slice(&bytes[at + 1..at + 1 + count]);
        at + 1 + count + u32::from_le_bytes(length) as usize
    };
    match bytes[at] {
        tag @ 0..=STRING_TAG_MAX => at + 1 + usize::from(tag),
        SMALL_NUMBER..=SMALL_NUMBER_MAX => at + 1,
        NUMBER_8 => at + 2,
        NUMBER_16 => at + 3,
        NUMBER_32 => at + 5,
        NUMBER_64 => at + 9,
        STRING_16 => length(2),
        STRING_32 => length(4),
        TIMED => skip(bytes, at + MARK_BYTES),
        tag => unreachable!("no element begins with {tag:#x}"),
    }
}

/// Reads an element that this crate has written.
#[inline]
pub(crate) fn read(bytes: &[u8]) -> (Element<'_>, &[u8]) {
    Element::read(bytes).expect("written by this crate")
}

/// Reads an element that this crate has written, and passes over its deadline.
#[inline]
pub(crate) fn read_timed(bytes: &[u8]) -> (Element<'_>, &[u8]) {
    read(split_mark(bytes).1)
}

/// An element in its encoded form, in two parts, so that its text need not be copied.
#[derive(Clone, Copy)]
pub(crate) struct Encoded<'a> {
    head: [u8; 9],
    head_len: u8,
    body: &'a [u8],
}

impl<'a> Encoded<'a> {
    #[inline]
    pub(crate) fn of(element: Element<'a>) -> Encoded<'a> {
        match element {
            Element::Integer(number) => Encoded::number(number),
            Element::Bytes(bytes) => Encoded::string(bytes),
        }
    }

    fn number(number: i64) -> Encoded<'a> {
        if let Ok(small @ 0..=63) = u8::try_from(number) {
            return Encoded::new(SMALL_NUMBER + small, &[], &[]);
        }
        if let Ok(number) = i8::try_from(number) {
            return Encoded::new(NUMBER_8, &number.to_le_bytes(), &[]);
        }
        if let Ok(number) = i16::try_from(number) {
            return Encoded::new(NUMBER_16, &number.to_le_bytes(), &[]);
        }
        if let Ok(number) = i32::try_from(number) {
            return Encoded::new(NUMBER_32, &number.to_le_bytes(), &[]);
        }
        Encoded::new(NUMBER_64, &number.to_le_bytes(), &[])
    }

    fn string(bytes: &'a [u8]) -> Encoded<'a> {
        if let Ok(length @ 0..=STRING_TAG_MAX) = u8::try_from(bytes.len()) {
            return Encoded::new(length, &[], bytes);
        }
        if let Ok(length) = u16::try_from(bytes.len()) {
            return Encoded::new(STRING_16, &length.to_le_bytes(), bytes);
        }
        let length = u32::try_from(bytes.len()).expect("an element is shorter than 4 GiB");
        Encoded::new(STRING_32, &length.to_le_bytes(), bytes)
    }

    fn new(tag: u8, more: &[u8], body: &'a [u8]) -> Encoded<'a> {
        let mut head = [0; 9];
        head[0] = tag;
        head[1..=more.len()].copy_from_slice(more);
        Encoded { head, head_len: 1 + more.len() as u8, body }
    }

    #[inline]
    pub(crate) fn head(&self) -> &[u8] {
        &self.head[..usize::from(self.head_len)]
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.head_len) + self.body.len()
    }

    /// Returns whether `bytes` begin with this element.
    #[inline]
    pub(crate) fn begins(&self, bytes: &[u8]) -> bool {
        bytes.strip_prefix(self.head()).is_some_and(|rest| rest.starts_with(self.body))
    }

    /// Returns the bytes to hash: those of a string, or the encoded form of a number.
    #[inline]
    pub(crate) fn hashed(&self) -> &[u8] {
        if self.head[0] >= SMALL_NUMBER && self.head[0] <= NUMBER_64 {
            self.head()
        } else {
            self.body
        }
    }
}

/// Returns the number of which `text` is the shortest decimal form.
#[inline]
fn decimal(text: &[u8]) -> Option<i64> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        digits => (1, digits),
    };
    let first = *digits.first()?;
    if !first.is_ascii_digit() || text.len() > DECIMAL_BYTES_MAX {
        return None;
    }
    if first == b'0' {
        return (text == b"0").then_some(0);
    }
    digits.iter().try_fold(0i64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(sign * digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [i64; 16] = [
        0,
        1,
        63,
        64,
        127,
        128,
        -1,
        -128,
        -129,
        32_767,
        32_768,
        -32_769,
        i32::MAX as i64,
        i32::MAX as i64 + 1,
        i64::MAX,
        i64::MIN,
    ];

    fn encoded(element: Element<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        element.write(&mut bytes);
        bytes
    }

    #[test]
    fn an_element_is_read_as_it_was_written() {
        let long = vec![b'x'; 70_000];
        let lengths = [0, 1, 127, 128, 65_535, 65_536, 70_000];
        let strings = lengths.map(|length| Element::of(&long[..length]));
        let numbers = NUMBERS.map(Element::Integer);
        for element in strings.into_iter().chain(numbers) {
            let mut bytes = encoded(element);
            assert_eq!(bytes.len(), Encoded::of(element).len());
            assert!(Encoded::of(element).begins(&bytes));
            assert_eq!(skip(&bytes, 0), bytes.len());
            bytes.extend_from_slice(b"rest");
            assert_eq!(Element::read(&bytes), Some((element, &b"rest"[..])));
            for cut in 0..bytes.len() - 4 {
                assert_eq!(Element::read(&bytes[..cut]), None);
            }
        }
    }

    #[test]
    fn only_the_shortest_decimal_form_is_a_number() {
        for number in NUMBERS {
            let text = number.to_string();
            assert_eq!(Element::of(text.as_bytes()), Element::Integer(number));
            assert_eq!(Element::Integer(number).to_text(), text.as_bytes());
            assert_eq!(Element::Integer(number).len(), text.len());
        }
        let texts: [&[u8]; 9] = [
            b"",
            b"-",
            b"-0",
            b"01",
            b"+1",
            b"1a",
            b"9223372036854775808",
            b"-9223372036854775809",
            b"99999999999999999999999",
        ];
        for text in texts {
            assert_eq!(Element::of(text), Element::Bytes(text));
        }
    }

    #[test]
    fn small_numbers_take_few_bytes() {
        let sizes = [0, 63, 64, 1_000, 100_000, 1 << 40]
            .map(|number| encoded(Element::Integer(number)).len());
        assert_eq!(sizes, [1, 1, 2, 3, 5, 9]);
    }
}

//! Redis's listpack: its own packed form of small containers. Elements with their length before and behind them,
//! between a header (bytes, elements) and an end mark. Called by `hash.rs` and `list.rs`.

use store::{Element, listpack_entry_len};

const HEADER_BYTES: usize = 6;
const END: u8 = 0xFF;
/// The count of a listpack with more elements than the header can say.
const COUNT_UNKNOWN: u16 = u16::MAX;

/// The first byte of an element defines its form.
const NUMBER_7_MAX: u8 = 0x7F;
const STRING_6: u8 = 0x80;
const NUMBER_13: u8 = 0xC0;
const STRING_12: u8 = 0xE0;
const STRING_32: u8 = 0xF0;
const NUMBER_16: u8 = 0xF1;
const NUMBER_24: u8 = 0xF2;
const NUMBER_32: u8 = 0xF3;
const NUMBER_64: u8 = 0xF4;

/// Returns the listpack of these elements.
pub(super) fn write<'a>(elements: impl Iterator<Item = Element<'a>>) -> Vec<u8> {
    let mut out = vec![0; HEADER_BYTES];
    let mut count = 0usize;
    for element in elements {
        let start = out.len();
        match element {
            Element::Integer(number) => put_number(&mut out, number),
            Element::Bytes(bytes) => put_bytes(&mut out, bytes),
        }
        let length = out.len() - start;
        put_back_length(&mut out, length);
        count += 1;
    }
    out.push(END);
    let total = u32::try_from(out.len()).expect("a packed container is short");
    out[..4].copy_from_slice(&total.to_le_bytes());
    let count = u16::try_from(count).unwrap_or(COUNT_UNKNOWN);
    out[4..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
    out
}

/// Returns the length of these elements in a listpack, without its header and its end mark.
pub(super) fn len<'a>(elements: impl Iterator<Item = Element<'a>>) -> usize {
    elements.map(listpack_entry_len).sum()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "each form is used for what fits it"
)]
fn put_number(out: &mut Vec<u8>, number: i64) {
    match number {
        0..=127 => out.push(number as u8),
        -4_096..=4_095 => {
            let bits = number as u16 & 0x1FFF;
            out.extend_from_slice(&[NUMBER_13 | (bits >> 8) as u8, bits as u8]);
        }
        -32_768..=32_767 => put_tagged(out, NUMBER_16, &(number as i16).to_le_bytes()),
        -8_388_608..=8_388_607 => put_tagged(out, NUMBER_24, &number.to_le_bytes()[..3]),
        -2_147_483_648..=2_147_483_647 => {
            put_tagged(out, NUMBER_32, &(number as i32).to_le_bytes());
        }
        _ => put_tagged(out, NUMBER_64, &number.to_le_bytes()),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "each form is used for what fits it")]
fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = bytes.len();
    if length < 64 {
        out.push(STRING_6 | length as u8);
    } else if length < 4_096 {
        out.extend_from_slice(&[STRING_12 | (length >> 8) as u8, length as u8]);
    } else {
        put_tagged(out, STRING_32, &(length as u32).to_le_bytes());
    }
    out.extend_from_slice(bytes);
}

fn put_tagged(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

/// Appends the length of the element before it, so that it can be read backwards: seven bits a byte, and the high bit
/// in all bytes but the first.
fn put_back_length(out: &mut Vec<u8>, length: usize) {
    let count = back_length_bytes(length);
    for index in (0..count).rev() {
        let bits = (length >> (7 * index)) as u8 & 0x7F;
        out.push(if index + 1 == count { bits } else { bits | 0x80 });
    }
}

fn back_length_bytes(length: usize) -> usize {
    match length {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

/// Reads a whole listpack; `None` if anything in it is wrong.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    let (total, rest) = bytes.split_first_chunk::<4>()?;
    let (count, rest) = rest.split_first_chunk::<2>()?;
    if u32::from_le_bytes(*total) as usize != bytes.len() {
        return None;
    }
    let mut rest = rest;
    let mut elements = Vec::new();
    while *rest.first()? != END {
        let (element, behind) = read_element(rest)?;
        elements.push(element);
        rest = behind;
    }
    let count = u16::from_le_bytes(*count);
    let is_counted = count == COUNT_UNKNOWN || usize::from(count) == elements.len();
    (is_counted && rest.len() == 1).then_some(elements)
}

/// Reads an element, and checks the length behind it.
fn read_element(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (element, rest) = read_content(bytes)?;
    let length = bytes.len() - rest.len();
    let mut expected = Vec::new();
    put_back_length(&mut expected, length);
    Some((element, rest.strip_prefix(expected.as_slice())?))
}

fn read_content(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    match *tag {
        number @ 0..=NUMBER_7_MAX => Some((Element::Integer(number.into()), rest)),
        tag @ STRING_6..NUMBER_13 => string(rest, usize::from(tag & 0x3F)),
        tag @ NUMBER_13..STRING_12 => {
            let (low, rest) = rest.split_first()?;
            let bits = i64::from(tag & 0x1F) << 8 | i64::from(*low);
            let number = if bits >= 1 << 12 { bits - (1 << 13) } else { bits };
            Some((Element::Integer(number), rest))
        }
        tag @ STRING_12..STRING_32 => {
            let (low, rest) = rest.split_first()?;
            string(rest, usize::from(tag & 0x0F) << 8 | usize::from(*low))
        }
        STRING_32 => {
            let (length, rest) = rest.split_first_chunk()?;
            string(rest, u32::from_le_bytes(*length) as usize)
        }
        NUMBER_16 => number::<2>(rest),
        NUMBER_24 => number::<3>(rest),
        NUMBER_32 => number::<4>(rest),
        NUMBER_64 => number::<8>(rest),
        _ => None,
    }
}

fn string(bytes: &[u8], length: usize) -> Option<(Element<'_>, &[u8])> {
    let (text, rest) = bytes.split_at_checked(length)?;
    // Redis writes every number as one, but a text that looks like one is no error.
    Some((Element::of(text), rest))
}

/// Reads a signed number of some bytes.
fn number<const BYTES: usize>(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<BYTES>()?;
    let is_negative = number[BYTES - 1] & 0x80 != 0;
    let mut extended = [if is_negative { 0xFF } else { 0 }; 8];
    extended[..BYTES].copy_from_slice(number);
    Some((Element::Integer(i64::from_le_bytes(extended)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listpack_is_read_as_it_was_written() {
        let long = vec![b'x'; 20_000];
        let numbers = [0, 127, 128, -1, 4_095, -4_096, 4_096, 32_767, -32_768, 40_000, -8_388_608];
        let large = [8_388_608, i64::from(i32::MIN), i64::from(i32::MAX) + 1, i64::MAX, i64::MIN];
        let numbers = numbers.into_iter().chain(large).map(Element::Integer);
        let strings = [0, 1, 63, 64, 126, 127, 4_095, 4_096, 16_378, 20_000];
        let strings = strings.map(|length| Element::of(&long[..length]));
        let elements: Vec<Element<'_>> = numbers.chain(strings).collect();
        let bytes = write(elements.iter().copied());
        assert_eq!(read(&bytes), Some(elements));
        for cut in 0..60 {
            assert_eq!(read(&bytes[..cut]), None);
        }
    }

    #[test]
    fn every_flaw_of_a_listpack_is_found() {
        let good = write([Element::Integer(1), Element::Bytes(b"ab")].into_iter());
        assert_eq!(good, [13, 0, 0, 0, 2, 0, 1, 1, 0x82, b'a', b'b', 3, 0xFF]);
        for index in 0..good.len() {
            let mut bad = good.clone();
            bad[index] ^= 0x40;
            let read = read(&bad);
            // A changed byte of the content is another content; every other byte is checked.
            let is_content = [6, 9, 10].contains(&index);
            assert!(is_content || read.is_none(), "byte {index} was not checked: {read:?}");
        }
    }
}

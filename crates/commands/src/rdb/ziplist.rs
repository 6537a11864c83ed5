//! Redis's ziplist: the packed form of small containers before Redis 7. Elements with the length of the one before them,
//! between a header (bytes, offset of the last element, elements) and an end mark. It is only read. Called by `list.rs`.

use store::Element;

const HEADER_BYTES: usize = 10;
const END: u8 = 0xFF;
/// The length of the previous element follows in four bytes.
const LONG_PREVIOUS: u8 = 0xFE;
/// The count of a ziplist with more elements than the header can say.
const COUNT_UNKNOWN: u16 = u16::MAX;

/// The first byte of an element defines its form.
const STRING_14: u8 = 0x40;
const STRING_32: u8 = 0x80;
const NUMBER_16: u8 = 0xC0;
const NUMBER_32: u8 = 0xD0;
const NUMBER_64: u8 = 0xE0;
const NUMBER_24: u8 = 0xF0;
const NUMBER_8: u8 = 0xFE;

/// Reads a whole ziplist; `None` if anything in it is wrong.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Element<'_>>> {
    let (total, rest) = bytes.split_first_chunk::<4>()?;
    let (tail, rest) = rest.split_first_chunk::<4>()?;
    let (count, mut rest) = rest.split_first_chunk::<2>()?;
    if u32::from_le_bytes(*total) as usize != bytes.len() {
        return None;
    }
    let mut elements = Vec::new();
    let mut last = HEADER_BYTES;
    let mut previous = 0;
    while *rest.first()? != END {
        last = bytes.len() - rest.len();
        let (told, behind) = previous_len(rest)?;
        let (element, behind) = content(behind)?;
        if told != previous {
            return None;
        }
        previous = rest.len() - behind.len();
        elements.push(element);
        rest = behind;
    }
    let count = u16::from_le_bytes(*count);
    let is_counted = count == COUNT_UNKNOWN || usize::from(count) == elements.len();
    let is_sound = rest.len() == 1 && u32::from_le_bytes(*tail) as usize == last;
    (is_counted && is_sound).then_some(elements)
}

/// Reads the length of the previous element.
fn previous_len(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes.split_first()? {
        (&LONG_PREVIOUS, rest) => {
            let (length, rest) = rest.split_first_chunk()?;
            Some((u32::from_le_bytes(*length) as usize, rest))
        }
        (length, rest) => Some((usize::from(*length), rest)),
    }
}

fn content(bytes: &[u8]) -> Option<(Element<'_>, &[u8])> {
    let (tag, rest) = bytes.split_first()?;
    match *tag {
        tag @ 0..STRING_14 => string(rest, usize::from(tag)),
        tag @ STRING_14..STRING_32 => {
            let (low, rest) = rest.split_first()?;
            string(rest, usize::from(tag & 0x3F) << 8 | usize::from(*low))
        }
        STRING_32 => {
            let (length, rest) = rest.split_first_chunk()?;
            string(rest, u32::from_be_bytes(*length) as usize)
        }
        NUMBER_8 => number::<1>(rest),
        NUMBER_16 => number::<2>(rest),
        NUMBER_24 => number::<3>(rest),
        NUMBER_32 => number::<4>(rest),
        NUMBER_64 => number::<8>(rest),
        tag @ 0xF1..=0xFD => Some((Element::Integer(i64::from(tag - 0xF1)), rest)),
        _ => None,
    }
}

fn string(bytes: &[u8], length: usize) -> Option<(Element<'_>, &[u8])> {
    let (text, rest) = bytes.split_at_checked(length)?;
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

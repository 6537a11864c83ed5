//! Sets in Redis's serialisation format: an intset if the set has only numbers and is small, the members one by one
//! otherwise. That is the form of large sets, which every Redis reads; small ones become small again there. The form of
//! small sets since Redis 7.2, a listpack, is only read. Every payload is checked completely: lengths, counts, and that
//! no member appears twice.

use store::{Element, Row, SetValue};

use super::{RdbReader, listpack, put_length, put_string};

pub(super) const TYPE_SET: u8 = 2;
pub(super) const TYPE_SET_INTSET: u8 = 11;
pub(super) const TYPE_SET_LISTPACK: u8 = 20;

/// Number of elements of an entry.
const MEMBER: usize = 1;
/// The header of an intset: the number of bytes of each number, and their count.
const INTSET_HEADER_BYTES: usize = 8;

pub(super) fn type_of(set: SetValue<'_>) -> u8 {
    match set {
        SetValue::Integers(_) => TYPE_SET_INTSET,
        SetValue::Packed(_) | SetValue::Table(_) => TYPE_SET,
    }
}

pub(super) fn put_set(out: &mut Vec<u8>, set: SetValue<'_>) {
    match set {
        SetValue::Integers(row) => put_string(out, &intset(row)),
        SetValue::Packed(_) | SetValue::Table(_) => {
            put_length(out, set.len());
            for member in set.members() {
                member.with_text(|text| put_string(out, text));
            }
        }
    }
}

/// Returns the intset of ascending numbers: each in as many bytes as the longest needs.
fn intset(row: Row<'_>) -> Vec<u8> {
    let numbers: Vec<i64> = row.elements().filter_map(number_of).collect();
    let width: usize = match (numbers.first(), numbers.last()) {
        (Some(-0x8000..), Some(..=0x7FFF)) | (None, _) | (_, None) => 2,
        (Some(-0x8000_0000..), Some(..=0x7FFF_FFFF)) => 4,
        _ => 8,
    };
    let count = u32::try_from(numbers.len()).expect("an intset is small");
    let mut out = Vec::with_capacity(INTSET_HEADER_BYTES + numbers.len() * width);
    out.extend_from_slice(&(width as u32).to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()[..width]));
    out
}

fn number_of(member: Element<'_>) -> Option<i64> {
    match member {
        Element::Integer(number) => Some(number),
        Element::Bytes(_) => None,
    }
}

/// Reads a set of the type [`TYPE_SET`] as a row of at most `bytes_max` bytes.
pub(super) fn read_members(reader: &mut RdbReader<'_>, bytes_max: usize) -> Option<Vec<u8>> {
    let mut row = Vec::new();
    for _ in 0..reader.length()? {
        let text = reader.string(bytes_max)?;
        Element::of(&text).write(&mut row);
        if row.len() > bytes_max {
            return None;
        }
    }
    checked(row)
}

/// Reads a set of the type [`TYPE_SET_LISTPACK`] as a row of at most `bytes_max` bytes.
pub(super) fn read_listpack(reader: &mut RdbReader<'_>, bytes_max: usize) -> Option<Vec<u8>> {
    let listpack = reader.string(bytes_max)?;
    let mut row = Vec::new();
    for element in listpack::read(&listpack)? {
        element.write(&mut row);
    }
    checked(row).filter(|row| row.len() <= bytes_max)
}

/// Reads a set of the type [`TYPE_SET_INTSET`] as a row of at most `bytes_max` bytes.
pub(super) fn read_intset(reader: &mut RdbReader<'_>, bytes_max: usize) -> Option<Vec<u8>> {
    let intset = reader.string(bytes_max)?;
    let (width, rest) = intset.split_first_chunk::<4>()?;
    let (count, rest) = rest.split_first_chunk::<4>()?;
    let width = u32::from_le_bytes(*width) as usize;
    let bytes = (u32::from_le_bytes(*count) as usize).checked_mul(width)?;
    if !matches!(width, 2 | 4 | 8) || bytes != rest.len() {
        return None;
    }
    let numbers: Vec<i64> = rest.chunks_exact(width).map(signed).collect();
    if !numbers.windows(2).all(|pair| pair[0] < pair[1]) {
        return None;
    }
    let mut row = Vec::new();
    numbers.into_iter().for_each(|number| Element::Integer(number).write(&mut row));
    checked(row).filter(|row| row.len() <= bytes_max)
}

/// Returns the signed number of these bytes.
fn signed(bytes: &[u8]) -> i64 {
    let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut extended = [if is_negative { 0xFF } else { 0 }; 8];
    extended[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(extended)
}

/// Returns the row if it is a set: at least one member, and none twice.
fn checked(row: Vec<u8>) -> Option<Vec<u8>> {
    let mut members: Vec<Element<'_>> = Row::check(&row, MEMBER).ok()?.elements().collect();
    members.sort_unstable();
    let is_set = !members.is_empty() && members.windows(2).all(|pair| pair[0] != pair[1]);
    is_set.then_some(row)
}

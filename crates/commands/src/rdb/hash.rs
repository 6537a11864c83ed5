//! Hashes in Redis's serialisation format: a listpack if the hash is packed, fields and values one by one otherwise, as
//! Redis writes them. Every payload is checked completely: lengths, counts, and that no field appears twice.

use store::{Element, HashValue, Row};

use super::{RdbReader, listpack, put_length, put_string};

pub(super) const TYPE_HASH: u8 = 4;
pub(super) const TYPE_HASH_LISTPACK: u8 = 16;

/// Number of elements of a pair.
const PAIR: usize = 2;

pub(super) fn type_of(hash: HashValue<'_>) -> u8 {
    match hash {
        HashValue::Packed(_) => TYPE_HASH_LISTPACK,
        HashValue::Table(_) => TYPE_HASH,
    }
}

pub(super) fn put_hash(out: &mut Vec<u8>, hash: HashValue<'_>) {
    match hash {
        HashValue::Packed(row) => put_string(out, &listpack::write(row.elements())),
        HashValue::Table(table) => {
            put_length(out, table.len());
            for (field, value) in table.pairs() {
                field.with_text(|text| put_string(out, text));
                value.with_text(|text| put_string(out, text));
            }
        }
    }
}

/// Reads a hash of the type [`TYPE_HASH`] as a row of at most `bytes_max` bytes.
pub(super) fn read_pairs(reader: &mut RdbReader<'_>, bytes_max: usize) -> Option<Vec<u8>> {
    let fields = reader.length()?;
    let mut row = Vec::new();
    for _ in 0..fields.checked_mul(PAIR)? {
        let text = reader.string(bytes_max)?;
        Element::of(&text).write(&mut row);
        if row.len() > bytes_max {
            return None;
        }
    }
    checked(row)
}

/// Reads a hash of the type [`TYPE_HASH_LISTPACK`] as a row of at most `bytes_max` bytes.
pub(super) fn read_listpack(reader: &mut RdbReader<'_>, bytes_max: usize) -> Option<Vec<u8>> {
    let listpack = reader.string(bytes_max)?;
    let mut row = Vec::new();
    for element in listpack::read(&listpack)? {
        element.write(&mut row);
    }
    checked(row).filter(|row| row.len() <= bytes_max)
}

/// Returns the row if it is a hash: pairs, at least one, and no field twice.
fn checked(row: Vec<u8>) -> Option<Vec<u8>> {
    let pairs = Row::check(&row, PAIR).ok()?;
    let mut fields: Vec<Element<'_>> = pairs.pairs().map(|(field, _)| field).collect();
    fields.sort_unstable();
    let is_hash = !fields.is_empty() && fields.windows(2).all(|pair| pair[0] != pair[1]);
    is_hash.then_some(row)
}

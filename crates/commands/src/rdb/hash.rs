//! Hashes in Redis's serialisation format: a listpack if the hash is packed, fields and values one by one otherwise, as
//! Redis writes them; one by one with their deadlines if a field expires, as Redis 8 writes a large hash. Valkey 9 writes
//! that in a form of its own, which is only read. Every payload is checked completely: lengths, counts, and that no field
//! appears twice.

use store::{Element, LiveHash, Row, deadline_of, write_field};

use super::{RdbReader, listpack, put_length, put_string};

pub(super) const TYPE_HASH: u8 = 4;
pub(super) const TYPE_HASH_LISTPACK: u8 = 16;
/// Fields with their deadlines, as Valkey writes them. Redis used the number in a version that was never released.
pub(super) const TYPE_HASH_VALKEY: u8 = 22;
/// Deadlines, fields and values one by one.
pub(super) const TYPE_HASH_TIMED: u8 = 24;
/// A listpack of fields, values and deadlines.
pub(super) const TYPE_HASH_TIMED_LISTPACK: u8 = 25;

/// Number of elements of a pair.
const PAIR: usize = 2;
/// Number of elements of a field with its deadline in a listpack.
const TRIPLE: usize = 3;

pub(super) fn type_of(hash: LiveHash<'_>) -> u8 {
    match (earliest_deadline(hash), hash.is_table()) {
        (Some(_), _) => TYPE_HASH_TIMED,
        (None, true) => TYPE_HASH,
        (None, false) => TYPE_HASH_LISTPACK,
    }
}

fn earliest_deadline(hash: LiveHash<'_>) -> Option<u64> {
    hash.entries().filter_map(deadline_of).min()
}

pub(super) fn put_hash(out: &mut Vec<u8>, hash: LiveHash<'_>) {
    let earliest = earliest_deadline(hash);
    if earliest.is_none() && !hash.is_table() {
        let elements = hash.pairs().flat_map(|(field, value)| [field, value]);
        return put_string(out, &listpack::write(elements));
    }
    if let Some(earliest) = earliest {
        out.extend_from_slice(&earliest.to_le_bytes());
    }
    put_length(out, hash.len());
    for (entry, (field, value)) in hash.entries().zip(hash.pairs()) {
        if let Some(earliest) = earliest {
            // 0 means none, so the earliest one is 1.
            let left = deadline_of(entry).map_or(0, |at| at - earliest + 1);
            put_length(out, usize::try_from(left).unwrap_or(usize::MAX));
        }
        field.with_text(|text| put_string(out, text));
        value.with_text(|text| put_string(out, text));
    }
}

/// Reads a hash of the type [`TYPE_HASH`] as a row of at most `bytes_max` bytes.
pub(super) fn read_pairs(reader: &mut RdbReader<'_>, bytes_max: usize) -> Option<Vec<u8>> {
    let fields = reader.length()?;
    let mut row = FieldsRow::new(bytes_max);
    for _ in 0..fields {
        let (field, value) = (reader.string(bytes_max)?, reader.string(bytes_max)?);
        row.push(Element::of(&field), None, Element::of(&value))?;
    }
    row.checked()
}

/// Reads a hash of the type [`TYPE_HASH_VALKEY`].
pub(super) fn read_valkey(reader: &mut RdbReader<'_>, bytes_max: usize) -> Option<Vec<u8>> {
    let fields = reader.length()?;
    let mut row = FieldsRow::new(bytes_max);
    for _ in 0..fields {
        let (field, value) = (reader.string(bytes_max)?, reader.string(bytes_max)?);
        let deadline = match i64::from_le_bytes(reader.array()?) {
            -1 => None,
            at => Some(u64::try_from(at).ok()?),
        };
        row.push(Element::of(&field), deadline, Element::of(&value))?;
    }
    row.checked()
}

/// Reads a hash of the type [`TYPE_HASH_TIMED`].
pub(super) fn read_timed(reader: &mut RdbReader<'_>, bytes_max: usize) -> Option<Vec<u8>> {
    let earliest = u64::from_le_bytes(reader.array()?);
    let fields = reader.length()?;
    let mut row = FieldsRow::new(bytes_max);
    for _ in 0..fields {
        let deadline = match reader.length()? {
            0 => None,
            left => Some(earliest.checked_add(left as u64 - 1)?),
        };
        let (field, value) = (reader.string(bytes_max)?, reader.string(bytes_max)?);
        row.push(Element::of(&field), deadline, Element::of(&value))?;
    }
    row.checked()
}

/// Reads a hash of the type [`TYPE_HASH_LISTPACK`] as a row of at most `bytes_max` bytes.
pub(super) fn read_listpack(reader: &mut RdbReader<'_>, bytes_max: usize) -> Option<Vec<u8>> {
    read_packed(reader, bytes_max, PAIR)
}

/// Reads a hash of the type [`TYPE_HASH_TIMED_LISTPACK`].
pub(super) fn read_timed_listpack(reader: &mut RdbReader<'_>, bytes_max: usize) -> Option<Vec<u8>> {
    // The earliest deadline, which the listpack contains as well.
    reader.array::<8>()?;
    read_packed(reader, bytes_max, TRIPLE)
}

fn read_packed(reader: &mut RdbReader<'_>, bytes_max: usize, width: usize) -> Option<Vec<u8>> {
    let listpack = reader.string(bytes_max)?;
    let elements = listpack::read(&listpack)?;
    let mut row = FieldsRow::new(bytes_max);
    for entry in elements.chunks(width) {
        let (field, value) = (*entry.first()?, *entry.get(1)?);
        let deadline = match entry.get(2) {
            None if width == PAIR => None,
            Some(Element::Integer(0)) => None,
            Some(Element::Integer(at)) => Some(u64::try_from(*at).ok()?),
            Some(Element::Bytes(_)) | None => return None,
        };
        row.push(field, deadline, value)?;
    }
    row.checked()
}

/// A row of fields that is being read, and its maximum length.
struct FieldsRow {
    bytes: Vec<u8>,
    bytes_max: usize,
}

impl FieldsRow {
    fn new(bytes_max: usize) -> FieldsRow {
        FieldsRow { bytes: Vec::new(), bytes_max }
    }

    /// Adds a field. `None` if the row becomes too long.
    fn push(
        &mut self,
        field: Element<'_>,
        deadline: Option<u64>,
        value: Element<'_>,
    ) -> Option<()> {
        // A time that is no signed number is centuries away, and no node sends it.
        let deadline = deadline.map(|at| i64::try_from(at).map(i64::unsigned_abs)).transpose();
        write_field(field, deadline.ok()?, value, &mut self.bytes);
        (self.bytes.len() <= self.bytes_max).then_some(())
    }

    /// Returns the row if it is a hash: at least one field, and none twice.
    fn checked(self) -> Option<Vec<u8>> {
        let pairs = Row::check_fields(&self.bytes).ok()?;
        let mut fields: Vec<Element<'_>> = pairs.pairs().map(|(field, _)| field).collect();
        fields.sort_unstable();
        let is_hash = !fields.is_empty() && fields.windows(2).all(|pair| pair[0] != pair[1]);
        is_hash.then_some(self.bytes)
    }
}

//! The time at which a field of a hash expires: a mark between the field and its value. A field without a deadline has
//! none, so hashes that do not use deadlines pay nothing for them. Called by `row.rs`, `table.rs` and `store`.
//!
//! ~~~text
//! field   C6 time (8 bytes)   value
//! ~~~
//!
//! Only the value of a pair may have the mark. [`Element::read`] refuses it, so that no other container, and no
//! message of another kind, can contain it.

use crate::element::{self, Element, TIMED};

/// Length of the mark.
pub(crate) const MARK_BYTES: usize = 1 + size_of::<u64>();

/// Appends the mark of a deadline.
fn write_mark(deadline: u64, out: &mut Vec<u8>) {
    out.push(TIMED);
    out.extend_from_slice(&deadline.to_le_bytes());
}

/// Appends a field, its deadline in milliseconds, and its value.
pub fn write_field(
    field: Element<'_>,
    deadline: Option<u64>,
    value: Element<'_>,
    out: &mut Vec<u8>,
) {
    field.write(out);
    if let Some(deadline) = deadline {
        write_mark(deadline, out);
    }
    value.write(out);
}

/// Returns the deadline of a field: the entry is a pair in packed form.
#[inline]
pub fn deadline_of(entry: &[u8]) -> Option<u64> {
    split_mark(&entry[element::skip(entry, 0)..]).0
}

/// Returns the earliest deadline of a row of pairs.
pub fn earliest_of<'a>(entries: impl Iterator<Item = &'a [u8]>) -> Option<u64> {
    entries.filter_map(deadline_of).min()
}

/// Returns the same pair with another deadline, or without one.
pub fn with_deadline(entry: &[u8], deadline: Option<u64>) -> Vec<u8> {
    let (field, rest) = entry.split_at(element::skip(entry, 0));
    let mut out = Vec::with_capacity(entry.len() + MARK_BYTES);
    out.extend_from_slice(field);
    if let Some(deadline) = deadline {
        write_mark(deadline, &mut out);
    }
    out.extend_from_slice(split_mark(rest).1);
    out
}

/// Splits the deadline off the beginning of a value.
#[inline]
pub(crate) fn split_mark(bytes: &[u8]) -> (Option<u64>, &[u8]) {
    match bytes {
        [TIMED, rest @ ..] => match rest.split_first_chunk() {
            Some((deadline, value)) => (Some(u64::from_le_bytes(*deadline)), value),
            None => (None, bytes),
        },
        _ => (None, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Row;

    fn entry(field: &[u8], deadline: Option<u64>, value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write_field(Element::of(field), deadline, Element::of(value), &mut out);
        out
    }

    #[test]
    fn a_deadline_changes_neither_field_nor_value() {
        let plain = entry(b"f", None, b"12345");
        let timed = entry(b"f", Some(1 << 41), b"12345");
        assert_eq!(timed.len(), plain.len() + MARK_BYTES);
        assert_eq!((deadline_of(&plain), deadline_of(&timed)), (None, Some(1 << 41)));
        assert_eq!(with_deadline(&plain, Some(1 << 41)), timed);
        assert_eq!(with_deadline(&timed, Some(1 << 41)), timed);
        assert_eq!(with_deadline(&timed, None), plain);
        let both = [timed, entry(b"g", None, b"v")].concat();
        let row = Row::check_fields(&both).expect("two fields");
        let pairs: Vec<_> = row.pairs().map(|(_, value)| value.to_text().into_owned()).collect();
        assert_eq!(pairs, [b"12345".to_vec(), b"v".to_vec()]);
        assert_eq!(row.elements().count(), 4);
        assert_eq!(earliest_of(row.entries()), Some(1 << 41));
    }

    #[test]
    fn only_values_of_pairs_have_deadlines() {
        let timed = entry(b"f", Some(7), b"v");
        assert!(Row::check(&timed, 2).is_err());
        assert!(Row::check(&timed[2..], 1).is_err());
        let mark = &timed[2..11];
        // Before the field, twice, without its value, cut off.
        for bytes in [
            [mark, &timed[..]].concat(),
            [&timed[..2], mark, mark, &timed[11..]].concat(),
            timed[..11].to_vec(),
            timed[..6].to_vec(),
        ] {
            assert!(Row::check_fields(&bytes).is_err(), "{bytes:?}");
        }
    }
}

//! A list as it is read: a row in its item's block, or a structure of its own. Changes are in `change/list.rs`.

use containers::{Element, List, Row};

/// A list whose listpack would be longer is large, as in Redis (`list-max-listpack-size` -2).
const PACKED_BYTES_MAX: usize = 8 * 1024;
/// A large list becomes packed again when its listpack would not be longer than this, as in Redis.
const SHRUNK_BYTES_MAX: usize = PACKED_BYTES_MAX / 2;
/// Bytes of an empty listpack.
const LISTPACK_HEAD_BYTES: usize = 7;

/// A list in the store, borrowed while the slot is locked.
#[derive(Clone, Copy)]
pub enum ListValue<'a> {
    Packed(Row<'a>),
    Large(&'a List),
}

impl<'a> ListValue<'a> {
    /// Returns the number of elements. Walks over all elements of a packed list.
    pub fn len(self) -> usize {
        match self {
            ListValue::Packed(row) => row.len(),
            ListValue::Large(list) => list.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        match self {
            ListValue::Packed(row) => row.is_empty(),
            ListValue::Large(list) => list.is_empty(),
        }
    }

    pub fn get(self, index: usize) -> Option<Element<'a>> {
        match self {
            ListValue::Packed(row) => row.elements().nth(index),
            ListValue::Large(list) => list.get(index),
        }
    }

    /// Iterates over elements from `index` on.
    pub fn iter_from(self, index: usize) -> impl Iterator<Item = Element<'a>> {
        let (row, list) = match self {
            ListValue::Packed(row) => (Some(row), None),
            ListValue::Large(list) => (None, Some(list)),
        };
        let packed = row.into_iter().flat_map(move |row| row.elements().skip(index));
        packed.chain(list.into_iter().flat_map(move |list| list.iter_from(index)))
    }

    /// Iterates backwards over the elements before `index`.
    pub fn iter_back_from(self, index: usize) -> impl Iterator<Item = Element<'a>> {
        let (row, list) = match self {
            ListValue::Packed(row) => (Some(row), None),
            ListValue::Large(list) => (None, Some(list)),
        };
        let packed = row.into_iter().flat_map(move |row| {
            let mut elements: Vec<Element<'a>> = row.elements().take(index).collect();
            elements.reverse();
            elements
        });
        packed.chain(list.into_iter().flat_map(move |list| list.iter_back_from(index)))
    }

    /// Returns the length of the elements in a row.
    pub fn row_len(self) -> usize {
        match self {
            ListValue::Packed(row) => row.bytes().len(),
            ListValue::Large(list) => list.row_len(),
        }
    }

    /// Returns an upper bound of the length of each element in a row.
    pub fn longest_bound(self) -> usize {
        match self {
            ListValue::Packed(row) => row.bytes().len(),
            ListValue::Large(list) => list.longest_bound(),
        }
    }

    /// Appends the elements in a row.
    pub fn write_row(self, out: &mut Vec<u8>) {
        match self {
            ListValue::Packed(row) => out.extend_from_slice(row.bytes()),
            ListValue::Large(list) => list.write_row(out),
        }
    }

    pub fn to_row(self) -> Vec<u8> {
        let mut row = Vec::with_capacity(self.row_len());
        self.write_row(&mut row);
        row
    }

    /// Returns whether the list has the elements of this row, in this order.
    pub fn equals_row(self, row: &[u8]) -> bool {
        self.row_len() == row.len() && self.iter_from(0).eq(Row::new(row, 1).elements())
    }
}

/// Returns whether a list of this row may be packed.
pub(crate) fn fits_packed(row: Row<'_>) -> bool {
    listpack_len(row) <= PACKED_BYTES_MAX
}

/// Returns whether a packed list may stay packed with these elements. Redis adds the lengths of their texts.
pub(crate) fn fits_packed_with(row: Row<'_>, added: Row<'_>) -> bool {
    // No element takes three times as many bytes in a listpack, or as a text, as in a row.
    if row.bytes().len() + added.bytes().len() < PACKED_BYTES_MAX / 4 {
        return true;
    }
    let texts: usize = added.elements().map(Element::len).sum();
    listpack_len(row) + texts <= PACKED_BYTES_MAX
}

/// Returns the row of a large list that has become short enough to be packed.
pub(crate) fn shrunk_row(list: &List) -> Option<Vec<u8>> {
    // Few blocks, so that the next line takes little time.
    if list.bytes() > 16 * SHRUNK_BYTES_MAX || list.row_len() > SHRUNK_BYTES_MAX {
        return None;
    }
    let row = ListValue::Large(list).to_row();
    (listpack_len(Row::new(&row, 1)) <= SHRUNK_BYTES_MAX).then_some(row)
}

/// Creates the large list of a row.
pub(crate) fn list_of(row: Row<'_>) -> Box<List> {
    let mut list = Box::new(List::default());
    row.entries().for_each(|entry| list.push_entry(entry));
    list
}

/// Returns the length of these elements in Redis's listpack.
fn listpack_len(row: Row<'_>) -> usize {
    LISTPACK_HEAD_BYTES + row.elements().map(listpack_entry_len).sum::<usize>()
}

/// Returns the bytes of an element in Redis's listpack.
pub fn listpack_entry_len(element: Element<'_>) -> usize {
    let content = match element {
        Element::Integer(0..=127) => 1,
        Element::Integer(-4_096..=4_095) => 2,
        Element::Integer(-32_768..=32_767) => 3,
        Element::Integer(-8_388_608..=8_388_607) => 4,
        Element::Integer(-2_147_483_648..=2_147_483_647) => 5,
        Element::Integer(_) => 9,
        Element::Bytes(bytes) if bytes.len() < 64 => 1 + bytes.len(),
        Element::Bytes(bytes) if bytes.len() < 4_096 => 2 + bytes.len(),
        Element::Bytes(bytes) => 5 + bytes.len(),
    };
    let back_length = match content {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    };
    content + back_length
}

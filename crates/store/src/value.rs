//! A value read from an item ([`StoredValue`]), a value to be stored ([`NewValue`]), and the form in which an item keeps it.
//!
//! A further type is one more variant here, one or two more kinds in `item.rs`, and the effects that change it in
//! `effect.rs`.

use std::borrow::Cow;
use std::sync::Arc;

use containers::{List, SortedSet, Stream, Table};

use crate::hash_value::HashValue;
use crate::item::SharedValue;
use crate::list_value::ListValue;

use crate::set_value::SetValue;
use crate::sorted_value::SortedSetValue;

/// A value in the store, borrowed while the slot is locked.
#[derive(Clone, Copy)]
pub enum StoredValue<'a> {
    String(StringValue<'a>),
    Hash(HashValue<'a>),
    List(ListValue<'a>),
    SortedSet(SortedSetValue<'a>),
    Set(SetValue<'a>),
    Stream(&'a Stream),
}

/// A string in the store, borrowed while the slot is locked.
#[derive(Clone, Copy)]
pub enum StringValue<'a> {
    /// A string inside the item's own block.
    Bytes(&'a [u8]),
    /// A string that is the shortest decimal form of a number.
    Integer(i64),
    /// A large string in a block of its own, shared with replies and fills in progress.
    Shared(SharedValue<'a>),
}

/// The encoding that `OBJECT ENCODING` reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    Int,
    Embstr,
    Raw,
    Listpack,
    Hashtable,
    Quicklist,
    Skiplist,
    Intset,
    Stream,
}

impl Encoding {
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Int => "int",
            Encoding::Embstr => "embstr",
            Encoding::Raw => "raw",
            Encoding::Listpack => "listpack",
            Encoding::Hashtable => "hashtable",
            Encoding::Quicklist => "quicklist",
            Encoding::Skiplist => "skiplist",
            Encoding::Intset => "intset",
            Encoding::Stream => "stream",
        }
    }
}

impl<'a> StringValue<'a> {
    /// Returns the string's bytes; formatted if it is stored as a number.
    pub fn to_bytes(self) -> Cow<'a, [u8]> {
        match self {
            StringValue::Bytes(bytes) => Cow::Borrowed(bytes),
            StringValue::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
            StringValue::Shared(shared) => Cow::Borrowed(shared.bytes()),
        }
    }

    /// Returns the string's length in bytes.
    pub fn len(self) -> usize {
        match self {
            StringValue::Bytes(bytes) => bytes.len(),
            StringValue::Integer(number) => decimal_len(number),
            StringValue::Shared(shared) => shared.bytes().len(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// A value to be stored.
#[derive(Clone, Debug)]
pub enum NewValue<'a> {
    /// A string as a client sent it, known not to be the shortest form of a number.
    Plain(&'a [u8]),
    /// A string computed by a command; `OBJECT ENCODING` reports `raw` whatever its length.
    Raw(&'a [u8]),
    Integer(i64),
    /// A large string that already has a block of its own.
    Shared(Arc<Vec<u8>>),
    /// A hash: its fields and values in a row (`containers::Row`), with their deadlines, no field twice.
    Hash(&'a [u8]),
    /// A list: its elements in a row.
    List(&'a [u8]),
    /// A sorted set: its scores and members in a row (`containers::ScoredRow`), no member twice.
    SortedSet(&'a [u8]),
    /// A set: its members in a row, none twice.
    Set(&'a [u8]),
    /// A stream: its records in a row (`containers::StreamRecords`), none of them a removal.
    Stream(&'a [u8]),
}

/// A value in the form in which an item keeps it.
pub(crate) enum ItemValue<'a> {
    Plain(&'a [u8]),
    Raw(&'a [u8]),
    Integer(i64),
    Shared(Arc<Vec<u8>>),
    PackedHash(&'a [u8]),
    HashTable(Box<Table>),
    PackedList(&'a [u8]),
    LargeList(Box<List>),
    PackedSorted(Cow<'a, [u8]>),
    Sorted(Box<SortedSet>),
    /// Numbers in ascending order.
    IntegerSet(Cow<'a, [u8]>),
    PackedSet(Cow<'a, [u8]>),
    SetTable(Box<Table>),
    Stream(Box<Stream>),
}

fn decimal_len(number: i64) -> usize {
    let digits = number.unsigned_abs().checked_ilog10().map_or(1, |log| log as usize + 1);
    digits + usize::from(number < 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_number_is_that_of_its_decimal_form() {
        for number in [0, 7, 10, -1, -10, 999, 1_000, i64::MAX, i64::MIN] {
            assert_eq!(StringValue::Integer(number).len(), number.to_string().len());
        }
    }
}

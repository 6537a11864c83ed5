//! A set as it is read: a row in its item's block, or a table of its own. Changes are in `change/set.rs`.

use containers::{Element, Row, Table, TablePosition};

use crate::Seed;

/// A set of numbers with more members than this is a table, as in Redis (`set-max-intset-entries`).
pub(crate) const INTEGERS_MAX: usize = 512;
/// Any other set with more members than this is a table, as in Redis (`set-max-listpack-entries`).
pub(crate) const PACKED_MEMBERS_MAX: usize = 128;
/// A set with a longer member is a table, as in Redis (`set-max-listpack-value`).
pub(crate) const PACKED_MEMBER_BYTES_MAX: usize = 64;
/// Number of elements of an entry.
pub(crate) const MEMBER: usize = 1;

/// A set in the store, borrowed while the slot is locked.
#[derive(Clone, Copy)]
pub enum SetValue<'a> {
    /// Only numbers, in ascending order.
    Integers(Row<'a>),
    Packed(Row<'a>),
    Table(&'a Table),
}

impl<'a> SetValue<'a> {
    /// Returns the number of members.
    pub fn len(self) -> usize {
        match self {
            SetValue::Integers(row) | SetValue::Packed(row) => row.len(),
            SetValue::Table(table) => table.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        match self {
            SetValue::Integers(row) | SetValue::Packed(row) => row.is_empty(),
            SetValue::Table(table) => table.is_empty(),
        }
    }

    pub fn contains(self, member: Element<'_>, seed: &Seed) -> bool {
        match self {
            SetValue::Integers(_) if matches!(member, Element::Bytes(_)) => false,
            SetValue::Integers(row) | SetValue::Packed(row) => row.contains(member),
            SetValue::Table(table) => table.contains(seed, member),
        }
    }

    /// Iterates over the members in packed form.
    pub fn entries(self) -> impl Iterator<Item = &'a [u8]> {
        let (row, table) = match self {
            SetValue::Integers(row) | SetValue::Packed(row) => (Some(row), None),
            SetValue::Table(table) => (None, Some(table)),
        };
        let packed = row.into_iter().flat_map(Row::entries);
        packed.chain(table.into_iter().flat_map(Table::entries))
    }

    /// Iterates over the members.
    pub fn members(self) -> impl Iterator<Item = Element<'a>> {
        self.entries().flat_map(|entry| Row::new(entry, MEMBER).elements())
    }

    /// Visits members from a position on, until `visit` returns false. Returns the position to continue from; `None` at
    /// the end. A set in a row is visited as a whole.
    pub fn scan(
        self,
        seed: &Seed,
        from: TablePosition,
        mut visit: impl FnMut(Element<'_>) -> bool,
    ) -> Option<TablePosition> {
        match self {
            SetValue::Integers(row) | SetValue::Packed(row) => {
                for member in row.elements() {
                    visit(member);
                }
                None
            }
            SetValue::Table(table) => {
                table.scan(seed, from, |entry| Row::new(entry, MEMBER).elements().all(&mut visit))
            }
        }
    }

    /// Returns a random member.
    pub fn random(self, mut roll: impl FnMut() -> u64) -> Option<Element<'a>> {
        let entry = match self {
            SetValue::Integers(row) | SetValue::Packed(row) => {
                let index = roll().checked_rem(row.len() as u64)?;
                row.nth(usize::try_from(index).ok()?)
            }
            SetValue::Table(table) => table.random(roll),
        };
        Row::new(entry?, MEMBER).elements().next()
    }

    /// Returns the length of the members in a row.
    pub fn row_len(self) -> usize {
        match self {
            SetValue::Integers(row) | SetValue::Packed(row) => row.bytes().len(),
            SetValue::Table(table) => table.entries().map(<[u8]>::len).sum(),
        }
    }

    /// Appends the members in a row.
    pub fn write_row(self, out: &mut Vec<u8>) {
        self.entries().for_each(|entry| out.extend_from_slice(entry));
    }

    pub fn to_row(self) -> Vec<u8> {
        let mut row = Vec::with_capacity(self.row_len());
        self.write_row(&mut row);
        row
    }

    /// Returns whether the set has the same members as this row, in which no member appears twice.
    pub fn equals_row(self, row: &[u8], seed: &Seed) -> bool {
        let row = Row::new(row, MEMBER);
        row.len() == self.len() && row.elements().all(|member| self.contains(member, seed))
    }
}

/// The form in which an item keeps a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SetForm {
    Integers,
    Packed,
    Table,
}

/// Returns the form of a set with these members, of which none appears twice.
pub(crate) fn form_of(members: Row<'_>) -> SetForm {
    let (mut count, mut is_integers, mut is_short) = (0, true, true);
    for member in members.elements() {
        count += 1;
        is_integers &= matches!(member, Element::Integer(_));
        is_short &= is_short_enough(member);
    }
    if is_integers && count <= INTEGERS_MAX {
        SetForm::Integers
    } else if is_short && count <= PACKED_MEMBERS_MAX {
        SetForm::Packed
    } else {
        SetForm::Table
    }
}

/// Returns whether a member may be in a row.
pub(crate) fn is_short_enough(member: Element<'_>) -> bool {
    match member {
        Element::Integer(_) => true,
        Element::Bytes(bytes) => bytes.len() <= PACKED_MEMBER_BYTES_MAX,
    }
}

/// Creates the table of these members.
pub(crate) fn table_of<'a>(entries: impl Iterator<Item = &'a [u8]>, seed: &Seed) -> Box<Table> {
    let mut table = Box::new(Table::new(MEMBER));
    for entry in entries {
        table.put_entry(seed, entry);
    }
    table
}

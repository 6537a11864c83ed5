//! A hash as it is read: a row in its item's block, or a table of its own. Changes are in `change/hash.rs`.

use containers::{Element, HashBytes, Row, Table, TablePosition, deadline_of, earliest_of};

use crate::{Seed, UnixMillis};

/// A hash with more fields than this is a table, as in Redis (`hash-max-listpack-entries`).
pub(crate) const PACKED_FIELDS_MAX: usize = 512;
/// A hash with a longer field or value is a table, as in Redis (`hash-max-listpack-value`).
pub(crate) const PACKED_ELEMENT_BYTES_MAX: usize = 64;
/// Number of elements of a pair.
pub(crate) const PAIR: usize = 2;

/// A hash in the store, borrowed while the slot is locked.
#[derive(Clone, Copy)]
pub enum HashValue<'a> {
    Packed(Row<'a>),
    Table(&'a Table),
}

impl HashBytes for Seed {
    fn hash(&self, bytes: &[u8]) -> u64 {
        Seed::hash(self, bytes)
    }
}

impl<'a> HashValue<'a> {
    /// Returns the number of fields.
    pub fn len(self) -> usize {
        match self {
            HashValue::Packed(row) => row.len(),
            HashValue::Table(table) => table.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        match self {
            HashValue::Packed(row) => row.is_empty(),
            HashValue::Table(table) => table.is_empty(),
        }
    }

    /// Returns the entry of a field: field, deadline and value in packed form.
    #[inline]
    pub(crate) fn entry(self, field: Element<'_>, seed: &Seed) -> Option<&'a [u8]> {
        match self {
            HashValue::Packed(row) => row.entry(field),
            HashValue::Table(table) => table.entry(seed, field),
        }
    }

    /// Iterates over the entries of all fields.
    pub fn entries(self) -> impl Iterator<Item = &'a [u8]> {
        let (row, table) = match self {
            HashValue::Packed(row) => (Some(row), None),
            HashValue::Table(table) => (None, Some(table)),
        };
        let packed = row.into_iter().flat_map(Row::entries);
        packed.chain(table.into_iter().flat_map(Table::entries))
    }

    /// Returns a time before which no field is due; `None` if none has a deadline. It may be too early, never too late.
    pub fn due_from(self) -> Option<UnixMillis> {
        let earliest = match self {
            HashValue::Packed(row) => earliest_of(row.entries()),
            HashValue::Table(table) => table.due_from(),
        };
        earliest.map(UnixMillis)
    }

    /// Visits the entries that are due, until `visit` returns false.
    pub(crate) fn due(self, now: UnixMillis, mut visit: impl FnMut(&[u8]) -> bool) {
        match self {
            HashValue::Packed(row) => {
                let mut due = row.entries().filter(|entry| is_due(entry, now));
                due.all(visit);
            }
            HashValue::Table(table) => table.due(now.0, &mut visit),
        }
    }

    /// Visits entries from a position on, until `visit` returns false. Returns the position to continue from; `None` at
    /// the end. A packed hash is visited as a whole.
    fn scan(
        self,
        seed: &Seed,
        from: TablePosition,
        mut visit: impl FnMut(&[u8]) -> bool,
    ) -> Option<TablePosition> {
        match self {
            HashValue::Packed(row) => {
                for entry in row.entries() {
                    visit(entry);
                }
                None
            }
            HashValue::Table(table) => table.scan(seed, from, visit),
        }
    }

    /// Returns a random entry.
    fn random(self, mut roll: impl FnMut() -> u64) -> Option<&'a [u8]> {
        match self {
            HashValue::Packed(row) => {
                let index = roll().checked_rem(row.len() as u64)?;
                row.nth(usize::try_from(index).ok()?)
            }
            HashValue::Table(table) => table.random(roll),
        }
    }

    /// Returns the hash as clients see it at `now`: without the fields that are due.
    #[inline]
    pub fn at(self, now: UnixMillis) -> LiveHash<'a> {
        LiveHash { hash: self, now }
    }

    /// Returns the length of the pairs in a row.
    pub fn row_len(self) -> usize {
        match self {
            HashValue::Packed(row) => row.bytes().len(),
            HashValue::Table(table) => table.entries().map(<[u8]>::len).sum(),
        }
    }

    /// Appends the pairs in a row.
    pub fn write_row(self, out: &mut Vec<u8>) {
        match self {
            HashValue::Packed(row) => out.extend_from_slice(row.bytes()),
            HashValue::Table(table) => {
                table.entries().for_each(|entry| out.extend_from_slice(entry));
            }
        }
    }

    pub fn to_row(self) -> Vec<u8> {
        let mut row = Vec::with_capacity(self.row_len());
        self.write_row(&mut row);
        row
    }

    /// Returns whether the hash has the same fields, values and deadlines as this row, in which no field appears twice.
    pub fn equals_row(self, row: &[u8], seed: &Seed) -> bool {
        let row = Row::new(row, PAIR);
        let is_same = |entry| self.entry(pair(entry).0, seed) == Some(entry);
        row.len() == self.len() && row.entries().all(is_same)
    }
}

/// A hash without the fields that are due. They are still in memory: the primary removes them a moment later, and a
/// backup when the primary says so.
#[derive(Clone, Copy)]
pub struct LiveHash<'a> {
    hash: HashValue<'a>,
    now: UnixMillis,
}

/// Draws of a random field before all fields are looked through.
const DRAWS_MAX: usize = 64;

impl<'a> LiveHash<'a> {
    /// Returns the number of fields. Counts those of a large hash if some may be due.
    pub fn len(self) -> usize {
        match self.hash {
            HashValue::Table(table) if !self.may_have_due() => table.len(),
            HashValue::Table(_) | HashValue::Packed(_) => self.entries().count(),
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns whether the hash is a table.
    pub fn is_table(self) -> bool {
        matches!(self.hash, HashValue::Table(_))
    }

    /// Returns the value of a field.
    #[inline]
    pub fn get(self, field: &[u8], seed: &Seed) -> Option<Element<'a>> {
        self.entry(field, seed).map(|entry| pair(entry).1)
    }

    /// Returns the deadline of a field that exists, if it has one.
    pub fn deadline(self, field: &[u8], seed: &Seed) -> Option<Option<UnixMillis>> {
        self.entry(field, seed).map(|entry| deadline_of(entry).map(UnixMillis))
    }

    #[inline]
    fn entry(self, field: &[u8], seed: &Seed) -> Option<&'a [u8]> {
        let entry = self.hash.entry(Element::of(field), seed)?;
        (!is_due(entry, self.now)).then_some(entry)
    }

    /// Iterates over the entries of all fields.
    pub fn entries(self) -> impl Iterator<Item = &'a [u8]> {
        self.hash.entries().filter(move |entry| !is_due(entry, self.now))
    }

    /// Iterates over fields and values.
    pub fn pairs(self) -> impl Iterator<Item = (Element<'a>, Element<'a>)> {
        self.entries().map(pair)
    }

    /// Visits pairs from a position on, until `visit` returns false. Returns the position to continue from; `None` at the
    /// end. A packed hash is visited as a whole.
    pub fn scan(
        self,
        seed: &Seed,
        from: TablePosition,
        mut visit: impl FnMut(Element<'_>, Element<'_>) -> bool,
    ) -> Option<TablePosition> {
        self.hash.scan(seed, from, |entry| {
            let (field, value) = pair(entry);
            is_due(entry, self.now) || visit(field, value)
        })
    }

    /// Returns a random pair; `None` if all fields are due.
    pub fn random(self, mut roll: impl FnMut() -> u64) -> Option<(Element<'a>, Element<'a>)> {
        for _ in 0..DRAWS_MAX {
            let entry = self.hash.random(&mut roll)?;
            if !is_due(entry, self.now) {
                return Some(pair(entry));
            }
        }
        let index = roll().checked_rem(self.len() as u64)?;
        self.pairs().nth(usize::try_from(index).ok()?)
    }

    fn may_have_due(self) -> bool {
        self.hash.due_from().is_some_and(|from| from <= self.now)
    }
}

#[inline]
pub(crate) fn is_due(entry: &[u8], now: UnixMillis) -> bool {
    deadline_of(entry).is_some_and(|at| at <= now.0)
}

/// Returns the field and the value of an entry.
#[inline]
pub(crate) fn pair(entry: &[u8]) -> (Element<'_>, Element<'_>) {
    Row::new(entry, PAIR).pairs().next().expect("an entry is a pair")
}

/// Returns whether a row of pairs may stay packed.
pub(crate) fn fits_packed(row: Row<'_>) -> bool {
    // In a row this short, no text is longer.
    let is_short = row.bytes().len() <= PACKED_ELEMENT_BYTES_MAX;
    let fits = |element: Element<'_>| element.len() <= PACKED_ELEMENT_BYTES_MAX;
    is_short || row.elements().all(fits) && row.len() <= PACKED_FIELDS_MAX
}

/// Creates the table of a row of pairs.
pub(crate) fn table_of(row: Row<'_>, seed: &Seed) -> Box<Table> {
    let mut table = Box::new(Table::new(PAIR));
    for entry in row.entries() {
        table.put_entry(seed, entry);
    }
    table
}

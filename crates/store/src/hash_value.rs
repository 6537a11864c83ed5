//! A hash as it is read: a row in its item's block, or a table of its own. Changes are in `change/hash.rs`.

use containers::{Element, HashBytes, Row, Table, TablePosition};

use crate::Seed;

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

    /// Returns the value of a field.
    pub fn get(self, field: &[u8], seed: &Seed) -> Option<Element<'a>> {
        match self {
            HashValue::Packed(row) => row.get(Element::of(field)),
            HashValue::Table(table) => table.get(seed, Element::of(field)),
        }
    }

    /// Iterates over fields and values.
    pub fn pairs(self) -> impl Iterator<Item = (Element<'a>, Element<'a>)> {
        let (row, table) = match self {
            HashValue::Packed(row) => (Some(row), None),
            HashValue::Table(table) => (None, Some(table)),
        };
        let packed = row.into_iter().flat_map(Row::pairs);
        packed.chain(table.into_iter().flat_map(Table::pairs))
    }

    /// Visits pairs from a position on, until `visit` returns false. Returns the position to continue from; `None` at the
    /// end. A packed hash is visited as a whole.
    pub fn scan(
        self,
        seed: &Seed,
        from: TablePosition,
        mut visit: impl FnMut(Element<'_>, Element<'_>) -> bool,
    ) -> Option<TablePosition> {
        match self {
            HashValue::Packed(row) => {
                for (field, value) in row.pairs() {
                    visit(field, value);
                }
                None
            }
            HashValue::Table(table) => table.scan(seed, from, |entry| {
                Row::new(entry, PAIR).pairs().all(|(field, value)| visit(field, value))
            }),
        }
    }

    /// Returns a random pair.
    pub fn random(self, mut roll: impl FnMut() -> u64) -> Option<(Element<'a>, Element<'a>)> {
        let entry = match self {
            HashValue::Packed(row) => {
                let index = roll().checked_rem(row.len() as u64)?;
                row.nth(usize::try_from(index).ok()?)
            }
            HashValue::Table(table) => table.random(roll),
        };
        Row::new(entry?, PAIR).pairs().next()
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

    /// Returns whether the hash has the same fields and values as this row, in which no field appears twice.
    pub fn equals_row(self, row: &[u8], seed: &Seed) -> bool {
        let row = Row::new(row, PAIR);
        let is_same = |(field, value): (Element<'_>, Element<'_>)| {
            field.with_text(|field| self.get(field, seed)) == Some(value)
        };
        row.len() == self.len() && row.pairs().all(is_same)
    }
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

//! Elements in a row, without gaps: the form of a small container in its key's block, and of every container in
//! effects, fills and snapshots. An entry is one element (a list, a set) or two (field and value, score and member).

use crate::deadline::split_mark;
use crate::element::{self, Element, Encoded};

/// The bytes are not a row of complete entries in their only form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedRow;

/// Number of elements of a pair.
const PAIR: usize = 2;

/// A row of entries, each of `width` elements.
#[derive(Clone, Copy)]
pub struct Row<'a> {
    bytes: &'a [u8],
    width: usize,
}

impl<'a> Row<'a> {
    /// Takes bytes that this crate has written, or that [`Row::check`] has accepted.
    #[inline]
    pub fn new(bytes: &'a [u8], width: usize) -> Row<'a> {
        Row { bytes, width }
    }

    /// Checks bytes from another node: complete entries, each element in its only form.
    pub fn check(bytes: &'a [u8], width: usize) -> Result<Row<'a>, MalformedRow> {
        Row::check_elements(bytes, width, |_| false)
    }

    /// Same as `check`, for the fields and values of a hash, which may have deadlines.
    pub fn check_fields(bytes: &'a [u8]) -> Result<Row<'a>, MalformedRow> {
        Row::check_elements(bytes, PAIR, |index| index % PAIR == 1)
    }

    fn check_elements(
        bytes: &'a [u8],
        width: usize,
        may_have_deadline: impl Fn(usize) -> bool,
    ) -> Result<Row<'a>, MalformedRow> {
        let mut rest = bytes;
        let mut elements = 0;
        while !rest.is_empty() {
            if may_have_deadline(elements) {
                rest = split_mark(rest).1;
            }
            let (element, behind) = Element::read(rest).ok_or(MalformedRow)?;
            let written = rest.len() - behind.len();
            if !element.is_canonical() || Encoded::of(element).len() != written {
                return Err(MalformedRow);
            }
            elements += 1;
            rest = behind;
        }
        if elements % width == 0 { Ok(Row { bytes, width }) } else { Err(MalformedRow) }
    }

    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the number of entries. Walks over all of them.
    pub fn len(self) -> usize {
        self.entries().count()
    }

    /// Iterates over the entries' bytes.
    #[inline]
    pub fn entries(self) -> Entries<'a> {
        Entries { row: self, at: 0 }
    }

    /// Iterates over all elements, without their deadlines.
    pub fn elements(self) -> impl Iterator<Item = Element<'a>> {
        Entries { row: Row { width: 1, ..self }, at: 0 }.map(|entry| element::read_timed(entry).0)
    }

    /// Iterates over the entries of a row of pairs.
    pub fn pairs(self) -> impl Iterator<Item = (Element<'a>, Element<'a>)> {
        self.entries().map(pair)
    }

    /// Returns the second element of the pair that begins with `first`.
    #[inline]
    pub fn get(self, first: Element<'_>) -> Option<Element<'a>> {
        self.find(first).map(|at| pair(&self.bytes[at..]).1)
    }

    /// Returns the entry that begins with `first`.
    pub fn entry(self, first: Element<'_>) -> Option<&'a [u8]> {
        self.find(first).map(|at| &self.bytes[at..self.skip_entry(at)])
    }

    pub fn contains(self, first: Element<'_>) -> bool {
        self.find(first).is_some()
    }

    /// Returns the entry at this index.
    pub fn nth(self, index: usize) -> Option<&'a [u8]> {
        self.entries().nth(index)
    }

    /// Returns the offset of the entry at this index, or of the end if there are fewer.
    pub fn offset(self, index: usize) -> usize {
        let mut at = 0;
        for _ in 0..index {
            if at == self.bytes.len() {
                break;
            }
            at = self.skip_entry(at);
        }
        at
    }

    /// Returns the row after setting this entry. One with the same first element is replaced in its place, a new one
    /// comes last.
    pub fn with_entry(self, entry: &[u8]) -> Vec<u8> {
        let (before, after) = match self.find(element::read(entry).0) {
            Some(at) => (at, self.skip_entry(at)),
            None => (self.bytes.len(), self.bytes.len()),
        };
        [&self.bytes[..before], entry, &self.bytes[after..]].concat()
    }

    /// Returns the row without the entry that begins with `first`; `None` if there is none.
    pub fn without(self, first: Element<'_>) -> Option<Vec<u8>> {
        let at = self.find(first)?;
        Some([&self.bytes[..at], &self.bytes[self.skip_entry(at)..]].concat())
    }

    #[inline]
    fn find(self, first: Element<'_>) -> Option<usize> {
        self.find_encoded(&Encoded::of(first))
    }

    #[inline]
    fn find_encoded(self, first: &Encoded<'_>) -> Option<usize> {
        let mut at = 0;
        while at < self.bytes.len() {
            if first.begins(&self.bytes[at..]) {
                return Some(at);
            }
            at = self.skip_entry(at);
        }
        None
    }

    #[inline]
    fn skip_entry(self, at: usize) -> usize {
        skip_entry(self.bytes, at, self.width)
    }
}

/// Returns the offset behind the entry of `width` elements at `at`.
#[inline]
pub(crate) fn skip_entry(bytes: &[u8], at: usize, width: usize) -> usize {
    (0..width).fold(at, |at, _| element::skip(bytes, at))
}

/// Returns the two elements of a pair.
#[inline]
pub(crate) fn pair(entry: &[u8]) -> (Element<'_>, Element<'_>) {
    let (first, rest) = element::read(entry);
    (first, element::read_timed(rest).0)
}

/// Iterates over the bytes of entries.
#[derive(Clone)]
pub struct Entries<'a> {
    row: Row<'a>,
    at: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.at == self.row.bytes.len() {
            return None;
        }
        let start = self.at;
        self.at = self.row.skip_entry(start);
        Some(&self.row.bytes[start..self.at])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use placement::SplitMix64;

    use super::*;

    #[test]
    fn a_row_of_pairs_behaves_like_a_map() {
        let mut rng = SplitMix64::new(1);
        let mut model: BTreeMap<String, String> = BTreeMap::new();
        let mut bytes = Vec::new();
        for _ in 0..5_000 {
            let field = format!("f{}", rng.draw() % 40);
            if rng.draw().is_multiple_of(3) {
                let removed = Row::new(&bytes, 2).without(Element::of(field.as_bytes()));
                assert_eq!(removed.is_some(), model.remove(&field).is_some());
                bytes = removed.unwrap_or(bytes);
            } else {
                let value = (rng.draw() % 100_000).to_string();
                let mut entry = Vec::new();
                Element::of(field.as_bytes()).write(&mut entry);
                Element::of(value.as_bytes()).write(&mut entry);
                bytes = Row::new(&bytes, 2).with_entry(&entry);
                model.insert(field, value);
            }
            let row = Row::check(&bytes, 2).expect("complete pairs");
            assert_eq!(row.len(), model.len());
            let probe = format!("f{}", rng.draw() % 40);
            let found =
                row.get(Element::of(probe.as_bytes())).map(|value| value.to_text().into_owned());
            assert_eq!(found, model.get(&probe).map(|value| value.clone().into_bytes()));
        }
        let mut pairs: Vec<_> = Row::new(&bytes, 2)
            .pairs()
            .map(|(field, value)| (field.to_text().into_owned(), value.to_text().into_owned()))
            .collect();
        pairs.sort();
        let expected: Vec<_> = model
            .into_iter()
            .map(|(field, value)| (field.into_bytes(), value.into_bytes()))
            .collect();
        assert_eq!(pairs, expected);
    }

    #[test]
    fn rows_that_this_crate_would_not_write_are_refused() {
        let malformed: [&[u8]; 6] = [
            &[1],                      // A string without its byte.
            &[1, b'a'],                // A field without its value.
            &[1, b'7', 1, b'a'],       // A number as a string.
            &[0xC0, 5, 1, b'a'],       // A number in too many bytes.
            &[0xC4, 1, 0, b'a', 0x80], // A length in too many bytes.
            &[0xFF, 0x80],
        ];
        for bytes in malformed {
            assert_eq!(Row::check(bytes, 2).map(Row::bytes), Err(MalformedRow), "{bytes:?}");
        }
        assert!(Row::check(&[1, b'a', 0x80], 2).is_ok());
        assert!(Row::check(&[], 2).is_ok());
    }
}

//! Ranges of a list's indices, as `Effect::RemoveElements` carries them: first index and number of elements of each, as
//! elements in a row. They ascend, do not overlap, and refer to the list before the effect.

use core::ops::Range;

use containers::{Element, Row};

/// Number of elements of a range.
const PAIR: usize = 2;

/// Ranges of indices in a row.
#[derive(Default)]
pub struct ListRanges(Vec<u8>);

impl ListRanges {
    /// Appends a range, which must not begin before the end of the last one. An empty range is left out.
    pub fn push(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            number(range.start).write(&mut self.0);
            number(range.len()).write(&mut self.0);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn row(&self) -> &[u8] {
        &self.0
    }

    /// Iterates over the ranges of a row that this type has written, or [`ListRanges::is_valid`] has accepted.
    pub fn read(row: &[u8]) -> impl Iterator<Item = Range<usize>> {
        Row::new(row, PAIR).pairs().map(|(start, len)| {
            let start = index(start).unwrap_or(usize::MAX);
            start..start.saturating_add(index(len).unwrap_or(0))
        })
    }

    /// Checks a row from another node.
    pub fn is_valid(row: &[u8]) -> bool {
        let Ok(pairs) = Row::check(row, PAIR) else { return false };
        let mut end = 0;
        pairs.pairs().all(|(start, len)| {
            let (Some(start), Some(len)) = (index(start), index(len)) else { return false };
            let Some(next) = start.checked_add(len) else { return false };
            start >= core::mem::replace(&mut end, next) && len > 0
        })
    }
}

fn number(number: usize) -> Element<'static> {
    Element::Integer(i64::try_from(number).expect("no list has 2^63 elements"))
}

fn index(element: Element<'_>) -> Option<usize> {
    match element {
        Element::Integer(number) => usize::try_from(number).ok(),
        Element::Bytes(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_they_were_written() {
        let mut ranges = ListRanges::default();
        for range in [0..2, 5..5, 5..6, 70_000..80_000] {
            ranges.push(range);
        }
        assert!(ListRanges::is_valid(ranges.row()));
        let read: Vec<_> = ListRanges::read(ranges.row()).collect();
        assert_eq!(read, [0..2, 5..6, 70_000..80_000]);
    }

    #[test]
    fn ranges_that_overlap_or_are_no_ranges_are_refused() {
        let row = |elements: &[Element<'_>]| {
            let mut row = Vec::new();
            elements.iter().for_each(|element| element.write(&mut row));
            row
        };
        let [one, two, text] = [Element::Integer(1), Element::Integer(2), Element::Bytes(b"x")];
        let wrong = [
            row(&[one]),
            row(&[one, text]),
            row(&[one, Element::Integer(-1)]),
            row(&[one, Element::Integer(0)]),
            row(&[one, two, two, one]),
            row(&[two, one, one, one]),
        ];
        for row in wrong {
            assert!(!ListRanges::is_valid(&row), "{row:?}");
        }
        assert!(ListRanges::is_valid(&row(&[one, one, two, one])));
    }
}

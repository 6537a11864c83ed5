//! A small sorted set: (score, member) pairs in a row, in the order of scores and then of the members' texts. Also the form
//! of sorted sets of any size in effects, fills and snapshots.

use crate::element::{self, Element, Encoded};
use crate::row::{MalformedRow, Row};
use crate::score::Score;
use crate::sorted::ScoredMember;

/// Number of elements of a pair.
const PAIR: usize = 2;

/// A row of (score, member) pairs.
#[derive(Clone, Copy)]
pub struct ScoredRow<'a>(Row<'a>);

impl<'a> ScoredRow<'a> {
    /// Takes bytes that this crate has written, or that [`ScoredRow::check`] has accepted.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> ScoredRow<'a> {
        ScoredRow(Row::new(bytes, PAIR))
    }

    /// Checks bytes from another node: complete pairs, each element in its only form. Their order is not checked.
    pub fn check(bytes: &'a [u8]) -> Result<ScoredRow<'a>, MalformedRow> {
        let mut rest = bytes;
        let mut expected = Vec::new();
        while !rest.is_empty() {
            let (score, behind) = Element::read(rest).ok_or(MalformedRow)?;
            let score = Score::of(score).ok_or(MalformedRow)?;
            let (member, behind) = Element::read(behind).ok_or(MalformedRow)?;
            expected.clear();
            ScoredMember { score, member }.write(&mut expected);
            if !member.is_canonical() || !rest.starts_with(&expected) {
                return Err(MalformedRow);
            }
            rest = behind;
        }
        Ok(ScoredRow::new(bytes))
    }

    pub fn bytes(self) -> &'a [u8] {
        self.0.bytes()
    }

    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of members. Walks over all of them.
    pub fn len(self) -> usize {
        self.0.len()
    }

    /// Iterates over the members.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = ScoredMember<'a>> + Clone {
        self.0.entries().map(ScoredMember::of)
    }

    /// Returns whether the members are in order, and none appears twice in the same place.
    pub fn is_sorted(self) -> bool {
        self.iter().is_sorted_by(|one, other| one < other)
    }

    /// Returns the score of a member.
    pub fn get(self, member: Element<'_>) -> Option<Score> {
        let member = Encoded::of(member);
        let entry = self.0.entries().find(|entry| is_of(entry, &member))?;
        Some(ScoredMember::of(entry).score)
    }

    /// Returns the row after setting a member's score. The row must be sorted, and stays so.
    pub fn with(self, new: ScoredMember<'_>) -> Vec<u8> {
        let member = Encoded::of(new.member);
        let mut out = Vec::with_capacity(self.bytes().len() + member.len() + Score::BYTES_MAX);
        let mut is_written = false;
        for entry in self.0.entries() {
            if is_of(entry, &member) {
                continue;
            }
            if !is_written && ScoredMember::of(entry) > new {
                new.write(&mut out);
                is_written = true;
            }
            out.extend_from_slice(entry);
        }
        if !is_written {
            new.write(&mut out);
        }
        out
    }

    /// Returns the row without a member; `None` if the member is not there.
    pub fn without(self, member: Element<'_>) -> Option<Vec<u8>> {
        let member = Encoded::of(member);
        let mut out = Vec::with_capacity(self.bytes().len());
        for entry in self.0.entries().filter(|entry| !is_of(entry, &member)) {
            out.extend_from_slice(entry);
        }
        (out.len() < self.bytes().len()).then_some(out)
    }
}

/// Returns whether a pair is that of this member.
#[inline]
fn is_of(entry: &[u8], member: &Encoded<'_>) -> bool {
    let behind_score = element::skip(entry, 0);
    entry.len() - behind_score == member.len() && member.begins(&entry[behind_score..])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use placement::SplitMix64;

    use super::*;

    fn score(number: f64) -> Score {
        Score::new(number).expect("a number")
    }

    #[test]
    fn a_row_of_scores_behaves_like_a_sorted_map() {
        let mut rng = SplitMix64::new(1);
        let mut model: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
        let mut bytes = Vec::new();
        for _ in 0..5_000 {
            let number = rng.draw() % 40;
            let name =
                if number.is_multiple_of(2) { number.to_string() } else { format!("m{number}") };
            let member = Element::of(name.as_bytes());
            let row = ScoredRow::check(&bytes).expect("written by it");
            assert_eq!(
                row.get(member),
                model.get(name.as_bytes()).map(|tenths| score(*tenths as f64 / 10.0))
            );
            if rng.draw().is_multiple_of(3) {
                let removed = row.without(member);
                assert_eq!(removed.is_some(), model.remove(name.as_bytes()).is_some());
                bytes = removed.unwrap_or(bytes);
            } else {
                let tenths = (rng.draw() % 100) as i64 - 50;
                bytes = row.with(ScoredMember { score: score(tenths as f64 / 10.0), member });
                model.insert(name.into_bytes(), tenths);
            }
            let row = ScoredRow::check(&bytes).expect("complete pairs");
            assert!(row.is_sorted());
            assert_eq!(row.len(), model.len());
        }
        let mut expected: Vec<_> = model.into_iter().map(|(name, tenths)| (tenths, name)).collect();
        expected.sort();
        let pairs: Vec<_> = ScoredRow::new(&bytes)
            .iter()
            .map(|it| ((it.score.get() * 10.0).round() as i64, it.member.to_text().into_owned()))
            .collect();
        assert_eq!(pairs, expected);
    }

    #[test]
    fn rows_that_this_crate_would_not_write_are_refused() {
        let nan = [&[8][..], &f64::NAN.to_le_bytes(), &[1, b'a']].concat();
        let whole = [&[8][..], &1.0f64.to_le_bytes(), &[1, b'a']].concat();
        let malformed: [&[u8]; 6] = [
            &[0x81],                // A score without its member.
            &[2, b'a', b'b', 0x80], // A text as a score.
            &[0x81, 1, b'7'],       // A number as a string.
            &[0xC0, 5, 1, b'a'],    // A score in too many bytes.
            &nan,
            &whole, // A whole number as a float.
        ];
        for bytes in malformed {
            assert_eq!(
                ScoredRow::check(bytes).map(ScoredRow::bytes),
                Err(MalformedRow),
                "{bytes:?}"
            );
        }
        // The bytes of this float are the text of a number.
        let text = [&[8][..], b"12345678", &[1, b'a']].concat();
        assert!(ScoredRow::check(&text).is_ok_and(|row| row.len() == 1));
        assert!(ScoredRow::check(&[]).is_ok_and(ScoredRow::is_empty));
    }
}

//! A sorted set as it is read: a row in its item's block, or a structure of its own. Changes are in `change/sorted.rs`.

use containers::{Element, Score, ScoredMember, ScoredRow, SortedSet, TablePosition};

use crate::Seed;

/// A sorted set with more members than this is large, as in Redis (`zset-max-listpack-entries`).
pub(crate) const PACKED_MEMBERS_MAX: usize = 128;
/// A sorted set with a longer member is large, as in Redis (`zset-max-listpack-value`).
pub(crate) const PACKED_MEMBER_BYTES_MAX: usize = 64;

/// A sorted set in the store, borrowed while the slot is locked.
#[derive(Clone, Copy)]
pub enum SortedSetValue<'a> {
    Packed(ScoredRow<'a>),
    Large(&'a SortedSet),
}

impl<'a> SortedSetValue<'a> {
    /// Returns the number of members.
    pub fn len(self) -> usize {
        match self {
            SortedSetValue::Packed(row) => row.len(),
            SortedSetValue::Large(set) => set.len(),
        }
    }

    pub fn is_empty(self) -> bool {
        match self {
            SortedSetValue::Packed(row) => row.is_empty(),
            SortedSetValue::Large(set) => set.is_empty(),
        }
    }

    /// Returns the score of a member.
    pub fn score(self, member: &[u8], seed: &Seed) -> Option<Score> {
        self.score_of(Element::of(member), seed)
    }

    fn score_of(self, member: Element<'_>, seed: &Seed) -> Option<Score> {
        match self {
            SortedSetValue::Packed(row) => row.get(member),
            SortedSetValue::Large(set) => set.score(seed, member),
        }
    }

    /// Returns the first rank for which `is_before` is false. It must be true for all members before that one.
    pub fn partition_point(self, is_before: impl Fn(ScoredMember<'_>) -> bool) -> usize {
        match self {
            SortedSetValue::Packed(row) => row.iter().take_while(|it| is_before(*it)).count(),
            SortedSetValue::Large(set) => set.partition_point(is_before),
        }
    }

    /// Iterates over members from a rank on.
    pub fn iter_from(self, rank: usize) -> impl Iterator<Item = ScoredMember<'a>> {
        let (row, set) = self.forms();
        let packed = row.into_iter().flat_map(move |row| row.iter().skip(rank));
        packed.chain(set.into_iter().flat_map(move |set| set.iter_from(rank)))
    }

    /// Iterates backwards over the members before a rank.
    pub fn iter_back_from(self, rank: usize) -> impl Iterator<Item = ScoredMember<'a>> {
        let (row, set) = self.forms();
        let packed = row.into_iter().flat_map(move |row| {
            let members: Vec<ScoredMember<'a>> = row.iter().take(rank).collect();
            members.into_iter().rev()
        });
        packed.chain(set.into_iter().flat_map(move |set| set.iter_back_from(rank)))
    }

    fn forms(self) -> (Option<ScoredRow<'a>>, Option<&'a SortedSet>) {
        match self {
            SortedSetValue::Packed(row) => (Some(row), None),
            SortedSetValue::Large(set) => (None, Some(set)),
        }
    }

    /// Visits members from a position on, until `visit` returns false. Returns the position to continue from; `None` at
    /// the end. A packed set is visited as a whole.
    pub fn scan(
        self,
        seed: &Seed,
        from: TablePosition,
        mut visit: impl FnMut(ScoredMember<'_>) -> bool,
    ) -> Option<TablePosition> {
        match self {
            SortedSetValue::Packed(row) => {
                row.iter().for_each(|member| {
                    visit(member);
                });
                None
            }
            SortedSetValue::Large(set) => set.scan(seed, from, visit),
        }
    }

    /// Returns the length of the pairs in a row.
    pub fn row_len(self) -> usize {
        match self {
            SortedSetValue::Packed(row) => row.bytes().len(),
            SortedSetValue::Large(set) => set.row_len(),
        }
    }

    /// Appends the pairs in a row, in order.
    pub fn write_row(self, out: &mut Vec<u8>) {
        match self {
            SortedSetValue::Packed(row) => out.extend_from_slice(row.bytes()),
            SortedSetValue::Large(set) => set.iter_from(0).for_each(|member| member.write(out)),
        }
    }

    pub fn to_row(self) -> Vec<u8> {
        let mut row = Vec::with_capacity(self.row_len());
        self.write_row(&mut row);
        row
    }

    /// Returns whether the set has the same members and scores as this row, in which no member appears twice.
    pub fn equals_row(self, row: &[u8], seed: &Seed) -> bool {
        let row = ScoredRow::new(row);
        let is_same = |it: ScoredMember<'_>| self.score_of(it.member, seed) == Some(it.score);
        row.len() == self.len() && row.iter().all(is_same)
    }
}

/// Returns whether a row of pairs may stay packed.
pub(crate) fn fits_packed(row: ScoredRow<'_>) -> bool {
    // In a row this short, no text is longer.
    let is_short = row.bytes().len() <= PACKED_MEMBER_BYTES_MAX;
    let fits = |it: ScoredMember<'_>| it.member.len() <= PACKED_MEMBER_BYTES_MAX;
    is_short || row.iter().all(fits) && row.len() <= PACKED_MEMBERS_MAX
}

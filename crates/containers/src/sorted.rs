//! A large sorted set: its (score, member) pairs in order, and the score of every member.

use core::cmp::Ordering;
use core::ops::Range;

use crate::element::Element;
use crate::memory::block_bytes;
use crate::row::pair;
use crate::score::Score;
use crate::scored_row::ScoredRow;
use crate::sequence::Sequence;
use crate::table::{HashBytes, Table, TablePosition};

pub struct SortedSet {
    /// Pairs of score and member, sorted by score and then by the member's text.
    order: Sequence,
    /// Pairs of member and score.
    members: Table,
}

/// A member with its score.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScoredMember<'a> {
    pub score: Score,
    pub member: Element<'a>,
}

impl Default for SortedSet {
    fn default() -> SortedSet {
        SortedSet { order: Sequence::new(2), members: Table::new(2) }
    }
}

impl<'a> ScoredMember<'a> {
    pub(crate) fn of(entry: &'a [u8]) -> ScoredMember<'a> {
        let (score, member) = pair(entry);
        ScoredMember { score: Score::of(score).expect("written by this crate"), member }
    }

    /// Appends the pair of score and member.
    pub fn write(self, out: &mut Vec<u8>) {
        self.score.with_element(|score| score.write(out));
        self.member.write(out);
    }
}

impl PartialOrd for ScoredMember<'_> {
    fn partial_cmp(&self, other: &ScoredMember<'_>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ScoredMember<'_> {
    fn cmp(&self, other: &ScoredMember<'_>) -> Ordering {
        self.score.cmp(&other.score).then_with(|| compare_texts(self.member, other.member))
    }
}

/// Compares two members by their texts, as Redis orders them.
pub fn compare_texts(one: Element<'_>, other: Element<'_>) -> Ordering {
    one.with_text(|one| other.with_text(|other| one.cmp(other)))
}

impl SortedSet {
    pub fn len(&self) -> usize {
        self.members.len()
    }

    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the set's memory in the allocator, including the block of the set itself.
    pub fn bytes(&self) -> usize {
        let own = block_bytes(size_of::<SortedSet>());
        own + self.order.bytes() + self.members.bytes() - block_bytes(size_of::<Table>())
    }

    /// Returns the length of all pairs in a row. Walks over all of them.
    pub fn row_len(&self) -> usize {
        self.order.iter_from(0).map(<[u8]>::len).sum()
    }

    pub fn score(&self, hasher: &impl HashBytes, member: Element<'_>) -> Option<Score> {
        self.members.get(hasher, member).and_then(Score::of)
    }

    /// Sets the score of a member. Returns the score it had.
    pub fn insert(
        &mut self,
        hasher: &impl HashBytes,
        score: Score,
        member: Element<'_>,
    ) -> Option<Score> {
        let old = self.score(hasher, member);
        if old.is_some_and(|old| old.get().to_bits() == score.get().to_bits()) {
            return old;
        }
        if let Some(old) = old {
            self.remove_from_order(ScoredMember { score: old, member });
        }
        score.with_element(|score| self.members.set(hasher, member, score));
        let new = ScoredMember { score, member };
        let mut entry = Vec::new();
        new.write(&mut entry);
        self.order.insert(self.rank_of(new), &entry);
        old
    }

    /// Removes a member. Returns the score it had.
    pub fn remove(&mut self, hasher: &impl HashBytes, member: Element<'_>) -> Option<Score> {
        let score = self.score(hasher, member)?;
        self.members.remove(hasher, member);
        self.remove_from_order(ScoredMember { score, member });
        Some(score)
    }

    /// Removes the members of a range of ranks.
    pub fn remove_ranks(&mut self, hasher: &impl HashBytes, ranks: Range<usize>) {
        for entry in self.order.iter_from(ranks.start).take(ranks.len()) {
            self.members.remove(hasher, pair(entry).1);
        }
        self.order.remove_range(ranks);
    }

    /// Returns the number of members before this one.
    pub fn rank(&self, hasher: &impl HashBytes, member: Element<'_>) -> Option<usize> {
        let score = self.score(hasher, member)?;
        Some(self.rank_of(ScoredMember { score, member }))
    }

    /// Returns the number of members before this place in the order, whether or not there is one: the way to continue a
    /// copy.
    pub fn rank_of(&self, place: ScoredMember<'_>) -> usize {
        self.partition_point(|one| one < place)
    }

    /// Returns the first rank for which `is_before` is false. It must be true for all members before that one.
    pub fn partition_point(&self, is_before: impl Fn(ScoredMember<'_>) -> bool) -> usize {
        self.order.partition_point(|entry| is_before(ScoredMember::of(entry)))
    }

    pub fn at(&self, rank: usize) -> Option<ScoredMember<'_>> {
        self.order.get(rank).map(ScoredMember::of)
    }

    /// Sets members as (score, member) pairs of a row.
    pub fn insert_row(&mut self, hasher: &impl HashBytes, row: ScoredRow<'_>) {
        for it in row.iter() {
            self.insert(hasher, it.score, it.member);
        }
    }

    /// Iterates over members from a rank on.
    pub fn iter_from(&self, rank: usize) -> impl Iterator<Item = ScoredMember<'_>> {
        self.order.iter_from(rank).map(ScoredMember::of)
    }

    /// Iterates backwards over the members before a rank.
    pub fn iter_back_from(&self, rank: usize) -> impl Iterator<Item = ScoredMember<'_>> {
        self.order.iter_back_from(rank).map(ScoredMember::of)
    }

    /// Visits members as [`Table::scan`] does.
    pub fn scan(
        &self,
        hasher: &impl HashBytes,
        from: TablePosition,
        mut visit: impl FnMut(ScoredMember<'_>) -> bool,
    ) -> Option<TablePosition> {
        self.members.scan(hasher, from, |entry| {
            let (member, score) = pair(entry);
            visit(ScoredMember { score: Score::of(score).expect("written by this crate"), member })
        })
    }

    /// Returns a random member.
    pub fn random(&self, roll: u64) -> Option<ScoredMember<'_>> {
        let rank = roll.checked_rem(self.len() as u64)?;
        self.at(rank as usize)
    }

    /// Frees a part of a set that is no longer needed. Returns false when nothing is left.
    pub fn free_some(&mut self, blocks: usize) -> bool {
        self.order.free_some(blocks) || self.members.free_some(blocks)
    }

    fn remove_from_order(&mut self, place: ScoredMember<'_>) {
        let rank = self.rank_of(place);
        self.order.remove_range(rank..rank + 1);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use placement::SplitMix64;

    use super::*;
    use crate::testing::Fold;

    /// The members in order, as a set of (score in tenths, text).
    #[derive(Default)]
    struct Model {
        order: BTreeSet<(i64, Vec<u8>)>,
        scores: BTreeMap<Vec<u8>, i64>,
    }

    impl Model {
        fn insert(&mut self, score: i64, member: Vec<u8>) -> Option<i64> {
            let old = self.scores.insert(member.clone(), score);
            if let Some(old) = old {
                self.order.remove(&(old, member.clone()));
            }
            self.order.insert((score, member));
            old
        }

        fn remove(&mut self, member: &[u8]) -> Option<i64> {
            let old = self.scores.remove(member)?;
            self.order.remove(&(old, member.to_vec()));
            Some(old)
        }
    }

    fn score(tenths: i64) -> Score {
        Score::new(tenths as f64 / 10.0).expect("a number")
    }

    fn member(rng: &mut SplitMix64) -> Vec<u8> {
        let number = rng.draw() % 1_500;
        if number.is_multiple_of(2) {
            number.to_string().into_bytes()
        } else {
            format!("member{number}").into_bytes()
        }
    }

    fn check(set: &SortedSet, model: &Model) {
        set.order.check();
        let content: Vec<_> =
            set.iter_from(0).map(|it| (it.score, it.member.to_text().into_owned())).collect();
        let expected: Vec<_> =
            model.order.iter().map(|(tenths, member)| (score(*tenths), member.clone())).collect();
        assert_eq!(content, expected);
        assert_eq!(set.len(), model.scores.len());
    }

    #[test]
    fn a_sorted_set_behaves_like_two_ordered_maps() {
        for seed in 0..3 {
            let mut rng = SplitMix64::new(seed);
            let (mut set, mut model) = (SortedSet::default(), Model::default());
            for step in 0..20_000 {
                let name = member(&mut rng);
                let tenths = (rng.draw() % 200) as i64 - 100;
                if rng.draw().is_multiple_of(3) {
                    let old = set.remove(&Fold(1), Element::of(&name));
                    assert_eq!(old, model.remove(&name).map(score));
                } else {
                    let old = set.insert(&Fold(1), score(tenths), Element::of(&name));
                    assert_eq!(old, model.insert(tenths, name).map(score));
                }
                let probe = member(&mut rng);
                let rank = set.rank(&Fold(1), Element::of(&probe));
                let expected = model
                    .scores
                    .get(&probe)
                    .map(|tenths| model.order.range(..(*tenths, probe.clone())).count());
                if step % 50 == 0 {
                    assert_eq!(rank, expected);
                }
                let found = set.score(&Fold(1), Element::of(&probe));
                assert_eq!(found, model.scores.get(&probe).map(|tenths| score(*tenths)));
                if step % 1_000 == 0 {
                    check(&set, &model);
                }
            }
            let middle = set.len() / 2;
            set.remove_ranks(&Fold(1), 10..middle);
            let gone: Vec<_> = model.order.iter().take(middle).skip(10).cloned().collect();
            gone.iter().for_each(|(_, member)| {
                model.remove(member);
            });
            check(&set, &model);
            let back: Vec<_> = set.iter_back_from(set.len()).collect();
            assert!(back.is_sorted_by(|one, other| one > other));
        }
    }

    #[test]
    fn a_copy_continues_from_score_and_member() {
        let mut set = SortedSet::default();
        for number in 0..3_000 {
            set.insert(&Fold(1), score(number % 70), Element::Integer(number));
        }
        let mut copied = Vec::new();
        let mut from = 0;
        while let Some(last) = set.iter_from(from).take(50).last() {
            copied.extend(set.iter_from(from).take(50).map(|it| it.member.to_text().into_owned()));
            let (score, member) = (last.score, last.member.to_text().into_owned());
            // What is inserted or removed before the resume point moves all ranks.
            let early = Element::Bytes(b"early");
            if set.remove(&Fold(1), early).is_none() {
                set.insert(&Fold(1), self::score(-5), early);
            }
            let place = ScoredMember { score, member: Element::of(&member) };
            from = set.partition_point(|one| one <= place);
        }
        assert_eq!(copied.len(), 3_000);
        copied.sort();
        copied.dedup();
        assert_eq!(copied.len(), 3_000);
    }

    #[test]
    fn a_sorted_set_is_freed_in_portions() {
        let mut set = SortedSet::default();
        for number in 0..20_000 {
            set.insert(&Fold(1), score(number), Element::Integer(number));
        }
        let mut portions = 1;
        while set.free_some(16) {
            portions += 1;
        }
        assert!(portions > 40, "only {portions} portions");
    }
}

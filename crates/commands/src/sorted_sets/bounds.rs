//! Ranges of a sorted set: by rank, by score, by the members' texts. Each becomes a range of ranks.

use core::ops::Range;

use store::{ScoredMember, SortedSetValue};

use super::number::parse_limit;
use crate::Error;
use crate::context::Context;

const NOT_A_SCORE: Error = Error::fixed("ERR min or max is not a float");
const NOT_A_TEXT: Error = Error::fixed("ERR min or max not valid string range item");

/// A range of members.
pub(super) enum MemberRange<'a> {
    Ranks(RankRange),
    Scores(ScoreRange),
    Texts(TextRange<'a>),
}

/// The kind of a range.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RangeKind {
    Ranks,
    Scores,
    Texts,
}

impl<'a> MemberRange<'a> {
    /// Parses a range whose lower limit is the argument `min`.
    pub(super) fn parse(
        context: &Context<'a>,
        kind: RangeKind,
        (min, max): (usize, usize),
    ) -> Result<MemberRange<'a>, Error> {
        let args = context.args;
        Ok(match kind {
            RangeKind::Ranks => MemberRange::Ranks(RankRange {
                first: context.integer(min)?,
                last: context.integer(max)?,
            }),
            RangeKind::Scores => MemberRange::Scores(
                ScoreRange::parse(args.at(min), args.at(max)).ok_or(NOT_A_SCORE)?,
            ),
            RangeKind::Texts => {
                MemberRange::Texts(TextRange::parse(args.at(min), args.at(max)).ok_or(NOT_A_TEXT)?)
            }
        })
    }

    /// Returns the ranks of the members in the range. In a reverse range of ranks, the highest member has rank 0.
    pub(super) fn ranks(&self, set: SortedSetValue<'_>, is_reverse: bool) -> Range<usize> {
        match self {
            MemberRange::Ranks(range) => {
                let len = set.len();
                let ranks = range.within(len);
                if is_reverse { len - ranks.end..len - ranks.start } else { ranks }
            }
            MemberRange::Scores(range) => {
                between(set, |it| range.is_below(it), |it| range.is_not_above(it))
            }
            MemberRange::Texts(range) => {
                between(set, |it| range.is_below(it), |it| range.is_not_above(it))
            }
        }
    }
}

/// Returns the ranks of the members that are not below a range and not above it.
fn between(
    set: SortedSetValue<'_>,
    is_below: impl Fn(ScoredMember<'_>) -> bool,
    is_not_above: impl Fn(ScoredMember<'_>) -> bool,
) -> Range<usize> {
    let start = set.partition_point(is_below);
    start..set.partition_point(is_not_above).max(start)
}

/// A range of ranks, both included; negative ones count from the end.
pub(super) struct RankRange {
    first: i64,
    last: i64,
}

impl RankRange {
    /// Returns the ranks of a set with `len` members.
    fn within(&self, len: usize) -> Range<usize> {
        let count = len.cast_signed() as i64;
        let from_start = |rank: i64| if rank < 0 { rank.saturating_add(count) } else { rank };
        let first = from_start(self.first).max(0);
        let last = from_start(self.last).min(count - 1);
        if first > last {
            return 0..0;
        }
        first as usize..last as usize + 1
    }
}

/// A range of scores.
pub(super) struct ScoreRange {
    min: ScoreLimit,
    max: ScoreLimit,
}

struct ScoreLimit {
    score: f64,
    /// True if the limit itself is not in the range.
    is_open: bool,
}

impl ScoreLimit {
    fn parse(text: &[u8]) -> Option<ScoreLimit> {
        let (is_open, number) = match text {
            [b'(', rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        Some(ScoreLimit { score: parse_limit(number)?, is_open })
    }
}

impl ScoreRange {
    fn parse(min: &[u8], max: &[u8]) -> Option<ScoreRange> {
        Some(ScoreRange { min: ScoreLimit::parse(min)?, max: ScoreLimit::parse(max)? })
    }

    fn is_below(&self, it: ScoredMember<'_>) -> bool {
        let (score, min) = (it.score.get(), self.min.score);
        score < min || self.min.is_open && score == min
    }

    fn is_not_above(&self, it: ScoredMember<'_>) -> bool {
        let (score, max) = (it.score.get(), self.max.score);
        score < max || !self.max.is_open && score == max
    }
}

/// A range of texts, for members with the same score.
pub(super) struct TextRange<'a> {
    min: TextLimit<'a>,
    max: TextLimit<'a>,
}

enum TextLimit<'a> {
    /// Before every text.
    Lowest,
    /// After every text.
    Highest,
    Included(&'a [u8]),
    Excluded(&'a [u8]),
}

impl<'a> TextLimit<'a> {
    fn parse(text: &'a [u8]) -> Option<TextLimit<'a>> {
        match text {
            b"-" => Some(TextLimit::Lowest),
            b"+" => Some(TextLimit::Highest),
            [b'[', rest @ ..] => Some(TextLimit::Included(rest)),
            [b'(', rest @ ..] => Some(TextLimit::Excluded(rest)),
            _ => None,
        }
    }
}

impl<'a> TextRange<'a> {
    fn parse(min: &'a [u8], max: &'a [u8]) -> Option<TextRange<'a>> {
        Some(TextRange { min: TextLimit::parse(min)?, max: TextLimit::parse(max)? })
    }

    fn is_below(&self, it: ScoredMember<'_>) -> bool {
        it.member.with_text(|text| match self.min {
            TextLimit::Lowest => false,
            TextLimit::Highest => true,
            TextLimit::Included(min) => text < min,
            TextLimit::Excluded(min) => text <= min,
        })
    }

    fn is_not_above(&self, it: ScoredMember<'_>) -> bool {
        it.member.with_text(|text| match self.max {
            TextLimit::Lowest => false,
            TextLimit::Highest => true,
            TextLimit::Included(max) => text <= max,
            TextLimit::Excluded(max) => text < max,
        })
    }
}

//! Large lists that a fill is copying in parts, while they are written to.
//!
//! Effects on a list are not absolute: they name indices. So the taker must have exactly the first elements of the list,
//! up to the resume point, at any time. A change before the resume point is shipped and moves it; a change behind it is
//! not shipped, because later parts contain it; a range that lies on both sides is cut. If everything that was sent is
//! removed, the copy begins again, and its first part replaces what the taker has.

use store::{Effect, ListRanges, Row};

/// The lists of one slot that a downstream has in part.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ListCopies(Vec<ListCopy>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct ListCopy {
    /// Its name (`Key::name`).
    key: Vec<u8>,
    /// The resume point: the taker has the elements before this index. If it is 0, the taker may have anything.
    sent: usize,
}

/// The part of an effect that a downstream needs.
pub(crate) enum NeededPart {
    Nothing,
    All,
    /// Only these ranges of `Effect::RemoveElements`.
    Ranges(ListRanges),
}

impl ListCopies {
    pub(super) fn begin(&mut self, key: &[u8]) {
        self.end(key);
        self.0.push(ListCopy { key: key.to_vec(), sent: 0 });
    }

    /// Returns the resume point of a list that is being copied.
    pub(super) fn sent(&self, key: &[u8]) -> Option<usize> {
        self.0.iter().find(|copy| copy.key == key).map(|copy| copy.sent)
    }

    pub(super) fn advance(&mut self, key: &[u8], sent: usize) {
        self.0.iter_mut().filter(|copy| copy.key == key).for_each(|copy| copy.sent = sent);
    }

    /// Records that the taker has all of this key.
    pub(super) fn end(&mut self, key: &[u8]) {
        self.0.retain(|copy| copy.key != key);
    }

    /// Returns the part of an effect on this key that the taker needs, and moves the resume point.
    pub(super) fn needed_part(&mut self, key: &[u8], effect: &Effect<'_>) -> NeededPart {
        let Some(copy) = self.0.iter_mut().find(|copy| copy.key == key) else {
            return NeededPart::All;
        };
        match effect {
            Effect::InsertElements { index, elements, .. } => copy.insert(*index, elements),
            Effect::SetElement { index, .. } => all_if(*index < copy.sent),
            Effect::RemoveElements { ranges, .. } => copy.remove(ranges),
            Effect::Expire { .. } | Effect::Mark { .. } => all_if(copy.sent > 0),
            // The key has a new value, which the taker gets as a whole.
            Effect::Put { .. }
            | Effect::Append { .. }
            | Effect::Overwrite { .. }
            | Effect::SetFields { .. }
            | Effect::RemoveFields { .. }
            | Effect::ExpireFields { .. }
            | Effect::SetScores { .. }
            | Effect::RemoveScored { .. }
            | Effect::AddMembers { .. }
            | Effect::RemoveMembers { .. }
            | Effect::ChangeStream { .. }
            | Effect::Remove { .. }
            | Effect::Clear
            | Effect::SwapDatabases { .. } => {
                self.end(key);
                NeededPart::All
            }
        }
    }
}

impl ListCopy {
    fn insert(&mut self, index: usize, elements: &[u8]) -> NeededPart {
        let is_sent = index < self.sent;
        if is_sent {
            self.sent += Row::new(elements, 1).len();
        }
        all_if(is_sent)
    }

    fn remove(&mut self, ranges: &[u8]) -> NeededPart {
        let mut shipped = ListRanges::default();
        let mut removed = 0;
        for range in ListRanges::read(ranges).take_while(|range| range.start < self.sent) {
            let end = range.end.min(self.sent);
            removed += end - range.start;
            shipped.push(range.start..end);
        }
        self.sent -= removed;
        if removed == 0 || self.sent == 0 {
            NeededPart::Nothing
        } else {
            NeededPart::Ranges(shipped)
        }
    }
}

fn all_if(is_needed: bool) -> NeededPart {
    if is_needed { NeededPart::All } else { NeededPart::Nothing }
}

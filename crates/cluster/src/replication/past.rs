//! The recent history of a slot while a copy of it is away: enough to bring that copy up to date by sending
//! only the changes, and to see whether that is possible at all.
//!
//! An item's version tells whether it is newer than a copy. For the difference two more things are needed: the
//! removed keys, and whether the copy is on this slot's history. It may have writes that no other node ever
//! received, made under a reign that had ended before them.

use std::collections::BTreeMap;

use store::{Effect, Recorded, Seed, SlotTable, Version};

use super::{Position, RecordedUnit};
use crate::map::LogIndex;

/// Maximum number of removals remembered of a small slot. The limit of a larger slot is its number of items:
/// beyond that, sending it whole costs no more.
const GONE_MAX: usize = 64;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Past {
    /// All removals since this version are in `gone`.
    since: Version,
    /// The reigns that have ended since, each with the version of its last change.
    ends: Vec<(LogIndex, Version)>,
    /// The names of removed keys, each with the version of its last removal.
    gone: BTreeMap<Vec<u8>, Version>,
}

impl Past {
    /// Starts to remember at this version.
    pub fn since(version: Version) -> Past {
        Past { since: version, ends: Vec::new(), gone: BTreeMap::new() }
    }

    /// Returns whether a slot that is at `now` was once at `then`, and all changes since are known.
    pub fn history_includes(&self, then: Position, now: Position) -> bool {
        let is_within =
            |(reign, end): (LogIndex, Version)| then.reign == reign && then.version <= end;
        let mut reigns = self.ends.iter().copied().chain([(now.reign, now.version)]);
        then.version >= self.since && reigns.any(is_within)
    }

    /// Records a unit that the table has just applied.
    pub fn note(&mut self, unit: RecordedUnit<'_>, table: &SlotTable, seed: &Seed) {
        let RecordedUnit { reign, written_in, effects } = unit;
        let mut rest = effects;
        while let Ok((recorded, behind)) = Recorded::read(rest, seed) {
            if written_in != reign && rest.len() == effects.len() {
                self.ends.push((written_in, recorded.previous));
            }
            match recorded.effect {
                Effect::Remove { key, .. } => {
                    self.gone.insert(key.name().into_owned(), recorded.version);
                }
                Effect::Clear | Effect::SwapDatabases { .. } => self.forget(recorded.version),
                Effect::Put { .. }
                | Effect::Append { .. }
                | Effect::Overwrite { .. }
                | Effect::SetFields { .. }
                | Effect::RemoveFields { .. }
                | Effect::ExpireFields { .. }
                | Effect::InsertElements { .. }
                | Effect::SetElement { .. }
                | Effect::RemoveElements { .. }
                | Effect::SetScores { .. }
                | Effect::RemoveScored { .. }
                | Effect::AddMembers { .. }
                | Effect::RemoveMembers { .. }
                | Effect::ChangeStream { .. }
                | Effect::Expire { .. }
                | Effect::Mark { .. } => {}
            }
            rest = behind;
        }
        if self.gone.len() > GONE_MAX.max(table.len()) {
            self.forget(table.version());
        }
    }

    /// Forgets everything before this version: older copies must be sent whole.
    fn forget(&mut self, version: Version) {
        self.since = version;
        self.gone.clear();
    }

    /// Returns the names of the keys that were removed after `version` and do not exist again.
    pub fn gone_since<'a>(
        &'a self,
        version: Version,
        table: &'a SlotTable,
        seed: &'a Seed,
    ) -> impl Iterator<Item = &'a [u8]> {
        let later = self.gone.iter().filter(move |(_, removed)| **removed > version);
        let keys = later.map(|(key, _)| key.as_slice());
        keys.filter(|key| table.peek(&seed.named(key)).is_none())
    }
}

#[cfg(test)]
mod tests {
    use store::{Cause, NewValue, Touch, UnixMillis};

    use super::*;

    struct PastSlot {
        table: SlotTable,
        seed: Seed,
        past: Past,
        written_in: LogIndex,
    }

    impl PastSlot {
        fn new() -> PastSlot {
            let past = Past::since(Version::ZERO);
            PastSlot {
                table: SlotTable::default(),
                seed: Seed::new(1),
                past,
                written_in: LogIndex(1),
            }
        }

        fn at(&self) -> Position {
            Position { reign: self.written_in, version: self.table.version() }
        }

        fn apply(&mut self, reign: u64, effect: &Effect<'_>) -> Position {
            let (before, version) = (self.table.version(), self.table.next_version(UnixMillis(1)));
            let mut unit = Vec::new();
            let slot = placement::Slot::of(b"a");
            Recorded::write(slot, (before, version), effect, &mut unit);
            let _ = self.table.apply(effect, version, Touch::Nothing, &self.seed);
            let (reign, written_in) = (LogIndex(reign), self.written_in);
            let unit = RecordedUnit { reign, written_in, effects: &unit };
            self.past.note(unit, &self.table, &self.seed);
            self.written_in = reign;
            self.at()
        }

        fn put(&mut self, reign: u64, key: &str) -> Position {
            let seed = self.seed.clone();
            let value = NewValue::Raw(b"v");
            let key = seed.key(key.as_bytes());
            self.apply(reign, &Effect::Put { key, value, expires_at: None })
        }

        fn remove(&mut self, reign: u64, key: &str) -> Position {
            let seed = self.seed.clone();
            let key = seed.key(key.as_bytes());
            self.apply(reign, &Effect::Remove { key, cause: Cause::Deleted })
        }

        fn history_includes(&self, then: Position) -> bool {
            self.past.history_includes(then, self.at())
        }

        fn gone_since(&self, then: Position) -> Vec<&[u8]> {
            self.past.gone_since(then.version, &self.table, &self.seed).collect()
        }
    }

    #[test]
    fn a_slot_history_includes_wherever_it_has_been_since() {
        let mut slot = PastSlot::new();
        let first = slot.put(1, "a");
        let second = slot.put(1, "b");
        slot.put(7, "c");
        assert!(slot.history_includes(first) && slot.history_includes(second));
    }

    #[test]
    fn what_only_a_deposed_primary_had_is_not_on_the_history() {
        let mut slot = PastSlot::new();
        let last = slot.put(1, "a");
        slot.put(7, "b");
        // The copy has one more write of the first reign, which no other node ever received.
        let beyond = Position { version: Version(last.version.0 + 1), ..last };
        assert!(slot.history_includes(last));
        assert!(!slot.history_includes(beyond));
        // A copy of a reign that this slot does not know is not on the history either.
        assert!(!slot.history_includes(Position { reign: LogIndex(3), ..last }));
    }

    #[test]
    fn only_keys_that_are_still_gone_are_told() {
        let mut slot = PastSlot::new();
        slot.put(1, "a");
        slot.put(1, "b");
        let then = slot.put(1, "c");
        slot.remove(1, "a");
        slot.remove(1, "b");
        slot.put(1, "a");
        assert_eq!(slot.gone_since(then), [b"b"]);
        assert!(slot.gone_since(slot.at()).is_empty());
    }

    #[test]
    fn too_many_removals_or_a_slot_that_was_emptied_are_not_remembered() {
        let mut slot = PastSlot::new();
        let then = slot.put(1, "a");
        for number in 0..=GONE_MAX {
            slot.remove(1, &format!("k{number}"));
        }
        assert!(!slot.history_includes(then));
        let then = slot.put(1, "a");
        assert!(slot.history_includes(then));
        slot.apply(1, &Effect::Clear);
        assert!(!slot.history_includes(then));
    }
}

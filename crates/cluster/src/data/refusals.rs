//! What the other end of a link has refused: as far as these slots are concerned it has acknowledged
//! nothing from there on, until the map says what becomes of them.

use core::ops::Range;

use placement::Slot;

use crate::replication::FrameNumber;

#[derive(Default)]
pub struct Refusals(Vec<(Slot, FrameNumber)>);

impl Refusals {
    pub fn note(&mut self, slot: Slot, from: FrameNumber) {
        if !self.0.contains(&(slot, from)) {
            self.0.push((slot, from)); // It may be told again on a new connection.
        }
    }

    pub fn forget(&mut self, slots: &Range<u16>) {
        self.0.retain(|(slot, _)| !slots.contains(&slot.number()));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.0.iter().map(|(slot, _)| *slot)
    }

    /// What an acknowledgement up to `acked` means for this slot, or for any.
    pub fn limit(&self, acked: FrameNumber, slot: Option<Slot>) -> FrameNumber {
        let concerned = self.0.iter().filter(|(known, _)| slot.is_none_or(|slot| slot == *known));
        let first = concerned.map(|(_, from)| *from).min();
        first.map_or(acked, |from| acked.min(FrameNumber(from.0 - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_refused_counts_as_not_acknowledged_until_the_map_has_changed() {
        let (refused, other) = (Slot::of(b"a"), Slot::of(b"b"));
        let mut refusals = Refusals::default();
        refusals.note(refused, FrameNumber(5));
        refusals.note(refused, FrameNumber(7));
        let limit = |refusals: &Refusals, slot| refusals.limit(FrameNumber(9), slot).0;
        assert_eq!(limit(&refusals, Some(refused)), 4);
        assert_eq!(limit(&refusals, Some(other)), 9);
        assert_eq!(limit(&refusals, None), 4);
        let number = refused.number();
        refusals.forget(&(number..number + 1));
        assert!(refusals.is_empty());
        assert_eq!(limit(&refusals, Some(refused)), 9);
    }
}

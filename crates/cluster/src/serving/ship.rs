//! Shipping a write: the effects go to those who have the slot, the items as they are now to those who have
//! a part of it, nothing to those who have none yet.

use store::{Effect, Key, Recorded, Seed, SlotTable, Version};

use crate::replication::{Duty, Frame, FrameNumber, LinkId, Position, Stage, write_image};

/// Sends a unit, the effects of one command on this slot, which the table has just taken in. Called
/// under the slot's lock. `push` appends a frame to a link.
#[inline]
pub fn ship(
    table: &SlotTable,
    duty: &mut Duty,
    unit: &[u8],
    seed: &Seed,
    mut push: impl FnMut(LinkId, &Frame<'_>) -> FrameNumber,
) {
    let (reign, written_in) = (duty.reign(), duty.written_in());
    for feed in duty.feeds_mut() {
        let number = match feed.stage() {
            Stage::NotBegun => continue,
            Stage::Whole | Stage::Backup { .. } => {
                push(feed.link(), &Frame::Effects { reign, written_in, unit })
            }
            Stage::Partly { .. } => {
                let touched = Touched::by(unit, seed);
                if touched.all {
                    // It no longer matters what was there.
                    push(feed.link(), &Frame::Effects { reign, written_in, unit })
                } else {
                    let mut images = Vec::new();
                    touched.keys.iter().for_each(|key| write_image(table, key, &mut images));
                    let from = Position { reign: written_in, version: touched.from };
                    let (slot, to) = (touched.slot(), table.version());
                    push(feed.link(), &Frame::Images { reign, slot, from, to, images: &images })
                }
            }
        };
        feed.sent(number);
    }
    if let Some(past) = duty.past_mut() {
        past.note((written_in, reign), unit, table, seed);
    }
    duty.written_by(reign);
}

/// What a unit has changed.
struct Touched<'a> {
    keys: Vec<Key<'a>>,
    /// The whole slot was emptied.
    all: bool,
    from: Version,
}

impl<'a> Touched<'a> {
    fn by(unit: &'a [u8], seed: &Seed) -> Touched<'a> {
        let mut touched = Touched { keys: Vec::new(), all: false, from: Version::ZERO };
        let mut rest = unit;
        while !rest.is_empty() {
            let (recorded, behind) = Recorded::read(rest, seed).expect("recorded by this node");
            if rest.len() == unit.len() {
                touched.from = recorded.previous;
            }
            match key_of(&recorded.effect) {
                Some(key) => touched.keys.push(key),
                None => touched.all = true,
            }
            rest = behind;
        }
        touched
    }

    fn slot(&self) -> placement::Slot {
        self.keys[0].slot()
    }
}

fn key_of<'a>(effect: &Effect<'a>) -> Option<Key<'a>> {
    match effect {
        Effect::Put { key, .. }
        | Effect::Append { key, .. }
        | Effect::Overwrite { key, .. }
        | Effect::Expire { key, .. }
        | Effect::Mark { key, .. }
        | Effect::Remove { key, .. } => Some(*key),
        Effect::Clear => None,
    }
}

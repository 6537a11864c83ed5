//! Ships a write: effects go to nodes that have the slot, the current state of the touched items to nodes that
//! have a part of it, and nothing to nodes that have none of it yet.
//!
//! A large container is not sent as a whole for each write. If the walk over the slot has passed it, the node has it,
//! or is getting it in parts: the effects go there. If not, nothing goes there: the walk sends large containers
//! whatever their version (docs/decisions/0027). Of a list that is being sent in parts, only changes before its resume
//! point go there (`replication/list_copy.rs`).

use store::{Effect, Key, Recorded, ScanPosition, Seed, SlotTable, Version};

use crate::map::LogIndex;
use crate::replication::{
    Downstream, Frame, FrameNumber, LinkId, NeededPart, Position, RecordedUnit, SlotReplica,
    SyncState, write_change, write_image,
};

/// Approximate size of a frame of images. Each frame is applied separately: nobody reads a slot that is partly
/// there, so a command's images need not arrive as one.
const IMAGES_BYTES: usize = 1024 * 1024;

/// Sends a unit: the effects of one command on this slot, which the table has just applied. Called under the
/// slot's lock. `push` appends a frame to a link.
#[inline]
pub fn ship(
    table: &SlotTable,
    replica: &mut SlotReplica,
    unit: &[u8],
    seed: &Seed,
    mut push: impl FnMut(LinkId, &Frame<'_>) -> FrameNumber,
) {
    let (reign, written_in) = (replica.reign(), replica.written_in());
    for downstream in replica.downstreams_mut() {
        let number = match downstream.sync_state() {
            SyncState::NotBegun => continue,
            SyncState::Whole | SyncState::Awaited { .. } => {
                push(downstream.link(), &Frame::Effects { reign, written_in, unit })
            }
            SyncState::Partly { reached, .. } => {
                let touched = Touched::by(unit, seed);
                if touched.all {
                    // The previous content no longer matters.
                    downstream.end_lists();
                    push(downstream.link(), &Frame::Effects { reign, written_in, unit })
                } else {
                    let from = Position { reign: written_in, version: touched.from };
                    let link = downstream.link();
                    let mut partly_sent = PartlySent { table, unit, seed, reached, downstream };
                    partly_sent.send_images(reign, from, touched.keys, |frame| push(link, frame))
                }
            }
        };
        downstream.sent(number);
    }
    if let Some(past) = replica.past_mut() {
        past.note(RecordedUnit { reign, written_in, effects: unit }, table, seed);
    }
    replica.written_by(reign);
}

/// A slot of which another node has a part, and the unit that has just changed it.
struct PartlySent<'a> {
    table: &'a SlotTable,
    unit: &'a [u8],
    seed: &'a Seed,
    /// The position of the walk.
    reached: ScanPosition,
    downstream: &'a mut Downstream,
}

impl PartlySent<'_> {
    /// Sends the current state of items. Every frame but the last leaves the taker at its version, in this reign;
    /// the last one brings it to the table's version.
    fn send_images(
        &mut self,
        reign: LogIndex,
        mut from: Position,
        mut keys: Vec<Key<'_>>,
        mut push: impl FnMut(&Frame<'_>) -> FrameNumber,
    ) -> FrameNumber {
        let (table, slot) = (self.table, keys[0].slot());
        keys.sort_unstable_by(|one, other| one.name().cmp(&other.name()));
        keys.dedup_by(|one, other| is_same(one, other));
        // Removed keys come last: the taker records their removal at the version their frame leads to.
        keys.sort_by_key(|key| table.peek(key).is_none());
        let mut images = Vec::new();
        for key in &keys {
            if images.len() >= IMAGES_BYTES && table.peek(key).is_some() {
                push(&Frame::Images { reign, slot, from, to: from.version, images: &images });
                from.reign = reign;
                images.clear();
            }
            self.write_image_or_changes(key, &mut images);
        }
        push(&Frame::Images { reign, slot, from, to: table.version(), images: &images })
    }

    fn write_image_or_changes(&mut self, key: &Key<'_>, out: &mut Vec<u8>) {
        if !self.table.peek(key).is_some_and(|found| found.goes_in_parts()) {
            self.downstream.end_list(&key.name());
            write_image(self.table, key, out);
        } else if key.scan_position() < self.reached {
            self.write_changes(key, out);
        }
    }

    /// Appends the unit's effects on this key, or the parts of them that the other end needs.
    fn write_changes(&mut self, key: &Key<'_>, out: &mut Vec<u8>) {
        let mut rest = self.unit;
        while !rest.is_empty() {
            let (recorded, behind) =
                Recorded::read(rest, self.seed).expect("recorded by this node");
            if recorded.effect.key().is_some_and(|other| is_same(&other, key)) {
                self.write_needed_part(key, &recorded, out);
            }
            rest = behind;
        }
    }
}

impl PartlySent<'_> {
    fn write_needed_part(&mut self, key: &Key<'_>, recorded: &Recorded<'_>, out: &mut Vec<u8>) {
        match self.downstream.needed_part(&key.name(), &recorded.effect) {
            NeededPart::Nothing => {}
            NeededPart::All => write_change(recorded, out),
            NeededPart::Ranges(ranges) => {
                let effect = Effect::RemoveElements { key: *key, ranges: ranges.row() };
                write_change(&Recorded { effect, ..*recorded }, out);
            }
        }
    }
}

/// The changes of a unit.
struct Touched<'a> {
    keys: Vec<Key<'a>>,
    /// True if the whole slot was emptied.
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
            match recorded.effect.key() {
                Some(key) => touched.keys.push(key),
                None => touched.all = true,
            }
            rest = behind;
        }
        touched
    }
}

fn is_same(one: &Key<'_>, other: &Key<'_>) -> bool {
    one.database() == other.database() && one.bytes() == other.bytes()
}

//! Applies a primary's frames on a backup: an effect is applied only on top of the position it was made on, in
//! the reign known here.

use placement::Slot;
use store::{Applied, DecodeError, Recorded, Seed, SlotTable, Touch, Version, decode_item};

use super::frame::Position;
use super::replica::SlotReplica;
use crate::map::LogIndex;
use crate::rules::{Rule, is_enforced};

/// The outcome of a frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Applied,
    /// Already applied.
    Known,
    /// The map here is behind: neither applied nor refused until it has caught up.
    Early,
    /// The sender was deposed, or this node has no copy (any more), or its copy is out of sync. Holds the reign
    /// known here.
    Refused(LogIndex),
    Garbled(DecodeError),
}

/// A slot under its lock, as the receiving side needs it.
pub struct ReceivingSlot<'a> {
    pub table: &'a mut SlotTable,
    pub replica: &'a mut SlotReplica,
    pub seed: &'a Seed,
    /// The LRU/LFU update that an applied effect makes to its key.
    pub touch: Touch,
}

impl ReceivingSlot<'_> {
    fn position(&self) -> Position {
        self.replica.position(self.table)
    }

    /// Checks whether a change of this reign that builds on `from` may be applied; the error is the reason if not.
    fn judge(&self, reign: LogIndex, from: Position, to: Version) -> Result<(), Received> {
        let known_reign = self.replica.reign();
        if reign > known_reign {
            return Err(Received::Early);
        }
        if reign < known_reign && is_enforced(Rule::ReignCheck) || !self.replica.takes_in() {
            return Err(Received::Refused(known_reign));
        }
        let here = self.position();
        if here == from || !is_enforced(Rule::PositionCheck) && here.version < to {
            return Ok(());
        }
        let known = here.reign == reign && here.version >= to;
        Err(if known { Received::Known } else { Received::Refused(known_reign) })
    }

    /// Compares the slot with the new primary's position, after a failover.
    pub fn compare(&self, reign: LogIndex, position: Position) -> Received {
        let known_reign = self.replica.reign();
        if reign > known_reign {
            return Received::Early;
        }
        let is_copy = reign == known_reign && self.replica.is_backup();
        let is_there = self.position() == position || !is_enforced(Rule::PositionCheck);
        let same = is_copy && is_there;
        if same { Received::Known } else { Received::Refused(known_reign) }
    }
}

/// A unit as its primary has recorded it.
#[derive(Clone, Copy, Debug)]
pub struct RecordedUnit<'a> {
    /// The reign in which it was made.
    pub reign: LogIndex,
    /// The reign of the change it builds on.
    pub written_in: LogIndex,
    /// The effects, each decoded by `store::Recorded`.
    pub effects: &'a [u8],
}

/// Applies the effects of one command. All of them are read before the first is applied.
pub fn receive_effects(
    receiver: &mut ReceivingSlot<'_>,
    unit: RecordedUnit<'_>,
    mut applied: impl FnMut(Applied),
) -> Received {
    let RecordedUnit { reign, written_in, effects } = unit;
    let (first, last) = match ends(effects, receiver.seed) {
        Ok(ends) => ends,
        Err(error) => return Received::Garbled(error),
    };
    let from = Position { reign: written_in, version: first };
    if let Err(received) = receiver.judge(reign, from, last) {
        return received;
    }
    let mut rest = effects;
    while !rest.is_empty() {
        let Ok((recorded, behind)) = Recorded::read(rest, receiver.seed) else {
            unreachable!("it was read a moment ago")
        };
        let (touch, seed) = (receiver.touch, receiver.seed);
        applied(receiver.table.apply(&recorded.effect, recorded.version, touch, seed));
        rest = behind;
    }
    if let Some(past) = receiver.replica.past_mut() {
        past.note(unit, receiver.table, receiver.seed);
    }
    receiver.replica.written_by(reign);
    Received::Applied
}

/// Returns the slot that a unit is about.
pub fn slot_of_unit(unit: &[u8]) -> Option<Slot> {
    let number = unit.first_chunk::<2>()?;
    Slot::new(u16::from_le_bytes(*number))
}

/// Returns the versions before and after a unit, whose effects must be of one slot and consecutive.
fn ends(unit: &[u8], seed: &Seed) -> Result<(Version, Version), DecodeError> {
    let (first, mut rest) = Recorded::read(unit, seed)?;
    let mut last = first.version;
    while !rest.is_empty() {
        let (next, behind) = Recorded::read(rest, seed)?;
        if next.slot != first.slot || next.previous != last {
            return Err(DecodeError::BadNumber);
        }
        last = next.version;
        rest = behind;
    }
    Ok((first.previous, last))
}

/// Tags in `Frame::Images`: an item in its current state, the key of a removed one, or an effect on a large container.
const PRESENT: u8 = 1;
const GONE: u8 = 0;
const CHANGED: u8 = 2;

/// Appends the current state of a key in this table.
pub fn write_image(table: &SlotTable, key: &store::Key<'_>, out: &mut Vec<u8>) {
    match table.peek(key) {
        Some(found) => {
            out.push(PRESENT);
            store::encode_item(&found, out);
        }
        None => {
            out.push(GONE);
            write_gone(&key.name(), out);
        }
    }
}

/// Appends an effect on a container of which the taker has a part.
pub fn write_change(recorded: &Recorded<'_>, out: &mut Vec<u8>) {
    out.push(CHANGED);
    out.extend_from_slice(&recorded.version.0.to_le_bytes());
    store::encode_effect(&recorded.effect, out);
}

/// Appends a removed key by its name (`Key::name`).
pub fn write_gone(key: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(key.len()).expect("a key is shorter than 4 GiB");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(key);
}

/// Takes in items of a partly sent slot in their current state at the primary.
pub fn receive_images(
    receiver: &mut ReceivingSlot<'_>,
    reign: LogIndex,
    from: Position,
    to: Version,
    images: &[u8],
    mut applied: impl FnMut(Applied),
) -> Received {
    if let Err(received) = receiver.judge(reign, from, to) {
        return received;
    }
    let mut rest = images;
    while let Some((tag, behind)) = rest.split_first() {
        let taken = match *tag {
            PRESENT => take_present(receiver, behind, &mut applied),
            GONE => take_gone(receiver, to, behind, &mut applied),
            CHANGED => take_change(receiver, behind, &mut applied),
            tag => Err(DecodeError::UnknownTag(tag)),
        };
        match taken {
            Ok(behind) => rest = behind,
            Err(error) => return Received::Garbled(error),
        }
    }
    receiver.table.advance_to(to);
    receiver.replica.written_by(reign);
    Received::Applied
}

fn take_present<'a>(
    receiver: &mut ReceivingSlot<'_>,
    bytes: &'a [u8],
    applied: &mut impl FnMut(Applied),
) -> Result<&'a [u8], DecodeError> {
    let (item, rest) = decode_item(bytes)?;
    applied(receiver.table.copy_item(&item, receiver.seed));
    Ok(rest)
}

fn take_change<'a>(
    receiver: &mut ReceivingSlot<'_>,
    bytes: &'a [u8],
    applied: &mut impl FnMut(Applied),
) -> Result<&'a [u8], DecodeError> {
    let (version, rest) = bytes.split_first_chunk::<8>().ok_or(DecodeError::Truncated)?;
    let version = Version(u64::from_le_bytes(*version));
    let (effect, rest) = store::decode_effect(rest, receiver.seed)?;
    applied(receiver.table.apply(&effect, version, receiver.touch, receiver.seed));
    Ok(rest)
}

fn take_gone<'a>(
    receiver: &mut ReceivingSlot<'_>,
    at: Version,
    bytes: &'a [u8],
    applied: &mut impl FnMut(Applied),
) -> Result<&'a [u8], DecodeError> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or(DecodeError::Truncated)?;
    let length = u32::from_le_bytes(*length) as usize;
    let (key, rest) = rest.split_at_checked(length).ok_or(DecodeError::Truncated)?;
    let key = receiver.seed.named(key);
    let remove = store::Effect::Remove { key, cause: store::Cause::Deleted };
    applied(receiver.table.apply(&remove, at, Touch::Nothing, receiver.seed));
    Ok(rest)
}

/// Removes keys that are gone at the primary, encoded by [`write_gone`].
pub fn receive_gone(
    receiver: &mut ReceivingSlot<'_>,
    keys: &[u8],
    mut applied: impl FnMut(Applied),
) -> Result<(), DecodeError> {
    let at = receiver.table.version(); // The primary's version; the time of each removal is unknown.
    let mut rest = keys;
    while !rest.is_empty() {
        rest = take_gone(receiver, at, rest, &mut applied)?;
    }
    Ok(())
}

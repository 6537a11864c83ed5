//! Wire format of a link, in both directions: a length, a tag, the fields in their order, numbers
//! little-endian. A tag's meaning never changes.
//!
//! Frames of writes name a slot, a reign and a position, never a bucket's epoch: a split or a new backup elsewhere
//! does not affect frames in flight. Only `FillEnd` and `AnnouncePromotion` name an epoch.

use placement::{Hashmask, Mask, Slot};
use store::Version;

use super::FrameNumber;
use super::receive::slot_of_unit;
use crate::balance::MoveId;
use crate::map::{Epoch, LogIndex, NodeId};

/// Frames with a longer payload travel in parts of this size, each with a number of its own: the other end
/// acknowledges part by part, and a broken connection costs one part at most.
pub const PART_BYTES: usize = 256 * 1024;
/// The longest frame on the wire: a part, or a payload of that size after its fields.
pub const FRAME_BYTES_MAX: usize = PART_BYTES + 64;
const LENGTH_BYTES: usize = 4;

/// A replica's position in a slot's history.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    pub reign: LogIndex,
    pub version: Version,
}

/// The size of a bucket at its primary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FillSize {
    pub items: u64,
    /// Memory of the items.
    pub bytes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Frame<'a> {
    /// Effects of one command on one slot, decoded by `store::Recorded`. They build on the version named by the
    /// first, made in the reign `written_in`.
    Effects {
        reign: LogIndex,
        written_in: LogIndex,
        unit: &'a [u8],
    },
    /// Effects of one command on a slot that is partly sent: the current state of the items it touched, or the effects
    /// on a large container.
    Images {
        reign: LogIndex,
        slot: Slot,
        from: Position,
        to: Version,
        images: &'a [u8],
    },
    /// Announces a bucket.
    FillStart {
        fill: MoveId,
        bucket: Hashmask,
        reign: LogIndex,
        /// The bucket's size when the fill began.
        size: FillSize,
    },
    /// Begins a slot of the bucket, which is at this position.
    FillSlot {
        fill: MoveId,
        slot: Slot,
        position: Position,
    },
    /// A piece of the slot's tombstones since the split brain.
    FillTombstones {
        fill: MoveId,
        slot: Slot,
        piece: &'a [u8],
    },
    /// Begins a slot that is at this position and was once at `from`. A copy that is still at `from` gets only
    /// the changes.
    FillNewer {
        fill: MoveId,
        slot: Slot,
        from: Position,
        position: Position,
    },
    /// Keys removed since `from`.
    FillGone {
        fill: MoveId,
        slot: Slot,
        keys: &'a [u8],
    },
    /// Items of the slot (`store::decode_item`).
    FillItems {
        fill: MoveId,
        slot: Slot,
        items: &'a [u8],
    },
    /// The next piece of one large value.
    FillPart {
        fill: MoveId,
        slot: Slot,
        bytes: &'a [u8],
    },
    /// Completes an item, encoded here with an empty value: the received pieces are its value. An empty `item`
    /// drops the pieces: the value has changed since.
    FillWhole {
        fill: MoveId,
        slot: Slot,
        item: &'a [u8],
    },
    FillSlotEnd {
        fill: MoveId,
        slot: Slot,
    },
    /// Ends the fill. The copy counts if the bucket's next change after this epoch says so.
    FillEnd {
        fill: MoveId,
        epoch: Epoch,
    },
    /// Cancels the fill.
    FillCancel {
        fill: MoveId,
    },
    /// After a failover: the slot should be at this position. A backup that is not refuses, and gets the whole slot.
    Compare {
        reign: LogIndex,
        slot: Slot,
        position: Position,
    },
    /// Announces a whole slot, to be swapped in at once.
    Replace {
        reign: LogIndex,
        slot: Slot,
        position: Position,
    },
    ReplaceItems {
        slot: Slot,
        items: &'a [u8],
    },
    ReplaceEnd {
        slot: Slot,
    },
    /// The receiver is about to become primary of the bucket, whose epoch is this one now: it parks commands for
    /// it instead of redirecting them. Acknowledged before the promotion is proposed: afterwards the old primary
    /// redirects to the receiver, which may not have the new map yet.
    AnnouncePromotion {
        bucket: Hashmask,
        epoch: Epoch,
    },
    /// A published message, for the subscribers there.
    Pubsub {
        bytes: &'a [u8],
    },
    /// A part of a frame that is too long to travel as one, but not the last part.
    Part {
        bytes: &'a [u8],
    },
    /// The last part. All parts together are the frame, which takes effect now.
    LastPart {
        bytes: &'a [u8],
    },
}

/// An answer of the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BackFrame {
    /// Acknowledges all frames up to this one.
    Ack(FrameNumber),
    /// The frame was not applied: the other end knows another reign of the slot, or its copy is out of sync.
    Refused { frame: FrameNumber, slot: Slot, reign: LogIndex },
    /// The other end refuses the fill.
    FillRefused { fill: MoveId },
    /// The other end has kept a copy of this slot of the fill, at this position.
    StaleCopy { fill: MoveId, slot: Slot, position: Position },
}

/// Bytes that no peer of ours has written. The link is closed, and nothing else happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BadFrame {
    TooLong(u64),
    Truncated,
    UnknownTag(u8),
    BadNumber,
    /// An acknowledgement of a frame that was never sent.
    BadAck,
}

const EFFECTS: u8 = 1;
const IMAGES: u8 = 2;
const FILL_START: u8 = 3;
const FILL_SLOT: u8 = 4;
const FILL_ITEMS: u8 = 5;
const FILL_PART: u8 = 6;
const FILL_WHOLE: u8 = 7;
const FILL_SLOT_END: u8 = 8;
const FILL_END: u8 = 9;
const FILL_CANCEL: u8 = 10;
const NEWS: u8 = 11;
const COMPARE: u8 = 12;
const REPLACE: u8 = 13;
const REPLACE_ITEMS: u8 = 14;
const REPLACE_END: u8 = 15;
const FILL_TOMBSTONES: u8 = 20;
const FILL_NEWER: u8 = 16;
const FILL_GONE: u8 = 17;
const ANNOUNCE_PROMOTION: u8 = 23;
const PART: u8 = 21;
const LAST_PART: u8 = 22;

const ACK: u8 = 65;
const REFUSED: u8 = 66;
const FILL_REFUSED: u8 = 67;
const KEPT: u8 = 68;

/// Writes a frame: a placeholder for the length, the tag and the fields, then the length.
struct Writer<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Writer<'a> {
    #[inline]
    fn new(out: &'a mut Vec<u8>, tag: u8) -> Writer<'a> {
        let start = out.len();
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        out.push(tag);
        Writer { out, start }
    }

    #[inline]
    fn u64(self, number: u64) -> Self {
        self.out.extend_from_slice(&number.to_le_bytes());
        self
    }

    #[inline]
    fn slot(self, slot: Slot) -> Self {
        self.out.extend_from_slice(&slot.number().to_le_bytes());
        self
    }

    #[inline]
    fn bytes(self, bytes: &[u8]) -> Self {
        self.out.extend_from_slice(bytes);
        self
    }

    fn position(self, position: Position) -> Self {
        self.u64(position.reign.0).u64(position.version.0)
    }

    fn fill(self, fill: MoveId) -> Self {
        self.u64(fill.giver.0).u64(fill.number)
    }

    fn bucket(self, bucket: Hashmask) -> Self {
        self.out.extend_from_slice(&bucket.mask().bits().to_le_bytes());
        self.out.extend_from_slice(&bucket.value().to_le_bytes());
        self
    }

    #[inline]
    fn end(self) {
        let length = self.out.len() - self.start - LENGTH_BYTES;
        let length = u32::try_from(length).expect("a long frame is split into parts");
        self.out[self.start..self.start + LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    }
}

impl<'a> Frame<'a> {
    /// Appends the frame, whose payload must fit into a part; longer ones go through [`Frame::split`].
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_fields(out).bytes(self.payload()).end();
    }

    /// Returns whether the frame has to travel in parts.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.payload().len() > PART_BYTES
    }

    pub fn is_part(&self) -> bool {
        matches!(self, Frame::Part { .. } | Frame::LastPart { .. })
    }

    /// Calls `push` with the parts of a long frame, in order.
    pub(super) fn split(&self, mut push: impl FnMut(&Frame<'_>)) {
        let mut fields = Vec::new();
        self.write_fields(&mut fields);
        push(&Frame::Part { bytes: &fields[LENGTH_BYTES..] });
        let mut rest = self.payload();
        while let Some((bytes, behind)) = rest.split_at_checked(PART_BYTES)
            && !behind.is_empty()
        {
            push(&Frame::Part { bytes });
            rest = behind;
        }
        push(&Frame::LastPart { bytes: rest });
    }

    /// Returns the bytes after the fields: the only part of a frame that can be long.
    #[inline]
    fn payload(&self) -> &'a [u8] {
        match *self {
            Frame::Effects { unit: bytes, .. }
            | Frame::Images { images: bytes, .. }
            | Frame::FillTombstones { piece: bytes, .. }
            | Frame::FillGone { keys: bytes, .. }
            | Frame::FillItems { items: bytes, .. }
            | Frame::FillPart { bytes, .. }
            | Frame::FillWhole { item: bytes, .. }
            | Frame::ReplaceItems { items: bytes, .. }
            | Frame::Pubsub { bytes }
            | Frame::Part { bytes }
            | Frame::LastPart { bytes } => bytes,
            Frame::FillStart { .. }
            | Frame::FillSlot { .. }
            | Frame::FillNewer { .. }
            | Frame::FillSlotEnd { .. }
            | Frame::FillEnd { .. }
            | Frame::FillCancel { .. }
            | Frame::Compare { .. }
            | Frame::Replace { .. }
            | Frame::ReplaceEnd { .. }
            | Frame::AnnouncePromotion { .. } => &[],
        }
    }

    /// Returns the slot that a client's command has changed, if the frame carries such a change.
    pub(super) fn changed_slot(&self) -> Option<Slot> {
        match *self {
            Frame::Effects { unit, .. } => slot_of_unit(unit),
            Frame::Images { slot, .. } => Some(slot),
            Frame::FillStart { .. }
            | Frame::FillSlot { .. }
            | Frame::FillTombstones { .. }
            | Frame::FillNewer { .. }
            | Frame::FillGone { .. }
            | Frame::FillItems { .. }
            | Frame::FillPart { .. }
            | Frame::FillWhole { .. }
            | Frame::FillSlotEnd { .. }
            | Frame::FillEnd { .. }
            | Frame::FillCancel { .. }
            | Frame::Compare { .. }
            | Frame::Replace { .. }
            | Frame::ReplaceItems { .. }
            | Frame::ReplaceEnd { .. }
            | Frame::AnnouncePromotion { .. }
            | Frame::Pubsub { .. }
            | Frame::Part { .. }
            | Frame::LastPart { .. } => None,
        }
    }

    /// Appends the tag and all fields but the payload.
    #[inline]
    fn write_fields<'o>(&self, out: &'o mut Vec<u8>) -> Writer<'o> {
        let with = |out, tag| Writer::new(out, tag);
        match *self {
            Frame::Effects { reign, written_in, .. } => {
                with(out, EFFECTS).u64(reign.0).u64(written_in.0)
            }
            Frame::Images { reign, slot, from, to, .. } => with(out, IMAGES)
                .u64(reign.0)
                .slot(slot)
                .u64(from.reign.0)
                .u64(from.version.0)
                .u64(to.0),
            Frame::FillStart { fill, bucket, reign, size } => with(out, FILL_START)
                .fill(fill)
                .bucket(bucket)
                .u64(reign.0)
                .u64(size.items)
                .u64(size.bytes),
            Frame::FillSlot { fill, slot, position } => with(out, FILL_SLOT)
                .fill(fill)
                .slot(slot)
                .u64(position.reign.0)
                .u64(position.version.0),
            Frame::FillTombstones { fill, slot, .. } => {
                with(out, FILL_TOMBSTONES).fill(fill).slot(slot)
            }
            Frame::FillNewer { fill, slot, from, position } => {
                with(out, FILL_NEWER).fill(fill).slot(slot).position(from).position(position)
            }
            Frame::FillGone { fill, slot, .. } => with(out, FILL_GONE).fill(fill).slot(slot),
            Frame::FillItems { fill, slot, .. } => with(out, FILL_ITEMS).fill(fill).slot(slot),
            Frame::FillPart { fill, slot, .. } => with(out, FILL_PART).fill(fill).slot(slot),
            Frame::FillWhole { fill, slot, .. } => with(out, FILL_WHOLE).fill(fill).slot(slot),
            Frame::FillSlotEnd { fill, slot } => with(out, FILL_SLOT_END).fill(fill).slot(slot),
            Frame::FillEnd { fill, epoch } => with(out, FILL_END).fill(fill).u64(epoch.0),
            Frame::FillCancel { fill } => with(out, FILL_CANCEL).fill(fill),
            Frame::Compare { reign, slot, position } => {
                with(out, COMPARE).u64(reign.0).slot(slot).position(position)
            }
            Frame::Replace { reign, slot, position } => {
                with(out, REPLACE).u64(reign.0).slot(slot).position(position)
            }
            Frame::ReplaceItems { slot, .. } => with(out, REPLACE_ITEMS).slot(slot),
            Frame::ReplaceEnd { slot } => with(out, REPLACE_END).slot(slot),
            Frame::AnnouncePromotion { bucket, epoch } => {
                with(out, ANNOUNCE_PROMOTION).bucket(bucket).u64(epoch.0)
            }
            Frame::Pubsub { .. } => with(out, NEWS),
            Frame::Part { .. } => with(out, PART),
            Frame::LastPart { .. } => with(out, LAST_PART),
        }
    }

    /// Reads a frame's tag and fields; the length is already stripped.
    pub fn read(body: &'a [u8]) -> Result<Frame<'a>, BadFrame> {
        let mut reader = FrameReader(body);
        let tag = reader.u8()?;
        let frame = match tag {
            FILL_START..=FILL_CANCEL | FILL_TOMBSTONES | FILL_NEWER | FILL_GONE => {
                Frame::read_fill(tag, &mut reader)?
            }
            EFFECTS => Frame::Effects {
                reign: reader.index()?,
                written_in: reader.index()?,
                unit: reader.rest(),
            },
            IMAGES => Frame::Images {
                reign: reader.index()?,
                slot: reader.slot()?,
                from: reader.position()?,
                to: Version(reader.u64()?),
                images: reader.rest(),
            },
            COMPARE => Frame::Compare {
                reign: reader.index()?,
                slot: reader.slot()?,
                position: reader.position()?,
            },
            REPLACE => Frame::Replace {
                reign: reader.index()?,
                slot: reader.slot()?,
                position: reader.position()?,
            },
            REPLACE_ITEMS => Frame::ReplaceItems { slot: reader.slot()?, items: reader.rest() },
            REPLACE_END => Frame::ReplaceEnd { slot: reader.slot()? },
            ANNOUNCE_PROMOTION => {
                Frame::AnnouncePromotion { bucket: reader.bucket()?, epoch: Epoch(reader.u64()?) }
            }
            NEWS => Frame::Pubsub { bytes: reader.rest() },
            PART => Frame::Part { bytes: reader.rest() },
            LAST_PART => Frame::LastPart { bytes: reader.rest() },
            tag => return Err(BadFrame::UnknownTag(tag)),
        };
        reader.at_end().map(|()| frame)
    }

    /// Reads a frame of a fill.
    fn read_fill(tag: u8, reader: &mut FrameReader<'a>) -> Result<Frame<'a>, BadFrame> {
        Ok(match tag {
            FILL_START => Frame::FillStart {
                fill: reader.fill()?,
                bucket: reader.bucket()?,
                reign: reader.index()?,
                size: FillSize { items: reader.u64()?, bytes: reader.u64()? },
            },
            FILL_SLOT => Frame::FillSlot {
                fill: reader.fill()?,
                slot: reader.slot()?,
                position: reader.position()?,
            },
            FILL_TOMBSTONES => Frame::FillTombstones {
                fill: reader.fill()?,
                slot: reader.slot()?,
                piece: reader.rest(),
            },
            FILL_NEWER => Frame::FillNewer {
                fill: reader.fill()?,
                slot: reader.slot()?,
                from: reader.position()?,
                position: reader.position()?,
            },
            FILL_GONE => {
                Frame::FillGone { fill: reader.fill()?, slot: reader.slot()?, keys: reader.rest() }
            }
            FILL_ITEMS => Frame::FillItems {
                fill: reader.fill()?,
                slot: reader.slot()?,
                items: reader.rest(),
            },
            FILL_PART => {
                Frame::FillPart { fill: reader.fill()?, slot: reader.slot()?, bytes: reader.rest() }
            }
            FILL_WHOLE => {
                Frame::FillWhole { fill: reader.fill()?, slot: reader.slot()?, item: reader.rest() }
            }
            FILL_SLOT_END => Frame::FillSlotEnd { fill: reader.fill()?, slot: reader.slot()? },
            FILL_END => Frame::FillEnd { fill: reader.fill()?, epoch: Epoch(reader.u64()?) },
            FILL_CANCEL => Frame::FillCancel { fill: reader.fill()? },
            tag => return Err(BadFrame::UnknownTag(tag)),
        })
    }
}

impl BackFrame {
    pub fn write(&self, out: &mut Vec<u8>) {
        match *self {
            BackFrame::Ack(number) => Writer::new(out, ACK).u64(number.0),
            BackFrame::Refused { frame, slot, reign } => {
                Writer::new(out, REFUSED).u64(frame.0).slot(slot).u64(reign.0)
            }
            BackFrame::FillRefused { fill } => Writer::new(out, FILL_REFUSED).fill(fill),
            BackFrame::StaleCopy { fill, slot, position } => {
                Writer::new(out, KEPT).fill(fill).slot(slot).position(position)
            }
        }
        .end();
    }

    pub fn read(body: &[u8]) -> Result<BackFrame, BadFrame> {
        let mut reader = FrameReader(body);
        let frame = match reader.u8()? {
            ACK => BackFrame::Ack(FrameNumber(reader.u64()?)),
            REFUSED => BackFrame::Refused {
                frame: FrameNumber(reader.u64()?),
                slot: reader.slot()?,
                reign: reader.index()?,
            },
            FILL_REFUSED => BackFrame::FillRefused { fill: reader.fill()? },
            KEPT => BackFrame::StaleCopy {
                fill: reader.fill()?,
                slot: reader.slot()?,
                position: reader.position()?,
            },
            tag => return Err(BadFrame::UnknownTag(tag)),
        };
        reader.at_end().map(|()| frame)
    }
}

/// Returns the body of the first frame in `bytes`, and its length in bytes with the length prefix. `None` if it
/// is incomplete.
pub(super) fn first_frame(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, BadFrame> {
    let Some((length, rest)) = bytes.split_first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = u32::from_le_bytes(*length) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(BadFrame::TooLong(length as u64));
    }
    Ok(rest.get(..length).map(|body| (body, LENGTH_BYTES + length)))
}

/// The bytes not yet read.
struct FrameReader<'a>(&'a [u8]);

impl<'a> FrameReader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], BadFrame> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(BadFrame::Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, BadFrame> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, BadFrame> {
        self.take().map(u16::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, BadFrame> {
        self.take().map(u64::from_le_bytes)
    }

    fn index(&mut self) -> Result<LogIndex, BadFrame> {
        self.u64().map(LogIndex)
    }

    fn slot(&mut self) -> Result<Slot, BadFrame> {
        Slot::new(self.u16()?).ok_or(BadFrame::BadNumber)
    }

    fn position(&mut self) -> Result<Position, BadFrame> {
        Ok(Position { reign: self.index()?, version: Version(self.u64()?) })
    }

    fn fill(&mut self) -> Result<MoveId, BadFrame> {
        Ok(MoveId { giver: NodeId(self.u64()?), number: self.u64()? })
    }

    fn bucket(&mut self) -> Result<Hashmask, BadFrame> {
        let bits = self.u16()?;
        let mask = Mask::ALL.into_iter().find(|mask| mask.bits() == bits);
        let value = self.u16()?;
        mask.and_then(|mask| Hashmask::new(mask, value)).ok_or(BadFrame::BadNumber)
    }

    fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    /// Checks that nothing follows, because this version would not know it.
    fn at_end(&self) -> Result<(), BadFrame> {
        if self.0.is_empty() { Ok(()) } else { Err(BadFrame::BadNumber) }
    }
}

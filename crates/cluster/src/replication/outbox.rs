//! The sending end of a link: frames are numbered and kept until the other end has acknowledged them, so that a
//! new connection resumes at the frame the other end asks for.

use std::collections::{BTreeMap, VecDeque};

use placement::Slot;

use super::FrameNumber;
use super::frame::{Frame, first_frame};

/// Frames are collected in a chunk up to this size before a new chunk is begun.
const CHUNK_BYTES: usize = 64 * 1024;

pub struct Outbox {
    /// In the order of their frames; the last chunk grows.
    chunks: VecDeque<Chunk>,
    /// The number of the next frame.
    next: FrameNumber,
    acked: FrameNumber,
    /// Progress on the connection: number of chunks written completely, and bytes written of the next one.
    sent_chunks: usize,
    sent_bytes: usize,
    unacknowledged_bytes: usize,
}

struct Chunk {
    bytes: Vec<u8>,
    /// The number of its first frame.
    first: FrameNumber,
    frames: u64,
}

/// The unacknowledged changes of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SlotLag {
    /// Number of units: the effects of one command or transaction each.
    pub units: u64,
    pub bytes: u64,
}

/// The other end acknowledged a frame that was never sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadAck;

/// The other end asks for a frame that is no longer kept or was never sent: the two ends do not match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forgotten;

impl Default for Outbox {
    fn default() -> Outbox {
        Outbox {
            chunks: VecDeque::new(),
            next: FrameNumber(1),
            acked: FrameNumber(0),
            sent_chunks: 0,
            sent_bytes: 0,
            unacknowledged_bytes: 0,
        }
    }
}

impl Outbox {
    /// Appends a frame, in parts if it is long. Returns its number, which is that of its last part.
    #[inline]
    pub fn push(&mut self, frame: &Frame<'_>) -> FrameNumber {
        if frame.is_long() {
            frame.split(|part| {
                self.push_one(part);
            });
            return self.last();
        }
        self.push_one(frame)
    }

    #[inline]
    fn push_one(&mut self, frame: &Frame<'_>) -> FrameNumber {
        let number = self.next;
        self.next = number.next();
        if self.chunks.back().is_none_or(|chunk| chunk.bytes.len() >= CHUNK_BYTES) {
            self.chunks.push_back(Chunk { bytes: Vec::new(), first: number, frames: 0 });
            self.sent(0); // The previous chunk may be completely sent.
        }
        let chunk = self.chunks.back_mut().expect("one was pushed if there was none");
        let before = chunk.bytes.len();
        frame.write(&mut chunk.bytes);
        chunk.frames += 1;
        self.unacknowledged_bytes += chunk.bytes.len() - before;
        number
    }

    /// Moves the frames of another outbox here, none of which was sent, and leaves that one as new.
    pub fn append(&mut self, draft: &mut Outbox) {
        for chunk in draft.chunks.drain(..) {
            let first = self.next;
            self.next = FrameNumber(first.0 + chunk.frames);
            self.unacknowledged_bytes += chunk.bytes.len();
            match self.chunks.back_mut().filter(|last| last.bytes.len() < CHUNK_BYTES) {
                Some(last) => {
                    last.bytes.extend_from_slice(&chunk.bytes);
                    last.frames += chunk.frames;
                }
                None => {
                    self.chunks.push_back(Chunk { first, ..chunk });
                    self.sent(0); // The previous chunk may be completely sent.
                }
            }
        }
        *draft = Outbox::default();
    }

    /// Returns the number of the frame pushed last.
    pub fn last(&self) -> FrameNumber {
        FrameNumber(self.next.0 - 1)
    }

    pub fn acked(&self) -> FrameNumber {
        self.acked
    }

    /// Returns the number of unacknowledged bytes.
    pub fn unacknowledged_bytes(&self) -> usize {
        self.unacknowledged_bytes
    }

    /// Returns the unacknowledged changes of each slot. Looks through all frames.
    pub fn lag_by_slot(&self) -> BTreeMap<Slot, SlotLag> {
        let mut lags: BTreeMap<Slot, SlotLag> = BTreeMap::new();
        for chunk in &self.chunks {
            let mut rest = &chunk.bytes[..];
            for number in chunk.first.0..chunk.first.0 + chunk.frames {
                let frame = first_frame(rest).ok().flatten();
                let (body, bytes) = frame.expect("what was pushed is whole");
                if let Some(slot) = Frame::read(body).ok().and_then(|frame| frame.changed_slot())
                    && number > self.acked.0
                {
                    let lag = lags.entry(slot).or_default();
                    lag.units += 1;
                    lag.bytes += bytes as u64;
                }
                rest = &rest[bytes..];
            }
        }
        lags
    }

    /// Returns the memory that unacknowledged frames take up: the allocated size of their chunks.
    pub fn allocated_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.bytes.capacity()).sum()
    }

    /// Returns the next bytes to write to the connection, possibly not all there are.
    pub fn unsent(&self) -> Option<&[u8]> {
        let chunk = self.chunks.get(self.sent_chunks)?;
        let bytes = &chunk.bytes[self.sent_bytes..];
        (!bytes.is_empty()).then_some(bytes)
    }

    /// Records that `count` of the `unsent` bytes were written.
    pub fn sent(&mut self, count: usize) {
        self.sent_bytes += count;
        let whole = self.chunks.get(self.sent_chunks).map(|chunk| chunk.bytes.len());
        let is_last = self.sent_chunks + 1 == self.chunks.len();
        if whole == Some(self.sent_bytes) && !is_last {
            self.sent_chunks += 1;
            self.sent_bytes = 0;
        }
    }

    /// Records that the other end has applied all frames up to `through`.
    pub fn acknowledge(&mut self, through: FrameNumber) -> Result<(), BadAck> {
        if through >= self.next {
            return Err(BadAck);
        }
        self.acked = self.acked.max(through);
        while let Some(chunk) = self.chunks.front() {
            let last = chunk.first.0 + chunk.frames - 1;
            // A chunk that is still written to, or still being sent, stays.
            if last > self.acked.0 || self.sent_chunks == 0 && self.is_unsent_in_first() {
                break;
            }
            self.unacknowledged_bytes -= chunk.bytes.len();
            self.chunks.pop_front();
            match self.sent_chunks.checked_sub(1) {
                Some(less) => self.sent_chunks = less,
                None => self.sent_bytes = 0,
            }
        }
        Ok(())
    }

    /// Drops all frames: the other end is gone for good. The numbering goes on.
    pub fn forget(&mut self) {
        self.chunks.clear();
        (self.sent_chunks, self.sent_bytes, self.unacknowledged_bytes) = (0, 0, 0);
    }

    fn is_unsent_in_first(&self) -> bool {
        self.chunks.front().is_some_and(|chunk| self.sent_bytes < chunk.bytes.len())
    }

    /// Resumes on a new connection, beginning with frame `next`.
    pub fn resume(&mut self, next: FrameNumber) -> Result<(), Forgotten> {
        let first_kept = self.chunks.front().map_or(self.next, |chunk| chunk.first);
        if next > self.next || next <= self.acked || next < first_kept {
            return Err(Forgotten);
        }
        // Frames before `next` are dropped only when their acknowledgement arrives.
        let at = self.chunks.partition_point(|chunk| chunk.first.0 + chunk.frames <= next.0);
        (self.sent_chunks, self.sent_bytes) = (at, 0);
        if let Some(chunk) = self.chunks.get(at) {
            for _ in chunk.first.0..next.0 {
                let frame = first_frame(&chunk.bytes[self.sent_bytes..]);
                let (_, bytes) = frame.ok().flatten().expect("what was pushed is whole");
                self.sent_bytes += bytes;
            }
        } else if let Some(last) = self.chunks.back() {
            (self.sent_chunks, self.sent_bytes) = (self.chunks.len() - 1, last.bytes.len());
        }
        Ok(())
    }
}

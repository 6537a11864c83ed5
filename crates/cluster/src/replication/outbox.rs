//! The sending end of a link: frames are numbered and kept until the other end has acknowledged them,
//! so that a new connection goes on where the other end says it is.

use std::collections::VecDeque;

use super::FrameNumber;
use super::frame::{Frame, first_frame};

/// Frames are gathered up to this size before a new chunk is begun.
const CHUNK_BYTES: usize = 64 * 1024;

pub struct Outbox {
    /// In the order of their frames; the last one grows.
    chunks: VecDeque<Chunk>,
    /// The number of the next frame.
    next: FrameNumber,
    acked: FrameNumber,
    /// What is written to the connection: whole chunks, and bytes of the one behind them.
    sent_chunks: usize,
    sent_bytes: usize,
    kept_bytes: usize,
}

struct Chunk {
    bytes: Vec<u8>,
    /// The number of its first frame.
    first: FrameNumber,
    frames: u64,
}

/// The other end acknowledged what was never sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadAck;

/// The other end wants a frame that is no longer kept, or never was: the two have nothing in common.
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
            kept_bytes: 0,
        }
    }
}

impl Outbox {
    /// Appends a frame, in parts if it is long. It counts with the number of its last part.
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
            self.sent(0); // The one before may be all sent.
        }
        let chunk = self.chunks.back_mut().expect("one was pushed if there was none");
        let before = chunk.bytes.len();
        frame.write(&mut chunk.bytes);
        chunk.frames += 1;
        self.kept_bytes += chunk.bytes.len() - before;
        number
    }

    /// Appends the frames of another one, none of which was sent, and leaves it as new.
    pub fn append(&mut self, draft: &mut Outbox) {
        for chunk in draft.chunks.drain(..) {
            let first = self.next;
            self.next = FrameNumber(first.0 + chunk.frames);
            self.kept_bytes += chunk.bytes.len();
            match self.chunks.back_mut().filter(|last| last.bytes.len() < CHUNK_BYTES) {
                Some(last) => {
                    last.bytes.extend_from_slice(&chunk.bytes);
                    last.frames += chunk.frames;
                }
                None => {
                    self.chunks.push_back(Chunk { first, ..chunk });
                    self.sent(0); // The one before may be all sent.
                }
            }
        }
        *draft = Outbox::default();
    }

    /// The number of the frame pushed last.
    pub fn last(&self) -> FrameNumber {
        FrameNumber(self.next.0 - 1)
    }

    pub fn acked(&self) -> FrameNumber {
        self.acked
    }

    /// Bytes that are not acknowledged yet.
    pub fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// Memory that the frames not acknowledged yet take up: what their chunks were allocated for.
    pub fn allocated_bytes(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.bytes.capacity()).sum()
    }

    /// The next bytes to write to the connection, possibly not all there are.
    pub fn unsent(&self) -> Option<&[u8]> {
        let chunk = self.chunks.get(self.sent_chunks)?;
        let bytes = &chunk.bytes[self.sent_bytes..];
        (!bytes.is_empty()).then_some(bytes)
    }

    /// So many of the `unsent` bytes were taken.
    pub fn sent(&mut self, count: usize) {
        self.sent_bytes += count;
        let whole = self.chunks.get(self.sent_chunks).map(|chunk| chunk.bytes.len());
        let is_last = self.sent_chunks + 1 == self.chunks.len();
        if whole == Some(self.sent_bytes) && !is_last {
            self.sent_chunks += 1;
            self.sent_bytes = 0;
        }
    }

    /// All frames up to `through` have been applied at the other end.
    pub fn acknowledge(&mut self, through: FrameNumber) -> Result<(), BadAck> {
        if through >= self.next {
            return Err(BadAck);
        }
        self.acked = self.acked.max(through);
        while let Some(chunk) = self.chunks.front() {
            let last = chunk.first.0 + chunk.frames - 1;
            // The one that is still written to, or still being sent, stays.
            if last > self.acked.0 || self.sent_chunks == 0 && self.is_unsent_in_first() {
                break;
            }
            self.kept_bytes -= chunk.bytes.len();
            self.chunks.pop_front();
            match self.sent_chunks.checked_sub(1) {
                Some(less) => self.sent_chunks = less,
                None => self.sent_bytes = 0,
            }
        }
        Ok(())
    }

    /// The other end is gone for good: nothing is kept for it. Numbers go on.
    pub fn forget(&mut self) {
        self.chunks.clear();
        (self.sent_chunks, self.sent_bytes, self.kept_bytes) = (0, 0, 0);
    }

    fn is_unsent_in_first(&self) -> bool {
        self.chunks.front().is_some_and(|chunk| self.sent_bytes < chunk.bytes.len())
    }

    /// A new connection: the other end wants `next` first.
    pub fn resume(&mut self, next: FrameNumber) -> Result<(), Forgotten> {
        let first_kept = self.chunks.front().map_or(self.next, |chunk| chunk.first);
        if next > self.next || next <= self.acked || next < first_kept {
            return Err(Forgotten);
        }
        // What it has is as good as acknowledged, once its acknowledgement comes.
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

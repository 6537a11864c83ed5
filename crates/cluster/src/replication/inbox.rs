//! The receiving end of a link: whole frames out of the bytes that come, counted.

use super::FrameNumber;
use super::frame::{BackFrame, BadFrame, Frame, first_frame};

/// What has come from one boot of another node. It outlives a connection.
#[derive(Default)]
pub struct Inbox {
    /// The last frame that was dealt with.
    done: FrameNumber,
    acked: FrameNumber,
}

impl Inbox {
    /// The frame wanted next: a new connection begins with it.
    pub fn next(&self) -> FrameNumber {
        self.done.next()
    }

    /// The first frame in `bytes`, with its number and how many bytes it takes. It is dealt with when
    /// `Inbox::done` says so, and offered again otherwise.
    pub fn peek<'a>(
        &self,
        bytes: &'a [u8],
    ) -> Result<Option<(FrameNumber, Frame<'a>, usize)>, BadFrame> {
        let Some((body, length)) = first_frame(bytes)? else { return Ok(None) };
        Ok(Some((self.next(), Frame::read(body)?, length)))
    }

    /// The frame offered last is dealt with.
    pub fn done(&mut self) {
        self.done = self.done.next();
    }

    /// What was acknowledged may never have arrived: it is said again on a new connection.
    pub fn acknowledge_anew(&mut self) {
        self.acked = FrameNumber::default();
    }

    /// What is to be acknowledged now, if anything.
    pub fn ack(&mut self) -> Option<BackFrame> {
        if self.acked == self.done {
            return None;
        }
        self.acked = self.done;
        Some(BackFrame::Ack(self.done))
    }
}

/// The first answer in `bytes`, and how many bytes it takes.
pub fn first_answer(bytes: &[u8]) -> Result<Option<(BackFrame, usize)>, BadFrame> {
    let Some((body, length)) = first_frame(bytes)? else { return Ok(None) };
    Ok(Some((BackFrame::read(body)?, length)))
}

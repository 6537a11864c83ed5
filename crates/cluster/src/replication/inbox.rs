//! The receiving end of a link: decodes whole frames from the received bytes, and counts them.

use super::FrameNumber;
use super::frame::{BackFrame, BadFrame, Frame, first_frame};

/// The frames received from one boot of another node. It outlives a connection.
#[derive(Default)]
pub struct Inbox {
    /// The last frame that was processed.
    done: FrameNumber,
    acked: FrameNumber,
}

impl Inbox {
    /// Returns the number of the next frame; a new connection begins with it.
    pub fn next(&self) -> FrameNumber {
        self.done.next()
    }

    /// Returns the first frame in `bytes`, with its number and its length in bytes. It is offered again until
    /// `Inbox::done` is called.
    pub fn peek<'a>(
        &self,
        bytes: &'a [u8],
    ) -> Result<Option<(FrameNumber, Frame<'a>, usize)>, BadFrame> {
        let Some((body, length)) = first_frame(bytes)? else { return Ok(None) };
        Ok(Some((self.next(), Frame::read(body)?, length)))
    }

    /// Marks the frame offered last as processed.
    pub fn done(&mut self) {
        self.done = self.done.next();
    }

    /// Repeats the acknowledgement on a new connection: the previous one may have been lost.
    pub fn acknowledge_anew(&mut self) {
        self.acked = FrameNumber::default();
    }

    /// Returns the acknowledgement to send now, if there is one.
    pub fn ack(&mut self) -> Option<BackFrame> {
        if self.acked == self.done {
            return None;
        }
        self.acked = self.done;
        Some(BackFrame::Ack(self.done))
    }
}

/// Returns the first answer in `bytes`, and its length in bytes.
pub fn first_answer(bytes: &[u8]) -> Result<Option<(BackFrame, usize)>, BadFrame> {
    let Some((body, length)) = first_frame(bytes)? else { return Ok(None) };
    Ok(Some((BackFrame::read(body)?, length)))
}

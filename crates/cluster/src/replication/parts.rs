//! Collects the parts of a long frame until the last one has arrived. Parts outlive a connection, like the
//! frame numbers: a new connection continues with the part that is missing.

use super::frame::BadFrame;

/// Maximum length of a frame assembled from parts. One command or EXEC may record half of it
/// (`commands::EFFECT_BYTES_MAX`); a single item with the longest key and value fits as well.
pub const GATHERED_BYTES_MAX: usize = 2 << 30;

#[derive(Default)]
pub struct FrameParts {
    bytes: Vec<u8>,
}

impl FrameParts {
    /// Adds a part that is not the last one.
    pub fn add(&mut self, part: &[u8]) -> Result<(), BadFrame> {
        let length = self.bytes.len().saturating_add(part.len());
        if length > GATHERED_BYTES_MAX {
            return Err(BadFrame::TooLong(length as u64));
        }
        self.bytes.extend_from_slice(part);
        Ok(())
    }

    /// Adds the last part, and takes out the whole frame.
    pub fn finish(&mut self, last: &[u8]) -> Result<Vec<u8>, BadFrame> {
        self.add(last)?;
        Ok(core::mem::take(&mut self.bytes))
    }

    /// Puts a frame back that cannot be applied yet: its last part will be offered again.
    pub fn put_back(&mut self, mut whole: Vec<u8>, last: &[u8]) {
        whole.truncate(whole.len() - last.len());
        self.bytes = whole;
    }

    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

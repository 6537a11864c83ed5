//! An effect with its position in the history of its slot, as bytes: the form in which a primary sends it to a
//! backup.

use placement::Slot;

use crate::{DecodeError, Effect, Seed, Version, decode_effect, encode_effect};

/// One recorded effect.
#[derive(Debug)]
pub struct Recorded<'a> {
    pub slot: Slot,
    /// The slot's version before the effect; a backup applies the effect only on top of it.
    pub previous: Version,
    pub version: Version,
    pub effect: Effect<'a>,
}

const HEADER_BYTES: usize = 2 + 8 + 8;

impl<'a> Recorded<'a> {
    /// Appends an effect that changed its slot from the first version to the second.
    #[inline]
    pub fn write(slot: Slot, versions: (Version, Version), effect: &Effect<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&slot.number().to_le_bytes());
        out.extend_from_slice(&versions.0.0.to_le_bytes());
        out.extend_from_slice(&versions.1.0.to_le_bytes());
        encode_effect(effect, out);
    }

    /// Reads a recorded effect; returns it and the remaining bytes.
    pub fn read(bytes: &'a [u8], seed: &Seed) -> Result<(Recorded<'a>, &'a [u8]), DecodeError> {
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES).ok_or(DecodeError::Truncated)?;
        let number = u16::from_le_bytes([header[0], header[1]]);
        let slot = Slot::new(number).ok_or(DecodeError::BadNumber)?;
        let version = |at: usize| {
            Version(u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes")))
        };
        let (effect, rest) = decode_effect(rest, seed)?;
        Ok((Recorded { slot, previous: version(2), version: version(10), effect }, rest))
    }
}

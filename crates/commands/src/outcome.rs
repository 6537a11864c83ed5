//! What a command leaves behind besides its reply: effects for the backups, events for those who
//! listen, garbage to free, counters. The server carries it off after the slots are unlocked.

use placement::Slot;
use store::{Applied, DecodeError, Effect, Garbage, Seed, Version, decode_effect, encode_effect};

use crate::settings::NotifyClasses;
use crate::{Ending, Error, Spec};

/// What running commands has left behind so far.
#[derive(Default)]
pub struct Outcome {
    pub effects: EffectLog,
    pub events: Vec<Event>,
    pub garbage: Vec<Garbage>,
    /// By how much the memory in use has risen or fallen.
    pub grown_bytes: i64,
    pub hits: u64,
    pub misses: u64,
    pub expired: u64,
    pub evicted: u64,
    /// The errors that were replied.
    pub errors: Vec<Error>,
    /// The commands that EXEC has run, and how they ended.
    pub ran_in_exec: Vec<(&'static Spec, Ending)>,
    /// Changes made, as `INFO` counts them.
    pub changes: u64,
    /// Of these, the ones after which a slot holds other keys, or expires at another time.
    pub reshaped: u64,
}

impl Outcome {
    pub fn applied(&mut self, applied: Applied) {
        self.grown_bytes += applied.grown_bytes;
        self.reshaped += u64::from(applied.reshaped);
        self.garbage.extend(applied.garbage);
    }
}

/// Something that happened to a key. It is told with the reply, not before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    pub class: NotifyClasses,
    pub name: &'static str,
    pub key: Vec<u8>,
}

/// The effects of one command, EXEC or script, as one unit: a backup applies all or none of it.
#[derive(Default)]
pub struct EffectLog {
    /// Whether anybody wants them. A node without backups keeps none.
    pub recording: bool,
    bytes: Vec<u8>,
}

/// One recorded effect.
#[derive(Debug)]
pub struct Recorded<'a> {
    pub slot: Slot,
    /// The slot's version before; a backup applies the effect only on top of it.
    pub previous: Version,
    pub version: Version,
    pub effect: Effect<'a>,
}

const HEADER_BYTES: usize = 2 + 8 + 8;

impl EffectLog {
    #[inline]
    pub fn record(&mut self, slot: Slot, previous: Version, version: Version, effect: &Effect<'_>) {
        if !self.recording {
            return;
        }
        self.bytes.extend_from_slice(&slot.number().to_le_bytes());
        self.bytes.extend_from_slice(&previous.0.to_le_bytes());
        self.bytes.extend_from_slice(&version.0.to_le_bytes());
        encode_effect(effect, &mut self.bytes);
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Hands out what was recorded, and begins anew.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.bytes)
    }

    /// Reads one effect from a recorded unit, and says what follows it.
    pub fn read<'a>(bytes: &'a [u8], seed: &Seed) -> Result<(Recorded<'a>, &'a [u8]), DecodeError> {
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

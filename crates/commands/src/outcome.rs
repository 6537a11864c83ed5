//! What a command leaves behind besides its reply: effects for the backups, events for those who
//! listen, garbage to free, counters. The server carries it off after the slots are unlocked.

use placement::Slot;
use store::{Applied, Effect, Garbage, Recorded, Version};

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
    runs: Vec<Run>,
}

/// Effects of one slot that stand together.
#[derive(Clone, Copy, Debug)]
struct Run {
    slot: Slot,
    /// Where they begin.
    start: usize,
}

impl EffectLog {
    #[inline]
    pub fn record(&mut self, slot: Slot, previous: Version, version: Version, effect: &Effect<'_>) {
        if !self.recording {
            return;
        }
        if self.runs.last().is_none_or(|run| run.slot != slot) {
            self.runs.push(Run { slot, start: self.bytes.len() });
        }
        Recorded::write(slot, (previous, version), effect, &mut self.bytes);
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// What was recorded, slot by slot: each a unit that `store::Recorded` reads.
    pub fn units(&self) -> impl Iterator<Item = (Slot, &[u8])> {
        self.runs.iter().enumerate().map(|(index, run)| {
            let end = self.runs.get(index + 1).map_or(self.bytes.len(), |next| next.start);
            (run.slot, &self.bytes[run.start..end])
        })
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Forgets what was recorded.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES_MAX);
        self.runs.clear();
    }
}

/// What the log keeps of its memory when it is empty.
const KEPT_BYTES_MAX: usize = 64 * 1024;

//! What a command leaves behind besides its reply and its effects: events for those who listen, garbage to
//! free, counters. The server carries it off after the slots are unlocked.

use store::{Applied, Garbage};

use crate::settings::NotifyClasses;
use crate::{Ending, Error, Spec};

/// What running commands has left behind so far.
#[derive(Default)]
pub struct Outcome {
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

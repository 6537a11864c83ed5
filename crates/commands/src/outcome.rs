//! The results of a command besides its reply and its effects: events for subscribers, garbage to free, counters.
//! The server processes them after the slots are unlocked.

use settings::NotifyClasses;
use store::{Applied, Database, Garbage};

use crate::{Ending, Error, Post, Space, Spec};

/// The accumulated results of commands so far.
#[derive(Default)]
pub struct Outcome {
    pub events: Vec<Announcement>,
    pub garbage: Vec<Garbage>,
    /// Change of the memory in use.
    pub grown_bytes: i64,
    pub hits: u64,
    pub misses: u64,
    pub expired: u64,
    pub evicted: u64,
    /// The error replies.
    pub errors: Vec<Error>,
    /// The commands that EXEC has run, and their results.
    pub ran_in_exec: Vec<(&'static Spec, Ending)>,
    /// Number of changes, as `INFO` counts them.
    pub changes: u64,
    /// Number of those changes that changed a slot's set of keys or its next expiry.
    pub reshaped: u64,
}

impl Outcome {
    pub fn applied(&mut self, applied: Applied) {
        self.grown_bytes += applied.grown_bytes;
        self.reshaped += u64::from(applied.reshaped);
        self.garbage.extend(applied.garbage);
    }
}

/// Something that subscribers are told. It leaves with the reply, not before: the write it tells of could still be lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Announcement {
    Event(Event),
    /// A message that EXEC has published behind the events of its own writes.
    Message {
        space: Space,
        channel: Vec<u8>,
        payload: Vec<u8>,
    },
}

impl Announcement {
    pub fn of_message(post: Post<'_>) -> Announcement {
        let Post { space, channel, payload } = post;
        Announcement::Message { space, channel: channel.to_vec(), payload: payload.to_vec() }
    }
}

/// An event about a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    pub class: NotifyClasses,
    pub name: &'static str,
    pub database: Database,
    pub key: Vec<u8>,
}

//! Requests, answers and calls, as outsiders saw them: all that the checkers know.

use std::collections::BTreeMap;

use timers::{Sequence, TimerId};

/// Milliseconds of true time, which no node knows.
pub(crate) type Time = u64;

/// A client's request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Known at once, except for a new timer: then known when the request is answered.
    pub id: Option<TimerId>,
    pub what: What,
    pub from: Time,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    Set { interval: u64, pops: u32 },
    Delete,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Not answered, or answered with "not known": the request may have been carried out, or may still be.
    Open,
    Done {
        at: Time,
    },
    /// Certainly not carried out.
    Refused,
}

/// A callback that was started.
#[derive(Clone, Copy, Debug)]
pub struct Called {
    pub at: Time,
    pub by: u64,
    pub id: TimerId,
    pub sequence: Sequence,
    /// True if the called party accepted the call.
    pub taken: bool,
}

#[derive(Default)]
pub struct History {
    pub asked: Vec<Asked>,
    pub called: Vec<Called>,
}

/// Everything about one timer, in the order of time.
#[derive(Default)]
pub struct Story<'a> {
    pub asked: Vec<&'a Asked>,
    pub called: Vec<Called>,
}

impl History {
    pub fn stories(&self) -> BTreeMap<TimerId, Story<'_>> {
        let mut stories: BTreeMap<TimerId, Story<'_>> = BTreeMap::new();
        for asked in &self.asked {
            if let Some(id) = asked.id {
                stories.entry(id).or_default().asked.push(asked);
            }
        }
        for called in &self.called {
            stories.entry(called.id).or_default().called.push(*called);
        }
        stories
    }
}

impl Asked {
    pub fn done_at(&self) -> Option<Time> {
        match self.outcome {
            Outcome::Done { at } => Some(at),
            Outcome::Open | Outcome::Refused => None,
        }
    }
}

//! The clients' commands and answers, and a check that a single server could have produced them: some order
//! of the commands must respect which had ended before which began, and give the same answers.

use resp::Value;

use super::server::{Args, FakeServer};

/// A client's command, or a moment at which time passed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    pub(super) act: Act,
    pub(super) begun: usize,
    /// Its end and its answer; `None` while it runs, or if its outcome was never reported.
    pub(super) ended: Option<(usize, Value)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    Command(Args),
    /// Time advances to this.
    Time(u64),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct History {
    events: Vec<Event>,
    clock: usize,
}

impl History {
    pub(super) fn begin(&mut self, act: Act) -> usize {
        self.clock += 1;
        self.events.push(Event { act, begun: self.clock, ended: None });
        self.events.len() - 1
    }

    pub(super) fn end(&mut self, event: usize, answer: Value) {
        self.clock += 1;
        self.events[event].ended = Some((self.clock, answer));
    }

    /// Returns whether one server that began with `start` could have given these answers.
    pub(super) fn is_linearizable(&self, start: &[Args]) -> bool {
        let mut server = FakeServer::default();
        for args in start {
            server.run(0, args, 0);
        }
        search(&self.events, &vec![false; self.events.len()], &server, 0)
    }
}

fn search(events: &[Event], done: &[bool], server: &FakeServer, now_ms: u64) -> bool {
    let left = || (0..events.len()).filter(|index| !done[*index]);
    let mut must = left().filter_map(|index| events[index].ended.as_ref().map(|(end, _)| *end));
    // All events that ended are placed; one that has not ended need not have happened.
    let Some(first_end) = must.clone().min() else { return true };
    let _ = must.next();
    left().filter(|index| events[*index].begun < first_end).any(|index| {
        let mut done = done.to_vec();
        done[index] = true;
        let mut server = server.clone();
        let event = &events[index];
        match &event.act {
            Act::Time(to) => {
                server.expire(*to);
                search(events, &done, &server, *to)
            }
            Act::Command(args) => {
                let answer = server.run(0, args, now_ms).expect("its connection lives");
                let fits = event.ended.as_ref().is_none_or(|(_, seen)| *seen == answer);
                fits && search(events, &done, &server, now_ms)
            }
        }
    })
}

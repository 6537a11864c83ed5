//! Key events of writes that are not acknowledged yet: they are published with the reply, and wait for the same
//! tickets.

use std::collections::VecDeque;

use cluster::serving::{Passage, Tickets};
use commands::Event;

use super::{Data, judge};

#[derive(Default)]
pub(crate) struct Later {
    /// Deferred events, in the order of the writes.
    waiting: VecDeque<(Tickets, Vec<Event>)>,
}

impl Later {
    pub(crate) fn put_off(&mut self, tickets: Tickets, events: Vec<Event>) {
        self.waiting.push_back((tickets, events));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the events of writes that are acknowledged by now, and drops those of writes that may be lost.
    pub(crate) fn ripe(&mut self, data: &Data) -> Vec<Event> {
        let mut ripe = Vec::new();
        while let Some((tickets, _)) = self.waiting.front_mut() {
            let passage = judge_all(data, tickets);
            if passage == Passage::Wait {
                break;
            }
            let (_, mut events) = self.waiting.pop_front().expect("seen a moment ago");
            if passage == Passage::Release {
                ripe.append(&mut events);
            }
        }
        ripe
    }
}

/// Judges a reply that has all these tickets. Tickets that allow it to leave are dropped.
pub(crate) fn judge_all(data: &Data, tickets: &mut Tickets) -> Passage {
    while let Some(ticket) = tickets.first_mut() {
        match judge(data, ticket) {
            Passage::Release => drop(tickets.remove(0)),
            passage @ (Passage::Wait | Passage::Abort) => return passage,
        }
    }
    Passage::Release
}

//! What is told of a write only when the write is safe: events wait here with the ticket that the
//! reply waits with.

use std::collections::VecDeque;

use cluster::replication::{Passage, Ticket};
use commands::Event;

use super::judge;
use crate::shared::Shared;

#[derive(Default)]
pub(crate) struct Later {
    /// In the order of the writes.
    waiting: VecDeque<(Ticket, Vec<Event>)>,
    /// The number of the map when they were last looked at.
    looked_at: u64,
}

impl Later {
    pub(crate) fn put_off(&mut self, ticket: Ticket, events: Vec<Event>) {
        self.waiting.push_back((ticket, events));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The events of writes that are safe by now. Those of writes that may be lost are forgotten.
    pub(crate) fn ripe(&mut self, shared: &Shared) -> Vec<Event> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let number = shared.data.map_number();
        let map_changed = core::mem::replace(&mut self.looked_at, number) != number;
        let mut ripe = Vec::new();
        while let Some((ticket, _)) = self.waiting.front() {
            let passage = judge(shared, ticket, map_changed);
            if passage == Passage::Waiting {
                break;
            }
            let (_, mut events) = self.waiting.pop_front().expect("seen a moment ago");
            if passage == Passage::Free {
                ripe.append(&mut events);
            }
        }
        ripe
    }
}

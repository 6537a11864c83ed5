//! Limits the callbacks in flight, to one destination and in total, so that one hanging host cannot delay the
//! timers of others.
//!
//! Called by `pop.rs`. A destination that exceeds its share waits in its own queue; the destinations that may
//! start a call take turns.

use std::collections::{BTreeMap, VecDeque};

use crate::ids::TimerId;

/// Maximum numbers of calls in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallLimits {
    pub in_all: usize,
    pub per_destination: usize,
}

impl Default for CallLimits {
    fn default() -> CallLimits {
        // A destination that takes 50 ms per call gets 5,000 a second; sixteen hanging ones use up the total.
        CallLimits { in_all: 4096, per_destination: 256 }
    }
}

#[derive(Default)]
struct Destination {
    in_flight: usize,
    waiting: VecDeque<TimerId>,
    /// True if it is queued in `Calls::turns`.
    has_turn: bool,
}

/// Calls waiting and in flight. A destination is listed exactly as long as it has either.
pub(crate) struct Calls {
    limits: CallLimits,
    in_flight: usize,
    waiting: usize,
    destinations: BTreeMap<Box<str>, Destination>,
    /// Destinations that may start a call as soon as the total limit allows it.
    turns: VecDeque<Box<str>>,
}

impl Calls {
    pub(crate) fn new(limits: CallLimits) -> Calls {
        let (destinations, turns) = (BTreeMap::new(), VecDeque::new());
        Calls { limits, in_flight: 0, waiting: 0, destinations, turns }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Queues a call. `start` returns it when its turn has come.
    pub(crate) fn enqueue(&mut self, destination: &str, timer: TimerId) {
        if !self.destinations.contains_key(destination) {
            self.destinations.insert(destination.into(), Destination::default());
        }
        let entry = self.destinations.get_mut(destination).expect("just put there");
        entry.waiting.push_back(timer);
        self.waiting += 1;
        self.give_turn(destination);
    }

    /// Returns the next call that may start now, and its destination.
    pub(crate) fn start(&mut self) -> Option<(Box<str>, TimerId)> {
        if self.in_flight >= self.limits.in_all {
            return None;
        }
        let destination = self.turns.pop_front()?;
        let entry = self.destinations.get_mut(&destination).expect("who has a turn is known");
        entry.has_turn = false;
        let timer = entry.waiting.pop_front().expect("who has a turn has something to start");
        entry.in_flight += 1;
        self.in_flight += 1;
        self.waiting -= 1;
        self.give_turn(&destination);
        Some((destination, timer))
    }

    /// Records that a started call has ended, or was no longer wanted when its turn came.
    pub(crate) fn ended(&mut self, destination: &str) {
        let entry = self.destinations.get_mut(destination).expect("a call was started there");
        entry.in_flight -= 1;
        self.in_flight -= 1;
        if entry.in_flight == 0 && entry.waiting.is_empty() {
            self.destinations.remove(destination);
        } else {
            self.give_turn(destination);
        }
    }

    fn give_turn(&mut self, destination: &str) {
        let entry = self.destinations.get_mut(destination).expect("the caller saw it");
        let may = entry.in_flight < self.limits.per_destination && !entry.waiting.is_empty();
        if may && !entry.has_turn {
            entry.has_turn = true;
            self.turns.push_back(destination.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::ReplicationFactor;

    fn timer(number: u64) -> TimerId {
        TimerId { number, factor: ReplicationFactor::DEFAULT }
    }

    fn calls(in_all: usize, per_destination: usize) -> Calls {
        Calls::new(CallLimits { in_all, per_destination })
    }

    fn started(calls: &mut Calls) -> Vec<u64> {
        std::iter::from_fn(|| calls.start()).map(|(_, timer)| timer.number).collect()
    }

    #[test]
    fn a_destination_that_hangs_takes_its_share_and_no_more() {
        let mut calls = calls(10, 2);
        (0..100).for_each(|number| calls.enqueue("hangs", timer(number)));
        calls.enqueue("works", timer(100));
        assert_eq!(started(&mut calls), [0, 100, 1]);
        calls.ended("works");
        calls.enqueue("works", timer(101));
        assert_eq!(started(&mut calls), [101]);
        assert_eq!((calls.in_flight(), calls.waiting()), (3, 98));
    }

    #[test]
    fn destinations_take_turns_when_there_is_room_for_few() {
        let mut calls = calls(1, 5);
        (0..3).for_each(|number| calls.enqueue("a", timer(number)));
        (10..12).for_each(|number| calls.enqueue("b", timer(number)));
        let mut order = Vec::new();
        while let [next] = started(&mut calls)[..] {
            order.push(next);
            calls.ended(if next < 10 { "a" } else { "b" });
        }
        assert_eq!(order, [0, 10, 1, 11, 2]);
    }

    #[test]
    fn nothing_is_remembered_of_a_destination_that_is_done() {
        let mut calls = calls(10, 1);
        calls.enqueue("a", timer(1));
        calls.enqueue("a", timer(2));
        assert_eq!(started(&mut calls), [1]);
        calls.ended("a");
        assert_eq!(started(&mut calls), [2]);
        calls.ended("a");
        assert!(calls.destinations.is_empty() && calls.turns.is_empty());
    }
}

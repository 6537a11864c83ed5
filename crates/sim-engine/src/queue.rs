//! Future events, ordered by time. Events of the same time come in the order in which they were pushed.

use std::collections::BTreeMap;
use std::time::Duration;

/// The events `E` of a world that are still to come. `T` is a point in its virtual time.
pub struct Queue<E, T = Duration> {
    /// Events by time and number.
    events: BTreeMap<(T, u64), E>,
    /// Number of events pushed so far.
    pushed: u64,
}

impl<E, T: Copy + Ord> Queue<E, T> {
    pub fn push(&mut self, at: T, event: E) {
        self.pushed += 1;
        self.events.insert((at, self.pushed), event);
    }

    /// Returns the time of the next event.
    pub fn next_at(&self) -> Option<T> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the next event, and its time.
    pub fn pop(&mut self) -> Option<(T, E)> {
        self.events.pop_first().map(|((at, _), event)| (at, event))
    }

    /// Takes the next event, if it is due by `end`.
    pub fn pop_by(&mut self, end: T) -> Option<(T, E)> {
        self.next_at().filter(|at| *at <= end)?;
        self.pop()
    }
}

impl<E, T> Default for Queue<E, T> {
    fn default() -> Queue<E, T> {
        Queue { events: BTreeMap::new(), pushed: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_at_the_same_time_in_the_order_of_their_pushes() {
        let mut queue = Queue::default();
        for (at, event) in [(5, "late"), (2, "z"), (2, "a"), (0, "first"), (2, "m")] {
            queue.push(at, event);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
        assert_eq!(order, [(0, "first"), (2, "z"), (2, "a"), (2, "m"), (5, "late")]);
    }

    #[test]
    fn an_event_waits_for_its_time() {
        let mut queue = Queue::default();
        queue.push(7, "event");
        assert_eq!((queue.pop_by(6), queue.next_at()), (None, Some(7)));
        assert_eq!((queue.pop_by(7), queue.next_at()), (Some((7, "event")), None));
        assert_eq!(queue.pop(), None);
    }
}

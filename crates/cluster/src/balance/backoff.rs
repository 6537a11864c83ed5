//! Back-off for nodes that acknowledged nothing: nothing is copied to them for a while. Filling an
//! overloaded node again at once does not help it, and the data it gets would be dropped again.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Moment;
use crate::map::NodeId;

/// Length of the first wait. It doubles with each one that follows soon.
const SHORTEST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(8);
/// A node that was not stuck for this long after a wait starts again with the shortest wait.
const MEMORY: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Backoff(BTreeMap<NodeId, RetryDelay>);

struct RetryDelay {
    length: Duration,
    until: Moment,
}

impl Backoff {
    /// Records that the node is stuck. Does nothing while the node is waiting already.
    pub(super) fn note(&mut self, now: Moment, node: NodeId) {
        self.0.retain(|_, wait| now < wait.until + MEMORY);
        let known = self.0.get(&node);
        if known.is_some_and(|wait| now < wait.until) {
            return;
        }
        let length = known.map_or(SHORTEST, |wait| (2 * wait.length).min(LONGEST));
        self.0.insert(node, RetryDelay { length, until: now + length });
    }

    pub(super) fn is_waiting(&self, now: Moment, node: NodeId) -> bool {
        self.0.get(&node).is_some_and(|wait| now < wait.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(2);
    const TICK: Duration = Duration::from_millis(100);

    #[test]
    fn who_is_stuck_again_and_again_waits_longer_up_to_some_seconds() {
        let (mut backoff, mut now) = (Backoff::default(), Moment::START + Duration::from_secs(5));
        let mut waits = Vec::new();
        for _ in 0..7 {
            backoff.note(now, NODE);
            let begun = now;
            while backoff.is_waiting(now, NODE) {
                backoff.note(now, NODE); // Repeated reports while the node waits.
                now += TICK;
            }
            waits.push(now.since(begun).as_millis());
            now += Duration::from_secs(1);
        }
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
        assert!(!backoff.is_waiting(now, NodeId(3)), "nobody else waits");
    }

    #[test]
    fn who_was_well_for_long_begins_anew() {
        let mut backoff = Backoff::default();
        backoff.note(Moment::START, NODE);
        backoff.note(Moment::START + SHORTEST, NODE);
        assert!(backoff.is_waiting(Moment::START + 2 * SHORTEST, NODE));
        let later = Moment::START + 3 * SHORTEST + MEMORY;
        backoff.note(later, NODE);
        assert!(!backoff.is_waiting(later + SHORTEST, NODE));
        backoff.note(later + LONGEST + MEMORY, NodeId(3));
        assert_eq!(backoff.0.len(), 1, "nobody is remembered for ever");
    }
}

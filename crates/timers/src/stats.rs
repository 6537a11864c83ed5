//! Statistics for `GET /timers/stats`: counts, lateness of pops, and number of timers per tag.
//!
//! Maintained by `pop.rs` and `table.rs`; merged over all nodes by the node that was asked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::TimeSpan;
use crate::spec::TimerTag;

/// Upper bounds of the histogram's buckets in milliseconds; one more bucket holds the rest.
pub const LATENESS_BOUNDS: [u64; 13] =
    [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];
/// Maximum number of different tags a node counts. A client can invent more; those are counted together.
pub(crate) const TAG_NAMES_MAX: usize = 10_000;
/// The name for all other tags. No client can send it: theirs are letters from A to Z.
const OTHER_TAGS: &str = "(other)";

/// Delay of callbacks after their timer was due.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Lateness {
    pub counts: [u64; LATENESS_BOUNDS.len() + 1],
    pub total_ms: u64,
}

#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Stats {
    /// Number of pending timers this node holds, and of those it is the primary of.
    pub held: u64,
    pub primary: u64,
    /// Number of pops in progress.
    pub due: u64,
    /// Number of tombstones of deleted and finished timers.
    pub tombstones: u64,
    /// Number of callbacks that succeeded, that failed, and of pops given up after all retries.
    pub popped: u64,
    pub failed: u64,
    pub given_up: u64,
    pub calls_in_flight: u64,
    pub calls_waiting: u64,
    pub lateness: Lateness,
    /// Pending timers by tag, counted at their primary.
    pub tags: BTreeMap<String, u64>,
}

impl Lateness {
    pub(crate) fn add(&mut self, late: TimeSpan) {
        let bucket = LATENESS_BOUNDS.partition_point(|bound| *bound < late.0);
        self.counts[bucket] += 1;
        self.total_ms += late.0;
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl Stats {
    pub(crate) fn add_tags(&mut self, tags: &[TimerTag]) {
        for tag in tags {
            let is_known = self.tags.contains_key(&tag.name);
            let has_room = is_known || self.tags.len() < TAG_NAMES_MAX;
            let name = if has_room { tag.name.as_str() } else { OTHER_TAGS };
            *self.tags.entry(name.to_owned()).or_default() += u64::from(tag.count);
        }
    }

    pub(crate) fn remove_tags(&mut self, tags: &[TimerTag]) {
        for tag in tags {
            let is_known = self.tags.contains_key(&tag.name);
            let name = if is_known { tag.name.as_str() } else { OTHER_TAGS };
            let Some(count) = self.tags.get_mut(name) else { continue };
            *count = count.saturating_sub(u64::from(tag.count));
            if *count == 0 {
                self.tags.remove(name);
            }
        }
    }

    /// Adds another node's statistics to these.
    pub fn merge(&mut self, other: &Stats) {
        self.held += other.held;
        self.primary += other.primary;
        self.due += other.due;
        self.tombstones += other.tombstones;
        self.popped += other.popped;
        self.failed += other.failed;
        self.given_up += other.given_up;
        self.calls_in_flight += other.calls_in_flight;
        self.calls_waiting += other.calls_waiting;
        for (own, others) in self.lateness.counts.iter_mut().zip(other.lateness.counts) {
            *own += others;
        }
        self.lateness.total_ms += other.lateness.total_ms;
        for (name, count) in &other.tags {
            *self.tags.entry(name.clone()).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_is_at_most_its_bound() {
        let mut lateness = Lateness::default();
        for late in [0, 1, 2, 3, 50, 51, 10_000, 10_001] {
            lateness.add(TimeSpan(late));
        }
        assert_eq!(lateness.counts, [2, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(lateness.count(), 8);
    }

    #[test]
    fn tags_beyond_the_limit_are_counted_together() {
        let mut stats = Stats::default();
        for number in 0..TAG_NAMES_MAX + 5 {
            stats.add_tags(&[TimerTag { name: number.to_string(), count: 2 }]);
        }
        stats.add_tags(&[TimerTag { name: "0".into(), count: 1 }]);
        assert_eq!(stats.tags.len(), TAG_NAMES_MAX + 1);
        assert_eq!((stats.tags[OTHER_TAGS], stats.tags["0"]), (10, 3));
        stats.remove_tags(&[TimerTag { name: "0".into(), count: 3 }]);
        stats.remove_tags(&[TimerTag { name: "beyond".into(), count: 4 }]);
        assert_eq!((stats.tags[OTHER_TAGS], stats.tags.get("0")), (6, None));
    }

    #[test]
    fn the_numbers_of_two_nodes_add_up() {
        let mut one = Stats { popped: 3, ..Stats::default() };
        let mut two = Stats { popped: 4, ..Stats::default() };
        one.lateness.add(TimeSpan(7));
        two.lateness.add(TimeSpan(8));
        two.add_tags(&[TimerTag { name: "T".into(), count: 2 }]);
        one.merge(&two);
        assert_eq!((one.popped, one.lateness.counts[3], one.tags["T"]), (7, 2, 2));
    }
}

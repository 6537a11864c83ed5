//! The schedule of an open loop, and the start of each latency. Pure: the time is an argument.
//!
//! A closed loop waits for a slow server and so sends it less while it is slow; measured from the
//! moment of sending, its latencies leave out the very requests that suffered (coordinated
//! omission). Here a request has an intended time that does not depend on any reply, and its
//! latency runs from that time, however late it was really sent.
use std::collections::VecDeque;

/// Time since the run began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl Nanos {
    pub const SECOND: u64 = 1_000_000_000;

    pub fn since(self, earlier: Nanos) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// The schedule of an open loop: request `i` is due at `i / rate`.
#[derive(Clone, Debug)]
pub struct Pacer {
    per_second: u64,
    total: u64,
    issued: u64,
}

impl Pacer {
    pub fn new(per_second: u64, total: u64) -> Pacer {
        assert!(per_second > 0, "a rate of nothing never ends");
        Pacer { per_second, total, issued: 0 }
    }

    /// Returns the intended time of the next request if it is due by `now`. Call until there is none: after a stall
    /// it returns all requests that should have been sent meanwhile, each with its own time.
    pub fn due(&mut self, now: Nanos) -> Option<Nanos> {
        let intended = self.upcoming()?;
        if now < intended {
            return None;
        }
        self.issued += 1;
        Some(intended)
    }

    /// Returns the intended time of the next request. It multiplies before it divides, so that no rounding error adds
    /// up over a long run.
    fn upcoming(&self) -> Option<Nanos> {
        let at = u128::from(self.issued) * u128::from(Nanos::SECOND) / u128::from(self.per_second);
        (self.issued < self.total).then_some(Nanos(at as u64))
    }

    pub fn is_done(&self) -> bool {
        self.issued == self.total
    }
}

/// The requests of one connection that have no reply yet, oldest first, in groups whose latency
/// starts at the same moment.
#[derive(Clone, Debug, Default)]
pub struct Awaited {
    groups: VecDeque<Group>,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    since: Nanos,
    requests: u64,
}

impl Awaited {
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    #[inline]
    pub fn sent(&mut self, requests: u64, since: Nanos) {
        self.groups.push_back(Group { since, requests });
    }

    /// Records that the oldest `replies` requests were answered at `now`: calls `latency` with
    /// (nanoseconds, number of requests). Returns false if there were more replies than requests.
    #[inline]
    pub fn answered(
        &mut self,
        replies: u64,
        now: Nanos,
        mut latency: impl FnMut(u64, u64),
    ) -> bool {
        let mut left = replies;
        while left > 0 {
            let Some(group) = self.groups.front_mut() else { return false };
            let taken = left.min(group.requests);
            latency(now.since(group.since), taken);
            group.requests -= taken;
            left -= taken;
            if group.requests == 0 {
                self.groups.pop_front();
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    /// Simulates one connection to a server that answers after 100 us, one request at a time, and
    /// stops during `stall`. The clock ticks every 50 us. Returns the latencies, sorted.
    fn latencies(stall: std::ops::Range<u64>) -> Vec<u64> {
        let (rate, total) = (1000, 1000);
        let mut pacer = Pacer::new(rate, total);
        let mut awaited = Awaited::default();
        let mut latencies = Vec::new();
        let (mut queued, mut busy_until) = (0u64, 0);
        for now in (0..).step_by(50_000) {
            while let Some(intended) = pacer.due(Nanos(now)) {
                awaited.sent(1, intended);
                queued += 1;
            }
            if queued > 0 && now >= busy_until && !stall.contains(&now) {
                queued -= 1;
                busy_until = now + 100_000;
                let done = Nanos(busy_until);
                assert!(awaited.answered(1, done, |latency, _| latencies.push(latency)));
            }
            if pacer.is_done() && awaited.is_empty() {
                break;
            }
        }
        latencies.sort_unstable();
        assert_eq!(latencies.len() as u64, total);
        latencies
    }

    #[test]
    fn a_steady_server_shows_its_own_latency() {
        let latencies = latencies(0..0);
        assert_eq!((latencies[0], latencies[999]), (100_000, 100_000));
    }

    #[test]
    fn a_stall_is_counted_against_every_request_that_was_due_in_it() {
        // 200 ms of 1 s: a fifth of all requests were due in it, and waited 100 ms on average.
        let latencies = latencies(400 * MILLISECOND..600 * MILLISECOND);
        let late = latencies.iter().filter(|latency| **latency > MILLISECOND).count();
        assert!((200..240).contains(&late), "{late} were late");
        assert!(latencies[500] == 100_000, "the median saw nothing of it");
        let p90 = latencies[900] / MILLISECOND;
        assert!((80..130).contains(&p90), "half of the fifth waited over {p90} ms");
        assert!(latencies[999] >= 200 * MILLISECOND);
    }

    #[test]
    fn the_timetable_does_not_drift_at_an_odd_rate() {
        let mut pacer = Pacer::new(333_333, 1_000_000);
        let mut last = Nanos(0);
        while let Some(intended) = pacer.due(Nanos(u64::MAX)) {
            last = intended;
        }
        assert_eq!(last.0, 999_999 * Nanos::SECOND / 333_333);
        assert!(pacer.is_done());
    }

    #[test]
    fn nothing_is_sent_before_its_time() {
        let mut pacer = Pacer::new(1000, 10);
        assert_eq!(pacer.due(Nanos(0)), Some(Nanos(0)));
        assert_eq!(pacer.due(Nanos(999_999)), None);
        assert_eq!(pacer.due(Nanos(1_000_000)), Some(Nanos(1_000_000)));
    }

    #[test]
    fn replies_across_groups_count_from_their_own_moment() {
        let mut awaited = Awaited::default();
        awaited.sent(3, Nanos(10));
        awaited.sent(2, Nanos(20));
        let mut seen = Vec::new();
        assert!(awaited.answered(4, Nanos(100), |latency, n| seen.push((latency, n))));
        assert_eq!(seen, [(90, 3), (80, 1)]);
        assert!(!awaited.answered(2, Nanos(100), |_, _| {}), "only one was still awaited");
    }
}

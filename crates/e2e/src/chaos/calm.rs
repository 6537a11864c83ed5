//! A clock that counts calm time: it is paused while a fault is under way. Request deadlines use
//! it, so that a reply is overdue only if the cluster had that much time without a fault.
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Allowance after a network fault. TCP backs off before it retransmits, up to this long after a
/// cut of 10 s.
const RETRANSMISSION: Duration = Duration::from_secs(15);

/// A point in calm time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CalmTime {
    calm: Duration,
    /// Number of faults that had disturbed the network by then.
    disturbances: u64,
}

#[derive(Debug)]
pub struct Calm(Mutex<State>);

#[derive(Debug)]
struct State {
    before: Duration,
    /// None while a fault is under way.
    since: Option<Instant>,
    disturbances: u64,
}

impl Default for Calm {
    fn default() -> Calm {
        let since = Some(Instant::now());
        Calm(Mutex::new(State { before: Duration::ZERO, since, disturbances: 0 }))
    }
}

impl Calm {
    /// Pauses the clock: a fault begins.
    pub fn end(&self, disturbs_network: bool) {
        let mut state = self.0.lock().expect("nothing panics with the clock in hand");
        let running = state.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        state.before += running;
        state.disturbances += u64::from(disturbs_network);
    }

    /// Resumes the clock: the fault is over.
    pub fn begin(&self) {
        let mut state = self.0.lock().expect("nothing panics with the clock in hand");
        state.since.get_or_insert_with(Instant::now);
    }

    pub fn now(&self) -> CalmTime {
        let state = self.0.lock().expect("nothing panics with the clock in hand");
        let running = state.since.map_or(Duration::ZERO, |since| since.elapsed());
        CalmTime { calm: state.before + running, disturbances: state.disturbances }
    }
}

impl CalmTime {
    /// Returns whether a reply that was due within `deadline` of `self` is overdue at `now`.
    pub fn is_overdue(self, now: CalmTime, deadline: Duration) -> bool {
        let is_disturbed = now.disturbances > self.disturbances;
        let allowance = if is_disturbed { RETRANSMISSION } else { Duration::ZERO };
        now.calm >= self.calm + deadline + allowance
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn the_clock_stands_still_while_a_fault_is_under_way() {
        let calm = Calm::default();
        calm.end(false);
        let begun = calm.now();
        thread::sleep(Duration::from_millis(20));
        assert_eq!(calm.now(), begun);
        calm.begin();
        thread::sleep(Duration::from_millis(20));
        assert!(begun.is_overdue(calm.now(), Duration::from_millis(20)));
        assert!(!begun.is_overdue(calm.now(), Duration::from_secs(60)));
    }

    #[test]
    fn a_disturbed_network_gets_time_to_send_again() {
        let sent = CalmTime { calm: Duration::ZERO, disturbances: 0 };
        let later = CalmTime { calm: Duration::from_secs(12), disturbances: 1 };
        assert!(!sent.is_overdue(later, Duration::from_secs(10)));
        let calm = Duration::from_secs(25);
        assert!(sent.is_overdue(CalmTime { calm, ..later }, Duration::from_secs(10)));
    }
}

//! Rate-limited log lines about bad links, so that people can read the node's output: a stranger that dials a
//! thousand times a second gets one line.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

const AT_MOST_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Complaints {
    state: Mutex<ComplaintState>,
}

#[derive(Debug, Default)]
struct ComplaintState {
    last: Option<Instant>,
    unsaid: u64,
}

impl Complaints {
    pub(super) fn say(&self, line: &str) {
        if let Some(unsaid) = self.may_say(Instant::now()) {
            let more = if unsaid > 0 { format!(" (and {unsaid} more)") } else { String::new() };
            crate::log::warn("peers", &format!("{line}{more}"));
        }
    }

    /// Returns the number of lines suppressed before this one, if this one may be logged.
    fn may_say(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock();
        if state.last.is_some_and(|last| now < last + AT_MOST_EVERY) {
            state.unsaid += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_and_the_number_of_those_left_out() {
        let complaints = Complaints::default();
        let start = Instant::now();
        let said: Vec<_> = (0..2500_u64)
            .filter_map(|ms| complaints.may_say(start + Duration::from_millis(ms)))
            .collect();
        assert_eq!(said, [0, 999, 999]);
    }
}

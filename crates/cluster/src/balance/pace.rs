//! Interval between a node's looks for a move.

use std::time::Duration;

/// The situation of a node when it schedules its next look for a move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pace {
    /// The node has just given or promoted something: a promotion may now be possible because of it.
    AtOnce,
    /// Another node's move has ended and this node may have something to give.
    Next,
    /// The node has just given a copy and would give another, but other givers wait for the same taker:
    /// they come first.
    AfterOthers,
    /// The node has something to give, but could not: a partner was busy.
    Soon,
    /// The map is not balanced, but other nodes have to act.
    Often,
    /// No node has anything left to do.
    Seldom,
}

impl Pace {
    /// Returns the longest wait. The event comes after a random time between half of it and all of it,
    /// so that nodes do not fire in step.
    pub fn longest(self) -> Duration {
        match self {
            Pace::AtOnce => Duration::from_micros(100),
            Pace::Next => Duration::from_micros(500),
            Pace::AfterOthers => Duration::from_millis(10),
            Pace::Soon => Duration::from_millis(50),
            Pace::Often => Duration::from_secs(1),
            Pace::Seldom => Duration::from_secs(10),
        }
    }

    /// Returns the wait, for a random number drawn by the caller.
    pub fn wait(self, random: u64) -> Duration {
        let longest = self.longest().as_nanos() as u64;
        Duration::from_nanos(longest / 2 + random % (longest / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_often_while_there_is_something_to_do_and_seldom_otherwise() {
        let paces =
            [Pace::AtOnce, Pace::Next, Pace::AfterOthers, Pace::Soon, Pace::Often, Pace::Seldom];
        assert!(paces.is_sorted_by_key(|pace| pace.longest()));
        assert!(Pace::Seldom.longest() >= 100 * Pace::Soon.longest());
    }

    #[test]
    fn chance_spreads_events_over_half_of_the_wait() {
        for random in [0, 1, u64::MAX, 123_456_789_012] {
            let wait = Pace::Soon.wait(random);
            assert!(wait >= Pace::Soon.longest() / 2 && wait < Pace::Soon.longest());
        }
    }
}

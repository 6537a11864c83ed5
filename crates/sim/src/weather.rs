//! Delays of messages and durations of fills. Faults will be drawn from here too.

use std::ops::Range;
use std::time::Duration;

use crate::Rng;

/// The random conditions of one run, all drawn from its seed.
#[derive(Clone, Debug)]
pub struct Weather {
    /// Delay of a message. Messages between two nodes keep their order; others may overtake each other.
    pub delay: Range<Duration>,
    /// Time until a proposal is committed.
    pub commit: Range<Duration>,
    /// Time to copy one slot.
    pub fill_of_a_slot: Duration,
    /// Time after a join until the links of the new node stand: messages before that are lost.
    pub link: Duration,
    /// True if some moves end before all their buckets are copied, as moves of much data do.
    pub cuts_moves_short: bool,
}

impl Default for Weather {
    fn default() -> Weather {
        Weather {
            delay: Duration::from_micros(100)..Duration::from_millis(2),
            commit: Duration::from_micros(500)..Duration::from_millis(3),
            fill_of_a_slot: Duration::from_micros(20),
            link: Duration::ZERO,
            cuts_moves_short: false,
        }
    }
}

impl Weather {
    /// Returns a weather in which everything arrives at once, in the order it was sent.
    pub fn calm() -> Weather {
        let at_once = Duration::ZERO..Duration::ZERO;
        Weather { delay: at_once.clone(), commit: at_once, ..Weather::default() }
    }

    /// Draws good or bad weather: delays from none to far longer than a fill takes.
    pub fn from_seed(seed: u64) -> Weather {
        let mut rng = Rng::new(seed ^ 0x0057_4541_5448_4552);
        let longest = Duration::from_micros(1 << rng.below(17));
        Weather {
            delay: Duration::ZERO..longest,
            commit: Duration::ZERO..longest,
            fill_of_a_slot: Duration::from_micros(rng.below(200)),
            link: Duration::from_micros(1 << rng.below(18)),
            cuts_moves_short: true,
        }
    }
}

//! Faults and network quality of a seed. One number determines all of it.

use crate::Rng;

/// Kinds of events that may happen at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sky {
    /// Nothing fails; machines come and leave in good order.
    Clear,
    /// Machines die, stop for a while and come back; links break for a moment.
    Stormy,
    /// In addition, the network partitions.
    Torn,
}

#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub sky: Sky,
    pub nodes: u64,
    /// Timers made during a run.
    pub timers: u64,
    /// Maximum delay of most messages.
    pub delay_ms: u64,
    /// Messages of a thousand that take ten times as long.
    pub stragglers: u64,
    /// Callbacks of a thousand that fail, and those that take up to their timeout.
    pub failing: u64,
    pub slow: u64,
    /// Maximum time until a node has applied a change of the map.
    pub map_lag_ms: u64,
    /// Maximum error of a node's calendar.
    pub skew_ms: u64,
    /// Average time between two faults.
    pub fault_every_ms: u64,
}

impl Weather {
    pub fn from_seed(seed: u64, sky: Sky) -> Weather {
        let mut rng = Rng::new(seed ^ 0x57EA_07E4);
        let is_clear = sky == Sky::Clear;
        let mut upto = |limit: u64| rng.below(limit);
        Weather {
            sky,
            nodes: 3 + upto(4),
            timers: 40 + upto(160),
            delay_ms: 1 + upto(30),
            stragglers: if is_clear { 0 } else { upto(30) },
            failing: if is_clear { 0 } else { upto(2) * upto(100) },
            slow: upto(60),
            map_lag_ms: 1 + upto(400),
            skew_ms: upto(10_000),
            fault_every_ms: 500 + upto(8000),
        }
    }
}

/// An event that can happen to the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    Join,
    Leave,
    Crash,
    Pause,
    BreakLink,
    Cut,
    CalendarJumps,
}

impl Fault {
    pub(crate) fn draw(sky: Sky, rng: &mut Rng) -> Fault {
        let clear = [Fault::Join, Fault::Leave, Fault::CalendarJumps];
        let stormy = [
            Fault::Join,
            Fault::Leave,
            Fault::Crash,
            Fault::Crash,
            Fault::Pause,
            Fault::BreakLink,
            Fault::CalendarJumps,
        ];
        let list: &[Fault] = if sky == Sky::Clear { &clear } else { &stormy };
        if sky == Sky::Torn && rng.below(3) == 0 {
            return Fault::Cut;
        }
        *rng.choose(list).expect("no list is empty")
    }
}

//! Detects threads that do not come to rest: a worker that is busy with one round for seconds, or the control
//! thread waiting for the disk. Such a node is sick: it should serve nothing while another node can.

use core::fmt;
use std::time::{Duration, Instant};

/// A worker that is busy with one round for longer is stalled. One command may rightly take seconds (an EXEC that
/// writes hundreds of MiB on a busy machine): a handover meanwhile would leave its client without an answer.
const WORKER_STALLED_AFTER: Duration = Duration::from_secs(10);
/// A disk that is busy with one write for longer is stalled.
const DISK_STALLED_AFTER: Duration = Duration::from_secs(2);
/// A node stays sick for this long after the last stall.
const SICK_FOR: Duration = Duration::from_secs(5);
/// If the observer itself did not run for this long, the whole process was suspended: it knows nothing about
/// the others.
const BLIND_AFTER: Duration = Duration::from_secs(1);

/// The number of times that a thread began or ended its work: odd while it works.
pub(crate) type Pulse = u64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stalled {
    Worker(usize),
    Disk,
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stalled::Worker(number) => write!(f, "thread io-{number} does not finish its work"),
            Stalled::Disk => f.write_str("the disk of the data directory does not finish a write"),
        }
    }
}

/// A change of the node's health.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HealthChange {
    FellSick(Stalled),
    Recovered,
}

pub(crate) struct StallWatch {
    /// The last pulse of each worker, then of the disk, and since when it is the same.
    seen: Vec<(Pulse, Instant)>,
    looked: Instant,
    /// The last stall, and the time until which it makes the node sick.
    sick: Option<(Stalled, Instant)>,
}

impl StallWatch {
    pub(crate) fn new(now: Instant) -> StallWatch {
        StallWatch { seen: Vec::new(), looked: now, sick: None }
    }

    /// Returns what makes the node sick, if anything.
    pub(crate) fn stalled(&self) -> Option<Stalled> {
        self.sick.map(|(stalled, _)| stalled)
    }

    fn is_sick(&self) -> bool {
        self.sick.is_some()
    }

    /// Looks at the pulses of all workers and of the disk, which is the last. Called often.
    pub(crate) fn look(&mut self, now: Instant, pulses: &[Pulse]) -> Option<HealthChange> {
        let was_blind = now >= self.looked + BLIND_AFTER;
        self.looked = now;
        self.seen.resize(pulses.len(), (0, now));
        let mut stalled = None;
        for (place, (pulse, seen)) in pulses.iter().zip(&mut self.seen).enumerate() {
            let is_disk = place + 1 == pulses.len();
            let limit = if is_disk { DISK_STALLED_AFTER } else { WORKER_STALLED_AFTER };
            if *pulse != seen.0 || pulse % 2 == 0 || was_blind {
                *seen = (*pulse, now);
            } else if now >= seen.1 + limit {
                stalled = Some(if is_disk { Stalled::Disk } else { Stalled::Worker(place) });
            }
        }
        let was_sick = self.is_sick();
        match stalled {
            Some(stalled) => self.sick = Some((stalled, now + SICK_FOR)),
            None => self.sick = self.sick.filter(|(_, until)| now < *until),
        }
        match (was_sick, stalled) {
            (false, Some(stalled)) => Some(HealthChange::FellSick(stalled)),
            (true, None) if !self.is_sick() => Some(HealthChange::Recovered),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(100);

    /// Looks ten times a second; returns the changes with their times in ticks.
    fn watch(ticks: u32, pulses: impl Fn(u32) -> [Pulse; 3]) -> Vec<(u32, HealthChange)> {
        let begun = Instant::now();
        let mut watch = StallWatch::new(begun);
        let look = |tick| Some((tick, watch.look(begun + TICK * tick, &pulses(tick))?));
        (0..ticks).filter_map(look).collect()
    }

    #[test]
    fn threads_that_work_or_rest_are_well() {
        assert_eq!(watch(300, |tick| [u64::from(tick), 8, 2 * u64::from(tick) + 1]), []);
    }

    #[test]
    fn a_thread_that_does_not_finish_makes_the_node_sick_until_it_is_well_for_a_while() {
        let changes = watch(300, |tick| [8, if tick < 120 { 7 } else { 9 + u64::from(tick) }, 2]);
        let sick = HealthChange::FellSick(Stalled::Worker(1));
        assert_eq!(changes, [(100, sick), (169, HealthChange::Recovered)]);
    }

    #[test]
    fn a_command_of_some_seconds_is_no_stall() {
        assert_eq!(watch(300, |tick| [8, if tick < 99 { 7 } else { 8 }, 2]), []);
    }

    #[test]
    fn a_disk_that_does_not_sync_makes_the_node_sick() {
        let changes = watch(50, |_| [8, 8, 3]);
        assert_eq!(changes, [(20, HealthChange::FellSick(Stalled::Disk))]);
    }

    #[test]
    fn after_a_suspension_of_the_whole_process_nobody_is_blamed() {
        let begun = Instant::now();
        let mut watch = StallWatch::new(begun);
        assert_eq!(watch.look(begun, &[7, 2]), None);
        assert_eq!(watch.look(begun + Duration::from_secs(9), &[7, 2]), None);
        assert_eq!(watch.look(begun + Duration::from_millis(9_100), &[7, 2]), None);
    }
}

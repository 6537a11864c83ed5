//! CLIENT PAUSE: the paused commands and the end of the pause. Workers check at the start of each round.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use core::time::Duration;

use commands::{Pause, PauseScope};
use parking_lot::Mutex;
use store::UnixMillis;

#[derive(Default)]
pub(crate) struct Pauses {
    /// False if there is certainly no pause; saves taking the lock.
    maybe: AtomicBool,
    pause: Mutex<Option<Pause>>,
}

impl Pauses {
    /// Begins a pause. If one is active, it is only extended and widened.
    pub(crate) fn begin(&self, pause: Pause, now: UnixMillis) {
        let mut current = self.pause.lock();
        *current = match *current {
            Some(old) if old.until > now => {
                Some(Pause { until: old.until.max(pause.until), scope: old.scope.max(pause.scope) })
            }
            Some(_) | None => Some(pause),
        };
        self.maybe.store(true, Relaxed);
    }

    pub(crate) fn end(&self) {
        *self.pause.lock() = None;
        self.maybe.store(false, Relaxed);
    }

    /// Returns the remaining time of the pause.
    pub(crate) fn left(&self, now: UnixMillis) -> Duration {
        let until = self.pause.lock().map_or(now, |pause| pause.until);
        Duration::from_millis(until.0.saturating_sub(now.0))
    }

    /// Returns the commands paused now.
    pub(crate) fn scope(&self, now: UnixMillis) -> Option<PauseScope> {
        if !self.maybe.load(Relaxed) {
            return None;
        }
        let mut current = self.pause.lock();
        match *current {
            Some(pause) if pause.until > now => Some(pause.scope),
            Some(_) | None => {
                *current = None;
                self.maybe.store(false, Relaxed);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_lengthened_and_widened_and_ends_on_time() {
        let pauses = Pauses::default();
        let pause = |until, scope| Pause { until: UnixMillis(until), scope };
        assert_eq!(pauses.scope(UnixMillis(0)), None);
        pauses.begin(pause(100, PauseScope::All), UnixMillis(0));
        pauses.begin(pause(50, PauseScope::Writes), UnixMillis(10));
        assert_eq!(pauses.scope(UnixMillis(99)), Some(PauseScope::All));
        assert_eq!(pauses.scope(UnixMillis(100)), None);
        pauses.begin(pause(300, PauseScope::Writes), UnixMillis(200));
        assert_eq!(pauses.scope(UnixMillis(299)), Some(PauseScope::Writes));
        pauses.end();
        assert_eq!(pauses.scope(UnixMillis(299)), None);
    }
}

//! The sending end of a link together with time: detects that the other end is stuck, and makes writers wait for it.
//!
//! A backlog is backpressure first: above a limit nobody may add to it until it has shrunk. Only a peer that
//! acknowledges nothing at all for a while is given up, however few or many bytes are waiting.

use std::time::Duration;

use super::outbox::BadAck;
use super::{FrameNumber, Outbox};
use crate::Moment;

/// Writers wait while more bytes than this are unacknowledged. One command may exceed it by the bytes it records.
pub const BACKLOG_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Writers continue when the backlog has shrunk to this.
const RELIEVED_BYTES: usize = BACKLOG_BYTES_MAX / 2;
/// Minimum number of bytes per second that a busy backup applies. A unit is applied as a whole and acknowledged
/// at its end, so a large one gets more time.
const APPLIED_BYTES_PER_SECOND: usize = 64 * 1024 * 1024;

pub struct Backlog {
    outbox: Outbox,
    /// The time since when the other end owes an acknowledgement; restarted by each one that makes progress.
    waiting_since: Moment,
    is_congested: bool,
    /// The largest unacknowledged unit: its last frame, and its length in bytes.
    largest: Option<(FrameNumber, usize)>,
}

impl Backlog {
    pub fn new(now: Moment) -> Backlog {
        Backlog {
            outbox: Outbox::default(),
            waiting_since: now,
            is_congested: false,
            largest: None,
        }
    }

    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Returns the outbox, for sending; [`Backlog::append`] adds to it.
    pub fn outbox_mut(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Lets `work` append frames. The clock is read only if nothing was outstanding before.
    #[inline]
    pub fn append<R>(
        &mut self,
        now: impl FnOnce() -> Moment,
        work: impl FnOnce(&mut Outbox) -> R,
    ) -> R {
        if self.outbox.last() == self.outbox.acked() {
            self.waiting_since = now();
        }
        let before = self.outbox.unacknowledged_bytes();
        let result = work(&mut self.outbox);
        let after = self.outbox.unacknowledged_bytes();
        if after - before > self.largest.map_or(0, |(_, bytes)| bytes) {
            self.largest = Some((self.outbox.last(), after - before));
        }
        if after > BACKLOG_BYTES_MAX {
            self.is_congested = true;
        }
        result
    }

    /// Records that the other end has applied or refused all frames up to `through`.
    pub fn acknowledge(&mut self, now: Moment, through: FrameNumber) -> Result<(), BadAck> {
        let before = self.outbox.acked();
        self.outbox.acknowledge(through)?;
        if self.outbox.acked() > before {
            self.waiting_since = now;
        }
        self.largest = self.largest.filter(|(last, _)| *last > through);
        self.is_congested &= self.outbox.unacknowledged_bytes() > RELIEVED_BYTES;
        Ok(())
    }

    /// Forgets everything: the other end is gone for good.
    pub fn forget(&mut self) {
        self.outbox.forget();
        self.is_congested = false;
        self.largest = None;
    }

    /// Returns whether writers have to wait.
    #[inline]
    pub fn is_congested(&self) -> bool {
        self.is_congested
    }

    /// Returns whether the other end owes an acknowledgement and has made no progress for longer than
    /// `patience` plus the time it takes to apply the largest unit it owes.
    pub fn is_stuck(&self, now: Moment, patience: Duration) -> bool {
        let owes = self.outbox.last() > self.outbox.acked();
        owes && now.since(self.waiting_since) > patience + self.applying_takes()
    }

    fn applying_takes(&self) -> Duration {
        let bytes = self.largest.map_or(0, |(_, bytes)| bytes);
        Duration::from_millis((bytes * 1_000 / APPLIED_BYTES_PER_SECOND) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Frame;
    use super::*;

    const LEASE: Duration = Duration::from_secs(1);
    const TICK: Duration = Duration::from_millis(100);

    /// Returns the time after this many leases.
    fn at(leases: u32) -> Moment {
        Moment::START + leases * LEASE
    }

    fn push(backlog: &mut Backlog, now: Moment, bytes: usize) {
        let bytes = vec![0; bytes];
        backlog.append(|| now, |outbox| outbox.push(&Frame::Pubsub { bytes: &bytes }));
    }

    fn send_all(backlog: &mut Backlog) {
        while let Some(count) = backlog.outbox().unsent().map(<[u8]>::len) {
            backlog.outbox_mut().sent(count);
        }
    }

    #[test]
    fn a_large_backlog_is_not_stuck_while_it_makes_progress() {
        let mut backlog = Backlog::new(Moment::START);
        push(&mut backlog, Moment::START, 300 << 20);
        send_all(&mut backlog);
        let frames = backlog.outbox().last().0;
        assert!(!backlog.is_stuck(Moment::START + TICK, LEASE), "however large, it is young");
        let mut now = Moment::START;
        for number in (1..=frames).step_by(37) {
            now += LEASE * 9 / 10;
            assert!(!backlog.is_stuck(now, LEASE), "{number} of {frames}");
            backlog.acknowledge(now, FrameNumber(number)).unwrap();
        }
        assert!(now.since(Moment::START) > 20 * LEASE, "it took its time");
        backlog.acknowledge(now, FrameNumber(frames - 1)).unwrap();
        let late = now + LEASE + backlog.applying_takes();
        assert!(!backlog.is_stuck(late, LEASE));
        assert!(backlog.is_stuck(late + TICK, LEASE), "one frame is enough");
        backlog.acknowledge(now + LEASE, FrameNumber(frames - 1)).unwrap();
        let again = "an acknowledgement that was repeated is no progress";
        assert!(backlog.is_stuck(late + TICK, LEASE), "{again}");
        backlog.acknowledge(now + LEASE, FrameNumber(frames)).unwrap();
        assert!(!backlog.is_stuck(now + 9 * LEASE, LEASE), "nothing is owed");
        push(&mut backlog, now + 9 * LEASE, 1);
        assert!(!backlog.is_stuck(now + 10 * LEASE, LEASE), "what was idle is not late");
    }

    #[test]
    fn a_large_unit_is_given_the_time_to_be_applied_as_a_whole() {
        let mut backlog = Backlog::new(Moment::START);
        push(&mut backlog, Moment::START, 640 << 20);
        send_all(&mut backlog);
        let last = backlog.outbox().last();
        // Its parts have arrived; the backup assembles them and applies the whole.
        backlog.acknowledge(at(1), FrameNumber(last.0 - 1)).unwrap();
        push(&mut backlog, at(1), 100);
        assert!(!backlog.is_stuck(at(11), LEASE));
        assert!(backlog.is_stuck(at(12) + TICK, LEASE), "but not for ever");
        backlog.acknowledge(at(2), last).unwrap();
        assert!(!backlog.is_stuck(at(3), LEASE));
        assert!(backlog.is_stuck(at(3) + TICK, LEASE), "a small one earns nothing");
    }

    #[test]
    fn writers_wait_above_the_limit_and_go_on_when_it_has_shrunk_to_half() {
        let mut backlog = Backlog::new(Moment::START);
        push(&mut backlog, Moment::START, BACKLOG_BYTES_MAX - 10_000);
        assert!(!backlog.is_congested());
        push(&mut backlog, Moment::START, 300 << 20);
        assert!(backlog.is_congested());
        send_all(&mut backlog);
        let last = backlog.outbox().last().0;
        let congested_until = (1..=last).find(|number| {
            backlog.acknowledge(Moment::START, FrameNumber(*number)).unwrap();
            !backlog.is_congested()
        });
        assert!(congested_until.is_some_and(|number| number < last));
        let kept = backlog.outbox().unacknowledged_bytes();
        assert!(kept <= RELIEVED_BYTES && kept > RELIEVED_BYTES * 9 / 10, "{kept}");
        push(&mut backlog, Moment::START, 1);
        assert!(!backlog.is_congested());
        push(&mut backlog, Moment::START, BACKLOG_BYTES_MAX);
        assert!(backlog.is_congested());
        backlog.forget();
        assert!(!backlog.is_congested());
    }
}

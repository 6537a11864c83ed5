//! The time up to which this node has heard what was sent to it. Whoever judges the silence of others must not take its
//! own for theirs: what waits in its sockets while it waits for its disk, or is stopped, counts as not sent yet.

use std::time::Duration;

use super::Control;
use super::takeover::WasStopped;

/// A node that did not come to itself for so long may have missed what was waiting in its sockets.
const STALL: Duration = Duration::from_millis(200);
/// A wait for the disk that is longer than this is a stall like any other: the others look for a new leader.
const DISK_WAIT_MAX: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(super) struct Listening {
    /// Everything that had come by then has been handled; `None` if whoever runs this says nothing of it.
    until: Option<Duration>,
    /// Time spent waiting for the disk since the last input.
    disk_wait: Duration,
}

impl Control {
    /// Everything that had come by then, on all links, has been handled.
    pub fn note_listened(&mut self, until: Duration) {
        self.listening.until = Some(until);
    }

    /// This node has waited so long for its disk, and handled nothing meanwhile.
    pub fn note_disk_wait(&mut self, wait: Duration) {
        self.listening.disk_wait += wait;
    }

    /// The moment by which others are judged: what they sent by then has been heard.
    pub(super) fn heard_until(&self) -> Duration {
        self.listening.until.map_or(self.now, |until| until.min(self.now))
    }

    /// A leader that was stopped knows nothing of what the others asked meanwhile. One whose disk is slow does,
    /// when it has read its links: or each entry of the log would put off every death.
    pub(super) fn notice_stall(&mut self, now: Duration) -> WasStopped {
        let disk_wait = std::mem::take(&mut self.listening.disk_wait).min(DISK_WAIT_MAX);
        if now <= self.now + STALL + disk_wait {
            return WasStopped::No;
        }
        self.renew_after_stall(now);
        WasStopped::Yes
    }
}

//! The time up to which this node has read the messages sent to it. A node that judges the silence of
//! others must not mistake its own for theirs: messages in its sockets while it waits for its disk, or
//! is stopped, count as not sent yet.

use std::time::Duration;

use super::Control;
use super::takeover::WasStopped;
use crate::Moment;

/// A node that handled nothing for longer than this may have unread messages in its sockets.
const STALL: Duration = Duration::from_millis(200);
/// A disk wait longer than this counts as any other stall: the others elect a new leader.
const DISK_WAIT_MAX: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(super) struct InboxRead {
    /// Everything received by then has been handled; `None` if the caller does not report it.
    until: Option<Moment>,
    /// Time spent waiting for the disk since the last input.
    disk_wait: Duration,
}

impl Control {
    /// Records that everything received by then, on all links, has been handled.
    pub fn note_read_until(&mut self, until: Moment) {
        self.inbox_read.until = Some(until);
    }

    /// Records that this node has waited this long for its disk, and handled nothing meanwhile.
    pub fn note_disk_wait(&mut self, wait: Duration) {
        self.inbox_read.disk_wait += wait;
    }

    /// Returns the time by which others are judged: everything they sent by then has been read.
    pub(super) fn read_until(&self) -> Moment {
        self.inbox_read.until.map_or(self.now, |until| until.min(self.now))
    }

    /// Detects a stall. A leader that was stopped does not know what the others asked meanwhile. One
    /// with a slow disk does, once it has read its links: otherwise each log entry would delay every
    /// death.
    pub(super) fn notice_stall(&mut self, now: Moment) -> WasStopped {
        let disk_wait = std::mem::take(&mut self.inbox_read.disk_wait).min(DISK_WAIT_MAX);
        if now <= self.now + STALL + disk_wait {
            return WasStopped::No;
        }
        self.renew_after_stall(now);
        WasStopped::Yes
    }
}

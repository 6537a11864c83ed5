//! Key events of writes that are not acknowledged yet: they are published with the reply, and wait for the same
//! tickets.

use std::collections::VecDeque;

use cluster::serving::{AckEpoch, ReplyVerdict, Tickets};
use commands::Announcement;

use super::{Data, judge};

#[derive(Default)]
pub(crate) struct Later {
    /// In the order of the writes.
    waiting: VecDeque<Deferred>,
    /// The node's ack epoch at which all of them were judged last.
    judged_at: AckEpoch,
}

/// Announcements that must not leave yet.
struct Deferred {
    /// Empty if the write is acknowledged.
    tickets: Tickets,
    announcements: Vec<Announcement>,
}

impl Later {
    pub(crate) fn put_off(&mut self, tickets: Tickets, announcements: Vec<Announcement>) {
        self.waiting.push_back(Deferred { tickets, announcements });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the announcements of writes that are acknowledged by now, and drops those of writes that may be lost.
    /// They keep their order, so some wait for others; but each is judged as early as its reply.
    pub(crate) fn ripe(&mut self, data: &Data) -> Vec<Announcement> {
        if self.waiting.is_empty() {
            return Vec::new();
        }
        let epoch = data.ack_epoch();
        if core::mem::replace(&mut self.judged_at, epoch) != epoch {
            // Roles have changed, and may change again before the first one may leave.
            self.waiting.retain_mut(|it| judge_all(data, &mut it.tickets) != ReplyVerdict::Abort);
        }
        let mut ripe = Vec::new();
        while let Some(first) = self.waiting.front_mut() {
            let verdict = judge_all(data, &mut first.tickets);
            if verdict == ReplyVerdict::Wait {
                break;
            }
            let mut first = self.waiting.pop_front().expect("seen a moment ago");
            if verdict == ReplyVerdict::Release {
                ripe.append(&mut first.announcements);
            }
        }
        ripe
    }
}

/// Judges a reply that has all these tickets. Tickets that allow it to leave are dropped.
pub(crate) fn judge_all(data: &Data, tickets: &mut Tickets) -> ReplyVerdict {
    while let Some(ticket) = tickets.first_mut() {
        match judge(data, ticket) {
            ReplyVerdict::Release => drop(tickets.remove(0)),
            verdict @ (ReplyVerdict::Wait | ReplyVerdict::Abort) => return verdict,
        }
    }
    ReplyVerdict::Release
}

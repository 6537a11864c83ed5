//! Replies that wait for backups: they leave when their tickets allow it (`cluster::serving`).

use core::sync::atomic::Ordering::{Acquire, Release};

use cluster::serving::Tickets;
use resp::Mark;

use super::Worker;
use crate::data::judge;

impl Worker<'_> {
    /// Holds back a connection's output from `from` on.
    pub(super) fn withhold(&mut self, index: usize, from: Mark, tickets: Tickets) {
        let connection = &mut self.connections[index];
        if connection.gate.is_open() {
            self.withholding.push(index);
        }
        connection.gate.withhold(from, tickets);
    }

    /// Sends the replies that need not wait any longer.
    pub(super) fn release(&mut self) {
        self.publish_safe_events();
        self.resume_waits();
        if self.withholding.is_empty() && self.to_send.is_empty() {
            return self.stop_announcing();
        }
        let mut waiting = core::mem::take(&mut self.withholding);
        waiting.retain(|index| {
            let Some(connection) = self.connections.get_mut(*index) else { return false };
            if connection.gate.is_open() {
                return false; // Another connection has taken the index.
            }
            let data = &self.shared.data;
            let before = connection.gate.limit(connection.output.mark());
            let released = connection.gate.release(|ticket| judge(data, ticket));
            if released.is_err() {
                self.close(*index);
                return false;
            }
            let is_open = connection.gate.is_open();
            if is_open || connection.gate.limit(connection.output.mark()) != before {
                self.to_send.push(*index);
            }
            !is_open
        });
        waiting.append(&mut self.withholding); // Resumed commands may wait anew.
        self.withholding = waiting;
        self.send_replies();
        self.stop_announcing();
    }

    /// Returns whether this worker wants to be woken by acknowledgements.
    fn awaits_acks(&self) -> bool {
        !self.withholding.is_empty() || !self.later.is_empty() || self.waits.awaits_acks
    }

    fn stop_announcing(&self) {
        let flag = &self.shared.data.awaiting_acks[self.number];
        if flag.load(Acquire) && !self.awaits_acks() {
            flag.store(false, Release);
        }
    }

    /// Announces to the other workers that this one wants to be woken by acknowledgements. Must be called before
    /// the awaited frames are sent.
    pub(super) fn announce_awaiting_acks(&self) {
        let flag = &self.shared.data.awaiting_acks[self.number];
        if self.awaits_acks() && !flag.load(Acquire) {
            flag.store(true, Release);
        }
    }
}

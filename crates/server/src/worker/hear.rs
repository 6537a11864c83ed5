//! Bringing published messages to the connections that listen, and parting with those that do not
//! take them.

use commands::settings::OutputLimit;
use resp::Output;
use store::UnixMillis;

use super::Worker;
use super::connection::Connection;
use crate::pubsub::{Author, Message};

/// Messages copied to connections in one round; the rest waits until others had their turn.
const DELIVERIES_MAX: usize = 16 * 1024;
/// A connection's output is sent whenever it has grown by so much, not only at the end.
const FLUSH_BYTES: usize = 64 * 1024;

impl Worker<'_> {
    /// Delivers what has come in.
    pub(super) fn hear(&mut self) {
        if core::mem::take(&mut self.branch.own_mail) {
            self.read_mail();
        }
        let mut heard = Vec::new();
        let mut deliveries = 0;
        while deliveries < DELIVERIES_MAX {
            let Some((message, number)) = self.branch.next() else { break };
            deliveries += self.deliver(&message, number, &mut heard);
            self.shared.mailboxes[self.number].delivered(&message);
        }
        for index in heard {
            self.finish_hearing(index);
        }
    }

    /// Appends a message to the output of all who listen. Those who have something to send now are
    /// added to `heard`, each once.
    fn deliver(&mut self, message: &Message, number: u64, heard: &mut Vec<usize>) -> usize {
        let mut deliveries = 0;
        let mut full: Vec<usize> = Vec::new();
        for (index, body) in self.branch.receivers(message, number) {
            let connection = &mut self.connections[index];
            if message.author == Some(Author(connection.session.id)) || !connection.may_hear() {
                continue;
            }
            deliveries += 1;
            let before = connection.output.len();
            body.write(&mut connection.output, connection.session.protocol);
            if !core::mem::replace(&mut connection.heard, true) {
                heard.push(index);
            }
            if before / FLUSH_BYTES != connection.output.len() / FLUSH_BYTES {
                full.push(index);
            }
        }
        for index in full {
            if self.flush(index).is_err() || self.is_over(index) {
                self.connections[index].cut_off();
            }
        }
        deliveries
    }

    /// Sends what a connection has heard, or closes it if it was cut off.
    fn finish_hearing(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        connection.heard = false;
        if connection.is_cut_off || self.flush(index).is_err() || self.is_over(index) {
            return self.close(index);
        }
        // A listener holds no memory between messages.
        self.connections[index].output.trim(0);
    }

    fn is_over(&mut self, index: usize) -> bool {
        let limit = self.settings.client_output_buffer_limit.pubsub;
        self.connections[index].is_over(limit, self.around.now)
    }
}

impl Connection {
    fn may_hear(&self) -> bool {
        !self.is_cut_off && !self.session.closing
    }

    /// Whether it leaves more unread than it may, at once or for too long.
    fn is_over(&mut self, limit: OutputLimit, now: UnixMillis) -> bool {
        let unread = self.output.len() as u64;
        if limit.soft_bytes == 0 || unread <= limit.soft_bytes {
            self.over_since = None;
        } else {
            self.over_since.get_or_insert(now);
        }
        let soft_for = u64::try_from(limit.soft_for.as_millis()).unwrap_or(u64::MAX);
        let too_long =
            self.over_since.is_some_and(|since| now.0.saturating_sub(since.0) >= soft_for);
        too_long || (limit.hard_bytes != 0 && unread > limit.hard_bytes)
    }

    /// It is closed at the end of the round; what it did not take is freed now.
    fn cut_off(&mut self) {
        self.is_cut_off = true;
        self.output = Output::default();
    }
}

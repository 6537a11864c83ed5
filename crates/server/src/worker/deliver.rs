//! Delivers published messages to the subscribed connections, and closes connections that do not read
//! them.

use resp::Output;

use super::Worker;
use super::connection::Connection;
use crate::published::{Audience, Author, PublishedMessage};

/// Maximum number of messages copied to connections in one round; the rest waits until other work had its turn.
const DELIVERIES_MAX: usize = 16 * 1024;
/// A connection's output is flushed each time it has grown by this many bytes, not only at the end.
const FLUSH_BYTES: usize = 64 * 1024;

impl Worker<'_> {
    /// Delivers the messages that have come in.
    pub(super) fn deliver_published(&mut self) {
        if core::mem::take(&mut self.branch.own_mail) {
            self.read_mail();
        }
        self.check_on_the_slow();
        let mut heard = Vec::new();
        let mut deliveries = 0;
        while deliveries < DELIVERIES_MAX {
            let Some((message, number)) = self.branch.next() else { break };
            deliveries += self.deliver(&message, number, &mut heard);
            self.shared.mailboxes[self.number].delivered(&message);
        }
        let may_serve = heard.is_empty() || self.shared.data.lease.is_valid();
        for index in heard {
            self.finish_hearing(index, may_serve);
        }
    }

    /// Appends a message to the output of all its subscribers, and adds them to `heard`, each once.
    /// Returns the number of deliveries.
    fn deliver(
        &mut self,
        message: &PublishedMessage,
        number: u64,
        heard: &mut Vec<usize>,
    ) -> usize {
        let mut deliveries = 0;
        let mut full: Vec<usize> = Vec::new();
        for (index, body) in self.branch.receivers(message, number) {
            let connection = &mut self.connections[index];
            let is_author = message.author == Some(Author(connection.session.id));
            if is_author || !connection.may_hear(message.audience) {
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
        let may_serve = full.is_empty() || self.shared.data.lease.is_valid();
        for index in full {
            let aborted = self.connections[index].gate.check_lease(may_serve).is_err();
            if aborted || self.flush(index).is_err() || self.is_over(index) {
                self.connections[index].cut_off();
            }
        }
        deliveries
    }

    /// Sends the messages that a connection got, or closes it if it was cut off. Replies of this round may be before
    /// them: without a lease those must not leave (`send_replies`).
    fn finish_hearing(&mut self, index: usize, may_serve: bool) {
        let connection = &mut self.connections[index];
        connection.heard = false;
        let is_lost = connection.is_cut_off || connection.gate.check_lease(may_serve).is_err();
        if is_lost || self.flush(index).is_err() || self.is_over(index) {
            return self.close(index);
        }
        // A subscriber holds no memory between messages.
        self.connections[index].output.trim(0);
    }

    /// Closes connections that have left too much unread for too long, though nothing new came for
    /// them.
    fn check_on_the_slow(&mut self) {
        for index in core::mem::take(&mut self.slow) {
            if self.connections.contains(index) && self.is_over(index) {
                self.close(index);
            }
        }
    }

    /// Returns whether a connection leaves too much unread. One above its soft limit is checked again later.
    pub(super) fn is_over(&mut self, index: usize) -> bool {
        let limits = &self.settings.client_output_buffer_limit;
        let Connection { unread, output, session, .. } = &mut self.connections[index];
        let limit = if session.subscriptions.is_empty() { limits.normal } else { limits.pubsub };
        let is_over = unread.is_too_much(output.len(), limit, self.env.now);
        if unread.is_over() && !is_over && !self.slow.contains(&index) {
            self.slow.push(index);
        }
        is_over
    }
}

impl Connection {
    fn may_hear(&self, audience: Audience) -> bool {
        let is_meant = match audience {
            Audience::All => true,
            Audience::ClusterWide => self.session.hears_all,
        };
        is_meant && !self.is_cut_off && !self.session.closing
    }

    /// Marks the connection to be closed at the end of the round, and frees its unread output now.
    fn cut_off(&mut self) {
        self.is_cut_off = true;
        self.output = Output::default();
    }
}

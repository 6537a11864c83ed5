//! Closes connections that have been idle for longer than `timeout`.

use store::UnixMillis;

use super::Worker;
use super::connection::Connection;

/// Interval between two checks of all connections.
const EVERY_MILLIS: u64 = 1_000;

impl Worker<'_> {
    /// Closes connections that have been idle for too long. Subscribers and monitors may be silent.
    pub(super) fn close_idle(&mut self) {
        let now = self.env.now;
        if self.settings.timeout.is_zero() || now < self.idle_due {
            return;
        }
        self.idle_due = UnixMillis(now.0 + EVERY_MILLIS);
        let timeout = u64::try_from(self.settings.timeout.as_millis()).unwrap_or(u64::MAX);
        let is_idle = |connection: &Connection| {
            connection.session.subscriptions.is_empty()
                && !connection.session.is_monitor
                && connection.waiting.is_none()
                && now.0.saturating_sub(connection.last_active.0) > timeout
        };
        let idle = self.connections.iter().filter(|(_, connection)| is_idle(connection));
        let idle: Vec<usize> = idle.map(|(index, _)| index).collect();
        idle.into_iter().for_each(|index| self.close(index));
    }
}

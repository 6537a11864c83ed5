//! MONITOR: before a batch runs, the worker sends its commands to all monitors.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use commands::{Flag, Request};
use store::Database;

use super::Worker;
use super::serve::Job;
use crate::mailbox::Mail;
use crate::watching::monitor_line;

/// Maximum number of unread bytes of a monitor. One with more is closed: it would never catch up.
const UNREAD_BYTES_MAX: usize = 16 * 1024 * 1024;

impl Worker<'_> {
    #[cold]
    pub(super) fn show_to_monitors(&self, jobs: &[Job], requests: &[Request<'_>]) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let monitors = self.shared.watching.monitors.all();
        let mut selected: Option<(usize, Database)> = None;
        for (job, request) in jobs.iter().zip(requests) {
            let connection = &self.connections[job.index];
            let database = match selected {
                Some((index, database)) if index == job.index => database,
                Some(_) | None => connection.session.database,
            };
            // Nothing has run yet: later requests of the connection follow its SELECT.
            if let Some(database) = self.selects(request) {
                selected = Some((job.index, database));
            }
            // Hides administrative commands, and those refused for their arguments or lack of AUTH.
            let is_shown = |spec: &commands::Spec| {
                !spec.has(Flag::Admin)
                    && !spec.has(Flag::SkipMonitor)
                    && spec.accepts(request.args.len())
                    && (connection.session.authenticated || spec.has(Flag::NoAuth))
            };
            let Some(spec) = request.spec.filter(|spec| is_shown(spec)) else { continue };
            let line = monitor_line(spec, request.args, database, connection.client.address, now);
            for monitor in &monitors {
                let (id, index) = (monitor.id, monitor.place.index);
                let mail = Mail::Show { id, index, line: Arc::clone(&line) };
                self.shared.mailboxes[monitor.place.worker].send(mail);
            }
        }
    }

    /// Returns the database that a request selects.
    fn selects(&self, request: &Request<'_>) -> Option<Database> {
        request.spec.filter(|spec| spec.full_name == "select")?;
        let number = resp::parse_integer(request.args.get(1)?)?;
        let number = u16::try_from(number).ok().filter(|it| *it < self.settings.databases);
        number.and_then(Database::new)
    }

    /// Sends a line to a monitor of this worker, if it still is one.
    pub(super) fn show(&mut self, id: u64, index: usize, line: &[u8]) {
        let connection = self.connections.get_mut(index);
        let Some(connection) = connection
            .filter(|connection| connection.session.id == id && connection.session.is_monitor)
        else {
            return self.shared.watching.monitors.leave(id);
        };
        connection.output.extend_from_slice(line);
        if connection.output.len() > UNREAD_BYTES_MAX || self.flush(index).is_err() {
            self.close(index);
        }
    }
}

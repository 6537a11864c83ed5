//! Connections held back by CLIENT PAUSE: what they have sent is kept, and run when the pause is over.

use commands::{Args, Flag, PauseScope, Request, Session, Spec};
use resp::Span;

use super::Worker;
use super::serve::Batch;

impl Worker<'_> {
    /// Looks whether anything is paused in this round, and lets those go on who need wait no longer.
    pub(super) fn resume_held_back(&mut self) -> Vec<usize> {
        let before = self.paused;
        self.paused = self.shared.pauses.scope(self.around.now);
        if self.paused == before && self.paused.is_some() {
            return Vec::new();
        }
        let indices = core::mem::take(&mut self.held_back);
        for index in &indices {
            if let Some(connection) = self.connections.get_mut(*index) {
                connection.held_back = false;
            }
        }
        indices
    }

    pub(super) fn hold_back(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if !core::mem::replace(&mut connection.held_back, true) {
            self.held_back.push(index);
        }
    }

    /// Whether what was just read must wait.
    #[inline]
    pub(super) fn is_held_back(
        &mut self,
        index: usize,
        parsed: &Batch,
        bytes: &[u8],
        spans: &[Span],
    ) -> bool {
        let Some(scope) = self.paused else { return false };
        let session = &self.connections[index].session;
        let mut from = 0;
        let waits = parsed.jobs.iter().any(|job| {
            let args = Args::new(bytes, &spans[from..from + job.args]);
            from += job.args;
            let request = Request::prepare(args, &self.shared.table, &self.shared.seed);
            let writes = request.spec.is_some_and(|spec| may_write(spec, session));
            scope == PauseScope::All || writes
        });
        if waits {
            self.hold_back(index);
        }
        waits
    }
}

/// Whether a command changes anything, now or by running what was queued.
pub(super) fn may_write(spec: &Spec, session: &Session) -> bool {
    const WRITES: [Flag; 2] = [Flag::Write, Flag::MayReplicate];
    let writes = |spec: &Spec| WRITES.iter().any(|flag| spec.has(*flag));
    let queue = session.queue.as_ref().filter(|_| spec.name == "exec");
    writes(spec)
        || queue.is_some_and(|queue| queue.commands.iter().any(|queued| writes(queued.spec)))
}

//! One command: admitted, its slots locked, run, its locks let go.

use commands::{Context, Flag, Keys, Request, Verdict, admit, run};
use resp::{Output, Reply};

use super::Worker;
use super::connection::Connection;
use crate::evictor::Room;
use crate::host::NodeHost;

impl Worker {
    pub(super) fn execute(&mut self, index: usize, request: &Request<'_>, output: &mut Output) {
        if self.settings.maxmemory != 0 {
            self.make_room(request);
        }
        let start = output.mark();
        let muted = self.connections[index].session.begin_muted(output);
        self.admit_and_run(index, request, output);
        if let Some(start) = muted {
            self.connections[index].session.end_muted(output, start);
        }
        if !self.outcome.events.is_empty() || !self.branch.outbox.is_empty() {
            self.speak(index, output, start);
        }
    }

    #[inline]
    fn admit_and_run(&mut self, index: usize, request: &Request<'_>, output: &mut Output) {
        let Connection { session, card, .. } = &mut self.connections[index];
        let mut reply = Reply::new(output, session.protocol);
        let Verdict::Run(spec, locks) = admit(request, session, &self.around, &mut reply) else {
            return;
        };
        let changes = self.outcome.changes;
        let mut slots = self.shared.keyspace.lock(locks);
        let keys = Keys::new(&mut slots, &self.around, &mut self.outcome, &mut self.chance);
        let mut host = NodeHost {
            shared: &self.shared,
            card,
            spec,
            now: self.around.now,
            branch: &mut self.branch,
            notify: self.around.notify,
        };
        let mut context = Context {
            args: request.args,
            keys,
            reply,
            session,
            host: &mut host,
            spec,
            first_key: request.key,
        };
        run(&mut context);
        if self.outcome.changes != changes {
            slots.note_changes();
        }
    }

    /// Evicts, if the command may need memory that is not there.
    fn make_room(&mut self, request: &Request<'_>) {
        if !request.spec.is_some_and(|spec| spec.has(Flag::DenyOom)) {
            return;
        }
        let mut room = Room {
            shared: &self.shared,
            around: &self.around,
            outcome: &mut self.outcome,
            chance: &mut self.chance,
        };
        let enough = self.evictor.make_room(&self.settings, &mut room);
        self.around.out_of_memory = !enough;
    }
}

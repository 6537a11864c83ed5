//! A write of a key that cannot move: its new server, a cluster, does not support its type. The key stays at
//! its old server, and a command on this key alone runs there.
//!
//! Other code assumes that nobody writes at the old server while a migration runs. The properties that this
//! assumption provides hold here by other means:
//!
//! - Nobody can restore an older copy at the new server. It always refuses copies of this type.
//! - A key gone from the old server does not come back. A command runs there only in a transaction that
//!   watches the key, and only if the key still exists there with the refused type.
//! - Once a command has changed the key's type (SET over a list) or deleted it, it is a key like any other:
//!   the next write finds another type there, or nothing, and restarts.

use resp::Value;

use super::{WriteJob, WriteStage};
use crate::command::Command;
use crate::config::Server;
use crate::job::{Answer, Batch, Lane, Step, error, items, unexpected};

/// Error for commands that also involve other keys, and for transactions and blocking commands.
pub(super) const REFUSAL: &str = "ERR a key of this command cannot move: its new server does \
    not support its type; until the migration ends, write it only with single-key commands outside \
    MULTI";

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stays {
    pub at: Server,
    pub key: Vec<u8>,
    /// The key's type, as TYPE reports it.
    pub kind: Vec<u8>,
}

impl WriteJob {
    /// Runs the command at the new server once its keys are there, or at the server where its only key must stay.
    pub(super) fn run_where_it_is(&mut self, brought: Result<(), Step>) -> Step {
        match (brought, self.bring.stays()) {
            (Ok(()), _) => self.run(),
            (Err(Step::Failed(_)), Some(stays)) if self.concerns_one_key() => {
                self.look_at_old(stays)
            }
            (Err(step), _) => step,
        }
    }

    fn concerns_one_key(&self) -> bool {
        let command = Command::find(&self.command[0]);
        let places = command.and_then(|command| command.key_places(&self.command).ok());
        places.is_some_and(|places| places.only().is_some())
    }

    fn look_at_old(&mut self, stays: Stays) -> Step {
        let mut batch = Batch::default();
        batch.push(&[b"WATCH", &stays.key]);
        batch.push(&[b"TYPE", &stays.key]);
        let at = stays.at;
        self.stage = WriteStage::LookingAtOld(stays);
        batch.ask_on(at, Lane::Own)
    }

    pub(super) fn on_looked_at_old(&mut self, stays: &Stays, answers: &[Value]) -> Step {
        if let Some(first) = error(answers) {
            return unexpected(stays.at, Some(first));
        }
        let mut batch = Batch::default();
        if answers.last().and_then(Value::text) == Some(&stays.kind) {
            batch.push(&[b"MULTI"]);
            batch.push(&self.command.iter().map(Vec::as_slice).collect::<Vec<_>>());
            batch.push(&[b"EXEC"]);
            self.stage = WriteStage::RunningAtOld(stays.clone());
        } else {
            batch.push(&[b"UNWATCH"]);
            self.stage = WriteStage::LeavingOld;
        }
        batch.ask_on(stays.at, Lane::Own)
    }

    pub(super) fn on_ran_at_old(&mut self, stays: &Stays, answers: &[Value]) -> Step {
        let [_, queued, exec] = answers else {
            return unexpected(stays.at, answers.first());
        };
        if items(Some(exec)).is_some() {
            return Step::Done(Answer::Picked { answer: 2, item: Some(0) });
        }
        match (queued, exec) {
            // Refused before it ran: the server's error is the answer.
            (Value::Error(_), _) => Step::Done(Answer::Picked { answer: 1, item: None }),
            (_, Value::Error(_)) => Step::Done(Answer::Picked { answer: 2, item: None }),
            // Another write came in between.
            _ => self.begin_anew(),
        }
    }

    pub(super) fn begin_anew(&mut self) -> Step {
        self.stage = WriteStage::Bringing;
        self.bring.begin_anew();
        self.bring.towards_gone().unwrap_or_else(|| self.run())
    }
}

//! A write of a key that cannot go to its new place: that place, a cluster, has no such type. Its old
//! place remains its place, and a command that concerns this key alone runs there.
//!
//! Elsewhere it is taken for granted that nobody writes at the old place while a migration runs. What
//! that is needed for holds here by other means:
//!
//! - Nobody can put an older copy in place. Copies of this type are refused, at any time.
//! - What has gone from the old place does not come back. A command runs there only in a transaction that
//!   watches the key, and only if the key is still there with the type that was refused.
//! - Once a command has changed its type (SET over a list), or has deleted it, it is a key like any other:
//!   the next write finds another type there, or nothing, and begins anew.

use resp::Value;

use super::{WriteJob, WriteStage};
use crate::command::Command;
use crate::config::Server;
use crate::job::{Answer, Batch, Lane, Step, error, items, unexpected};

/// For commands that concern other keys, too, and for transactions and commands that wait.
pub(super) const REFUSAL: &str = "ERR a key of this command stays at its old server while the migration is in progress, since its new one does not hold its type: only commands on this key alone can write it, outside MULTI";

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stays {
    pub at: Server,
    pub key: Vec<u8>,
    /// As TYPE tells it.
    pub kind: Vec<u8>,
}

impl WriteJob {
    /// Runs the command at the new place once its keys are there, or where its only key has to stay.
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
            // Refused before it ran: the server's words are the answer.
            (Value::Error(_), _) => Step::Done(Answer::Picked { answer: 1, item: None }),
            (_, Value::Error(_)) => Step::Done(Answer::Picked { answer: 2, item: None }),
            // Another write came between.
            _ => self.begin_anew(),
        }
    }

    pub(super) fn begin_anew(&mut self) -> Step {
        self.stage = WriteStage::Bringing;
        self.bring.begin_anew();
        self.bring.towards_gone().unwrap_or_else(|| self.run())
    }
}

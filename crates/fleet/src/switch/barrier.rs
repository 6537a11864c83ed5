//! Waits until nobody acts on an older map: every connection of the fleet, at every server, must carry at
//! least the announced epoch in its name. After a while the job kills those that do not.

use resp::Value;

use crate::config::{Epoch, Server};
use crate::job::{Answer, Batch, Job, Step, error, unexpected};
use crate::names;

/// Time proxies have to drain before their connections are killed.
pub const BARRIER_PATIENCE_MS: u64 = 2_000;
const LOOK_AGAIN_MS: u64 = 5;

#[derive(Clone, PartialEq, Debug)]
pub struct BarrierJob {
    epoch: Epoch,
    /// Servers not yet seen without an older name; the next one is last.
    todo: Vec<Server>,
    patience_ms: u64,
    waited_ms: u64,
    killing: bool,
    killed: usize,
}

impl BarrierJob {
    pub fn new(epoch: Epoch, servers: &[Server]) -> BarrierJob {
        let todo = servers.to_vec();
        let patience_ms = BARRIER_PATIENCE_MS;
        BarrierJob { epoch, todo, patience_ms, waited_ms: 0, killing: false, killed: 0 }
    }

    #[must_use]
    pub fn with_patience_ms(mut self, patience_ms: u64) -> BarrierJob {
        self.patience_ms = patience_ms;
        self
    }

    /// Returns the number of connections that had to be killed.
    pub fn killed(&self) -> usize {
        self.killed
    }

    fn look(&mut self) -> Step {
        self.killing = false;
        let Some(server) = self.todo.last() else { return Step::Done(Answer::Nothing) };
        let mut batch = Batch::default();
        batch.push(&[b"CLIENT", b"LIST"]);
        batch.ask(*server)
    }

    fn on_listed(&mut self, server: Server, answer: &Value) -> Step {
        let Some(list) = answer.text() else { return unexpected(server, Some(answer)) };
        let mut older = names::connections(&String::from_utf8_lossy(list));
        older.retain(|connection| connection.epoch < self.epoch);
        if older.is_empty() {
            self.todo.pop();
            return self.look();
        }
        if self.waited_ms < self.patience_ms {
            return Step::Wait(LOOK_AGAIN_MS);
        }
        self.killing = true;
        self.killed += older.len();
        let mut batch = Batch::default();
        for connection in older {
            batch.push(&[b"CLIENT", b"KILL", b"ID", connection.client_id.to_string().as_bytes()]);
        }
        batch.ask(server)
    }
}

impl Job for BarrierJob {
    fn start(&mut self) -> Step {
        self.look()
    }

    fn on_answers(&mut self, answers: &[Value]) -> Step {
        let server = *self.todo.last().expect("a server was asked");
        if let Some(first) = error(answers) {
            return unexpected(server, Some(first));
        }
        if self.killing {
            return Step::Wait(LOOK_AGAIN_MS);
        }
        self.on_listed(server, &answers[0])
    }

    fn on_waited(&mut self) -> Step {
        self.waited_ms += LOOK_AGAIN_MS;
        self.look()
    }
}

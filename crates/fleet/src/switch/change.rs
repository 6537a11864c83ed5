//! Writes the configuration, one server after the other. Each write requires that the expected holder has the
//! lock and that the epoch is the expected one. The order of the servers is part of the protocol: the first
//! server gets an announcement first, and everything that ends one last.

use resp::Value;

use crate::config::{Config, Epoch, KEYS, LOCK, NEXT, RUNS, Server};
use crate::job::{Answer, Batch, Job, Lane, Step, error, items, unexpected};

/// Required holder of the lock when a configuration is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Holder {
    /// The migrator that wrote this text as the lock.
    Us(String),
    /// Nobody: for a proxy that withdraws a dead migrator's announcement, and for repairs.
    Nobody,
}

/// Epoch that a server must have to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    Exactly(Epoch),
    /// Exactly this epoch, and its map must be announced, not switched to.
    Announced(Epoch),
    /// Below this epoch, or no epoch at all. A server that is further already is left alone.
    Below(Epoch),
}

/// Writes one configuration on several servers.
#[derive(Clone, PartialEq, Debug)]
pub struct ChangeJob {
    holder: Holder,
    new: Config,
    /// Servers still to be written; the next one is last.
    todo: Vec<(Server, Expected)>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Look,
    Write,
}

impl ChangeJob {
    /// Announces `new` (made by `Config::announced`) on `servers`.
    pub fn announce(holder: Holder, new: Config, servers: &[Server]) -> ChangeJob {
        let before = Epoch::new(new.epoch.number() - 1);
        let mut todo = others(servers, Expected::Below(new.epoch));
        todo.push((Server::FIRST, Expected::Exactly(before)));
        ChangeJob { holder, new, todo, stage: Stage::Look }
    }

    /// Puts `new` (made by `Config::switched` or `Config::ended`) into force.
    pub fn commit(holder: Holder, new: Config, servers: &[Server]) -> ChangeJob {
        let mut todo = vec![(Server::FIRST, Expected::Exactly(new.epoch))];
        todo.extend(others(servers, Expected::Exactly(new.epoch)));
        ChangeJob { holder, new, todo, stage: Stage::Look }
    }

    /// Withdraws an announcement; `new` was made by `Config::undone` from the first server's configuration.
    /// The first job to do so at the first server has done it; the job then makes the others follow.
    pub fn undo(holder: Holder, new: Config, servers: &[Server]) -> ChangeJob {
        let announced = Epoch::new(new.epoch.number() - 1);
        let mut todo = others(servers, Expected::Below(new.epoch));
        todo.push((Server::FIRST, Expected::Announced(announced)));
        ChangeJob { holder, new, todo, stage: Stage::Look }
    }

    /// Makes servers repeat the first server's configuration `first`, unless they are further than it.
    pub fn repeat(first: &Config, servers: &[Server]) -> ChangeJob {
        ChangeJob::repeat_as(Holder::Nobody, first, servers)
    }

    pub fn repeat_as(holder: Holder, first: &Config, servers: &[Server]) -> ChangeJob {
        let new = Config { lock: None, ..first.clone() };
        let todo = others(servers, Expected::Below(first.epoch.next()));
        ChangeJob { holder, new, todo, stage: Stage::Look }
    }

    fn look(&mut self) -> Step {
        let Some((server, _)) = self.todo.last() else { return Step::Done(Answer::Nothing) };
        self.stage = Stage::Look;
        let keys = || KEYS.iter().map(|key| key.as_bytes());
        let with = |name: &'static [u8]| std::iter::once(name).chain(keys()).collect::<Vec<_>>();
        let mut batch = Batch::default();
        batch.push(&with(b"WATCH"));
        batch.push(&with(b"MGET"));
        batch.ask_on(*server, Lane::Own)
    }

    fn on_looked(&mut self, answers: &[Value]) -> Step {
        let (server, expected) = *self.todo.last().expect("it was just looked at");
        let [_, found] = answers else { return unexpected(server, answers.first()) };
        let lock = items(Some(found)).and_then(|items| items.last()?.text());
        let lock_fits = match &self.holder {
            Holder::Us(text) => lock == Some(text.as_bytes()),
            Holder::Nobody => lock.is_none(),
        };
        if !lock_fits {
            let holder = lock.map_or_else(|| "nobody".into(), String::from_utf8_lossy);
            return self.refuse(format!("ERR {LOCK} is held by {holder}"));
        }
        let config = match Config::read(found) {
            Ok(config) => config,
            // A damaged configuration may be overwritten only where the first server's is known.
            Err(_) if server != Server::FIRST => None,
            Err(why) => return self.refuse(format!("ERR the first server: {why}")),
        };
        let announced = config.as_ref().is_some_and(|config| config.next.is_some());
        let epoch = config.map_or(Epoch::NONE, |config| config.epoch);
        match expected {
            Expected::Exactly(exactly) if epoch == exactly => self.write(),
            Expected::Announced(exactly) if epoch == exactly && announced => self.write(),
            Expected::Below(below) if epoch < below => self.write(),
            Expected::Below(_) => self.next_server(),
            Expected::Announced(_) => {
                self.refuse("ERR no map is announced any more; nothing was withdrawn".to_owned())
            }
            Expected::Exactly(exactly) => {
                let (found, wanted) = (epoch.number(), exactly.number());
                self.refuse(format!("ERR server.config.epoch is {found}, not {wanted}"))
            }
        }
    }

    fn write(&mut self) -> Step {
        self.stage = Stage::Write;
        let (server, _) = *self.todo.last().expect("it was just looked at");
        let mut batch = Batch::default();
        batch.push(&[b"MULTI"]);
        let pairs = self.new.pairs();
        for (key, value) in &pairs {
            batch.push(&[b"SET", key.as_bytes(), value.as_bytes()]);
        }
        for key in [NEXT, RUNS] {
            if !pairs.iter().any(|(name, _)| *name == key) {
                batch.push(&[b"DEL", key.as_bytes()]);
            }
        }
        batch.push(&[b"EXEC"]);
        batch.ask_on(server, Lane::Own)
    }

    fn next_server(&mut self) -> Step {
        self.todo.pop();
        self.look()
    }

    fn refuse(&self, why: String) -> Step {
        Step::Failed(why)
    }
}

/// Returns all servers but the first, with the condition on their epochs.
fn others(servers: &[Server], expected: Expected) -> Vec<(Server, Expected)> {
    let others = servers.iter().filter(|server| **server != Server::FIRST);
    others.map(|server| (*server, expected)).collect()
}

impl Job for ChangeJob {
    fn start(&mut self) -> Step {
        self.look()
    }

    fn on_answers(&mut self, answers: &[Value]) -> Step {
        let server = self.todo.last().map_or(Server::FIRST, |(server, _)| *server);
        if let Some(first) = error(answers) {
            return unexpected(server, Some(first));
        }
        match self.stage {
            Stage::Look => self.on_looked(answers),
            // Somebody wrote between the read and the write: read again.
            Stage::Write if items(answers.last()).is_none() => self.look(),
            Stage::Write => self.next_server(),
        }
    }

    fn on_waited(&mut self) -> Step {
        unreachable!("a change of the configuration never waits")
    }
}

//! A command that writes moving keys: the job first moves them to their new server, then runs the command
//! there. [`BringJob`] does the first half alone, for transactions, scripts on several keys and blocking
//! commands; [`WriteJob`] does both.
//!
//! A key that the old server no longer has needs no move: it never comes back there. The write then runs in
//! one transaction with the deletion of the key's marker, so that a mover that copied the key earlier can no
//! longer restore its copy.
//!
//! A key whose type its new server does not support stays at its old server, and a command on this key alone
//! runs there (`write/stays.rs` says why that is safe).

mod stays;

use std::collections::BTreeMap;

use resp::Value;

use self::stays::Stays;
use crate::big::BigMoveJob;
use crate::config::Server;
use crate::job::{Answer, Batch, Input, Job, Step, error, items, unexpected};
use crate::known::Knowledge;
use crate::moving::{MoveJob, Outcome, Safeguards, Token};
use crate::names;
use crate::view::Route;

/// Size above which a value moves element by element: a DUMP would block the server for too long.
pub const BIG_BYTES: u64 = 8 * 1024 * 1024;

/// A key to be moved before the command runs: its name, its old server, and the knowledge about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wanted {
    pub key: Vec<u8>,
    pub from: Server,
    pub known: Knowledge,
}

#[derive(Clone, PartialEq, Debug)]
pub struct BringJob {
    to: Server,
    token: Token,
    safeguards: Safeguards,
    wanted: Vec<Wanted>,
    /// Keys that their old server may still have, by that server.
    unsure: BTreeMap<Server, Vec<Vec<u8>>>,
    /// Keys found at their old server, still to be moved.
    present: Vec<(Route, Vec<u8>, Size)>,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Size {
    Small,
    Big,
}

#[derive(Clone, PartialEq, Debug)]
enum Stage {
    Looking(Server),
    Moving(MoveJob),
    MovingBig(Box<BigMoveJob>),
    Unmarking,
}

impl BringJob {
    /// Creates a job. Under the current map all of `wanted` belong to `to`. The token must be unique.
    pub fn new(to: Server, token: Token, wanted: Vec<Wanted>) -> BringJob {
        let (safeguards, stage, unsure) = (Safeguards::ALL, Stage::Unmarking, unsure(&wanted));
        BringJob { to, token, safeguards, wanted, unsure, present: Vec::new(), stage }
    }

    /// Restarts from the beginning: the state seen before has changed.
    fn begin_anew(&mut self) {
        self.unsure = unsure(&self.wanted);
        self.present.clear();
        self.stage = Stage::Unmarking;
    }

    /// Returns the key's server and type if it stays there because its new server does not support the type.
    fn stays(&self) -> Option<Stays> {
        let Stage::MovingBig(job) = &self.stage else { return None };
        let kind = job.foreign_type()?.to_vec();
        Some(Stays { at: job.route().from, key: job.key().to_vec(), kind })
    }

    #[must_use]
    pub fn with_safeguards(mut self, safeguards: Safeguards) -> BringJob {
        self.safeguards = safeguards;
        self
    }

    /// Returns what is known of the keys once the job is done.
    pub fn learnt(&self) -> impl Iterator<Item = (&[u8], Knowledge)> {
        self.wanted.iter().map(|key| (key.key.as_slice(), Knowledge::Settled))
    }

    /// Returns the next step until no old server has any of the keys; `None` once that is so.
    fn towards_gone(&mut self) -> Option<Step> {
        if !self.safeguards.move_before_write {
            return None;
        }
        if let Some((server, keys)) = self.unsure.pop_first() {
            return Some(self.look(server, keys));
        }
        let (route, key, size) = self.present.pop()?;
        let token = self.token.clone();
        Some(match size {
            Size::Small => {
                let job = MoveJob::new(route, token, [key]).with_safeguards(self.safeguards);
                self.stage = Stage::Moving(job);
                self.with_move(Input::Start)
            }
            Size::Big => {
                self.stage = Stage::MovingBig(Box::new(BigMoveJob::new(route, token, key)));
                self.with_move(Input::Start)
            }
        })
    }

    fn look(&mut self, server: Server, keys: Vec<Vec<u8>>) -> Step {
        let mut batch = Batch::default();
        for key in &keys {
            batch.push(&[b"EXISTS", key]);
            batch.push(&[b"MEMORY", b"USAGE", key]);
        }
        let route = Route { from: server, to: self.to };
        self.present.extend(keys.into_iter().map(|key| (route, key, Size::Small)));
        self.stage = Stage::Looking(server);
        batch.ask(server)
    }

    fn on_looked(&mut self, server: Server, answers: &[Value]) -> Result<(), Step> {
        // The keys just asked about are the last of `present`.
        let asked = self.present.split_off(self.present.len() - answers.len() / 2);
        for ((route, key, _), answers) in asked.into_iter().zip(answers.chunks(2)) {
            let [Value::Integer(exists), usage] = answers else {
                return Err(unexpected(server, answers.first()));
            };
            // Keys of a server that cannot report sizes move whole.
            let is_big = matches!(usage, Value::Integer(bytes) if *bytes > BIG_BYTES.cast_signed());
            if *exists == 1 {
                self.present.push((route, key, if is_big { Size::Big } else { Size::Small }));
            }
        }
        Ok(())
    }

    fn with_move(&mut self, input: Input<'_>) -> Step {
        let (step, refused) = match &mut self.stage {
            Stage::Moving(job) => {
                let step = job.take(input);
                (step, job.refused().map(|(key, _)| (job.route(), key.to_vec())))
            }
            Stage::MovingBig(job) => return big_or_failed(job.take(input), job),
            Stage::Looking(_) | Stage::Unmarking => unreachable!("a move is under way"),
        };
        match (step, refused) {
            // Servers of different versions do not accept each other's dumps.
            (Step::Done(_), Some((route, key))) => {
                let job = BigMoveJob::new(route, self.token.clone(), key);
                self.stage = Stage::MovingBig(Box::new(job));
                self.with_move(Input::Start)
            }
            (step, _) => step,
        }
    }

    /// Advances until the keys are gone from their old servers; returns `Ok` when they are.
    fn advance(&mut self, step: Step) -> Result<(), Step> {
        match step {
            Step::Done(_) => self.towards_gone().map_or(Ok(()), Err),
            Step::Ask(_) | Step::Wait(_) | Step::Failed(_) => Err(step),
        }
    }

    fn on_gone_answers(&mut self, answers: &[Value]) -> Result<(), Step> {
        if let Stage::Looking(server) = self.stage {
            self.on_looked(server, answers)?;
            return self.towards_gone().map_or(Ok(()), Err);
        }
        let step = self.with_move(Input::Answers(answers));
        self.advance(step)
    }

    fn markers(&self) -> Vec<Vec<u8>> {
        self.wanted.iter().map(|key| names::marker(&key.key)).collect()
    }

    fn unmark(&mut self) -> Step {
        self.stage = Stage::Unmarking;
        let mut batch = Batch::default();
        for marker in self.markers() {
            batch.push(&[b"DEL", &marker]);
        }
        batch.ask(self.to)
    }
}

/// Returns the keys that their old server may still have, by that server.
fn unsure(wanted: &[Wanted]) -> BTreeMap<Server, Vec<Vec<u8>>> {
    let mut unsure: BTreeMap<Server, Vec<Vec<u8>>> = BTreeMap::new();
    for key in wanted.iter().filter(|key| key.known == Knowledge::Nothing) {
        unsure.entry(key.from).or_default().push(key.key.clone());
    }
    unsure
}

fn big_or_failed(step: Step, job: &BigMoveJob) -> Step {
    match (step, job.outcome()) {
        (Step::Done(_), Some(Outcome::Refused(_))) if job.foreign_type().is_some() => {
            Step::Failed(stays::REFUSAL.to_owned())
        }
        (Step::Done(_), Some(Outcome::Refused(why))) => Step::Failed(format!(
            "ERR the key is read-only until it can be moved to its new server: {why}"
        )),
        (step, _) => step,
    }
}

impl Job for BringJob {
    fn start(&mut self) -> Step {
        self.towards_gone().unwrap_or_else(|| self.unmark())
    }

    fn on_answers(&mut self, answers: &[Value]) -> Step {
        if self.stage == Stage::Unmarking {
            return match error(answers) {
                Some(first) => unexpected(self.to, Some(first)),
                None => Step::Done(Answer::Nothing),
            };
        }
        match self.on_gone_answers(answers) {
            Ok(()) => self.unmark(),
            Err(step) => step,
        }
    }

    fn on_waited(&mut self) -> Step {
        let step = self.with_move(Input::Waited);
        match self.advance(step) {
            Ok(()) => self.unmark(),
            Err(step) => step,
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct WriteJob {
    bring: BringJob,
    command: Vec<Vec<u8>>,
    stage: WriteStage,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum WriteStage {
    Bringing,
    Running,
    /// The transaction has run, so the markers are deleted.
    Ran,
    /// The key stays at its old server; check that it still has the same type.
    LookingAtOld(Stays),
    LeavingOld,
    RunningAtOld(Stays),
}

impl WriteJob {
    /// Runs `command` where `bring` moves its keys. The command must not be a blocking one: inside a
    /// transaction it would not block.
    pub fn new<A: AsRef<[u8]>>(bring: BringJob, command: &[A]) -> WriteJob {
        let command = command.iter().map(|arg| arg.as_ref().to_vec()).collect();
        WriteJob { bring, command, stage: WriteStage::Bringing }
    }

    /// Returns what is known of the keys once the job is done.
    pub fn learnt(&self) -> impl Iterator<Item = (&[u8], Knowledge)> {
        let known = match self.stage {
            WriteStage::Bringing
            | WriteStage::LookingAtOld(_)
            | WriteStage::LeavingOld
            | WriteStage::RunningAtOld(_) => Knowledge::Nothing,
            WriteStage::Running => Knowledge::Gone,
            WriteStage::Ran => Knowledge::Settled,
        };
        self.bring.wanted.iter().map(move |key| (key.key.as_slice(), known))
    }

    fn run(&mut self) -> Step {
        self.stage = WriteStage::Running;
        let markers = self.bring.markers();
        let mut batch = Batch::default();
        batch.push(&[b"MULTI"]);
        let name = std::iter::once(b"DEL".as_slice());
        batch.push(&name.chain(markers.iter().map(Vec::as_slice)).collect::<Vec<_>>());
        batch.push(&self.command.iter().map(Vec::as_slice).collect::<Vec<_>>());
        batch.push(&[b"EXEC"]);
        batch.ask(self.bring.to)
    }

    fn on_ran(&mut self, answers: &[Value]) -> Step {
        let [_, _, _, exec] = answers else {
            return unexpected(self.bring.to, answers.first());
        };
        if items(Some(exec)).is_some() {
            self.stage = WriteStage::Ran;
            return Step::Done(Answer::Picked { answer: 3, item: Some(1) });
        }
        // Refused before it ran; the server's first error says why.
        let first = answers.iter().position(|answer| matches!(answer, Value::Error(_)));
        Step::Done(Answer::Picked { answer: first.unwrap_or(3), item: None })
    }
}

impl Job for WriteJob {
    fn start(&mut self) -> Step {
        self.bring.towards_gone().unwrap_or_else(|| self.run())
    }

    fn on_answers(&mut self, answers: &[Value]) -> Step {
        match self.stage.clone() {
            WriteStage::Bringing => {
                let brought = self.bring.on_gone_answers(answers);
                self.run_where_it_is(brought)
            }
            WriteStage::Running => self.on_ran(answers),
            WriteStage::LookingAtOld(stays) => self.on_looked_at_old(&stays, answers),
            WriteStage::LeavingOld => self.begin_anew(),
            WriteStage::RunningAtOld(stays) => self.on_ran_at_old(&stays, answers),
            WriteStage::Ran => unreachable!("nothing is asked behind the end"),
        }
    }

    fn on_waited(&mut self) -> Step {
        let step = self.bring.with_move(Input::Waited);
        let brought = self.bring.advance(step);
        self.run_where_it_is(brought)
    }
}

//! Servers, actors, and the scheduler that tries every order of their steps. A step is one command at one
//! server, or one transaction: whatever a server does atomically.

use std::collections::{BTreeSet, VecDeque};

use resp::{Limits, Parsed, RequestParser, Value};
use sim_engine::Rng;

use super::history::{Act, History};
use super::server::{Args, FakeServer};
use crate::BigMoveJob;
use crate::config::{Config, KEYS, Server};
use crate::job::{Answer, Ask, Input, Job, Lane, Step};
use crate::known::Known;
use crate::moving::{MoveJob, Safeguards, Token};
use crate::names;
use crate::plan::{PartRun, Plan, decide};
use crate::read::ReadJob;
use crate::switch::{BarrierJob, ChangeJob, Follow, Follower, Holder, LOCK_MS};
use crate::view::View;
use crate::write::{BringJob, Wanted, WriteJob};

/// Splits a line into the words of a command.
pub(super) fn words(line: &str) -> Args {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

#[derive(Clone, Debug)]
pub(super) enum AnyJob {
    Plain(PlainJob),
    Read(ReadJob),
    Write(WriteJob),
    Move(MoveJob),
    Big(BigMoveJob),
    Change(ChangeJob),
    Barrier(BarrierJob),
}

impl AnyJob {
    fn take(&mut self, input: Input<'_>) -> Step {
        match self {
            AnyJob::Plain(job) => job.take(input),
            AnyJob::Read(job) => job.take(input),
            AnyJob::Write(job) => job.take(input),
            AnyJob::Move(job) => job.take(input),
            AnyJob::Big(job) => job.take(input),
            AnyJob::Change(job) => job.take(input),
            AnyJob::Barrier(job) => job.take(input),
        }
    }
}

/// Sends commands to one server as they are.
#[derive(Clone, Debug)]
pub(super) struct PlainJob {
    server: Server,
    commands: Vec<Args>,
}

impl Job for PlainJob {
    fn start(&mut self) -> Step {
        let mut bytes = Vec::new();
        for args in &self.commands {
            let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
            resp::encode_command(&mut bytes, &args);
        }
        let answers = self.commands.len();
        Step::Ask(Ask { server: self.server, lane: Lane::Shared, bytes, answers })
    }

    fn on_answers(&mut self, answers: &[Value]) -> Step {
        Step::Done(Answer::Picked { answer: answers.len() - 1, item: None })
    }

    fn on_waited(&mut self) -> Step {
        unreachable!("it never waits")
    }
}

/// An action of an actor; an actor performs them one after the other.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a test has a handful of them")]
pub(super) enum Deed {
    /// A client's command through the actor's proxy.
    Command(Args),
    Job(AnyJob),
    /// Time passes.
    Time(u64),
    /// The proxy reads the first server's configuration, and does what it requires.
    Follow,
    /// The proxy has drained, and renames its connection on every server.
    Rename,
}

#[derive(Clone, Debug)]
pub(super) struct Actor {
    pub(super) deeds: VecDeque<Deed>,
    pub(super) follower: Option<Follower>,
    pub(super) safeguards: Safeguards,
    pub(super) fate: Fate,
    view: Option<View>,
    known: Known,
    running: Option<Running>,
    tokens: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Lives,
    /// The scheduler may kill it between any two steps, and tries that too.
    MayDie,
    Dead,
}

#[derive(Clone, Debug)]
struct Running {
    deed: Deed,
    job: AnyJob,
    server: Server,
    lane: Lane,
    /// Steps not yet taken; `answers` holds the answers to those that were.
    units: VecDeque<Vec<Args>>,
    answers: Vec<Value>,
    waiting: bool,
    event: Option<usize>,
}

impl Actor {
    pub(super) fn new(deeds: impl IntoIterator<Item = Deed>) -> Actor {
        Actor {
            deeds: deeds.into_iter().collect(),
            follower: None,
            safeguards: Safeguards::ALL,
            fate: Fate::Lives,
            view: None,
            known: Known::default(),
            running: None,
            tokens: 0,
        }
    }

    /// Creates a client whose proxy has this view of the maps.
    pub(super) fn client(view: &View, lines: &[&str]) -> Actor {
        let mut actor = Actor::new(lines.iter().map(|line| Deed::Command(words(line))));
        actor.view = Some(view.clone());
        actor
    }

    /// Creates a client whose proxy follows the configuration.
    pub(super) fn follower(config: &Config, deeds: impl IntoIterator<Item = Deed>) -> Actor {
        let mut actor = Actor::new(deeds);
        actor.follower = Some(Follower::new(config.clone()));
        actor
    }

    fn view(&self) -> &View {
        self.follower.as_ref().map_or_else(|| self.view.as_ref().unwrap(), Follower::view)
    }

    fn is_over(&self) -> bool {
        self.fate == Fate::Dead || (self.running.is_none() && self.deeds.is_empty())
    }
}

#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) servers: Vec<FakeServer>,
    pub(super) actors: Vec<Actor>,
    pub(super) now_ms: u64,
    pub(super) history: History,
    /// Commands that set the initial content.
    start: Vec<Args>,
}

impl World {
    pub(super) fn new(servers: usize, actors: Vec<Actor>) -> World {
        let servers = vec![FakeServer::default(); servers];
        World { servers, actors, now_ms: 0, history: History::default(), start: Vec::new() }
    }

    /// Runs a command at a server before the race begins.
    pub(super) fn given(mut self, server: usize, line: &str) -> World {
        let args = words(line);
        self.servers[server].run(usize::MAX, &args, 0);
        if !names::is_reserved(&args[1]) {
            self.start.push(args);
        }
        self
    }

    /// Gives this holder the lock of a server.
    pub(super) fn locked(mut self, server: usize, text: &str) -> World {
        let lifetime = LOCK_MS.to_string();
        let args = ["SET", crate::config::LOCK, text, "PX", lifetime.as_str()];
        let args = args.iter().map(|word| word.as_bytes().to_vec()).collect();
        self.servers[server].run(usize::MAX, &args, 0);
        self
    }

    /// Names an actor's connections on every server.
    pub(super) fn named(mut self, actor: usize, epoch: crate::Epoch) -> World {
        for (index, server) in self.servers.iter_mut().enumerate() {
            let name = names::connection(&actor.to_string(), epoch);
            server.name(connection(actor, Server(index), Lane::Shared), name);
        }
        self
    }

    /// Visits every reachable state and calls `at_end` with each one in which all actors are done. Returns
    /// the number of states.
    pub(super) fn explore(self, at_end: &mut dyn FnMut(World)) -> usize {
        let mut seen: BTreeSet<u128> = BTreeSet::new();
        let mut todo = vec![self];
        while let Some(world) = todo.pop() {
            let actors = 0..world.actors.len();
            if actors.clone().all(|actor| world.actors[actor].is_over()) {
                at_end(world);
                continue;
            }
            for actor in actors.filter(|actor| !world.actors[*actor].is_over()) {
                let mut next = world.clone();
                next.step(actor);
                if seen.insert(fingerprint(&next)) {
                    todo.push(next);
                }
                if world.actors[actor].fate == Fate::MayDie {
                    let mut next = world.clone();
                    next.actors[actor].fate = Fate::Dead;
                    todo.push(next);
                }
            }
        }
        seen.len()
    }

    /// Counts the possible ends that show a client something that no single server would have shown. At each
    /// end, after all actors are done, the additional actor `last` runs.
    pub(super) fn violations(self, last: &Actor) -> Found {
        let mut found = Found { ends: 0, violations: 0, states: 0 };
        let states = self.explore(&mut |mut world| {
            found.ends += 1;
            world.actors.push(last.clone());
            world.run_last();
            if !world.history.is_linearizable(&world.start) {
                found.violations += 1;
            }
        });
        found.states = states;
        found
    }

    /// Runs one of the possible orders, drawn from a seed. Returns whether the clients saw only what they may see.
    pub(super) fn wander(mut self, seed: u64, last: &Actor) -> bool {
        /// Number of steps after which the markers of dead movers expire, so that nobody waits for them forever.
        const PATIENCE_STEPS: usize = 400;
        let mut rng = Rng::new(seed);
        for steps in 1.. {
            let alive: Vec<usize> =
                (0..self.actors.len()).filter(|actor| !self.actors[*actor].is_over()).collect();
            let Some(actor) = rng.choose(&alive).copied() else { break };
            if steps % PATIENCE_STEPS == 0 {
                self.time(self.now_ms + crate::moving::MARKER_MS + 1);
            }
            if self.actors[actor].fate == Fate::MayDie && rng.below(30) == 0 {
                self.actors[actor].fate = Fate::Dead;
            } else {
                self.step(actor);
            }
        }
        self.actors.push(last.clone());
        self.run_last();
        self.history.is_linearizable(&self.start)
    }

    fn run_last(&mut self) {
        // By then every marker or lock left by a dead actor has expired.
        self.time(self.now_ms + LOCK_MS + 1);
        let last = self.actors.len() - 1;
        while !self.actors[last].is_over() {
            self.step(last);
        }
    }

    fn time(&mut self, to: u64) {
        self.now_ms = to;
        let event = self.history.begin(Act::Time(to));
        self.servers.iter_mut().for_each(|server| server.expire(to));
        self.history.end(event, Value::Null);
    }

    /// Takes one step of one actor. A command begins with its first action at a server: an earlier begin
    /// would permit more outcomes.
    fn step(&mut self, actor: usize) {
        match self.actors[actor].running.take() {
            None => self.begin(actor),
            Some(mut running) if running.waiting => {
                running.waiting = false;
                let step = running.job.take(Input::Waited);
                self.go_on(actor, running, step);
            }
            Some(running) => return self.unit(actor, running),
        }
        if let Some(running) = self.actors[actor].running.take_if(|running| !running.waiting) {
            self.unit(actor, running);
        }
    }

    fn begin(&mut self, actor: usize) {
        let deed = self.actors[actor].deeds.pop_front().expect("an actor that is not over");
        let (job, event) = match &deed {
            Deed::Time(ms) => return self.time(self.now_ms + ms),
            Deed::Job(job) => (job.clone(), None),
            Deed::Follow => (follow_job(), None),
            Deed::Rename => return self.rename(actor),
            Deed::Command(args) => {
                let Some(job) = self.actors[actor].job_for(args, actor) else {
                    // Held: check whether the maps have been switched, then try again.
                    self.actors[actor].deeds.push_front(deed);
                    return self.actors[actor].deeds.push_front(Deed::Follow);
                };
                (job, Some(self.history.begin(Act::Command(args.clone()))))
            }
        };
        let mut running = Running {
            deed,
            job,
            server: Server(0),
            lane: Lane::Shared,
            units: VecDeque::new(),
            answers: Vec::new(),
            waiting: false,
            event,
        };
        let step = running.job.take(Input::Start);
        self.go_on(actor, running, step);
    }

    fn rename(&mut self, actor: usize) {
        let follower = self.actors[actor].follower.as_mut().expect("a proxy that follows");
        follower.drained();
        let epoch = follower.view().epoch();
        let name = names::connection(&actor.to_string(), epoch);
        let args = vec![b"CLIENT".to_vec(), b"SETNAME".to_vec(), name.into_bytes()];
        // Each server in a step of its own.
        for server in 0..self.servers.len() {
            let job = PlainJob { server: Server(server), commands: vec![args.clone()] };
            self.actors[actor].deeds.push_front(Deed::Job(AnyJob::Plain(job)));
        }
    }

    fn unit(&mut self, actor: usize, mut running: Running) {
        let unit = running.units.pop_front().expect("a job asks for something");
        let connection = connection(actor, running.server, running.lane);
        for args in unit {
            let server = &mut self.servers[running.server.0];
            let Some(answer) = server.run(connection, &args, self.now_ms) else {
                // The connection was killed: the command fails, its outcome unknown.
                self.actors[actor].deeds.clear();
                return;
            };
            running.answers.push(answer);
        }
        if !running.units.is_empty() {
            self.actors[actor].running = Some(running);
            return;
        }
        let answers = std::mem::take(&mut running.answers);
        let step = running.job.take(Input::Answers(&answers));
        if let Step::Done(answer) = step {
            return self.done(actor, &running, &answers, answer);
        }
        self.go_on(actor, running, step);
    }

    fn go_on(&mut self, actor: usize, mut running: Running, step: Step) {
        match step {
            Step::Ask(ask) => {
                (running.server, running.lane) = (ask.server, ask.lane);
                running.units = units(ask.bytes);
            }
            Step::Wait(_) => running.waiting = true,
            Step::Done(answer) => return self.done(actor, &running, &[], answer),
            // A client gets an error, and nothing was done.
            Step::Failed(why) => {
                assert!(running.event.is_none(), "a client's command failed: {why}");
                // A migrator stops there. A proxy whose change came too late goes on.
                if self.actors[actor].follower.is_none() {
                    self.actors[actor].deeds.clear();
                }
                return;
            }
        }
        self.actors[actor].running = Some(running);
    }

    fn done(&mut self, actor: usize, running: &Running, answers: &[Value], answer: Answer) {
        let value = match answer {
            Answer::Nothing => Value::Null,
            Answer::Picked { answer, item: None } => answers[answer].clone(),
            Answer::Picked { answer, item: Some(item) } => {
                crate::job::items(Some(&answers[answer])).expect("a list")[item].clone()
            }
        };
        self.actors[actor].learn(&running.job);
        match (&running.deed, running.event) {
            (Deed::Command(_), Some(event)) => self.history.end(event, value),
            (Deed::Follow, _) => self.actors[actor].follow(&value),
            _ => {}
        }
    }
}

impl Actor {
    /// Creates the job for a command; `None` if the command is held.
    fn job_for(&mut self, args: &Args, actor: usize) -> Option<AnyJob> {
        let key = args[1].clone();
        let plain = |server| AnyJob::Plain(PlainJob { server, commands: vec![args.clone()] });
        let plan = decide(self.view(), &self.known, args);
        if plan == Plan::Hold {
            return None;
        }
        if let Plan::Forward(server) = plan {
            return Some(plain(server));
        }
        if let Plan::Read { route, .. } = plan {
            return Some(AnyJob::Read(ReadJob::new(route, &key, args)));
        }
        let (to, wanted) = if let Plan::Write(bring) = plan {
            let moving = bring.keys[0];
            (bring.to, Wanted { key, from: moving.from, known: moving.known })
        } else if let Plan::Scatter(scatter) = plan
            && let PartRun::Write { route, known } = scatter.parts[0].run
        {
            (route.to, Wanted { key, from: route.from, known })
        } else {
            panic!("a command that these tests do not use");
        };
        self.tokens += 1;
        let token = Token::new(format!("{actor}-{}", self.tokens));
        let bring = BringJob::new(to, token, vec![wanted]).with_safeguards(self.safeguards);
        Some(AnyJob::Write(WriteJob::new(bring, args)))
    }

    fn learn(&mut self, job: &AnyJob) {
        if let AnyJob::Read(job) = job {
            self.known.learn(job.key(), job.learnt());
        }
        if let AnyJob::Write(job) = job {
            job.learnt().for_each(|(key, knowledge)| self.known.learn(key, knowledge));
        }
    }

    fn follow(&mut self, answer: &Value) {
        let config = Config::read(answer).expect("the configuration is sound");
        let follower = self.follower.as_mut().expect("a proxy that follows");
        match follower.on_config(config) {
            Follow::Drain => {
                self.known.forget();
                // Nothing is in flight: an actor does one thing at a time.
                self.deeds.push_front(Deed::Rename);
            }
            Follow::Undo => {
                let new = follower.config().undone();
                let job = ChangeJob::undo(Holder::Nobody, new, &[Server(0), Server(1)]);
                self.deeds.push_front(Deed::Job(AnyJob::Change(job)));
            }
            Follow::Nothing | Follow::Resume => {}
            Follow::Stop(why) => panic!("{why}"),
        }
    }
}

fn follow_job() -> AnyJob {
    let mget = std::iter::once("MGET").chain(KEYS).map(|word| word.as_bytes().to_vec()).collect();
    AnyJob::Plain(PlainJob { server: Server::FIRST, commands: vec![mget] })
}

fn connection(actor: usize, server: Server, lane: Lane) -> usize {
    actor * 100 + server.0 * 2 + usize::from(lane == Lane::Own)
}

/// Splits wire bytes into units that a server executes atomically.
fn units(mut bytes: Vec<u8>) -> VecDeque<Vec<Args>> {
    let mut parser = RequestParser::default();
    let (mut at, mut units, mut open) = (0, VecDeque::new(), None);
    while at < bytes.len() {
        let mut spans = Vec::new();
        let parsed = parser.next(&mut bytes, at, &Limits::FULL, &mut spans);
        let Ok(Parsed::Request { end, .. }) = parsed else { panic!("incomplete command") };
        at = end;
        let args: Args = spans.iter().map(|span| span.of(&bytes).to_vec()).collect();
        match args[0].as_slice() {
            b"MULTI" => open = Some(vec![args]),
            b"EXEC" => {
                let mut unit: Vec<Args> = open.take().expect("EXEC comes behind MULTI");
                unit.push(args);
                units.push_back(unit);
            }
            _ => match open.as_mut() {
                Some(unit) => unit.push(args),
                None => units.push_back(vec![args]),
            },
        }
    }
    units
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) ends: usize,
    pub(super) violations: usize,
    pub(super) states: usize,
}

fn fingerprint(world: &World) -> u128 {
    xxhash_rust::xxh3::xxh3_128(format!("{world:?}").as_bytes())
}

/// Runs one job alone to its end.
pub(super) fn run(world: &mut World, job: &mut dyn Job) -> Result<(), String> {
    const STEPS_MAX: usize = 10_000;
    let mut step = job.start();
    for _ in 0..STEPS_MAX {
        match step {
            Step::Done(_) => return Ok(()),
            Step::Failed(why) => return Err(why),
            Step::Wait(ms) => {
                world.time(world.now_ms + ms);
                step = job.on_waited();
            }
            Step::Ask(ask) => {
                let commands = units(ask.bytes).into_iter().flatten();
                let server = &mut world.servers[ask.server.0];
                let answer = |args: Args| {
                    server.run(usize::from(ask.lane == Lane::Own), &args, world.now_ms)
                };
                let answers: Vec<Value> = commands.map(answer).map(Option::unwrap).collect();
                step = job.on_answers(&answers);
            }
        }
    }
    Err("the job never ends".to_owned())
}

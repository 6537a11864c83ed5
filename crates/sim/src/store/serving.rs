//! Clients' commands on one process: executed by `commands::execute`, held by `cluster::serving::ReplyGate`, as a
//! server's worker does it (`server/src/worker`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cluster::Moment;
use cluster::data::Plane;
use cluster::map::{Ack, NodeId};
use cluster::serving::{
    Aborted, AckEpoch, ChangeContext, EffectLog, LockSet, LockedSlots, ReplyGate, ReplyVerdict,
    ServedSlots, ServingPlane, Ticket, WrittenSlots,
};
use commands::testing::TestHost;
use commands::{CommandEnv, Executed, Outcome, Request as Parsed, ServingRules, Session};
use commands::{CommandResources, OwnedArgs, Table, TakeLocks, execute};
use placement::{Slot, SplitMix64};
use resp::{Output, ReplyParser, Value};
use scripting::NodeScripts;
use settings::NotifyClasses;
use store::{AccessTracking, Cause, Effect, Touch, UnixMillis};

use super::Sabotage;
use super::clients::{KEYS, Request, Told, Work};
use super::linear::{Answer, Op};
use super::node::{Node, Written};
use super::plane::SimPlane;

/// Maximum wait of a request, as in `worker/waiting.rs`: one that waits longer has not run.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Time after which WAIT answers, whatever has been acknowledged.
const WAIT_DEADLINE: Duration = Duration::from_millis(100);
const WAIT_TEXT: &str = "100";
/// Time to live of a key that expires, in milliseconds.
const LENT_FOR_MILLIS: &str = "10000";
/// `clients::LOCK_MILLIS` as text.
const LOCK_TEXT: &str = "3000";

static TABLE: LazyLock<Table> = LazyLock::new(Table::default);

/// State that a process keeps for its clients.
#[derive(Default)]
pub(super) struct Counter {
    lines: BTreeMap<usize, Line>,
    outcome: Outcome,
    effects: EffectLog,
    host: TestHost,
    rng: SplitMix64,
    scripts: Arc<NodeScripts>,
    /// The epoch when parked commands were last tried.
    tried_at: AckEpoch,
    /// True if there was no lease when the worker's round began. A worker checks it only then: it may have
    /// run out since.
    pub fence_is_up: bool,
    /// True if memory is full and nothing may be evicted.
    pub is_full: bool,
}

/// The locks of a process; nobody else ever holds one.
struct PlaneLocks<'p>(&'p SimPlane);

impl<'p> TakeLocks<'p, SimPlane> for PlaneLocks<'p> {
    fn take_one(&mut self, slot: Slot) -> Option<<SimPlane as ServingPlane>::Guard<'p>> {
        Some(self.0.lock_slot(slot))
    }

    fn take(&mut self, locks: LockSet) -> Option<LockedSlots<'p, SimPlane>> {
        Some(LockedSlots::lock(self.0, locks))
    }
}

/// One client's connection.
#[derive(Default)]
struct Line {
    session: Session,
    gate: ReplyGate<u64>,
    /// Replies that are not sent yet, by their place.
    replies: VecDeque<(u64, Request, Told, Vec<Written>)>,
    next_place: u64,
    /// Requests that have not run; the first may be parked.
    requests: VecDeque<Request>,
    parked_since: Option<Moment>,
    /// Slots that were written, for WAIT.
    written: WrittenSlots,
}

impl Counter {
    /// Ends the process. Returns the requests that are never answered.
    pub(super) fn end(&mut self) -> Vec<Request> {
        let lines = core::mem::take(&mut self.lines).into_values();
        lines.flat_map(Line::end).collect()
    }

    /// Closes the connection of a client: requests that have not run never will.
    pub(super) fn hang_up(&mut self, client: usize) {
        self.lines.remove(&client);
    }

    pub(super) fn has_parked(&self) -> bool {
        self.lines.values().any(|line| line.parked_since.is_some())
    }

    /// Returns whether nothing waits: no request, no reply.
    pub(super) fn is_idle(&self) -> bool {
        self.lines.values().all(|line| line.replies.is_empty() && line.requests.is_empty())
    }
}

impl Line {
    fn end(self) -> impl Iterator<Item = Request> {
        self.replies.into_iter().map(|(_, request, ..)| request).chain(self.requests)
    }

    /// Sends the replies that may leave.
    fn send(
        &mut self,
        plane: &SimPlane,
        has_lease: bool,
        told: &mut Vec<(Request, Told)>,
        acknowledged: &mut Vec<Written>,
    ) -> Result<(), Aborted> {
        self.gate.release(|ticket| ticket.judge_on(plane))?;
        if self.replies.is_empty() {
            return Ok(());
        }
        self.gate.check_lease(has_lease)?;
        let limit = self.gate.limit(self.next_place);
        let leaves = |reply: &mut (u64, Request, Told, Vec<Written>)| reply.0 < limit;
        while let Some((_, request, reply, written)) = self.replies.pop_front_if(leaves) {
            acknowledged.extend(written);
            told.push((request, reply));
        }
        Ok(())
    }

    fn reply(&mut self, request: Request, told: Told, written: Vec<Written>) -> u64 {
        let place = self.next_place;
        self.next_place += 1;
        self.replies.push_back((place, request, told, written));
        place
    }
}

impl Node {
    pub(super) fn execute(&mut self, now: Moment, request: Request) {
        let client = request.client;
        self.counter.lines.entry(client).or_default().requests.push_back(request);
        self.serve_line(now, client);
        self.send_replies(now);
    }

    /// Retries parked requests, if something has happened that may let them run.
    pub(super) fn resume_parked(&mut self, now: Moment) {
        let epoch = self.plane.ack_epoch();
        let disturbed = core::mem::replace(&mut self.counter.tried_at, epoch) != epoch;
        let is_due = |line: &Line| {
            let is_wait = line.requests.front().is_some_and(|it| it.work == Work::Wait);
            let late = |since: Moment| now >= since + WAIT_MAX;
            line.parked_since.is_some_and(|since| is_wait || disturbed || late(since))
        };
        let lines = self.counter.lines.iter().filter(|(_, line)| is_due(line));
        for client in lines.map(|(client, _)| *client).collect::<Vec<_>>() {
            self.serve_line(now, client);
        }
        self.send_replies(now);
    }

    /// Runs a connection's requests until one has to wait.
    fn serve_line(&mut self, now: Moment, client: usize) {
        let Some(mut line) = self.counter.lines.remove(&client) else { return };
        while let Some(request) = line.requests.pop_front() {
            if let Some(request) = self.serve(now, &mut line, request) {
                line.requests.push_front(request);
                line.parked_since = Some(line.parked_since.unwrap_or(now));
                break;
            }
            line.parked_since = None;
        }
        self.counter.lines.insert(client, line);
    }

    /// Runs a request, or gives it back if it has to wait.
    fn serve(&mut self, now: Moment, line: &mut Line, request: Request) -> Option<Request> {
        let before = self.versions(&request.slots());
        let waited = line.parked_since.map_or(Duration::ZERO, |since| now.since(since));
        let gave_up = waited >= WAIT_MAX;
        if request.work == Work::Wait && waited < WAIT_DEADLINE && self.lacks_copies(line) {
            return Some(request);
        }
        line.session.reads_backups = request.work == Work::ReadCopy;
        let mut output = Output::default();
        for command in request.commands() {
            output = Output::default();
            match self.execute_command(now, line, &command, &mut output) {
                Executed::RanWithoutTicket(_) => line.gate.rely_on_lease(),
                Executed::Ran { finished, relies_on_lease, .. } => {
                    if relies_on_lease {
                        line.gate.rely_on_lease();
                    }
                    line.written.note(&finished.written);
                    line.gate.withhold(line.next_place, finished.tickets);
                }
                Executed::Queued => {}
                Executed::Again | Executed::Busy => unreachable!("no client sends scripts"),
                Executed::Refused(_) if is_watch(&command) => {} // Another node's key.
                Executed::Refused(_) => break,
                Executed::Park(..) | Executed::LeftOut(..) if !gave_up => {
                    line.session.discard();
                    return Some(request);
                }
                Executed::Fenced | Executed::Park(..) | Executed::LeftOut(..) => {
                    line.reply(request, Told::NotNow, Vec::new());
                    line.session.discard();
                    line.session.flush_from = None;
                    return None;
                }
                Executed::Redirect(slot) => {
                    line.session.discard();
                    let Some(told) = self.redirection(slot) else { return Some(request) };
                    line.reply(request, told, Vec::new());
                    return None;
                }
            }
        }
        line.session.discard();
        let mut written = self.written_since(before);
        if request.only_reads() {
            // Removing expired keys needs no copies.
            written.iter_mut().for_each(|written| written.copies = usize::MAX);
        }
        let mut told = parse_reply(&mut output, &request);
        if let (Work::Lock, Some(written)) = (&request.work, written.first()) {
            told = Told::Answer(vec![Answer::Granted(written.reign.0)]);
        }
        line.reply(request, told, written);
        None
    }

    /// Returns whether no backup has the writes of the connection.
    fn lacks_copies(&self, line: &Line) -> bool {
        line.written.backups(&self.plane, !self.counter.fence_is_up) == 0
    }

    fn redirection(&self, slot: Slot) -> Option<Told> {
        let view = self.plane.view()?;
        (!view.is_mine(slot)).then(|| parse_error(view.redirection(slot).text()))
    }

    fn execute_command(
        &mut self,
        now: Moment,
        line: &mut Line,
        command: &[&str],
        output: &mut Output,
    ) -> Executed {
        let Some(view) = self.plane.view() else { return Executed::Fenced };
        let settings = view.map().settings().clone();
        let env = CommandEnv {
            now: UnixMillis(self.clock.wall_millis(now)),
            seed: self.plane.seed().clone(),
            access: AccessTracking::Lru,
            notify: NotifyClasses::NONE,
            out_of_memory: self.counter.is_full,
            one_slot_only: view.one_slot_only(),
            cluster: view,
            password_required: false,
            string_bytes_max: 1 << 20,
            scripts: Arc::clone(&self.counter.scripts),
            slow_script: Duration::from_secs(5),
        };
        let pending = self.plane.pending.borrow().clone();
        let rules = ServingRules {
            has_lease: !self.counter.fence_is_up,
            min_copies: usize::from(settings.min_copies),
            waits_for_backups: settings.ack == Ack::Backup,
            pending: &pending,
        };
        let Counter { outcome, effects, host, rng, .. } = &mut self.counter;
        let args = OwnedArgs::new(command.iter().map(|word| word.as_bytes()));
        if command[0] == "WAIT" {
            host.backups = line.written.backups(&self.plane, rules.has_lease);
        }
        let parsed = Parsed::prepare(args.args(), &TABLE, &env.seed);
        line.session.database = self.plane.database;
        let plane = &self.plane;
        let resources = CommandResources { env: &env, rules, outcome, effects, rng };
        execute(&parsed, &mut line.session, output, plane, resources, PlaneLocks(plane), |_| host)
    }

    fn versions(&self, slots: &BTreeSet<Slot>) -> Vec<(Slot, store::Version)> {
        let version = |slot: &Slot| self.plane.with_slot(*slot, |it| it.table().version());
        slots.iter().map(|slot| (*slot, version(slot))).collect()
    }

    fn written_since(&self, before: Vec<(Slot, store::Version)>) -> Vec<Written> {
        let written = |(slot, before): (Slot, store::Version)| {
            self.plane.with_slot(slot, |state| {
                let (reign, version) = (state.replica().reign(), state.table().version());
                let copies = 1 + state.replica().wait_set().count();
                (version != before).then_some(Written { slot, reign, version, copies })
            })
        };
        before.into_iter().filter_map(written).collect()
    }

    /// Evicts a key to make room, as `server/src/evictor.rs` does. Returns whether it was there.
    pub(super) fn evict(&mut self, now: Moment, key: &str) -> bool {
        let plane = &self.plane;
        let key = plane.key(key);
        let locked = LockedSlots::lock(plane, LockSet::One(key.slot()));
        let effects = &mut self.counter.effects;
        let Ok(mut slots) =
            ServedSlots::open(plane, locked, cluster::serving::Access::WRITE, effects)
        else {
            return false;
        };
        let is_there = slots.table(key.slot()).peek(&key).is_some();
        if is_there {
            let change = ChangeContext {
                now: UnixMillis(self.clock.wall_millis(now)),
                touch: Touch::Nothing,
            };
            let _ = slots.apply(key.slot(), &Effect::Remove { key, cause: Cause::Evicted }, change);
        }
        is_there
    }

    /// Sends the replies that no longer have to wait.
    pub(super) fn send_replies(&mut self, now: Moment) {
        self.release_merged();
        let has_lease = self.has_lease(now);
        let error = self.breaks(Sabotage::ErrorForUnacked);
        let Node { counter, plane, told, acknowledged, .. } = self;
        counter.lines.retain(|_, line| {
            let Err(Aborted) = line.send(plane, has_lease, told, acknowledged) else {
                return true;
            };
            let closed = if error { Told::NotDone } else { Told::Closed };
            told.extend(core::mem::take(line).end().map(|request| (request, closed.clone())));
            false
        });
    }

    pub(super) fn judge(&self, ticket: &mut Ticket) -> ReplyVerdict {
        ticket.judge_on(&self.plane)
    }
}

impl Request {
    fn slots(&self) -> BTreeSet<Slot> {
        let keys: Vec<&str> = match &self.work {
            Work::One(_) | Work::Lock | Work::ReadCopy => vec![self.key],
            Work::Exec { ops, .. } => ops.iter().map(|(key, _)| *key).collect(),
            Work::Flush => KEYS.to_vec(),
            Work::Keys | Work::Scan | Work::CountKeys | Work::Wait => Vec::new(),
        };
        keys.into_iter().map(|key| Slot::of(key.as_bytes())).collect()
    }

    fn only_reads(&self) -> bool {
        matches!(
            self.work,
            Work::One(Op::Get) | Work::ReadCopy | Work::Keys | Work::Scan | Work::CountKeys
        )
    }

    /// Returns the commands, as a client sends them; the reply of the last one counts.
    fn commands(&self) -> Vec<Vec<&str>> {
        match &self.work {
            Work::One(op) => vec![words(self.key, op)],
            Work::Exec { watch, ops } => {
                let watch = watch.map(|key| vec!["WATCH", key]);
                let ops = ops.iter().map(|(key, op)| words(key, op));
                let queued = [vec!["MULTI"]].into_iter().chain(ops).chain([vec!["EXEC"]]);
                watch.into_iter().chain(queued).collect()
            }
            Work::Keys => vec![vec!["KEYS", "*"]],
            Work::Scan => vec![vec!["SCAN", "0", "COUNT", "1000"]],
            Work::CountKeys => vec![vec!["DBSIZE"]],
            Work::Wait => vec![vec!["WAIT", "1", WAIT_TEXT]],
            Work::Flush => vec![vec!["FLUSHALL"]],
            Work::ReadCopy => vec![vec!["GET", self.key]],
            Work::Lock => vec![vec!["SET", self.key, "held", "NX", "PX", LOCK_TEXT]],
        }
    }
}

fn words<'a>(key: &'a str, op: &'a Op) -> Vec<&'a str> {
    match op {
        Op::Get => vec!["GET", key],
        Op::Set(value) => vec!["SET", key, value],
        Op::Lend(value) => vec!["SET", key, value, "PX", LENT_FOR_MILLIS],
        Op::Del => vec!["DEL", key],
        Op::Append(tail) => vec!["APPEND", key, tail],
        Op::Incr => vec!["INCR", key],
    }
}

fn is_watch(command: &[&str]) -> bool {
    command.first() == Some(&"WATCH")
}

fn parse_reply(output: &mut Output, request: &Request) -> Told {
    let bytes: Vec<u8> = output.chunks(output.mark()).flatten().copied().collect();
    let parsed = ReplyParser::default().next(&bytes, 0).expect("our own replies are well formed");
    let (value, _) = parsed.expect("a command that ran has replied");
    if let Value::Error(text) = &value {
        return parse_error(&String::from_utf8_lossy(text));
    }
    if request.is_walk() || request.work == Work::ReadCopy {
        return Told::Answer(Vec::new());
    }
    if let Work::Exec { .. } = request.work {
        let Value::Array(answers) = &value else { return Told::Aborted };
        return Told::Answer(answers.iter().filter_map(answer).collect());
    }
    let answer = answer(&value);
    Told::Answer(vec![answer.unwrap_or_else(|| panic!("{request:?} was answered with {value}"))])
}

fn parse_error(text: &str) -> Told {
    let moved = text.strip_prefix("MOVED ").and_then(|rest| rest.rsplit(':').next());
    match moved.and_then(|port| port.parse().ok()) {
        Some(node) => Told::Moved(NodeId(node)),
        None => Told::NotNow,
    }
}

fn answer(value: &Value) -> Option<Answer> {
    if let Value::Integer(count) = value {
        return Some(Answer::Count(*count));
    }
    if let Value::Bulk(bytes) = value {
        return String::from_utf8(bytes.clone()).ok().map(|text| Answer::Value(Some(text)));
    }
    if *value == Value::Null {
        return Some(Answer::Value(None));
    }
    matches!(value, Value::Simple(_)).then_some(Answer::Done)
}

//! A node without sockets, for tests: text in, replies as text out, virtual time, effects recorded. It runs
//! commands as the server does: prepare, admit, run. The node's interface is in `testing/host.rs`.
mod bus; //  Subscriptions and received messages.
mod host;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cluster::map::{Boot, Endpoints, Map, Member, NodeId, Zone};
use cluster::serving::{ChangeContext, EffectLog, KeyWaiters, WaitNumber, Waiter, Wanted};
use placement::{Mask, Slot, SplitMix64};
use resp::{Limits, Output, Parsed, Protocol, Reply, ReplyParser, RequestParser, Value};
use settings::{DebugClients, NotifyClasses, Settings};
use store::{
    AccessTracking, Applied, At, Digest, Effect, Found, Key, Recorded, Seed, SlotTable, Touch,
    UnixMillis, digest_of,
};

pub use self::bus::Bus;
pub use self::host::TestHost;
use crate::admit::{Admission, admit};
use crate::cluster::View;
use crate::{
    Announcement, Args, Block, CommandEnv, Context, Ending, Event, KeyWait, Keys, Outcome,
    OwnedArgs, Request, Session, Slots, Table, UNBLOCKED, Unblock, run,
};

const SEED: u64 = 1;

/// The tables of all slots, created on first access, and the effects of the current command.
#[derive(Default)]
pub struct TestSlots {
    tables: BTreeMap<Slot, SlotTable>,
    effects: EffectLog,
    waiters: KeyWaiters,
    /// Slots in which connections wait for what has changed.
    noted: BTreeSet<Slot>,
    /// True if another node has copies of the slots.
    pub has_copies: bool,
    /// The map, if any: only this node's slots by it may be changed. Without one all may be.
    view: Option<Arc<View>>,
}

impl Slots for TestSlots {
    fn grow(&mut self, _slot: Slot) -> bool {
        true
    }

    fn table(&mut self, slot: Slot) -> &SlotTable {
        self.table_mut(slot)
    }

    fn touch(&mut self, slot: Slot, at: At, touch: Touch) -> Found<'_> {
        self.table_mut(slot).touch(at, touch)
    }

    fn apply(&mut self, slot: Slot, effect: &Effect<'_>, change: ChangeContext) -> Applied {
        let table = self.tables.entry(slot).or_default();
        let (previous, version) = (table.version(), table.next_version(change.now));
        self.effects.record(slot, previous, version, effect);
        let is_noted = match (effect, Wanted::brought_by(effect)) {
            (Effect::Clear, _) => self.waiters.note_emptied(slot),
            (Effect::SwapDatabases { .. }, _) => self.waiters.note_all(slot),
            (_, Some((key, wanted))) => self.waiters.note_value(key, wanted),
            (_, None) => false,
        };
        if is_noted {
            self.noted.insert(slot);
        }
        table.apply(effect, version, change.touch, &Seed::new(SEED))
    }

    fn is_behind(&mut self, key: &Key<'_>, wanted: Wanted, number: Option<WaitNumber>) -> bool {
        self.waiters.is_behind(key, wanted, number)
    }

    fn enter_line(
        &mut self,
        slot: Slot,
        key: &Arc<[u8]>,
        wanted: Wanted,
        place: (WaitNumber, Waiter),
    ) {
        self.waiters.enter(slot, key, wanted, place);
    }

    fn may_change(&mut self, slot: Slot) -> bool {
        self.view.as_ref().is_none_or(|view| view.is_mine(slot))
    }

    fn is_alone(&mut self, _: Slot) -> bool {
        !self.has_copies
    }

    fn occupied(&mut self, from: Slot) -> Option<Slot> {
        self.tables.range(from..).find(|(_, table)| !table.is_empty()).map(|(slot, _)| *slot)
    }

    fn with_databases(&mut self, from: Slot) -> Option<Slot> {
        let mut tables = self.tables.range(from..);
        tables.find(|(_, table)| table.has_other_databases()).map(|(slot, _)| *slot)
    }

    fn key_count(&mut self) -> usize {
        self.tables.values().map(SlotTable::len).sum()
    }
}

impl TestSlots {
    /// Returns the table of a slot, for tests that set up a state.
    pub fn table_mut(&mut self, slot: Slot) -> &mut SlotTable {
        self.tables.entry(slot).or_default()
    }

    /// Takes a connection out of its lines, as a server does.
    fn leave_lines(&mut self, wait: &KeyWait) {
        for bytes in &wait.keys {
            let key = Seed::new(SEED).named(bytes);
            let found = self.tables.get(&key.slot()).and_then(|table| table.peek(&key));
            let goes_on = wait.wanted.may_go_on(found.map(|found| found.value()).as_ref());
            self.waiters.leave(key.slot(), bytes, wait.wanted, wait.number);
            if goes_on && self.waiters.note_value(&key, wait.wanted) {
                self.noted.insert(key.slot());
            }
        }
    }

    fn take_woken(&mut self) -> Vec<Waiter> {
        let noted = core::mem::take(&mut self.noted);
        noted.into_iter().flat_map(|slot| self.waiters.take_woken(slot)).collect()
    }

    pub fn digest(&self) -> Digest {
        let mut sum = Digest::default();
        self.tables.values().for_each(|table| sum.add(digest_of(table)));
        sum
    }
}

/// A request that waits for keys.
struct Parked {
    args: OwnedArgs,
    until: Option<UnixMillis>,
}

/// A node with one connection (and more on demand, see [`TestNode::on`]).
pub struct TestNode {
    pub slots: TestSlots,
    pub env: CommandEnv,
    pub outcome: Outcome,
    pub host: TestHost,
    /// All effects recorded so far.
    pub log: Vec<u8>,
    sessions: BTreeMap<u64, Session>,
    /// Connections that wait for keys.
    parked: BTreeMap<u64, Parked>,
    /// Replies to those that no longer wait.
    late_replies: Vec<(u64, Value)>,
    table: Table,
    rng: SplitMix64,
}

impl Default for TestNode {
    fn default() -> TestNode {
        let env = CommandEnv {
            now: UnixMillis(1_700_000_000_000),
            seed: Seed::new(SEED),
            access: AccessTracking::Lru,
            notify: NotifyClasses::NONE,
            out_of_memory: false,
            cluster: Arc::new(alone()),
            one_slot_only: false,
            password_required: false,
            string_bytes_max: 512 * 1024 * 1024,
            scripts: Arc::default(),
            slow_script: Duration::from_secs(5),
        };
        let outcome = Outcome::default();
        let enable_debug_command = DebugClients::All;
        let settings = Settings { enable_debug_command, ..Settings::default() };
        TestNode {
            slots: TestSlots::default(),
            env,
            outcome,
            host: TestHost { settings, wrong_passwords_max: 100, ..TestHost::default() },
            log: Vec::new(),
            sessions: BTreeMap::new(),
            parked: BTreeMap::new(),
            late_replies: Vec::new(),
            table: Table::default(),
            rng: SplitMix64::new(1),
        }
    }
}

/// Returns a member of a cluster in tests: number 1 is `A` at 10.0.0.1, and so on.
pub fn member(number: u8) -> Member {
    Member {
        id: NodeId(u64::from(number)),
        boot: Boot(1),
        name: char::from(b'@' + number).to_string(),
        weight: 1,
        zone: Zone::default(),
        at: Endpoints {
            host: format!("10.0.0.{number}"),
            client: 6379,
            peer: 16_379,
            http: 7379,
            replica: 0,
        },
    }
}

/// Returns the view of a node that is the only member.
fn alone() -> View {
    let map = Map::found(member(1), Mask::M00FF, cluster::map::ClusterSettings::default());
    View::new(Arc::new(map), NodeId(1))
}

impl TestNode {
    /// Makes the node use this map from now on, as its member `number`.
    pub fn see(&mut self, map: &Map, number: u8) {
        let view = View::new(Arc::new(map.clone()), NodeId(u64::from(number)));
        self.env.one_slot_only = view.one_slot_only();
        self.env.cluster = Arc::new(view);
        self.slots.view = Some(Arc::clone(&self.env.cluster));
    }

    /// Runs one line, as typed in redis-cli, on the first connection; returns the reply as text.
    pub fn run(&mut self, line: &str) -> String {
        self.on(1, line)
    }

    /// Same as `run`, on another connection. The replies to connections that no longer wait follow, each line with the
    /// number of its connection: `2< OK`.
    pub fn on(&mut self, connection: u64, line: &str) -> String {
        let values = self.raw(connection, format!("{line}\r\n").into_bytes());
        let replies = values.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        let late = self.late_replies();
        if replies.is_empty() || late.is_empty() { replies + &late } else { replies + "\n" + &late }
    }

    fn late_replies(&mut self) -> String {
        let mut lines = Vec::new();
        for (connection, value) in core::mem::take(&mut self.late_replies) {
            let text = value.to_string();
            lines.extend(text.lines().map(|line| format!("{connection}< {line}")));
        }
        lines.join("\n")
    }

    /// Runs a request given as arguments, which need not be text.
    pub fn args(&mut self, connection: u64, args: &[&[u8]]) -> Vec<Value> {
        let mut request = Vec::new();
        resp::encode_command(&mut request, args);
        self.raw(connection, request)
    }

    /// Runs all complete requests in `bytes`, and returns the replies. A protocol error counts as a reply.
    pub fn raw(&mut self, connection: u64, mut bytes: Vec<u8>) -> Vec<Value> {
        let mut output = Output::default();
        let mut parser = RequestParser::default();
        let mut at = 0;
        loop {
            let mut spans = Vec::new();
            match parser.next(&mut bytes, at, &Limits::FULL, &mut spans) {
                Ok(Parsed::Request { end, .. }) => {
                    if !spans.is_empty() {
                        self.execute(connection, Args::new(&bytes, &spans), &mut output);
                        self.end_waits();
                    }
                    at = end;
                }
                Ok(Parsed::Incomplete { .. }) => break,
                Err(error) => {
                    Reply::new(&mut output, Protocol::Resp2).error(error.reply());
                    break;
                }
            }
        }
        parse_replies(&mut output)
    }

    /// Returns the events since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        let events =
            self.announcements().into_iter().filter_map(|announcement| match announcement {
                Announcement::Event(event) => Some(event),
                Announcement::Message { .. } => None,
            });
        events.collect()
    }

    /// Returns the events, and the messages behind them, since the last call.
    pub fn announcements(&mut self) -> Vec<Announcement> {
        core::mem::take(&mut self.outcome.events)
    }

    /// Returns the messages a connection received since the last call, their parts joined by spaces.
    pub fn heard(&mut self, connection: u64) -> Vec<String> {
        self.host.bus.heard(connection)
    }

    pub fn advance(&mut self, millis: u64) {
        self.env.now.0 += millis;
        let now = self.env.now;
        let late = self.parked.iter().filter(|(_, it)| it.until.is_some_and(|until| until <= now));
        let late: Vec<u64> = late.map(|(connection, _)| *connection).collect();
        late.into_iter().for_each(|connection| self.unblock(connection, Unblock::AsTimeout));
        self.end_waits();
    }

    /// Returns whether a connection waits for keys. Until it is served, it sends nothing more.
    pub fn is_blocked(&self, connection: u64) -> bool {
        self.parked.contains_key(&connection)
    }

    /// Runs the commands of connections whose wait may be over, until none is left.
    fn end_waits(&mut self) {
        for (connection, how) in core::mem::take(&mut self.host.unblocked) {
            self.unblock(connection, how);
        }
        loop {
            let woken = self.slots.take_woken();
            if woken.is_empty() {
                break;
            }
            for waiter in woken {
                let Some(parked) = self.parked.remove(&waiter.client) else { continue };
                let mut output = Output::default();
                self.execute(waiter.client, parked.args.args(), &mut output);
                let replies = parse_replies(&mut output).into_iter();
                self.late_replies.extend(replies.map(|reply| (waiter.client, reply)));
            }
        }
        self.host.blocked = self.parked.keys().copied().collect();
    }

    /// Ends the wait of a connection without running its command.
    fn unblock(&mut self, connection: u64, how: Unblock) {
        self.parked.remove(&connection);
        let session = self.session(connection);
        let mut output = Output::default();
        let mut reply = Reply::new(&mut output, session.protocol);
        match how {
            Unblock::AsTimeout => reply.null_array(),
            Unblock::WithError => reply.error(UNBLOCKED.text()),
        }
        let wait = session.key_wait.take().expect("it waits");
        self.slots.leave_lines(&wait);
        let replies = parse_replies(&mut output).into_iter();
        self.late_replies.extend(replies.map(|reply| (connection, reply)));
    }

    /// Parks a request that waits for keys; takes its connection out of the lines when it is answered.
    fn note_ending(&mut self, session: &mut Session, args: Args<'_>, ending: Ending) {
        if ending != Ending::Waiting {
            if let Some(wait) = session.key_wait.take() {
                self.slots.leave_lines(&wait);
            }
            return;
        }
        let until = session.key_wait.as_ref().and_then(|wait| match wait.block {
            Block::For(timeout) => Some(UnixMillis(self.env.now.0 + timeout.as_millis() as u64)),
            Block::Not | Block::ForEver => None,
        });
        self.parked.insert(session.id, Parked { args: OwnedArgs::new(args.iter()), until });
    }

    pub fn session(&mut self, connection: u64) -> &mut Session {
        self.sessions.entry(connection).or_insert_with(|| Session::new(connection))
    }

    /// Returns other slots that have applied all recorded effects, as a backup would.
    pub fn replayed(&self) -> TestSlots {
        let seed = Seed::new(99);
        let mut slots = TestSlots::default();
        let mut rest = self.log.as_slice();
        while !rest.is_empty() {
            let (recorded, behind) = Recorded::read(rest, &seed).expect("what was recorded");
            let table = slots.table_mut(recorded.slot);
            assert_eq!(table.version(), recorded.previous, "effects follow each other in a slot");
            let _ = table.apply(&recorded.effect, recorded.version, Touch::Nothing, &seed);
            rest = behind;
        }
        slots
    }

    /// Returns the locks that a command on connection 1 would take.
    #[cfg(test)]
    pub(crate) fn locks(&mut self, line: &str) -> crate::LockSet {
        let args = crate::OwnedArgs::new(line.split(' ').map(str::as_bytes));
        let request = Request::prepare(args.args(), &self.table, &self.env.seed);
        let mut output = Output::default();
        let mut reply = Reply::new(&mut output, Protocol::Resp2);
        let session = self.sessions.entry(1).or_insert_with(|| Session::new(1));
        match admit(&request, session, &self.env, &mut reply) {
            Admission::Run(_, locks) => locks,
            Admission::Queued | Admission::Refused(_) => panic!("{line} does not run"),
        }
    }

    fn execute(&mut self, connection: u64, args: Args<'_>, output: &mut Output) {
        let mut session = self.sessions.remove(&connection).unwrap_or_else(|| Session {
            authenticated: !self.env.password_required,
            ..Session::new(connection)
        });
        self.host.now = self.env.now;
        self.host.connection = connection;
        let request = Request::prepare(args, &self.table, &self.env.seed);
        let muted = session.begin_muted(output);
        loop {
            let mut reply = Reply::new(output, session.protocol);
            if let Admission::Run(spec, _) = admit(&request, &mut session, &self.env, &mut reply) {
                let keys = Keys::new(&mut self.slots, &self.env, &mut self.outcome, &mut self.rng)
                    .walking(session.walked_copies());
                let mut context = Context {
                    args,
                    keys,
                    reply,
                    session: &mut session,
                    host: &mut self.host,
                    spec,
                    first_key: request.key.as_ref(),
                };
                let ending = run(&mut context);
                self.note_ending(&mut session, args, ending);
            }
            if !session.script.take_restart() {
                break;
            }
        }
        if let Some(start) = muted {
            session.end_muted(output, start);
        }
        self.log.extend(self.slots.effects.bytes());
        self.slots.effects.clear();
        self.sessions.insert(connection, session);
    }
}

fn parse_replies(output: &mut Output) -> Vec<Value> {
    let bytes: Vec<u8> = output.chunks(output.mark()).flatten().copied().collect();
    let mut parser = ReplyParser::default();
    let mut values = Vec::new();
    let mut at = 0;
    while let Some((value, end)) = parser.next(&bytes, at).expect("our own replies are well formed")
    {
        values.push(value);
        at = end;
    }
    values
}

/// Runs a script on a fresh node: lines that begin with `>` are commands (`2>` on connection 2, `+5s` or `+20ms`
/// advances the time), the lines after them are their replies.
pub fn check(script: &str) {
    let mut node = TestNode::default();
    check_on(&mut node, script);
    assert_eq!(node.slots.digest(), node.replayed().digest(), "a backup would hold something else");
}

/// Same as [`check`], on a given node.
pub fn check_on(node: &mut TestNode, script: &str) {
    let mut told = String::new();
    let mut expected = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(pause) = line.strip_prefix('+') {
            node.advance(millis(pause));
            told.push_str(&format!("{}\n", node.late_replies()));
        } else if let Some((connection, command)) = command_of(line) {
            told.push_str(&format!("{line}\n{}\n", node.on(connection, command)));
        } else {
            expected.push_str(&format!("{line}\n"));
            continue;
        }
        expected.push_str(&format!("{line}\n"));
    }
    let told = told.lines().map(str::trim).filter(|line| !line.is_empty());
    let told: String = told.map(|line| format!("{line}\n")).collect();
    let expected: String = expected
        .lines()
        .filter(|line| !line.starts_with('+'))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(told == expected, "expected:\n{expected}\ntold:\n{told}");
}

fn command_of(line: &str) -> Option<(u64, &str)> {
    let (connection, command) = line.split_once("> ")?;
    if connection.is_empty() {
        return Some((1, command));
    }
    connection.parse().ok().map(|number| (number, command))
}

fn millis(pause: &str) -> u64 {
    let (number, factor) = match pause.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => (pause.strip_suffix('s').expect("a pause is +5s or +20ms"), 1_000),
    };
    number.parse::<u64>().expect("a pause is +5s or +20ms") * factor
}

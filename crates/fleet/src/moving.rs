//! Moving keys from one server to another: a batch of them at once, each by itself safe.
//!
//! ~~~text
//! to    SET marker token NX PX     whose it is to move this key
//! to    WATCH marker; MGET marker  is it ours?
//! from  TIME; DUMP, PTTL           the value, and when it expires
//! to    MULTI RESTORE; DEL marker; EXEC
//! from  UNLINK key
//! ~~~
//!
//! While a migration runs nobody writes at the old place, so what lies there is frozen, and what has
//! gone from there never comes back. The marker stands for "somebody holds a copy that is not yet in
//! place": every first write at the new place deletes it, and then the copy is refused by the WATCH.
//! Deleting a marker is therefore always safe, whoever does it; it costs its owner a new beginning.
//! For the same reason the marker may go with the RESTORE: what is left to do is to take the old
//! copy away, which needs no permission.
//!
//! The first two lines travel together. Where a server is a cluster they cannot, since what is watched
//! must be of one slot; there each slot's keys are watched just before their transaction.
//!
//! Run by the migrator for its batches and by `write.rs` for the keys of one command. Keys too large
//! for one DUMP go through `big.rs`.

use std::collections::BTreeMap;

use placement::Slot;
use resp::Value;

use crate::job::{Answer, Batch, Job, Lane, Step, error, items, unexpected};
use crate::names;
use crate::view::Route;

/// How long a marker lives if its owner does not. Safe at any length, since the token is looked at in
/// the transaction that restores; it bounds how long writers wait for a mover that died.
pub const MARKER_MS: u64 = 3_000;
/// How long to wait for another's marker before looking again.
pub(crate) const RETRY_MS: u64 = 5;

/// A number nobody else has: the process's own and a count. Chosen by the shell.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Token(String);

impl Token {
    pub fn new(text: impl Into<String>) -> Token {
        Token(text.into())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Which safeguards a move takes. All of them, always, but in tests that show what each is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Safeguards {
    pub check_token: bool,
    pub move_before_write: bool,
}

impl Safeguards {
    pub const ALL: Safeguards = Safeguards { check_token: true, move_before_write: true };
}

#[derive(Clone, PartialEq, Debug)]
pub struct MoveJob {
    route: Route,
    token: Token,
    safeguards: Safeguards,
    /// Each key to move, with its state.
    keys: BTreeMap<Vec<u8>, State>,
    stage: Stage,
    /// After an aborted transaction: one key at a time, so that one cannot spoil it for others.
    singly: bool,
    transactions: Transactions,
    /// Those that are being put in place.
    placing: Vec<Vec<u8>>,
}

/// How many keys may share a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Transactions {
    /// All of them.
    Whole,
    /// Those of one slot: one of the two servers is a cluster.
    BySlot,
}

#[derive(Clone, PartialEq, Debug)]
enum State {
    /// Not begun, or begun in vain.
    Waiting,
    /// The marker is ours.
    Marked,
    Copied {
        dump: Vec<u8>,
        expires_ms: Option<u64>,
    },
    /// The new place has it: the old one may go.
    Placed {
        bytes: usize,
    },
    /// Nothing was there to be moved; our marker is still to be deleted.
    MarkerLeft,
    Ended(Outcome),
}

#[derive(Clone, PartialEq, Debug)]
enum Stage {
    Mark,
    Copy,
    Watch,
    Restore,
    Unlink,
    Unmark,
}

/// What became of a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Its size as it travelled; 0 if the new place had it already.
    Moved { bytes: usize },
    /// Gone from the old place already, or expired.
    Gone,
    /// Still where it was; the server's words.
    Refused(String),
}

impl MoveJob {
    pub fn new(route: Route, token: Token, keys: impl IntoIterator<Item = Vec<u8>>) -> MoveJob {
        MoveJob {
            route,
            token,
            safeguards: Safeguards::ALL,
            keys: keys.into_iter().map(|key| (key, State::Waiting)).collect(),
            stage: Stage::Mark,
            singly: false,
            transactions: Transactions::Whole,
            placing: Vec::new(),
        }
    }

    /// For a route from or to a cluster: no transaction has keys of two slots.
    #[must_use]
    pub fn by_slot(mut self) -> MoveJob {
        self.transactions = Transactions::BySlot;
        self
    }

    #[must_use]
    pub fn with_safeguards(mut self, safeguards: Safeguards) -> MoveJob {
        self.safeguards = safeguards;
        self
    }

    pub fn route(&self) -> Route {
        self.route
    }

    /// What became of each key, once the job is done.
    pub fn outcomes(&self) -> impl Iterator<Item = (&[u8], &Outcome)> {
        self.keys.iter().filter_map(|(key, state)| match state {
            State::Ended(outcome) => Some((key.as_slice(), outcome)),
            State::Waiting
            | State::Marked
            | State::Copied { .. }
            | State::Placed { .. }
            | State::MarkerLeft => None,
        })
    }

    /// A key that the new place does not take, with its reason.
    pub fn refused(&self) -> Option<(&[u8], &str)> {
        self.outcomes().find_map(|(key, outcome)| match outcome {
            Outcome::Refused(why) => Some((key, why.as_str())),
            Outcome::Moved { .. } | Outcome::Gone => None,
        })
    }

    fn those(&self, wanted: fn(&State) -> bool) -> Vec<Vec<u8>> {
        let keys = self.keys.iter().filter(|(_, state)| wanted(state));
        keys.map(|(key, _)| key.clone()).collect()
    }

    fn set(&mut self, key: &[u8], state: State) {
        *self.keys.get_mut(key).expect("it is one of ours") = state;
    }

    /// Keys that may share a transaction, put together.
    fn groups(&self, keys: Vec<Vec<u8>>) -> Vec<Vec<Vec<u8>>> {
        match self.transactions {
            Transactions::Whole => vec![keys],
            Transactions::BySlot => {
                let mut groups: BTreeMap<Slot, Vec<Vec<u8>>> = BTreeMap::new();
                for key in keys {
                    groups.entry(Slot::of(&key)).or_default().push(key);
                }
                groups.into_values().collect()
            }
        }
    }

    /// A command that takes any number of keys, for as many of them as may be.
    fn push_for_all(&self, batch: &mut Batch, name: &'static [u8], keys: &[Vec<u8>]) {
        let at_once = match self.transactions {
            Transactions::Whole => keys.len().max(1),
            Transactions::BySlot => 1,
        };
        for keys in keys.chunks(at_once) {
            let name = std::iter::once(name);
            batch.push(&name.chain(keys.iter().map(Vec::as_slice)).collect::<Vec<_>>());
        }
    }

    /// Goes to the first stage that has something to do.
    fn go_on(&mut self) -> Step {
        let has = |wanted: fn(&State) -> bool| self.keys.values().any(wanted);
        if has(|state| matches!(state, State::Marked)) {
            return self.copy();
        }
        if has(|state| matches!(state, State::Copied { .. })) {
            return self.place();
        }
        if has(|state| matches!(state, State::Placed { .. })) {
            return self.unlink();
        }
        if has(|state| matches!(state, State::MarkerLeft)) {
            return self.unmark();
        }
        if has(|state| matches!(state, State::Waiting)) {
            return Step::Wait(RETRY_MS);
        }
        Step::Done(Answer::Nothing)
    }

    // 1) Say that we move it. Whether it is there already shows when it is restored.

    fn mark(&mut self) -> Step {
        self.stage = Stage::Mark;
        let mut batch = Batch::default();
        let mut digits = itoa::Buffer::new();
        let lifetime = digits.format(MARKER_MS).as_bytes();
        let markers = markers(&self.marking());
        for marker in &markers {
            batch.push(&[b"SET", marker, self.token.bytes(), b"NX", b"PX", lifetime]);
        }
        match self.transactions {
            Transactions::BySlot => {
                for marker in &markers {
                    batch.push(&[b"GET", marker]);
                }
                batch.ask(self.route.to)
            }
            Transactions::Whole => {
                // What was watched in vain before is not watched any longer.
                batch.push(&[b"UNWATCH"]);
                push_watch(&mut batch, &markers);
                batch.ask_on(self.route.to, Lane::Own)
            }
        }
    }

    fn marking(&self) -> Vec<Vec<u8>> {
        let mut keys = self.those(|state| matches!(state, State::Waiting));
        if self.singly {
            keys.truncate(1);
        }
        keys
    }

    /// Those are ours whose marker carries our token, be it from this attempt or from one that came to
    /// nothing: its marker still stands.
    fn on_marked(&mut self, answers: &[Value]) -> Step {
        let keys = self.marking();
        let tokens = match self.transactions {
            Transactions::Whole => items(answers.last()),
            Transactions::BySlot => answers.get(keys.len()..),
        };
        let Some(tokens) = tokens.filter(|tokens| tokens.len() == keys.len()) else {
            return unexpected(self.route.to, answers.last());
        };
        for ((key, answer), token) in keys.iter().zip(answers).zip(tokens) {
            let is_set = *answer != Value::Null;
            let is_ours = if self.safeguards.check_token { self.is_ours(token) } else { is_set };
            self.set(key, if is_ours { State::Marked } else { State::Waiting });
        }
        self.go_on()
    }

    fn is_ours(&self, token: &Value) -> bool {
        token.text() == Some(self.token.bytes())
    }

    /// Of these, the ones whose marker carries another token have to begin anew.
    fn forget_unpermitted(&mut self, keys: &[Vec<u8>], tokens: &[Value]) {
        if !self.safeguards.check_token {
            return;
        }
        for (key, token) in keys.iter().zip(tokens) {
            if !self.is_ours(token) {
                self.set(key, State::Waiting);
            }
        }
    }

    // 2) Copy it, with the moment it expires.

    fn copy(&mut self) -> Step {
        self.stage = Stage::Copy;
        let mut batch = Batch::default();
        // The time first: whatever comes between, the key never lives longer than it would have.
        batch.push(&[b"TIME"]);
        for key in self.marked() {
            batch.push(&[b"DUMP", &key]);
            batch.push(&[b"PTTL", &key]);
        }
        batch.ask(self.route.from)
    }

    fn marked(&self) -> Vec<Vec<u8>> {
        self.those(|state| matches!(state, State::Marked))
    }

    fn on_copied(&mut self, answers: &[Value]) -> Step {
        let [time, copies @ ..] = answers else {
            return unexpected(self.route.from, answers.first());
        };
        let Some(now_ms) = milliseconds(time) else {
            return unexpected(self.route.from, Some(time));
        };
        for (key, copy) in self.marked().iter().zip(copies.chunks(2)) {
            match copied(now_ms, &copy[0], &copy[1]) {
                Some(state) => self.set(key, state),
                None => return unexpected(self.route.from, Some(&copy[0])),
            }
        }
        self.go_on()
    }

    // 3) Put it in place, if nobody has taken the permission away.

    fn place(&mut self) -> Step {
        let copied = self.those(|state| matches!(state, State::Copied { .. }));
        self.placing = self.groups(copied).swap_remove(0);
        match self.transactions {
            Transactions::Whole => self.restore(),
            Transactions::BySlot => self.watch(),
        }
    }

    fn watch(&mut self) -> Step {
        self.stage = Stage::Watch;
        let mut batch = Batch::default();
        push_watch(&mut batch, &markers(&self.placing));
        batch.ask_on(self.route.to, Lane::Own)
    }

    /// Of those that are being put in place, the ones whose permission was not gone when we looked.
    fn permitted(&self) -> Vec<Vec<u8>> {
        let copied = |key: &&Vec<u8>| matches!(self.keys[*key], State::Copied { .. });
        self.placing.iter().filter(copied).cloned().collect()
    }

    fn on_watched(&mut self, answers: &[Value]) -> Step {
        let Some(tokens) = items(answers.last()) else {
            return unexpected(self.route.to, answers.last());
        };
        self.forget_unpermitted(&self.permitted(), tokens);
        self.restore()
    }

    fn restore(&mut self) -> Step {
        self.stage = Stage::Restore;
        let mut batch = Batch::default();
        if !self.safeguards.check_token {
            batch.push(&[b"UNWATCH"]);
        }
        batch.push(&[b"MULTI"]);
        let mut digits = itoa::Buffer::new();
        let mut markers = Vec::new();
        for key in &self.permitted() {
            let State::Copied { dump, expires_ms } = &self.keys[key] else { continue };
            let at = digits.format(expires_ms.unwrap_or(0)).as_bytes();
            match expires_ms {
                // A TTL of 0 is none at all, whatever ABSTTL says.
                None => batch.push(&[b"RESTORE", key, b"0", dump]),
                Some(_) => batch.push(&[b"RESTORE", key, at, dump, b"ABSTTL"]),
            }
            markers.push(names::marker(key));
        }
        if !markers.is_empty() {
            let name = std::iter::once(b"DEL".as_slice());
            batch.push(&name.chain(markers.iter().map(Vec::as_slice)).collect::<Vec<_>>());
        }
        batch.push(&[b"EXEC"]);
        batch.ask_on(self.route.to, Lane::Own)
    }

    fn on_restored(&mut self, answers: &[Value]) -> Step {
        let exec = answers.last();
        if let (Some(Value::Error(_)), Some(first)) = (exec, error(answers)) {
            // Refused before it ran (out of memory, a replica): nothing was done.
            return unexpected(self.route.to, Some(first));
        }
        let keys = self.permitted();
        let Some(restored) = items(exec) else {
            // A marker has changed: the copies may be old. Begin anew, one by one.
            self.singly = true;
            keys.iter().for_each(|key| self.set(key, State::Waiting));
            return self.mark();
        };
        for (key, answer) in keys.iter().zip(restored) {
            let state = match (answer, &self.keys[key]) {
                (Value::Error(text), _) if !text.starts_with(b"BUSYKEY") => {
                    State::Ended(Outcome::Refused(String::from_utf8_lossy(text).into_owned()))
                }
                (Value::Simple(_), State::Copied { dump, .. }) => {
                    State::Placed { bytes: dump.len() }
                }
                // Somebody was quicker. What is in place stays.
                _ => State::Placed { bytes: 0 },
            };
            self.set(key, state);
        }
        self.go_on()
    }

    // 4) Take the old copy away.

    fn unlink(&mut self) -> Step {
        self.stage = Stage::Unlink;
        let mut batch = Batch::default();
        self.push_for_all(&mut batch, b"UNLINK", &self.placed());
        batch.ask(self.route.from)
    }

    fn placed(&self) -> Vec<Vec<u8>> {
        self.those(|state| matches!(state, State::Placed { .. }))
    }

    fn on_unlinked(&mut self, answers: &[Value]) -> Step {
        if let Some(wrong) = answers.iter().find(|answer| !matches!(answer, Value::Integer(_))) {
            return unexpected(self.route.from, Some(wrong));
        }
        for state in self.keys.values_mut() {
            if let State::Placed { bytes } = *state {
                *state = State::Ended(Outcome::Moved { bytes });
            }
        }
        self.go_on()
    }

    // 5) Delete the markers that did not go with a RESTORE.

    fn unmark(&mut self) -> Step {
        self.stage = Stage::Unmark;
        let keys = self.those(|state| matches!(state, State::MarkerLeft));
        let mut batch = Batch::default();
        self.push_for_all(&mut batch, b"DEL", &markers(&keys));
        if self.transactions == Transactions::BySlot {
            return batch.ask(self.route.to);
        }
        // They are still watched if nothing was restored.
        batch.push(&[b"UNWATCH"]);
        batch.ask_on(self.route.to, Lane::Own)
    }

    fn on_unmarked(&mut self) -> Step {
        for state in self.keys.values_mut() {
            if *state == State::MarkerLeft {
                *state = State::Ended(Outcome::Gone);
            }
        }
        self.go_on()
    }
}

impl Job for MoveJob {
    fn start(&mut self) -> Step {
        if self.keys.is_empty() { Step::Done(Answer::Nothing) } else { self.mark() }
    }

    fn on_answers(&mut self, answers: &[Value]) -> Step {
        let server = match self.stage {
            Stage::Copy | Stage::Unlink => self.route.from,
            Stage::Mark | Stage::Watch | Stage::Restore | Stage::Unmark => self.route.to,
        };
        let restoring = matches!(self.stage, Stage::Restore);
        if let (Some(first), false) = (error(answers), restoring) {
            return unexpected(server, Some(first));
        }
        match self.stage {
            Stage::Mark => self.on_marked(answers),
            Stage::Copy => self.on_copied(answers),
            Stage::Watch => self.on_watched(answers),
            Stage::Restore => self.on_restored(answers),
            Stage::Unlink => self.on_unlinked(answers),
            Stage::Unmark => self.on_unmarked(),
        }
    }

    fn on_waited(&mut self) -> Step {
        self.mark()
    }
}

fn markers(keys: &[Vec<u8>]) -> Vec<Vec<u8>> {
    keys.iter().map(|key| names::marker(key)).collect()
}

/// Watches markers, and asks whose they are.
fn push_watch(batch: &mut Batch, markers: &[Vec<u8>]) {
    for name in [b"WATCH".as_slice(), b"MGET"] {
        let name = std::iter::once(name);
        batch.push(&name.chain(markers.iter().map(Vec::as_slice)).collect::<Vec<_>>());
    }
}

/// What TIME answers: seconds and microseconds.
pub(crate) fn milliseconds(time: &Value) -> Option<u64> {
    let [seconds, micros] = items(Some(time))? else { return None };
    let number = |value: &Value| resp::parse_integer(value.text()?)?.try_into().ok();
    let (seconds, micros): (u64, u64) = (number(seconds)?, number(micros)?);
    Some(seconds * 1000 + micros / 1000)
}

/// What DUMP and PTTL say together; `None` if that is nonsense.
fn copied(now_ms: u64, dump: &Value, ttl: &Value) -> Option<State> {
    match (dump, ttl) {
        // Not there, or expired since.
        (Value::Null, _) | (_, Value::Integer(-2)) => Some(State::MarkerLeft),
        (Value::Bulk(dump), Value::Integer(ttl)) => {
            let expires_ms = u64::try_from(*ttl).ok().map(|ttl| now_ms + ttl);
            Some(State::Copied { dump: dump.clone(), expires_ms })
        }
        _ => None,
    }
}

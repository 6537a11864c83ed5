//! Moves a batch of keys from one server to another. Each key's move is safe by itself.
//!
//! ~~~text
//! to    SET marker token NX PX     who may move this key
//! to    WATCH marker; MGET marker  is it our token?
//! from  TIME; DUMP, PTTL           the value, and when it expires
//! to    MULTI RESTORE; DEL marker; EXEC
//! from  UNLINK key
//! ~~~
//!
//! While a migration runs nobody writes at the old server, so the data there is frozen, and a key gone from
//! there never comes back. The marker means "somebody holds a copy that is not restored yet". Every first
//! write at the new server deletes it, and then the WATCH makes the restore of that copy fail. Deleting a
//! marker is therefore always safe, whoever does it; it costs the marker's owner a restart. For the same
//! reason the RESTORE may delete the marker: only the old copy remains to be deleted, which needs no permission.
//!
//! The first two lines are sent together. If a server is a cluster they cannot be, since all watched keys
//! must be in one slot; there the job watches each slot's keys just before their transaction.
//!
//! The migrator runs this job for its batches, and `write.rs` for the keys of one command. Keys too large for
//! one DUMP go through `big.rs`.

use std::collections::BTreeMap;

use placement::Slot;
use resp::Value;

use crate::job::{Answer, Batch, Job, Lane, Step, error, items, unexpected};
use crate::names;
use crate::view::Route;

/// Lifetime of a marker whose owner dies. Any length is safe, since the transaction that restores checks the
/// token; it bounds how long writers wait for a dead mover.
pub const MARKER_MS: u64 = 3_000;
/// Interval between checks of another mover's marker.
pub(crate) const RETRY_MS: u64 = 5;

/// A unique token: the process's own number and a counter. The shell chooses it.
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

/// Safeguards of a move. Production always uses all of them; tests leave one out to show its purpose.
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
    /// True after an aborted transaction: keys then move one at a time, so that one cannot abort the others.
    singly: bool,
    transactions: Transactions,
    /// The keys that are being restored.
    placing: Vec<Vec<u8>>,
}

/// Rule for which keys may share a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Transactions {
    /// All of them.
    Whole,
    /// Keys of one slot: one of the two servers is a cluster.
    BySlot,
}

#[derive(Clone, PartialEq, Debug)]
enum State {
    /// Not started, or to be started again.
    Waiting,
    /// The marker carries our token.
    Marked,
    Copied {
        dump: Vec<u8>,
        expires_ms: Option<u64>,
    },
    /// The new server has it: the old copy may be deleted.
    Placed {
        bytes: usize,
    },
    /// There was nothing to move; our marker remains to be deleted.
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

/// Outcome of moving a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Moved. `bytes` is its size on the wire; 0 if the new server already had it.
    Moved { bytes: usize },
    /// Already gone from the old server, or expired.
    Gone,
    /// Still at the old server; the text is the server's error.
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

    /// Restricts each transaction to keys of one slot, for a route from or to a cluster.
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

    /// Returns the outcome of each key, once the job is done.
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

    /// Returns a key that the new server refuses, with the reason.
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

    /// Groups the keys that may share a transaction.
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

    /// Pushes a command that takes any number of keys, with as many keys per command as allowed.
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

    /// Continues with the first stage that has work to do.
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

    // 1) Claim the key with a marker. RESTORE shows later whether the new server already has the key.

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
                // Drop the watches of an earlier, failed attempt.
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

    /// Marks the keys whose marker carries our token: from this attempt, or from an earlier failed one whose
    /// marker still exists.
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

    /// Restarts those of `keys` whose marker carries another token.
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

    // 2) Copy it, with the time it expires.

    fn copy(&mut self) -> Step {
        self.stage = Stage::Copy;
        let mut batch = Batch::default();
        // TIME comes first: whatever comes in between, the key never lives longer than it would have.
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

    // 3) Restore it at the new server, unless somebody has revoked the permission by deleting the marker.

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

    /// Returns the keys being restored whose marker was still ours at the last check.
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
                // A TTL of 0 means no expiry, whatever ABSTTL says.
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
            // A marker has changed, so the copies may be stale. Restart, one key at a time.
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
                // The key already exists there (BUSYKEY): somebody was quicker, and that value stays.
                _ => State::Placed { bytes: 0 },
            };
            self.set(key, state);
        }
        self.go_on()
    }

    // 4) Delete the old copy.

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

    // 5) Delete the markers that were not deleted together with a RESTORE.

    fn unmark(&mut self) -> Step {
        self.stage = Stage::Unmark;
        let keys = self.those(|state| matches!(state, State::MarkerLeft));
        let mut batch = Batch::default();
        self.push_for_all(&mut batch, b"DEL", &markers(&keys));
        if self.transactions == Transactions::BySlot {
            return batch.ask(self.route.to);
        }
        // The markers are still watched if nothing was restored.
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

/// Watches markers and reads their tokens.
fn push_watch(batch: &mut Batch, markers: &[Vec<u8>]) {
    for name in [b"WATCH".as_slice(), b"MGET"] {
        let name = std::iter::once(name);
        batch.push(&name.chain(markers.iter().map(Vec::as_slice)).collect::<Vec<_>>());
    }
}

/// Converts the answer to TIME (seconds and microseconds) to milliseconds.
pub(crate) fn milliseconds(time: &Value) -> Option<u64> {
    let [seconds, micros] = items(Some(time))? else { return None };
    let number = |value: &Value| resp::parse_integer(value.text()?)?.try_into().ok();
    let (seconds, micros): (u64, u64) = (number(seconds)?, number(micros)?);
    Some(seconds * 1000 + micros / 1000)
}

/// Interprets the answers to DUMP and PTTL; `None` if they make no sense.
fn copied(now_ms: u64, dump: &Value, ttl: &Value) -> Option<State> {
    match (dump, ttl) {
        // The key does not exist, or has expired since.
        (Value::Null, _) | (_, Value::Integer(-2)) => Some(State::MarkerLeft),
        (Value::Bulk(dump), Value::Integer(ttl)) => {
            let expires_ms = u64::try_from(*ttl).ok().map(|ttl| now_ms + ttl);
            Some(State::Copied { dump: dump.clone(), expires_ms })
        }
        _ => None,
    }
}

//! Moves a large key: the job collects its elements under another name at the new server, a chunk at a time,
//! then reads all of them a second time and compares, and renames that key when all are there. No server is
//! blocked for longer than a chunk takes.
//!
//! ~~~text
//! to    SET marker token NX PX
//! from  read a chunk; to: WATCH marker, add the chunk           until the end (cursor 0), not until a page is empty
//! from  read a chunk; to: read the same elements, compare       until the end again
//! to    WATCH marker; compare the counts of old and new; RENAMENX; expiry; DEL marker
//! from  UNLINK key
//! ~~~
//!
//! The rules are those of `moving.rs`: the marker is ours, and every transaction at the new server checks it,
//! so that only one of two movers adds to the collected elements. Meanwhile readers read at the old server,
//! and writers wait for the marker. `big/elements.rs` knows how to read and write each type.
//!
//! `write.rs` and the migrator create it for keys over [`crate::write::BIG_BYTES`], and for keys that the new
//! server does not accept as a dump. Unknown types move whole, and so do streams with groups (`big/stream.rs`
//! says why).

mod elements;
mod stream;

use resp::Value;

use crate::config::Server;
use crate::job::{Answer, Batch, Input, Job, Lane, Step, error, items, unexpected};
use crate::moving::{MARKER_MS, MoveJob, Outcome, RETRY_MS, Token, milliseconds};
use crate::names;
use crate::view::Route;
use elements::{Chunk, Elements};
use stream::Facts;

/// Lifetime of the collected elements after their mover dies.
const DATA_MS: u64 = 60_000;
/// Number of copies that may turn out incomplete before the key is left at the old server.
const INCOMPLETE_MAX: usize = 3;

#[derive(Clone, PartialEq, Debug)]
pub struct BigMoveJob {
    route: Route,
    token: Token,
    key: Vec<u8>,
    stage: Stage,
    pass: Pass,
    elements: Option<Elements>,
    /// Number of elements that the old server counts.
    total: Value,
    expires_ms: Option<u64>,
    /// False once the old server has said that fields of a hash cannot expire there.
    may_expire_fields: bool,
    /// True if some field of the hash expires by itself: then counts may differ by expired ones.
    has_expiring_fields: bool,
    /// Number of copies that turned out incomplete.
    incomplete: usize,
    /// Bytes moved so far.
    bytes: usize,
    outcome: Option<Outcome>,
    /// The key's type, as the old server names it.
    kind: Vec<u8>,
    /// True if the new server does not support this type.
    foreign: bool,
}

#[derive(Clone, PartialEq, Debug)]
enum Stage {
    Look,
    /// The key is a stream: check whether it has groups.
    LookAtStream,
    /// The type moves whole.
    Whole(Box<MoveJob>),
    Mark,
    Read,
    /// Ask when the fields of this chunk expire.
    ReadExpiries(Chunk),
    /// Check the marker before `Then`.
    Watch(Then),
    Add,
    /// Compare this chunk with what the new server has collected.
    Compare(Chunk),
    Rename,
    Unlink,
    Unmark,
}

#[derive(Clone, PartialEq, Debug)]
enum Then {
    Add(Chunk),
    SetFacts,
    Rename,
}

/// Purpose of reading the elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pass {
    Copy,
    Compare,
}

impl BigMoveJob {
    pub fn new(route: Route, token: Token, key: Vec<u8>) -> BigMoveJob {
        BigMoveJob {
            route,
            token,
            key,
            stage: Stage::Look,
            pass: Pass::Copy,
            elements: None,
            total: Value::Null,
            expires_ms: None,
            may_expire_fields: true,
            has_expiring_fields: false,
            incomplete: 0,
            bytes: 0,
            outcome: None,
            kind: Vec::new(),
            foreign: false,
        }
    }

    pub fn key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) fn route(&self) -> Route {
        self.route
    }

    /// Returns the number of bytes moved so far.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the outcome for the key, once the job is done.
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Returns the key's type if the new server refused it because it does not support the type. Then no copy
    /// of such a key can ever be restored there, whoever holds one.
    pub(crate) fn foreign_type(&self) -> Option<&[u8]> {
        self.foreign.then_some(self.kind.as_slice())
    }

    fn end(&mut self, outcome: Outcome) -> Step {
        self.outcome = Some(outcome);
        Step::Done(Answer::Nothing)
    }

    // 0) Ask for its type and its expiry.

    fn look(&mut self) -> Step {
        self.stage = Stage::Look;
        self.pass = Pass::Copy;
        self.has_expiring_fields = false;
        self.bytes = 0;
        let mut batch = Batch::default();
        batch.push(&[b"MULTI"]);
        batch.push(&[b"TYPE", &self.key]);
        batch.push(&[b"PTTL", &self.key]);
        batch.push(&[b"TIME"]);
        batch.push(&[b"EXEC"]);
        batch.ask(self.route.from)
    }

    fn on_looked(&mut self, answers: &[Value]) -> Step {
        let Some([kind, Value::Integer(ttl), time]) = items(answers.last()) else {
            return unexpected(self.route.from, answers.last());
        };
        let (Some(kind), Some(now_ms)) = (kind.text(), milliseconds(time)) else {
            return unexpected(self.route.from, answers.last());
        };
        self.expires_ms = u64::try_from(*ttl).ok().map(|ttl| now_ms + ttl);
        self.kind = kind.to_vec();
        if kind == b"none" {
            return self.end(Outcome::Gone);
        }
        if kind == b"stream" {
            self.stage = Stage::LookAtStream;
            let mut batch = Batch::default();
            Facts::ask(&self.key, &mut batch);
            return batch.ask(self.route.from);
        }
        self.elements = Elements::of_type(kind);
        self.by_elements_or_whole()
    }

    fn on_looked_at_stream(&mut self, answers: &[Value]) -> Step {
        let Some(facts) = answers.first().and_then(Facts::read) else {
            return unexpected(self.route.from, answers.first());
        };
        self.elements = Elements::of_stream(facts);
        self.by_elements_or_whole()
    }

    fn by_elements_or_whole(&mut self) -> Step {
        if self.elements.is_some() {
            return self.mark();
        }
        let job = MoveJob::new(self.route, self.token.clone(), [self.key.clone()]);
        self.stage = Stage::Whole(Box::new(job));
        self.whole(Input::Start)
    }

    fn whole(&mut self, input: Input<'_>) -> Step {
        let Stage::Whole(job) = &mut self.stage else { unreachable!("it travels whole") };
        let step = job.take(input);
        self.outcome = job.outcomes().next().map(|(_, outcome)| outcome.clone());
        step
    }

    // 1) Claim the key with a marker.

    fn mark(&mut self) -> Step {
        self.stage = Stage::Mark;
        let marker = names::marker(&self.key);
        let mut digits = itoa::Buffer::new();
        let lifetime = digits.format(MARKER_MS).as_bytes();
        let mut batch = Batch::default();
        batch.push(&[b"SET", &marker, self.token.bytes(), b"NX", b"PX", lifetime]);
        batch.push(&[b"GET", &marker]);
        batch.push(&[b"EXISTS", &self.key]);
        batch.ask(self.route.to)
    }

    /// The marker is ours also if an attempt before has left it.
    fn on_marked(&mut self, answers: &[Value]) -> Step {
        match answers {
            [_, token, Value::Integer(0)] if self.is_ours(token) => self.read(),
            [_, token, _] if self.is_ours(token) => self.unlink(),
            _ => Step::Wait(RETRY_MS),
        }
    }

    fn is_ours(&self, token: &Value) -> bool {
        token.text() == Some(self.token.bytes())
    }

    fn elements(&self) -> &Elements {
        self.elements.as_ref().expect("its type is known")
    }

    // 2) Read a chunk, and in the same transaction whether the key still exists: an expired key reads like
    //    one that has been read to its end.

    fn read(&mut self) -> Step {
        self.stage = Stage::Read;
        let mut batch = Batch::default();
        batch.push(&[b"MULTI"]);
        batch.push(&[b"EXISTS", &self.key]);
        self.elements().count(&self.key, &mut batch);
        self.elements().read(&self.key, &mut batch);
        batch.push(&[b"EXEC"]);
        batch.ask(self.route.from)
    }

    fn on_read(&mut self, answers: &[Value]) -> Step {
        let Some([exists, total, chunk]) = items(answers.last()) else {
            return unexpected(self.route.from, answers.last());
        };
        if exists == &Value::Integer(0) {
            return self.unmark(Outcome::Gone);
        }
        if matches!(chunk, Value::Error(text) if text.starts_with(b"WRONGTYPE")) {
            // Clients write a key of an unmovable type at the old server; this key has changed its type meanwhile.
            return self.unmark_and_look_again();
        }
        self.total = total.clone();
        let elements = self.elements.as_mut().expect("its type is known");
        let Some(chunk) = elements.take(chunk) else {
            return unexpected(self.route.from, Some(chunk));
        };
        if elements.is_hash() && self.may_expire_fields && !chunk.is_empty() {
            return self.read_expiries(chunk);
        }
        self.with_chunk(chunk)
    }

    fn read_expiries(&mut self, chunk: Chunk) -> Step {
        let mut batch = Batch::default();
        chunk.ask_expiries(&self.key, &mut batch);
        self.stage = Stage::ReadExpiries(chunk);
        batch.ask(self.route.from)
    }

    fn on_read_expiries(&mut self, chunk: Chunk, answers: &[Value]) -> Step {
        let Some(chunk) = answers.first().and_then(|times| chunk.take_expiries(times)) else {
            // The key is gone or has changed its type.
            return self.start_over();
        };
        self.has_expiring_fields |= chunk.has_expiries();
        self.with_chunk(chunk)
    }

    fn with_chunk(&mut self, chunk: Chunk) -> Step {
        match self.pass {
            _ if chunk.is_empty() => self.go_on(),
            Pass::Copy => self.watch(Then::Add(chunk)),
            Pass::Compare => self.compare(chunk),
        }
    }

    /// Reads on, or takes the next step if all elements have been read.
    fn go_on(&mut self) -> Step {
        match self.pass {
            _ if !self.elements().at_end() => self.read(),
            Pass::Copy if self.elements().has_facts() => self.watch(Then::SetFacts),
            Pass::Copy => self.read_again(),
            Pass::Compare => self.watch(Then::Rename),
        }
    }

    /// Begins to read for the second time.
    fn read_again(&mut self) -> Step {
        self.pass = Pass::Compare;
        self.elements.as_mut().expect("its type is known").restart();
        self.read()
    }

    // 3) Check that it is still ours to move. The key itself is watched too, for the rename.

    fn watch(&mut self, then: Then) -> Step {
        let marker = names::marker(&self.key);
        let mut batch = Batch::default();
        batch.push(&[b"WATCH", &marker, &self.key]);
        batch.push(&[b"GET", &marker]);
        batch.push(&[b"EXISTS", &self.key]);
        if then == Then::Rename {
            self.elements().count(&names::data(&self.key), &mut batch);
        }
        self.stage = Stage::Watch(then);
        batch.ask_on(self.route.to, Lane::Own)
    }

    fn on_watched(&mut self, then: &Then, answers: &[Value]) -> Step {
        if !self.is_ours(&answers[1]) || answers[2] != Value::Integer(0) {
            return self.start_over();
        }
        match then {
            Then::Add(chunk) => self.add(chunk),
            Then::SetFacts => self.set_facts(),
            Then::Rename if !self.has_expiring_fields && answers.get(3) != Some(&self.total) => {
                self.not_complete()
            }
            Then::Rename => self.rename(),
        }
    }

    /// Starts over because the new server has not collected exactly the elements of the old one.
    fn not_complete(&mut self) -> Step {
        self.incomplete += 1;
        if self.incomplete < INCOMPLETE_MAX {
            return self.start_over();
        }
        let times = self.incomplete;
        let why = format!("its copy differed from the original {times} times, so it was not moved");
        self.unmark(Outcome::Refused(why))
    }

    /// Starts over after losing the permission. The next mover deletes the collected elements.
    fn start_over(&mut self) -> Step {
        self.stage = Stage::Look;
        Step::Wait(RETRY_MS)
    }

    fn add(&mut self, chunk: &Chunk) -> Step {
        let data = names::data(&self.key);
        let mut batch = self.collecting();
        if self.bytes == 0 {
            batch.push(&[b"DEL", &data]);
        }
        self.elements().add(&data, chunk, &mut batch);
        self.bytes += chunk.bytes().max(1);
        self.end_collecting(batch)
    }

    fn set_facts(&mut self) -> Step {
        let mut batch = self.collecting();
        self.elements().set_facts(&names::data(&self.key), &mut batch);
        self.pass = Pass::Compare;
        self.elements.as_mut().expect("its type is known").restart();
        self.end_collecting(batch)
    }

    /// Begins a transaction on the collected elements.
    fn collecting(&self) -> Batch {
        let mut digits = itoa::Buffer::new();
        let mut batch = Batch::default();
        batch.push(&[b"MULTI"]);
        let marker = names::marker(&self.key);
        batch.push(&[b"PEXPIRE", &marker, digits.format(MARKER_MS).as_bytes()]);
        batch
    }

    fn end_collecting(&mut self, mut batch: Batch) -> Step {
        self.stage = Stage::Add;
        let mut digits = itoa::Buffer::new();
        let data = names::data(&self.key);
        batch.push(&[b"PEXPIRE", &data, digits.format(DATA_MS).as_bytes()]);
        batch.push(&[b"EXEC"]);
        batch.ask_on(self.route.to, Lane::Own)
    }

    fn on_added(&mut self, answers: &[Value]) -> Step {
        match items(answers.last()) {
            None => self.start_over(),
            // EXEC itself succeeds although a command in it was refused: what was collected is not whole.
            Some(replies) if error(replies).is_some() => self.refused_in(replies),
            Some(_) => self.go_on(),
        }
    }

    fn refused_in(&mut self, replies: &[Value]) -> Step {
        let why = error(replies).map(ToString::to_string).unwrap_or_default();
        self.unmark(Outcome::Refused(why))
    }

    // 4) All elements were read: read them again, and compare them with what the new server has collected.

    fn compare(&mut self, chunk: Chunk) -> Step {
        let (marker, data) = (names::marker(&self.key), names::data(&self.key));
        let mut digits = itoa::Buffer::new();
        let mut batch = Batch::default();
        // A mover that has taken over the key lives a little longer by this: no harm.
        batch.push(&[b"PEXPIRE", &marker, digits.format(MARKER_MS).as_bytes()]);
        batch.push(&[b"PEXPIRE", &data, digits.format(DATA_MS).as_bytes()]);
        batch.push(&[b"GET", &marker]);
        self.elements().read_copy(&data, &chunk, &mut batch);
        self.stage = Stage::Compare(chunk);
        batch.ask(self.route.to)
    }

    fn on_compared(&mut self, chunk: &Chunk, answers: &[Value]) -> Step {
        let [_, _, token, copy @ ..] = answers else {
            return unexpected(self.route.to, answers.first());
        };
        if !self.is_ours(token) {
            return self.start_over();
        }
        if self.elements().is_copied(chunk, copy) { self.go_on() } else { self.not_complete() }
    }

    // 5) All elements are there: rename the key, set its expiry, delete the marker.

    fn rename(&mut self) -> Step {
        self.stage = Stage::Rename;
        let (marker, data) = (names::marker(&self.key), names::data(&self.key));
        let mut digits = itoa::Buffer::new();
        let mut batch = Batch::default();
        batch.push(&[b"MULTI"]);
        batch.push(&[b"RENAMENX", &data, &self.key]);
        match self.expires_ms {
            None => batch.push(&[b"PERSIST", &self.key]),
            Some(at) => batch.push(&[b"PEXPIREAT", &self.key, digits.format(at).as_bytes()]),
        }
        batch.push(&[b"DEL", &marker]);
        batch.push(&[b"EXEC"]);
        batch.ask_on(self.route.to, Lane::Own)
    }

    fn on_renamed(&mut self, answers: &[Value]) -> Step {
        match items(answers.last()) {
            None => self.start_over(),
            // The collected elements have expired.
            Some([Value::Error(_), ..]) => self.not_complete(),
            Some([Value::Integer(1), rest @ ..]) if error(rest).is_none() => self.unlink(),
            Some([Value::Integer(1), rest @ ..]) => self.refused_in(rest),
            Some(_) => self.start_over(),
        }
    }

    /// Leaves a key that the new server refuses at the old one, and deletes the marker so that nobody waits for it.
    fn on_error(&mut self, server: Server, answer: &Value) -> Step {
        match (&self.stage, answer) {
            // The stream is gone meanwhile; the next look finds nothing.
            (Stage::LookAtStream, Value::Error(_)) => self.start_over(),
            (Stage::ReadExpiries(chunk), Value::Error(text))
                if text.starts_with(b"ERR unknown command") =>
            {
                let chunk = chunk.clone();
                self.may_expire_fields = false;
                self.with_chunk(chunk)
            }
            (Stage::ReadExpiries(_), Value::Error(text)) if text.starts_with(b"WRONGTYPE") => {
                self.start_over()
            }
            // The type is supported, so this is no key that can never be restored there.
            (Stage::Add, Value::Error(text))
                if text.starts_with(b"ERR unknown command 'HPEXPIRE") =>
            {
                let why = "its new server does not support expiries of fields";
                self.unmark(Outcome::Refused(why.to_owned()))
            }
            (Stage::Add, Value::Error(text)) if text.starts_with(b"ERR unknown command") => {
                self.foreign = true;
                let why = "its new server does not support this type";
                self.unmark(Outcome::Refused(why.to_owned()))
            }
            (Stage::Add | Stage::Rename, Value::Error(text)) => {
                self.unmark(Outcome::Refused(String::from_utf8_lossy(text).into_owned()))
            }
            _ => unexpected(server, Some(answer)),
        }
    }

    // 6) Delete the old copy, and the marker if it still exists.

    fn unlink(&mut self) -> Step {
        self.stage = Stage::Unlink;
        let mut batch = Batch::default();
        batch.push(&[b"UNLINK", &self.key]);
        batch.ask(self.route.from)
    }

    fn unmark(&mut self, outcome: Outcome) -> Step {
        self.outcome = Some(outcome);
        self.delete_marker()
    }

    fn unmark_and_look_again(&mut self) -> Step {
        self.outcome = None;
        self.delete_marker()
    }

    fn delete_marker(&mut self) -> Step {
        self.stage = Stage::Unmark;
        let mut batch = Batch::default();
        batch.push(&[b"DEL", &names::marker(&self.key)]);
        batch.ask(self.route.to)
    }
}

impl Job for BigMoveJob {
    fn start(&mut self) -> Step {
        self.look()
    }

    fn on_answers(&mut self, answers: &[Value]) -> Step {
        if let Stage::Whole(_) = self.stage {
            return self.whole(Input::Answers(answers));
        }
        let server = match self.stage {
            Stage::Look
            | Stage::LookAtStream
            | Stage::Read
            | Stage::ReadExpiries(_)
            | Stage::Unlink
            | Stage::Whole(_) => self.route.from,
            Stage::Mark
            | Stage::Watch(_)
            | Stage::Add
            | Stage::Compare(_)
            | Stage::Rename
            | Stage::Unmark => self.route.to,
        };
        if let Some(first) = error(answers) {
            return self.on_error(server, first);
        }
        match self.stage.clone() {
            Stage::Look => self.on_looked(answers),
            Stage::LookAtStream => self.on_looked_at_stream(answers),
            Stage::Mark => self.on_marked(answers),
            Stage::Read => self.on_read(answers),
            Stage::ReadExpiries(chunk) => self.on_read_expiries(chunk, answers),
            Stage::Watch(then) => self.on_watched(&then, answers),
            Stage::Add => self.on_added(answers),
            Stage::Compare(chunk) => self.on_compared(&chunk, answers),
            Stage::Rename => self.on_renamed(answers),
            Stage::Unlink => self.unmark(Outcome::Moved { bytes: self.bytes }),
            Stage::Unmark if self.outcome.is_none() => self.look(),
            Stage::Unmark => Step::Done(Answer::Nothing),
            Stage::Whole(_) => unreachable!("it was sent on above"),
        }
    }

    fn on_waited(&mut self) -> Step {
        if let Stage::Whole(_) = self.stage {
            return self.whole(Input::Waited);
        }
        self.look()
    }
}

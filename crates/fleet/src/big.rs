//! Moves a large key: the job collects its elements under another name at the new server, a chunk at a time,
//! and renames that key when all are there. No server is blocked for longer than a chunk takes.
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
use elements::Elements;
use stream::Facts;

/// Lifetime of the collected elements after their mover dies.
const DATA_MS: u64 = 60_000;

#[derive(Clone, PartialEq, Debug)]
pub struct BigMoveJob {
    route: Route,
    token: Token,
    key: Vec<u8>,
    stage: Stage,
    elements: Option<Elements>,
    expires_ms: Option<u64>,
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
    /// Check the marker before `Then`.
    Watch(Then),
    Add,
    Rename,
    Unlink,
    Unmark,
}

#[derive(Clone, PartialEq, Debug)]
enum Then {
    /// Add this chunk.
    Add(Vec<Vec<u8>>),
    Rename,
}

impl BigMoveJob {
    pub fn new(route: Route, token: Token, key: Vec<u8>) -> BigMoveJob {
        BigMoveJob {
            route,
            token,
            key,
            stage: Stage::Look,
            elements: None,
            expires_ms: None,
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
        batch.push(&[b"EXISTS", &self.key]);
        batch.ask(self.route.to)
    }

    fn on_marked(&mut self, answers: &[Value]) -> Step {
        match answers {
            [Value::Null, _] => Step::Wait(RETRY_MS),
            [_, Value::Integer(0)] => self.read(),
            _ => self.unlink(),
        }
    }

    // 2) Read a chunk, and in the same transaction whether the key still exists: an expired key reads like
    //    one that has been read to its end.

    fn read(&mut self) -> Step {
        self.stage = Stage::Read;
        let mut batch = Batch::default();
        batch.push(&[b"MULTI"]);
        batch.push(&[b"EXISTS", &self.key]);
        self.elements.as_ref().expect("its type is known").read(&self.key, &mut batch);
        batch.push(&[b"EXEC"]);
        batch.ask(self.route.from)
    }

    fn on_read(&mut self, answers: &[Value]) -> Step {
        let Some([exists, chunk]) = items(answers.last()) else {
            return unexpected(self.route.from, answers.last());
        };
        if exists == &Value::Integer(0) {
            return self.unmark(Outcome::Gone);
        }
        if matches!(chunk, Value::Error(text) if text.starts_with(b"WRONGTYPE")) {
            // Clients write a key of an unmovable type at the old server; this key has changed its type meanwhile.
            return self.unmark_and_look_again();
        }
        let elements = self.elements.as_mut().expect("its type is known");
        match elements.take(chunk) {
            Some(chunk) if chunk.is_empty() => self.watch(Then::Rename),
            Some(chunk) => self.watch(Then::Add(chunk)),
            None => unexpected(self.route.from, Some(chunk)),
        }
    }

    // 3) Check that it is still ours to move. The key itself is watched too, for the rename.

    fn watch(&mut self, then: Then) -> Step {
        self.stage = Stage::Watch(then);
        let marker = names::marker(&self.key);
        let mut batch = Batch::default();
        batch.push(&[b"WATCH", &marker, &self.key]);
        batch.push(&[b"GET", &marker]);
        batch.push(&[b"EXISTS", &self.key]);
        batch.ask_on(self.route.to, Lane::Own)
    }

    fn on_watched(&mut self, then: &Then, answers: &[Value]) -> Step {
        let ours = answers[1].text() == Some(self.token.bytes());
        if !ours || answers[2] != Value::Integer(0) {
            return self.start_over();
        }
        match then {
            Then::Add(chunk) => self.add(chunk),
            Then::Rename => self.rename(),
        }
    }

    /// Starts over after losing the permission. The next mover deletes the collected elements.
    fn start_over(&mut self) -> Step {
        self.stage = Stage::Look;
        Step::Wait(RETRY_MS)
    }

    fn add(&mut self, chunk: &[Vec<u8>]) -> Step {
        self.stage = Stage::Add;
        let (marker, data) = (names::marker(&self.key), names::data(&self.key));
        let mut digits = itoa::Buffer::new();
        let mut batch = Batch::default();
        batch.push(&[b"MULTI"]);
        batch.push(&[b"PEXPIRE", &marker, digits.format(MARKER_MS).as_bytes()]);
        if self.bytes == 0 {
            batch.push(&[b"DEL", &data]);
        }
        self.elements.as_ref().expect("its type is known").add(&data, chunk, &mut batch);
        batch.push(&[b"PEXPIRE", &data, digits.format(DATA_MS).as_bytes()]);
        batch.push(&[b"EXEC"]);
        self.bytes += chunk.iter().map(Vec::len).sum::<usize>().max(1);
        batch.ask_on(self.route.to, Lane::Own)
    }

    fn on_added(&mut self, answers: &[Value]) -> Step {
        match items(answers.last()) {
            None => self.start_over(),
            // EXEC itself succeeds although a command in it was refused: what was collected is not whole.
            Some(replies) if error(replies).is_some() => {
                let why = error(replies).map(ToString::to_string).unwrap_or_default();
                self.unmark(Outcome::Refused(why))
            }
            Some(_) if self.elements.as_ref().is_some_and(Elements::at_end) => {
                self.watch(Then::Rename)
            }
            Some(_) => self.read(),
        }
    }

    // 4) All elements are there: rename the key, set its expiry, delete the marker.

    fn rename(&mut self) -> Step {
        self.stage = Stage::Rename;
        let (marker, data) = (names::marker(&self.key), names::data(&self.key));
        let mut digits = itoa::Buffer::new();
        let mut batch = Batch::default();
        batch.push(&[b"MULTI"]);
        self.elements.as_ref().expect("its type is known").finish(&data, &mut batch);
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
            // Aborted, or the collected elements have expired.
            None | Some([.., Value::Error(_), _, _]) => self.start_over(),
            Some(_) => self.unlink(),
        }
    }

    /// Leaves a key that the new server refuses at the old one, and deletes the marker so that nobody waits for it.
    fn on_error(&mut self, server: Server, answer: &Value) -> Step {
        match (&self.stage, answer) {
            // The stream is gone meanwhile; the next look finds nothing.
            (Stage::LookAtStream, Value::Error(_)) => self.start_over(),
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

    // 5) Delete the old copy, and the marker if it still exists.

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
            Stage::Look | Stage::LookAtStream | Stage::Read | Stage::Unlink | Stage::Whole(_) => {
                self.route.from
            }
            Stage::Mark | Stage::Watch(_) | Stage::Add | Stage::Rename | Stage::Unmark => {
                self.route.to
            }
        };
        if let Some(first) = error(answers) {
            return self.on_error(server, first);
        }
        match self.stage.clone() {
            Stage::Look => self.on_looked(answers),
            Stage::LookAtStream => self.on_looked_at_stream(answers),
            Stage::Mark => self.on_marked(answers),
            Stage::Read => self.on_read(answers),
            Stage::Watch(then) => self.on_watched(&then, answers),
            Stage::Add => self.on_added(answers),
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

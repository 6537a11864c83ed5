//! A job: a sequence of commands to servers, each determined by the answers to those before. It touches no
//! socket; its runner sends what it asks for and passes in the answers. The proxy, the migrator and the tests
//! that try every interleaving run the same jobs.
//!
//! Three rules for the runner:
//!
//! 1. A job belongs to the epoch it was created in. Its commands go only over connections whose name carries
//!    that epoch. If such a connection is lost or renamed, the job is over: create a new one.
//! 2. Dropping a job at any moment is safe, just like a crash. If it is dropped between asking and receiving
//!    the answers, its last command may or may not have run.
//! 3. The bytes of an [`Ask`] are sent in one piece, and its answers are passed in together. With
//!    [`Lane::Own`], all asks of this job to this server use the same connection, which nobody else uses
//!    until the job has ended or asks with [`Lane::Own`] at another server.

use resp::Value;

use crate::config::Server;

/// Next action of a job.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    Ask(Ask),
    /// Call [`Job::on_waited`] after this many milliseconds.
    Wait(u64),
    Done(Answer),
    /// The error for the requester, with an error code in front. Nothing has changed, except that a key may
    /// have moved.
    Failed(String),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Ask {
    pub server: Server,
    pub lane: Lane,
    /// Commands in wire format.
    pub bytes: Vec<u8>,
    /// Number of expected answers.
    pub answers: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Any connection; other commands may come before and after.
    Shared,
    /// A connection of this job's own, because the job holds a WATCH there.
    Own,
}

/// A job's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Nothing; the job has done its work.
    Nothing,
    /// The answer at index `answer` of those passed in last, or item `item` of that list. This lets the
    /// caller forward the bytes as they came.
    Picked { answer: usize, item: Option<usize> },
}

pub trait Job {
    fn start(&mut self) -> Step;

    /// Takes the answers to the last [`Ask`], exactly as many as it announced.
    fn on_answers(&mut self, answers: &[Value]) -> Step;

    /// Continues after a [`Step::Wait`].
    fn on_waited(&mut self) -> Step;

    /// Passes any of the three inputs to the job.
    fn take(&mut self, input: Input<'_>) -> Step {
        match input {
            Input::Start => self.start(),
            Input::Answers(answers) => self.on_answers(answers),
            Input::Waited => self.on_waited(),
        }
    }
}

/// An input that advances a job.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    Start,
    Answers(&'a [Value]),
    Waited,
}

/// Builder that collects commands into one [`Ask`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    answers: usize,
}

impl Batch {
    pub(crate) fn push(&mut self, args: &[&[u8]]) {
        resp::encode_command(&mut self.bytes, args);
        self.answers += 1;
    }

    pub(crate) fn ask(self, server: Server) -> Step {
        self.ask_on(server, Lane::Shared)
    }

    pub(crate) fn ask_on(self, server: Server, lane: Lane) -> Step {
        Step::Ask(Ask { server, lane, bytes: self.bytes, answers: self.answers })
    }
}

/// Fails the job because a server answered with an error, or with something no Redis server answers there.
pub(crate) fn unexpected(server: Server, answer: Option<&Value>) -> Step {
    let shown = answer.map_or_else(|| "nothing".to_owned(), ToString::to_string);
    Step::Failed(format!("ERR server {} of the fleet answered {shown}", server.0))
}

/// Returns the first error among the answers.
pub(crate) fn error(answers: &[Value]) -> Option<&Value> {
    answers.iter().find(|answer| matches!(answer, Value::Error(_)))
}

/// Returns the items of a list; `None` for anything else, including the null of an aborted EXEC.
pub(crate) fn items(answer: Option<&Value>) -> Option<&[Value]> {
    match answer {
        Some(Value::Array(items)) => Some(items),
        _ => None,
    }
}

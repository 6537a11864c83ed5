//! A job: some commands to servers, each following from the answers to those before. It touches no
//! socket; whoever runs it sends what it asks for and hands in the answers. The proxy, the migrator
//! and the tests that try every interleaving run the same jobs.
//!
//! Three rules for whoever runs one:
//!
//! 1. A job belongs to the epoch it was made in. Its commands go only over connections whose name
//!    carries that epoch. Where such a connection is lost or renamed, the job is over: make a new one.
//! 2. Dropping a job at any moment is safe, a crash is no different. Dropped between asking and
//!    hearing, its last command may or may not have run.
//! 3. What an [`Ask`] holds is sent in one piece, and its answers are handed over together. With
//!    [`Lane::Own`], all asks of this job to this server take the same connection, which nobody else
//!    uses until the job has ended or asks it elsewhere.

use resp::Value;

use crate::config::Server;

/// What a job wants next.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    Ask(Ask),
    /// Call [`Job::on_waited`] after so many milliseconds.
    Wait(u64),
    Done(Answer),
    /// What to tell whoever asked for it, with an error code in front. Nothing was changed but
    /// perhaps a key moved.
    Failed(String),
}

#[derive(Clone, PartialEq, Debug)]
pub struct Ask {
    pub server: Server,
    pub lane: Lane,
    /// Commands as they go over the wire.
    pub bytes: Vec<u8>,
    /// How many answers come back.
    pub answers: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Any connection; others' commands may come before and behind.
    Shared,
    /// A connection of this job's own: it holds a WATCH there.
    Own,
}

/// What a job answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Nothing; it has done what it was made for.
    Nothing,
    /// Among the answers handed in last: the one at `answer`, or of that list the item at `item`. So
    /// that the caller can pass on the bytes as they came.
    Picked { answer: usize, item: Option<usize> },
}

pub trait Job {
    fn start(&mut self) -> Step;

    /// Takes the answers to the last [`Ask`]: as many as it said.
    fn on_answers(&mut self, answers: &[Value]) -> Step;

    /// Called when a [`Step::Wait`] is over.
    fn on_waited(&mut self) -> Step;

    /// Any of the three.
    fn take(&mut self, input: Input<'_>) -> Step {
        match input {
            Input::Start => self.start(),
            Input::Answers(answers) => self.on_answers(answers),
            Input::Waited => self.on_waited(),
        }
    }
}

/// What moves a job on.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    Start,
    Answers(&'a [Value]),
    Waited,
}

/// Puts commands into one [`Ask`].
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

/// A server answered with an error, or with something no Redis server says there.
pub(crate) fn unexpected(server: Server, answer: Option<&Value>) -> Step {
    let shown = answer.map_or_else(|| "nothing".to_owned(), ToString::to_string);
    Step::Failed(format!("ERR server {} of the fleet answered {shown}", server.0))
}

/// The first error among the answers.
pub(crate) fn error(answers: &[Value]) -> Option<&Value> {
    answers.iter().find(|answer| matches!(answer, Value::Error(_)))
}

/// The items of a list; `None` for anything else, which EXEC's null is too.
pub(crate) fn items(answer: Option<&Value>) -> Option<&[Value]> {
    match answer {
        Some(Value::Array(items)) => Some(items),
        _ => None,
    }
}

//! Clients: each asks for one key at a time, follows `MOVED`, and notes what it was told and when.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::map::NodeId;

use super::linear::{Answer, CALLS_MAX, Call, Op};
use crate::Rng;

/// Names that fall into different buckets; those with a tag share a slot.
pub(super) const KEYS: [&str; 6] = ["a", "b{1}", "c{1}", "count", "e", "f"];
const COUNTER: &str = "count";
/// A key that expires. When it does is the primary's clock's affair, so no order of its own is asked
/// for; but all copies of it must be alike in the end.
pub(super) const BRIEF: &str = "brief";

/// How long a client waits: not all alike, so that one still waits for a node when others know better.
pub(super) fn patience(client: usize) -> Duration {
    Duration::from_millis([3_000, 1_000, 400][client % 3])
}

/// One operation on its way.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub client: usize,
    pub number: u64,
    pub key: &'static str,
    pub op: Op,
}

/// What a client hears.
#[derive(Clone, Debug)]
pub(super) enum Told {
    Answer(Answer),
    /// Ask this node.
    Moved(NodeId),
    /// It has not run, and cannot just now.
    NotNow,
    /// It was said that it has not run.
    NotDone,
    /// The connection is closed: nobody knows.
    Closed,
}

#[derive(Default)]
pub(super) struct Client {
    /// The operation under way: its number, and its place among the key's calls.
    pub waits_for: Option<(Request, usize)>,
    pub asks: Option<NodeId>,
}

pub(super) struct Clients {
    pub all: Vec<Client>,
    pub calls: BTreeMap<&'static str, Vec<Call>>,
    /// Counts all that happens, so that everything has its place in one order.
    moment: u64,
    numbers: u64,
    pub answered: u64,
}

impl Clients {
    pub(super) fn new(count: usize) -> Clients {
        Clients {
            all: (0..count).map(|_| Client::default()).collect(),
            calls: BTreeMap::new(),
            moment: 0,
            numbers: 0,
            answered: 0,
        }
    }

    fn next_moment(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    /// The next operation of a client; what it was at before is given up.
    pub(super) fn begin(&mut self, client: usize, rng: &mut Rng) -> Option<Request> {
        let is_brief = rng.below(12) == 0;
        let key = if is_brief { BRIEF } else { *rng.choose(&KEYS).expect("there are keys") };
        let op = self.draw_op(key, rng);
        self.begin_with(client, key, op)
    }

    pub(super) fn begin_with(
        &mut self,
        client: usize,
        key: &'static str,
        op: Op,
    ) -> Option<Request> {
        self.all[client].waits_for = None;
        let called = self.next_moment();
        self.numbers += 1;
        let request = Request { client, number: self.numbers, key, op: op.clone() };
        let calls = self.calls.entry(key).or_default();
        if calls.len() >= CALLS_MAX {
            return None;
        }
        calls.push(Call { op, called, answered: None });
        let place = calls.len() - 1;
        self.all[client].waits_for = Some((request.clone(), place));
        Some(request)
    }

    fn draw_op(&mut self, key: &str, rng: &mut Rng) -> Op {
        let text = format!("{}.", self.numbers);
        match rng.below(10) {
            0..=3 => Op::Get,
            4..=9 if key == BRIEF => Op::Lend(text),
            4 => Op::Del,
            5..=9 if key == COUNTER => Op::Incr,
            5..=7 => Op::Set(text),
            8.. => Op::Append(text),
        }
    }

    /// The operation a client is at, if it is this one.
    pub(super) fn waiting(&self, client: usize, number: u64) -> Option<&Request> {
        let (request, _) = self.all[client].waits_for.as_ref()?;
        (request.number == number).then_some(request)
    }

    /// The operation is over; with an answer, or nobody knows.
    pub(super) fn end(&mut self, client: usize, number: u64, answer: Option<Answer>) {
        if self.waiting(client, number).is_none() {
            return; // Given up before.
        }
        let at = self.next_moment();
        let Some((request, place)) = self.all[client].waits_for.take() else { return };
        if let Some(answer) = answer {
            self.answered += 1;
            let calls = self.calls.entry(request.key).or_default();
            calls[place].answered = Some((at, answer));
        }
    }

    /// It was said that the operation has not run: as if it had been a read that nobody heard of.
    pub(super) fn void(&mut self, client: usize, number: u64) {
        if self.waiting(client, number).is_some()
            && let Some((request, place)) = self.all[client].waits_for.take()
        {
            self.calls.entry(request.key).or_default()[place].op = Op::Get;
        }
    }
}

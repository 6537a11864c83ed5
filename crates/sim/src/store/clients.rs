//! Clients: their requests, and the answers they received and when. Some have several requests in flight,
//! some use transactions, walk over all keys, read copies or take locks.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::Moment;
use cluster::map::NodeId;
use store::Found;

use super::linear::{Answer, CALLS_MAX, Call, JUDGED_MAX, Op};
use crate::Rng;

/// Names that fall into different buckets; those with a tag share a slot.
pub(super) const KEYS: [&str; 6] = ["a", "b{1}", "c{1}", "count", "e", "f"];
pub(super) const COUNTER: &str = "count";
/// Keys of one slot, for transactions.
const TOGETHER: [&str; 2] = ["b{1}", "c{1}"];
/// Keys of other slots, below and above that one, to be watched.
const WATCHED: [&str; 2] = ["f", "a"];
/// A key that expires. The primary's clock decides when, so its history is not checked for linearizability;
/// but all copies of it must be equal in the end.
pub(super) const BRIEF: &str = "brief";
/// A lock with a time to live: it has one holder at a time.
pub(super) const LOCK: &str = "lock";
pub(super) const LOCK_MILLIS: u64 = 3_000;
/// Maximum number of requests that one client has in flight.
const IN_FLIGHT_MAX: usize = 4;

/// Returns the string that a key holds.
pub(super) fn text_of(found: &Found<'_>) -> Option<Vec<u8>> {
    found.string().map(|string| string.to_bytes().into_owned())
}

/// Returns the timeout of a client. They differ, so that one still waits for a node when others have moved
/// on.
pub(super) fn patience(client: usize) -> Duration {
    Duration::from_millis([3_000, 1_000, 400][client % 3])
}

/// A request in flight.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub client: usize,
    pub number: u64,
    pub key: &'static str,
    pub work: Work,
}

/// The command, or commands, of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Work {
    One(Op),
    /// MULTI and EXEC on keys of one slot, with another one watched.
    Exec {
        watch: Option<&'static str>,
        ops: Vec<(&'static str, Op)>,
    },
    /// Walks over all keys of a node, and WAIT.
    Keys,
    Scan,
    CountKeys,
    Wait,
    Flush,
    /// A read on a READONLY connection.
    ReadCopy,
    /// SET NX PX.
    Lock,
}

impl Request {
    pub(super) fn one(client: usize, number: u64, key: &'static str, op: Op) -> Request {
        Request { client, number, key, work: Work::One(op) }
    }

    /// Returns the operations whose answers are judged, with their keys.
    fn judged(&self) -> Vec<(&'static str, Op)> {
        match &self.work {
            Work::One(op) => vec![(self.key, op.clone())],
            Work::Exec { ops, .. } => ops.clone(),
            Work::Keys
            | Work::Scan
            | Work::CountKeys
            | Work::Wait
            | Work::Flush
            | Work::ReadCopy
            | Work::Lock => Vec::new(),
        }
    }

    /// Returns whether any node can answer the request by itself.
    pub(super) fn is_walk(&self) -> bool {
        matches!(self.work, Work::Keys | Work::Scan | Work::CountKeys | Work::Wait | Work::Flush)
    }
}

/// An answer that a client receives.
#[derive(Clone, Debug)]
pub(super) enum Told {
    /// One answer for each operation.
    Answer(Vec<Answer>),
    /// EXEC did not run, because a watched key had changed.
    Aborted,
    /// Redirect: ask this node.
    Moved(NodeId),
    /// The request has not run and cannot run now; the client retries.
    NotNow,
    /// The node reports that the request has not run; the client does not retry.
    NotDone,
    /// The connection is closed: the outcome is unknown.
    Closed,
}

/// The kind of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Kind {
    /// One operation after the other.
    #[default]
    Plain,
    /// Several operations in flight.
    Pipelines,
    Transacts,
    /// Walks, WAIT, reads of copies, locks; and sometimes a flush of everything.
    Probes,
}

#[derive(Default)]
pub(super) struct Client {
    kind: Kind,
    /// Requests in flight, by their numbers.
    open: BTreeMap<u64, Open>,
    pub asks: Option<NodeId>,
}

struct Open {
    request: Request,
    /// Its calls: the key, and the index among the key's calls.
    calls: Vec<(&'static str, usize)>,
    sent_at: Moment,
}

/// A granted lock: the request was sent, and the answer received, at these times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub sent_at: Moment,
    pub heard_at: Moment,
    /// The reign of the lock's slot: within one reign one clock counts.
    pub reign: u64,
}

pub(super) struct Clients {
    pub all: Vec<Client>,
    pub calls: BTreeMap<&'static str, Vec<Call>>,
    pub grants: Vec<Grant>,
    /// Counts all events, so that each has its place in one order.
    moment: u64,
    numbers: u64,
    pub answered: u64,
    /// Times of the flush: sent, and answered if it was.
    flush: Option<(Moment, Option<Moment>)>,
}

impl Clients {
    /// Creates `count` clients, of all kinds.
    pub(super) fn new(count: usize, seed: u64) -> Clients {
        let kinds = [Kind::Plain, Kind::Transacts, Kind::Pipelines, Kind::Plain, Kind::Probes];
        let kind = |place: usize| kinds[(place + usize::try_from(seed % 5).unwrap_or(0)) % 5];
        let client = |place: usize| Client { kind: kind(place), ..Client::default() };
        Clients {
            all: (0..count).map(client).collect(),
            calls: BTreeMap::new(),
            grants: Vec::new(),
            moment: 0,
            numbers: 0,
            answered: 0,
            flush: None,
        }
    }

    fn next_moment(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    /// Returns whether the client may begin another request while others are in flight.
    pub(super) fn has_room(&self, client: usize) -> bool {
        let client = &self.all[client];
        let max = if client.kind == Kind::Pipelines { IN_FLIGHT_MAX } else { 1 };
        client.open.len() < max
    }

    pub(super) fn is_waiting(&self, client: usize) -> bool {
        !self.all[client].open.is_empty()
    }

    /// Begins the next request of a client; `None` if its key already has too many calls to judge.
    pub(super) fn begin(&mut self, client: usize, now: Moment, rng: &mut Rng) -> Option<Request> {
        let (key, work) = match self.all[client].kind {
            Kind::Transacts if rng.below(3) > 0 => self.draw_transaction(rng),
            Kind::Probes if rng.below(3) > 0 => self.draw_probe(rng),
            Kind::Plain | Kind::Pipelines | Kind::Transacts | Kind::Probes => {
                let is_brief = rng.below(12) == 0;
                let key = if is_brief { BRIEF } else { *rng.choose(&KEYS).expect("some") };
                (key, Work::One(self.draw_op(key, rng)))
            }
        };
        self.begin_with(client, now, key, work, CALLS_MAX)
    }

    /// Makes a client give up all its requests and begin this one.
    pub(super) fn begin_alone(
        &mut self,
        client: usize,
        now: Moment,
        key: &'static str,
        work: Work,
    ) -> Option<Request> {
        self.all[client].open.clear();
        self.begin_with(client, now, key, work, JUDGED_MAX)
    }

    fn begin_with(
        &mut self,
        client: usize,
        now: Moment,
        key: &'static str,
        work: Work,
        calls_max: usize,
    ) -> Option<Request> {
        let called = self.next_moment();
        self.numbers += 1;
        let request = Request { client, number: self.numbers, key, work };
        let judged = request.judged();
        let is_full = |key: &str| self.calls.get(key).is_some_and(|it| it.len() >= calls_max);
        if judged.iter().any(|(key, _)| is_full(key)) {
            return None;
        }
        if request.work == Work::Flush {
            self.flush = Some((now, None));
            KEYS.iter().for_each(|key| self.may_be_gone(key));
        }
        let call = |(key, op): (&'static str, Op)| {
            let calls = self.calls.entry(key).or_default();
            calls.push(Call { op, called, answered: None });
            (key, calls.len() - 1)
        };
        let calls = judged.into_iter().map(call).collect();
        let open = Open { request: request.clone(), calls, sent_at: now };
        self.all[client].open.insert(request.number, open);
        Some(request)
    }

    /// Returns whether a flush may have run between these times.
    pub(super) fn was_flushed_between(&self, from: Moment, to: Moment) -> bool {
        let ended = |end: Option<Moment>| end.unwrap_or(Moment::NEVER);
        self.flush.is_some_and(|(sent, end)| sent <= to && ended(end) >= from)
    }

    /// Returns whether one more eviction of the key can be judged.
    pub(super) fn may_evict(&self, key: &str) -> bool {
        self.calls.get(key).is_none_or(|calls| calls.len() < CALLS_MAX)
    }

    /// Records that a key may be gone from here on: by a flush or an eviction.
    pub(super) fn may_be_gone(&mut self, key: &'static str) {
        let called = self.next_moment();
        let calls = self.calls.entry(key).or_default();
        calls.push(Call { op: Op::Del, called, answered: None });
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

    fn draw_transaction(&mut self, rng: &mut Rng) -> (&'static str, Work) {
        let ops = TOGETHER.map(|key| (key, self.draw_op(key, rng)));
        let watch = rng.choose(&WATCHED).copied().filter(|_| rng.below(4) > 0);
        (TOGETHER[0], Work::Exec { watch, ops: ops.to_vec() })
    }

    fn draw_probe(&mut self, rng: &mut Rng) -> (&'static str, Work) {
        match rng.below(12) {
            0 => (BRIEF, Work::Keys),
            1 => (BRIEF, Work::Scan),
            2 => (BRIEF, Work::CountKeys),
            3 => (BRIEF, Work::Wait),
            4..=7 => (BRIEF, Work::ReadCopy),
            8 if self.flush.is_none() && rng.below(6) == 0 => (BRIEF, Work::Flush),
            8.. => (LOCK, Work::Lock),
        }
    }

    /// Returns the request of a client, if the client still waits for it.
    pub(super) fn waiting(&self, client: usize, number: u64) -> Option<&Request> {
        self.all[client].open.get(&number).map(|open| &open.request)
    }

    /// Ends a request, with answers or with unknown outcome.
    pub(super) fn end(
        &mut self,
        client: usize,
        number: u64,
        now: Moment,
        answers: Option<Vec<Answer>>,
    ) {
        let at = self.next_moment();
        let Some(open) = self.all[client].open.remove(&number) else { return }; // Given up before.
        let Some(answers) = answers else { return };
        self.answered += 1;
        if let (Work::Flush, Some((_, end))) = (&open.request.work, &mut self.flush) {
            *end = Some(now);
        }
        if let [Answer::Granted(reign)] = answers[..] {
            self.grants.push(Grant { sent_at: open.sent_at, heard_at: now, reign });
        }
        for ((key, place), answer) in open.calls.into_iter().zip(answers) {
            self.calls.entry(key).or_default()[place].answered = Some((at, answer));
        }
    }

    /// Makes a client give up all its requests: their outcome is unknown.
    pub(super) fn give_up(&mut self, client: usize) {
        self.all[client].open.clear();
        self.all[client].asks = None;
    }

    /// Records that the request has not run: its calls become reads without an answer.
    pub(super) fn void(&mut self, client: usize, number: u64) {
        let Some(open) = self.all[client].open.remove(&number) else { return };
        for (key, place) in open.calls {
            self.calls.entry(key).or_default()[place].op = Op::Get;
        }
    }
}

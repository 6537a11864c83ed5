//! Clients: what they ask for, and what they were told and when. Some have several requests in flight, some use
//! transactions, walk over all keys, read copies or take locks.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::map::NodeId;

use super::linear::{Answer, CALLS_MAX, Call, JUDGED_MAX, Op};
use crate::Rng;

/// Names that fall into different buckets; those with a tag share a slot.
pub(super) const KEYS: [&str; 6] = ["a", "b{1}", "c{1}", "count", "e", "f"];
pub(super) const COUNTER: &str = "count";
/// Keys of one slot, for transactions.
const TOGETHER: [&str; 2] = ["b{1}", "c{1}"];
/// Keys of other slots, below and above that one, to be watched.
const WATCHED: [&str; 2] = ["f", "a"];
/// A key that expires. When it does is the primary's clock's affair, so no order of its own is asked
/// for; but all copies of it must be alike in the end.
pub(super) const BRIEF: &str = "brief";
/// A lock with a time to live: it has one holder at a time.
pub(super) const LOCK: &str = "lock";
pub(super) const LOCK_MILLIS: u64 = 3_000;
/// Requests that one client has in flight at most.
const IN_FLIGHT_MAX: usize = 4;

/// How long a client waits: not all alike, so that one still waits for a node when others know better.
pub(super) fn patience(client: usize) -> Duration {
    Duration::from_millis([3_000, 1_000, 400][client % 3])
}

/// One request on its way.
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

    /// The operations whose answers are judged, with their keys.
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

    /// True for what any node answers for itself.
    pub(super) fn is_walk(&self) -> bool {
        matches!(self.work, Work::Keys | Work::Scan | Work::CountKeys | Work::Wait | Work::Flush)
    }
}

/// What a client hears.
#[derive(Clone, Debug)]
pub(super) enum Told {
    /// One answer for each operation.
    Answer(Vec<Answer>),
    /// EXEC did not run, because a watched key had changed.
    Aborted,
    /// Ask this node.
    Moved(NodeId),
    /// It has not run, and cannot just now.
    NotNow,
    /// It was said that it has not run.
    NotDone,
    /// The connection is closed: nobody knows.
    Closed,
}

/// What kind of client it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Kind {
    /// One operation after the other.
    #[default]
    Plain,
    /// Several in flight.
    Pipelines,
    Transacts,
    /// Walks, WAIT, copies, locks; and sometimes everything is flushed.
    Probes,
}

#[derive(Default)]
pub(super) struct Client {
    kind: Kind,
    /// Requests under way, by their numbers.
    open: BTreeMap<u64, Open>,
    pub asks: Option<NodeId>,
}

struct Open {
    request: Request,
    /// Its calls: the key, and the place among the key's calls.
    calls: Vec<(&'static str, usize)>,
    sent_at: Duration,
}

/// A lock was granted: the request was sent, and the answer heard, at these times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant {
    pub sent_at: Duration,
    pub heard_at: Duration,
    /// The reign of its slot: in one reign one clock counts.
    pub reign: u64,
}

pub(super) struct Clients {
    pub all: Vec<Client>,
    pub calls: BTreeMap<&'static str, Vec<Call>>,
    pub grants: Vec<Grant>,
    /// Counts all that happens, so that everything has its place in one order.
    moment: u64,
    numbers: u64,
    pub answered: u64,
    /// When all was flushed: sent, and answered if it was.
    flush: Option<(Duration, Option<Duration>)>,
}

impl Clients {
    /// So many clients, of all kinds.
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

    /// True if the client begins another request while others are under way.
    pub(super) fn has_room(&self, client: usize) -> bool {
        let client = &self.all[client];
        let max = if client.kind == Kind::Pipelines { IN_FLIGHT_MAX } else { 1 };
        client.open.len() < max
    }

    pub(super) fn is_waiting(&self, client: usize) -> bool {
        !self.all[client].open.is_empty()
    }

    /// The next request of a client.
    pub(super) fn begin(&mut self, client: usize, now: Duration, rng: &mut Rng) -> Option<Request> {
        let (key, work) = match self.all[client].kind {
            Kind::Transacts if rng.below(3) > 0 => self.draw_transaction(rng),
            Kind::Probes if rng.below(3) > 0 => self.draw_probe(rng),
            Kind::Plain | Kind::Pipelines | Kind::Transacts | Kind::Probes => {
                let is_brief = rng.below(12) == 0;
                let key = if is_brief { BRIEF } else { *rng.choose(&KEYS).expect("some") };
                (key, Work::One(self.draw_op(key, rng)))
            }
        };
        self.begin_with(client, now, (key, work), CALLS_MAX)
    }

    /// A client gives up whatever it was at and begins this.
    pub(super) fn begin_alone(
        &mut self,
        client: usize,
        now: Duration,
        key: &'static str,
        work: Work,
    ) -> Option<Request> {
        self.all[client].open.clear();
        self.begin_with(client, now, (key, work), JUDGED_MAX)
    }

    fn begin_with(
        &mut self,
        client: usize,
        now: Duration,
        (key, work): (&'static str, Work),
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

    /// True if all may have been flushed between these times.
    pub(super) fn was_flushed_between(&self, from: Duration, to: Duration) -> bool {
        let ended = |end: Option<Duration>| end.unwrap_or(Duration::MAX);
        self.flush.is_some_and(|(sent, end)| sent <= to && ended(end) >= from)
    }

    /// True if one more eviction of the key can be judged.
    pub(super) fn may_evict(&self, key: &str) -> bool {
        self.calls.get(key).is_none_or(|calls| calls.len() < CALLS_MAX)
    }

    /// A key may be taken away from here on: by a flush, or to make room.
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

    /// The request of a client, if it is still waited for.
    pub(super) fn waiting(&self, client: usize, number: u64) -> Option<&Request> {
        self.all[client].open.get(&number).map(|open| &open.request)
    }

    /// The request is over; with answers, or nobody knows.
    pub(super) fn end(
        &mut self,
        client: usize,
        number: u64,
        (now, answers): (Duration, Option<Vec<Answer>>),
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

    /// Whatever the client waits for, it waits no longer: nobody knows what became of it.
    pub(super) fn give_up(&mut self, client: usize) {
        self.all[client].open.clear();
        self.all[client].asks = None;
    }

    /// The request has not run: as if it had been a read that nobody heard of.
    pub(super) fn void(&mut self, client: usize, number: u64) {
        let Some(open) = self.all[client].open.remove(&number) else { return };
        for (key, place) in open.calls {
            self.calls.entry(key).or_default()[place].op = Op::Get;
        }
    }
}

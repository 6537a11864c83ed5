//! Two generations meet: the greater stands, the lesser yields.
//!
//! A side that can still decide commits `Yield`, never serves again, hands over what it wrote since
//! they parted (`Effect::Yield`, then `Input::Merged`; `crate::merge`), and comes back as a new process.
//! A node that can decide nothing alone has acknowledged nothing that the other side lacks, unless the
//! founder of that side did not hold all that it holds: then it hands that over, too.

use std::collections::BTreeMap;
use std::time::Duration;

use super::lease::patience;
use super::message::Handed;
use super::{Control, Effect, Gone, Message};
use crate::consensus::RaftMessage;
use crate::map::{Bucket, Change, Generation, Map, NodeId};
use crate::rules::{Rule, holds};

/// How often the nodes of a side that has ended say how far they are.
const SAY_EVERY: Duration = Duration::from_millis(500);
/// Who says nothing for so long is not waited for.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The end of this process in favour of another generation.
pub(super) struct Yielding {
    to: Generation,
    handed: Handed,
    /// When it begins to hand over, if it has not: when no lease of this side runs any more. Until then a
    /// primary that has not heard of the end may acknowledge a write that its backups would not look at again.
    begins_at: Option<Duration>,
    /// What the others of this side have said last, and when.
    heard: BTreeMap<NodeId, (Handed, Duration)>,
    say_at: Duration,
}

impl Control {
    /// The generation this node belongs to, if it belongs to one.
    pub fn generation(&self) -> Option<Generation> {
        let by_map = self.consensus.map().map(Map::generation);
        by_map.or(self.welcome.as_ref().map(|welcome| welcome.generation))
    }

    pub(super) fn send_raft(&mut self, to: NodeId, message: RaftMessage) {
        if let Some(generation) = self.generation() {
            self.send(to, Message::Raft { generation, message });
        }
    }

    pub(super) fn on_raft(&mut self, from: NodeId, theirs: Generation, message: &RaftMessage) {
        if self.generation().is_some_and(|mine| mine.is_one_with(theirs)) {
            self.consensus.step(from, message);
            self.note_answer(from, message);
        } else {
            self.on_met(theirs);
        }
    }

    /// Another generation of this cluster has shown itself, and will again until one has yielded.
    pub(super) fn on_met(&mut self, theirs: Generation) {
        let Some(map) = &self.map else { return };
        let mine = map.generation();
        let stands =
            mine > theirs && (mine.counter > theirs.counter || holds(Rule::FoundersDiffer));
        if mine.is_one_with(theirs) || stands || self.yielding.is_some() {
            return;
        }
        if self.holds_lease() {
            self.propose(None, vec![Change::Yield(theirs)]);
        } else if self.may_go_alone() {
            if self.may_lack(theirs.founder) {
                self.yield_to(theirs, self.now);
            } else {
                self.go(Gone::Yielded(theirs));
            }
        }
    }

    /// Whether it is sure that this node's lease, and so any of its side, has run out.
    fn may_go_alone(&self) -> bool {
        self.hearing.lease_ended().is_some_and(|ended| self.now >= ended + patience(self.lease()))
    }

    /// Whether this process may hold something that the founder of the other side has never had.
    fn may_lack(&self, founder: NodeId) -> bool {
        let Some(map) = self.map.as_ref().filter(|_| self.since.is_some()) else { return false };
        let only_here = |it: &Bucket| it.is_held_by(self.me.id) && !it.is_held_by(founder);
        map.is_forked() || map.is_awaited(self.me.id) || map.buckets().any(only_here)
    }

    /// By its own log this side has ended.
    pub(super) fn yield_if_decided(&mut self, map: &Map) {
        if let Some(generation) = map.yielded_to().filter(|_| self.yielding.is_none()) {
            // Whoever has decided it grants no lease any more, and a lease is counted from its question.
            self.yield_to(generation, self.now + patience(self.lease()));
        }
    }

    fn yield_to(&mut self, generation: Generation, begins_at: Duration) {
        let (handed, heard) = (Handed::Some, BTreeMap::new());
        let (say_at, begins_at) = (self.now, Some(begins_at));
        self.yielding = Some(Yielding { to: generation, handed, begins_at, heard, say_at });
        self.ask_for_lease();
        self.hand_over_when_leases_are_over();
    }

    fn hand_over_when_leases_are_over(&mut self) {
        let now = self.now;
        let Some(yielding) = self.yielding.as_mut().filter(|_| !self.is_gone) else { return };
        if yielding.begins_at.take_if(|at| now >= *at).is_some() {
            let to = yielding.to;
            self.out.push(Effect::Yield { to });
        }
    }

    /// What this process has and the other side lacked is with the other one.
    pub(super) fn on_merged(&mut self) {
        let now = self.now;
        if let Some(yielding) = &mut self.yielding {
            (yielding.handed, yielding.say_at) = (Handed::All, now);
            yielding.heard.values_mut().for_each(|(_, last)| *last = now);
        }
        self.go_on_yielding();
    }

    /// Another node of this side says how far it is.
    pub(super) fn on_yielding(&mut self, from: NodeId, handed: Handed) {
        let now = self.now;
        if let Some(yielding) = &mut self.yielding {
            yielding.heard.insert(from, (handed, now));
        }
    }

    /// A node of a side that has ended together goes when all have handed over: with the first that came
    /// back the other side would forget where they parted.
    pub(super) fn go_on_yielding(&mut self) {
        self.hand_over_when_leases_are_over();
        let decided = self.map.as_ref().is_some_and(|map| map.yielded_to().is_some());
        let others: Vec<NodeId> = self.others().filter(|_| decided).collect();
        let now = self.now;
        let Some(yielding) = self.yielding.as_mut().filter(|_| !self.is_gone) else { return };
        let mut is_waited_for = |node: &NodeId| {
            let (handed, last) = *yielding.heard.entry(*node).or_insert((Handed::Some, now));
            handed == Handed::Some && now < last + SILENCE_MAX
        };
        let awaited = others.iter().filter(|node| is_waited_for(node)).count();
        let (to, handed) = (yielding.to, yielding.handed);
        if now >= yielding.say_at {
            yielding.say_at = now + SAY_EVERY;
            self.send_all(others, &Message::Yielding(handed));
        }
        if handed == Handed::All && awaited == 0 {
            self.go(Gone::Yielded(to));
        }
    }

    /// The generation that this process ends in favour of, if it does.
    pub fn yields_to(&self) -> Option<Generation> {
        self.yielding.as_ref().map(|yielding| yielding.to)
    }
}

//! Two generations meet: the greater survives, the lesser yields.
//!
//! A side that can still decide commits `Yield`, never serves again, hands over its writes since the
//! split (`Action::Yield`, then `Input::Merged`; `crate::merge`), and comes back as a new process. A
//! node that can decide nothing alone has acknowledged nothing that the other side lacks, unless the
//! founder of that side did not hold all buckets of this node: then it hands those over, too.

use std::collections::BTreeMap;
use std::time::Duration;

use super::lease::patience;
use super::message::Handed;
use super::{Action, Control, Gone, Message};
use crate::Moment;
use crate::consensus::RaftMessage;
use crate::map::{Bucket, Change, Generation, Map, NodeId};
use crate::rules::{Rule, is_enforced};

/// Interval between progress reports of the nodes of a side that has ended.
const SAY_EVERY: Duration = Duration::from_millis(500);
/// Time after which a silent node is not waited for.
const SILENCE_MAX: Duration = Duration::from_secs(5);

/// The end of this process in favour of another generation.
pub(super) struct Yielding {
    to: Generation,
    handed: Handed,
    /// Time at which it begins to hand over, if it has not: when no lease of this side is valid any
    /// more. Until then a primary that has not heard of the end may acknowledge a write that its
    /// backups would no longer hand over.
    begins_at: Option<Moment>,
    /// The latest report of each other node of this side, and its time.
    heard: BTreeMap<NodeId, (Handed, Moment)>,
    say_at: Moment,
}

impl Control {
    /// Returns the generation this node belongs to, if any.
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

    /// Handles the sight of another generation of this cluster. It repeats until one has yielded.
    pub(super) fn on_met(&mut self, theirs: Generation) {
        let Some(map) = &self.map else { return };
        let mine = map.generation();
        let stands =
            mine > theirs && (mine.counter > theirs.counter || is_enforced(Rule::FoundersDiffer));
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

    /// Returns whether this node's lease, and so any of its side, has surely expired.
    fn may_go_alone(&self) -> bool {
        self.contact.lease_ended().is_some_and(|ended| self.now >= ended + patience(self.lease()))
    }

    /// Returns whether this process may hold data that the founder of the other side has never had.
    fn may_lack(&self, founder: NodeId) -> bool {
        let Some(map) = self.map.as_ref().filter(|_| self.since.is_some()) else { return false };
        let only_here = |it: &Bucket| it.is_held_by(self.me.id) && !it.is_held_by(founder);
        map.is_forked() || map.may_bring_any(self.me.id) || map.buckets().any(only_here)
    }

    /// Yields if this side has ended by its own log.
    pub(super) fn yield_if_decided(&mut self, map: &Map) {
        if let Some(generation) = map.yielded_to().filter(|_| self.yielding.is_none()) {
            // A leader that has decided it grants no lease any more, and a lease runs from its request.
            self.yield_to(generation, self.now + patience(self.lease()));
        }
    }

    fn yield_to(&mut self, generation: Generation, begins_at: Moment) {
        let (handed, heard) = (Handed::Partly, BTreeMap::new());
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
            self.out.push(Action::Yield { to });
        }
    }

    /// Records that the other side now has all data of this process that it lacked.
    pub(super) fn on_merged(&mut self) {
        let now = self.now;
        if let Some(yielding) = &mut self.yielding {
            (yielding.handed, yielding.say_at) = (Handed::Done, now);
            yielding.heard.values_mut().for_each(|(_, last)| *last = now);
        }
        self.go_on_yielding();
    }

    /// Records the progress of another node of this side.
    pub(super) fn on_yielding(&mut self, from: NodeId, handed: Handed) {
        let now = self.now;
        if let Some(yielding) = &mut self.yielding {
            yielding.heard.insert(from, (handed, now));
        }
    }

    /// Ends a process of a side that has ended as a whole, once all its nodes have handed over: with
    /// the first returning node the other side would forget the split point.
    pub(super) fn go_on_yielding(&mut self) {
        self.hand_over_when_leases_are_over();
        let decided = self.map.as_ref().is_some_and(|map| map.yielded_to().is_some());
        let others: Vec<NodeId> = self.others().filter(|_| decided).collect();
        let now = self.now;
        let Some(yielding) = self.yielding.as_mut().filter(|_| !self.is_gone) else { return };
        let mut is_waited_for = |node: &NodeId| {
            let (handed, last) = *yielding.heard.entry(*node).or_insert((Handed::Partly, now));
            handed == Handed::Partly && now < last + SILENCE_MAX
        };
        let awaited = others.iter().filter(|node| is_waited_for(node)).count();
        let (to, handed) = (yielding.to, yielding.handed);
        if now >= yielding.say_at {
            yielding.say_at = now + SAY_EVERY;
            self.send_all(others, &Message::Yielding(handed));
        }
        if handed == Handed::Done && awaited == 0 {
            self.go(Gone::Yielded(to));
        }
    }

    /// Returns the generation in favour of which this process ends, if it does.
    pub fn yields_to(&self) -> Option<Generation> {
        self.yielding.as_ref().map(|yielding| yielding.to)
    }
}

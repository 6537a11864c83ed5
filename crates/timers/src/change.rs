//! A change of a timer, from the client's request to its answer: coordinator, primary, replicas, in the order
//! in which it passes them.
//!
//! The answer means that every replica has the change. A silent node holds it up until that node is out of the
//! map. A new list of members restarts the change from the beginning, under its epoch.

use std::collections::BTreeSet;

use crate::core::Timers;
use crate::ids::{
    MonotonicMillis, ReplicationFactor, Sequence, TimeSpan, TimerId, TimerPeer, TimerVersion,
};
use crate::input::{
    AGAIN_AFTER, REQUEST_WITHIN, TimerAction, TimerAnswer, TimerRefusal, TimerRule,
};
use crate::message::{
    ChangeResult, Done, LookAgain, Propose, RequestId, Store, Stored, TimerChange, TimerMessage,
};
use crate::record::{Record, TimerLife, TimerState};
use crate::spec::TimerSpec;
use crate::table::{TimerEntry, packed, tombstone_life};
use placement::SplitMix64;

/// Maximum number of proposals a primary parks until all members have entered the epoch. Further ones get
/// `LookAgain`.
const PARKED_MAX: usize = 10_000;

/// A client's change, at the node it was sent to.
pub(crate) struct Coordinated {
    id: TimerId,
    change: TimerChange,
    pub(crate) asked_at: MonotonicMillis,
    again_at: MonotonicMillis,
}

impl Coordinated {
    fn is_over(&self, now: MonotonicMillis) -> bool {
        self.asked_at + REQUEST_WITHIN <= now
    }
}

/// A change in progress, at the primary.
pub(crate) struct Numbered {
    /// The requests to answer, mostly one.
    asked_by: Vec<(TimerPeer, RequestId)>,
    sequence: Sequence,
    /// Nodes that have not acknowledged it.
    missing: BTreeSet<TimerPeer>,
    deadline: MonotonicMillis,
    again_at: MonotonicMillis,
}

// The coordinator: any node.
impl Timers {
    pub(crate) fn create(
        &mut self,
        request: RequestId,
        spec: TimerSpec,
        factor: ReplicationFactor,
    ) {
        let (seed, drawn) = &mut self.ids;
        *drawn += 1;
        let id = TimerId { number: mixed(*seed, *drawn), factor };
        self.put(request, id, spec);
    }

    pub(crate) fn put(&mut self, request: RequestId, id: TimerId, spec: TimerSpec) {
        self.coordinate(request, id, TimerChange::Set(spec));
    }

    pub(crate) fn delete(&mut self, request: RequestId, id: TimerId) {
        self.coordinate(request, id, TimerChange::Delete);
    }

    fn coordinate(&mut self, request: RequestId, id: TimerId, change: TimerChange) {
        if self.coordinated.len() >= self.settings.requests_max {
            return self.refuse(request, TimerRefusal::Busy);
        }
        if self.members.replicas(id).is_empty() {
            return self.refuse(request, TimerRefusal::NotReady);
        }
        let asked_at = self.moment();
        let again_at = asked_at + AGAIN_AFTER;
        self.coordinated.insert(request, Coordinated { id, change, asked_at, again_at });
        self.propose(request);
    }

    fn propose(&mut self, request: RequestId) {
        let Some(asked) = self.coordinated.get(&request) else { return };
        let Some(primary) = self.members.replicas(asked.id).first().copied() else { return };
        let epoch = self.members.epoch();
        let open_from = *self.coordinated.keys().next().expect("this one is open");
        let (id, change) = (asked.id, asked.change.clone());
        let propose = Propose { request, open_from, epoch, id, change };
        if primary == self.me {
            self.on_propose(self.me, propose);
        } else {
            self.send(primary, TimerMessage::Propose(propose));
        }
    }

    /// Proposes all open requests again after a new list of members: their primaries may have changed.
    pub(crate) fn propose_all(&mut self) {
        let requests: Vec<RequestId> = self.coordinated.keys().copied().collect();
        requests.into_iter().for_each(|request| self.propose(request));
    }

    pub(crate) fn on_look_again(&mut self, look_again: &LookAgain) {
        // If our list is older than the primary's, a retry is useless until the new one arrives.
        if look_again.epoch <= self.members.epoch()
            && let Some(asked) = self.coordinated.get_mut(&look_again.request)
        {
            asked.again_at = self.now.moment;
        }
    }

    pub(crate) fn on_done(&mut self, done: &Done) {
        if done.epoch != self.members.epoch() {
            // The change has already been proposed again and will be carried out again; that must not happen
            // after the client was told that it is done.
            return;
        }
        let Some(asked) = self.coordinated.remove(&done.request) else { return };
        match done.result {
            ChangeResult::Kept => self.answer(done.request, TimerAnswer::Done(asked.id)),
            ChangeResult::Full => self.refuse(done.request, TimerRefusal::Full),
        }
    }

    pub(crate) fn coordinate_again(&mut self) {
        let now = self.moment();
        let mut due = Vec::new();
        for (request, asked) in &mut self.coordinated {
            if asked.again_at <= now || asked.is_over(now) {
                asked.again_at = now + AGAIN_AFTER;
                due.push((*request, asked.is_over(now)));
            }
        }
        for (request, is_over) in due {
            if is_over {
                self.coordinated.remove(&request);
                self.refuse(request, TimerRefusal::Unknown);
            } else {
                self.propose(request);
            }
        }
    }

    pub(crate) fn answer(&mut self, request: RequestId, answer: TimerAnswer) {
        self.out.push(TimerAction::Answer { request, answer });
    }

    pub(crate) fn refuse(&mut self, request: RequestId, refusal: TimerRefusal) {
        self.answer(request, TimerAnswer::Refused(refusal));
    }
}

// The primary: numbers the change, sends it to all replicas, answers when all have it.
impl Timers {
    pub(crate) fn on_propose(&mut self, from: TimerPeer, propose: Propose) {
        let is_primary = self.members.replicas(propose.id).first() == Some(&self.me);
        if propose.epoch != self.members.epoch() || !is_primary {
            return self.say_look_again(from, propose.request);
        }
        if self.under_way.contains(&(from, propose.request)) {
            return; // A repetition, because our answer takes its time.
        }
        self.finished.forget(from, propose.open_from);
        if let Some(result) = self.finished.result(from, propose.request) {
            return self.say_done(from, propose.request, result);
        }
        if self.all_entered() {
            return self.number(from, propose);
        }
        if self.parked.len() >= PARKED_MAX {
            return self.say_look_again(from, propose.request);
        }
        self.under_way.insert((from, propose.request));
        self.parked.push((from, propose));
    }

    /// Continues with the parked proposals, once every member has entered the epoch.
    pub(crate) fn take_parked(&mut self) {
        for (from, propose) in std::mem::take(&mut self.parked) {
            self.under_way.remove(&(from, propose.request));
            self.on_propose(from, propose);
        }
    }

    fn say_look_again(&mut self, to: TimerPeer, request: RequestId) {
        let look_again = LookAgain { request, epoch: self.members.epoch() };
        if to == self.me {
            self.on_look_again(&look_again);
        } else {
            self.send(to, TimerMessage::LookAgain(look_again));
        }
    }

    fn number(&mut self, coordinator: TimerPeer, propose: Propose) {
        let Propose { request, id, change, .. } = propose;
        let known = self.table.get(id).map(TimerEntry::progress);
        if known.is_none() {
            // Once all timers are handed over, this node knows every timer it is the primary of.
            if change == TimerChange::Delete && self.unsettled().is_empty() && self.has_lease() {
                return self.say_done(coordinator, request, ChangeResult::Kept);
            }
            if self.table.len() >= self.settings.timers_max {
                return self.say_done(coordinator, request, ChangeResult::Full);
            }
        }
        if !self.has_room(id, &change) {
            return self.say_done(coordinator, request, ChangeResult::Full);
        }
        let record = self.next_record(id, known.unwrap_or_default(), change);
        let numbered = Numbered {
            asked_by: vec![(coordinator, request)],
            sequence: record.sequence,
            missing: self.wait_set(id),
            deadline: self.moment() + REQUEST_WITHIN,
            again_at: self.moment() + AGAIN_AFTER,
        };
        let key = (id, record.version);
        self.adopt(&record);
        self.store_at(&numbered.missing, &record);
        self.numbered.insert(key, numbered);
        self.under_way.insert((coordinator, request));
        self.finish_numbered_of(id);
    }

    /// Returns whether a change may be stored. A full node still accepts what makes nothing larger.
    fn has_room(&self, id: TimerId, change: &TimerChange) -> bool {
        let TimerChange::Set(spec) = change else { return true };
        let known_bytes = || self.table.get(id).map_or(0, TimerEntry::bytes);
        self.table.bytes() < self.settings.bytes_max || packed(spec).len() <= known_bytes()
    }

    /// Returns the state of a timer after a change.
    fn next_record(&self, id: TimerId, known: TimerState, change: TimerChange) -> Record {
        let epoch = self.members.epoch();
        let number = self.now.wall.max(known.version.number + 1);
        // A callback in progress uses this number; the changed timer begins with the next one.
        let is_used = self.is_called(id);
        let sequence = if is_used { known.sequence.next() } else { known.sequence };
        let interval = self.table.get(id).map_or_else(Default::default, |entry| entry.interval);
        let forget_in = tombstone_life(interval, self.table.tombstones());
        let life = match change {
            TimerChange::Delete => TimerLife::Ended { forget_in },
            TimerChange::Set(spec) if spec.pops() == 0 => TimerLife::Ended { forget_in },
            TimerChange::Set(spec) => {
                let (left, due_in, quiet_for) = (spec.pops(), spec.interval, TimeSpan::ZERO);
                TimerLife::Pending { left, due_in, quiet_for, spec }
            }
        };
        // A change made on the other side of a split may have a later epoch.
        let epoch = epoch.max(known.version.epoch);
        let epoch = if self.keeps(TimerRule::EpochFirst) { epoch } else { Default::default() };
        Record { id, version: TimerVersion { epoch, number }, sequence, life }
    }

    /// Returns the nodes that must have a change before it is answered: the replicas, and those that may still
    /// hold the timer from before and would pop it.
    fn wait_set(&self, id: TimerId) -> BTreeSet<TimerPeer> {
        let mut nodes: BTreeSet<TimerPeer> = self.others(id).into_iter().collect();
        if self.keeps(TimerRule::TellFormers) {
            nodes.extend(self.unsettled());
        }
        nodes
    }

    fn store_at(&mut self, nodes: &BTreeSet<TimerPeer>, record: &Record) {
        let epoch = self.members.epoch();
        for node in nodes {
            self.send(*node, TimerMessage::Store(Store { epoch, record: record.clone() }));
        }
    }

    pub(crate) fn on_stored(&mut self, from: TimerPeer, stored: &Stored) {
        if stored.epoch != self.members.epoch() {
            return; // From an earlier list; the change has restarted under this one.
        }
        let mut known = Sequence::default();
        let first = (stored.id, TimerVersion::default());
        for (_, numbered) in self.numbered.range_mut(first..=(stored.id, stored.version)) {
            numbered.missing.remove(&from);
            if stored.was > numbered.sequence {
                known = stored.was;
            }
        }
        if known > Sequence::default() {
            self.number_anew(stored.id, known);
        }
        self.finish_numbered_of(stored.id);
    }

    /// Renumbers a change because a holder had more pops than we knew: the timer continues from there, so that no
    /// sequence number is used twice. This holds for a tombstone, too: the timer may be set again under its id.
    fn number_anew(&mut self, id: TimerId, known: Sequence) {
        let Some(entry) = self.table.get(id) else { return };
        if entry.sequence >= known {
            return;
        }
        let mut record = entry.record(self.moment());
        record.sequence = known;
        record.version.number += 1;
        let wait_set = self.wait_set(id);
        let under_way: Vec<(TimerId, TimerVersion)> = self.numbered_of(id).collect();
        let mut asked_by = Vec::new();
        for key in under_way {
            asked_by.extend(self.numbered.remove(&key).expect("just seen").asked_by);
        }
        let numbered = Numbered {
            asked_by,
            sequence: known,
            missing: wait_set.clone(),
            deadline: self.moment() + REQUEST_WITHIN,
            again_at: self.moment() + AGAIN_AFTER,
        };
        self.numbered.insert((id, record.version), numbered);
        self.adopt(&record);
        self.store_at(&wait_set, &record);
    }

    fn numbered_of(&self, id: TimerId) -> impl Iterator<Item = (TimerId, TimerVersion)> {
        let first = (id, TimerVersion::default());
        self.numbered.range(first..).map(|(key, _)| *key).take_while(move |(of, _)| *of == id)
    }

    fn finish_numbered_of(&mut self, id: TimerId) {
        let waits = self.keeps(TimerRule::AnswerAfterAll);
        let done = |key: &(TimerId, TimerVersion)| !waits || self.numbered[key].missing.is_empty();
        let done: Vec<(TimerId, TimerVersion)> = self.numbered_of(id).filter(done).collect();
        // Without a lease this node may be out of the map without knowing it, and the change would not count.
        if !self.has_lease() {
            return;
        }
        for key in done {
            let numbered = self.numbered.remove(&key).expect("just seen");
            for (coordinator, request) in numbered.asked_by {
                self.under_way.remove(&(coordinator, request));
                self.say_done(coordinator, request, ChangeResult::Kept);
            }
        }
    }

    /// Answers the changes that waited for the lease.
    pub(crate) fn finish_numbered(&mut self) {
        let ids: BTreeSet<TimerId> = self.numbered.keys().map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.finish_numbered_of(id));
    }

    /// Drops all changes in progress after a new list of members: their coordinators propose them again.
    pub(crate) fn abandon_numbered(&mut self) {
        self.numbered.clear();
        self.parked.clear();
        self.finished.clear();
        for (coordinator, request) in std::mem::take(&mut self.under_way) {
            if coordinator != self.me {
                self.say_look_again(coordinator, request);
            }
        }
    }

    pub(crate) fn number_again(&mut self) {
        let now = self.moment();
        // Nobody waits any more. The change stays, and may still reach the missing nodes.
        let over = self.numbered.extract_if(.., |_, numbered| numbered.deadline <= now);
        let over: Vec<Numbered> = over.map(|(_, numbered)| numbered).collect();
        for asked in over.into_iter().flat_map(|numbered| numbered.asked_by) {
            self.under_way.remove(&asked);
        }
        let mut again = Vec::new();
        for ((id, _), numbered) in &mut self.numbered {
            if numbered.again_at <= now {
                numbered.again_at = now + AGAIN_AFTER;
                again.push((*id, numbered.missing.clone()));
            }
        }
        for (id, missing) in again {
            let record = self.record(id);
            if let Some(record) = record {
                self.store_at(&missing, &record);
            }
            self.finish_numbered_of(id);
        }
    }

    fn say_done(&mut self, to: TimerPeer, request: RequestId, result: ChangeResult) {
        let done = Done { request, epoch: self.members.epoch(), result };
        if to == self.me {
            return self.on_done(&done);
        }
        self.finished.add(to, request, result);
        self.send(to, TimerMessage::Done(done));
    }
}

// A replica, or a former holder.
impl Timers {
    pub(crate) fn on_store(&mut self, from: TimerPeer, store: &Store) {
        if store.epoch != self.members.epoch() {
            return; // One of us does not have the latest list yet; the primary sends it again.
        }
        let Record { id, version, .. } = store.record;
        let known = self.table.get(id);
        let is_used = self.is_called(id);
        let was = known.map_or_else(Sequence::default, |entry| entry.sequence);
        let was = if is_used { was.next() } else { was };
        if known.is_some() || self.members.replicas(id).contains(&self.me) {
            self.adopt(&store.record);
        }
        let epoch = store.epoch;
        self.send(from, TimerMessage::Stored(Stored { epoch, id, version, was }));
    }
}

/// Returns a unique id that reveals nothing: SplitMix64 over a seed that is drawn for this boot.
fn mixed(seed: u64, drawn: u64) -> u64 {
    SplitMix64::nth(seed, drawn)
}

#[cfg(test)]
mod tests;

//! The losing side of a split brain hands over its writes: the work that `server/src/merge` does with links
//! and threads, one question at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use cluster::Moment;
use cluster::control::Input;
use cluster::data::Plane;
use cluster::map::{Member, NodeId, Peer};
use cluster::merge::{
    ChangeBatch, Course, Giver, Ledger, MergeReply, MergeRequest, MergeTaker, ServedGround,
    diverged_at,
};
use cluster::serving::{
    Access, ChangeContext, EffectLog, LockSet, LockedSlots, ReplyVerdict, ServedSlots,
    ServingPlane, Tickets,
};
use placement::{Hashmask, Slot};
use store::{Effect, NewValue, Touch, UnixMillis, Version};

use super::Sabotage;
use super::node::Node;
use super::world::{Event, World, ms, tell};

/// State of a process that merges with other sides of the cluster.
#[derive(Default)]
pub(super) struct Merging {
    giver: Option<Giver>,
    /// Buckets that it brings, being a member; `None` if its side has lost.
    brings: Option<Vec<Hashmask>>,
    /// The node it asks; `None` if the link is broken.
    asks: Option<NodeId>,
    /// One for each peer; a new link of the peer gets a new one.
    takers: BTreeMap<Peer, MergeTaker>,
    /// Answers that wait for backups.
    held: Vec<(Peer, Tickets, MergeReply)>,
    pub answers: Vec<(Peer, MergeReply)>,
    pub ledger: Ledger,
}

impl World {
    /// Starts the handover of all data by a process that no longer serves anybody.
    pub(super) fn begin_to_yield(&mut self, id: NodeId) {
        let goes_at_once = self.sabotage == Some(Sabotage::GoesBeforeMerged);
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if goes_at_once {
            return node.inputs.push(Input::Merged);
        }
        let Some(map) = node.map() else { return };
        node.merging.giver = Some(Giver::new(&map, id));
        node.merging.brings = None;
        let from = node.me;
        self.push(ms(5), Event::HandOver { from });
    }

    /// Starts the handover of these buckets by a process that has come back too late with them.
    pub(super) fn begin_to_bring(&mut self, id: NodeId, buckets: Vec<Hashmask>) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.merging.giver = Some(Giver::of(buckets.iter().copied()));
        node.merging.brings = Some(buckets);
        let from = node.me;
        self.push(ms(5), Event::HandOver { from });
    }

    /// Sends the next question, or the last one once more.
    pub(super) fn hand_over(&mut self, from: Peer) {
        let Some(node) = self.nodes.get_mut(&from.id).filter(|node| node.me == from) else {
            return;
        };
        let Some(giver) = &mut node.merging.giver else { return };
        let Some(question) = giver.question(&node.plane) else {
            tell!(self, "{} has handed over: {:?}", from.id, giver.tally());
            node.merging.giver = None;
            let brought = node.merging.brings.take().map(Input::Brought);
            return self.give(from.id, brought.unwrap_or(Input::Merged));
        };
        let is_new = node.merging.asks.is_none();
        let is_member = node.merging.brings.is_some();
        let known: Vec<NodeId> = node.map().map_or(Vec::new(), |map| {
            let others = map.members().iter().filter(|it| it.id != from.id);
            map.partitioned_members().iter().chain(others).map(|it: &Member| it.id).collect()
        });
        let to = node.merging.asks.or_else(|| self.rng.choose(&known).copied());
        let reaches = |world: &World, to: NodeId| {
            let stands = |it: &&Node| {
                let (theirs, mine) = (it.control.generation(), world.generation_of(from.id));
                theirs > mine || is_member && theirs == mine
            };
            let stands = world.nodes.get(&to).filter(stands).is_some_and(|it| !it.is_stopped);
            stands && !world.network.is_cut(from.id, to) && !world.network.is_cut(to, from.id)
        };
        match to.filter(|to| reaches(self, *to)) {
            Some(to) => {
                self.nodes.get_mut(&from.id).expect("looked at above").merging.asks = Some(to);
                let delay = self.network.delay(&mut self.rng, from.id, to);
                self.push(delay, Event::Merge { from, to, question, is_new });
            }
            None => self.link_breaks(from),
        }
    }

    fn generation_of(&self, id: NodeId) -> Option<cluster::map::Generation> {
        self.nodes.get(&id).and_then(|node| node.control.generation())
    }

    fn link_breaks(&mut self, from: Peer) {
        if let Some(node) = self.nodes.get_mut(&from.id).filter(|node| node.me == from) {
            node.merging.asks = None;
            node.merging.giver.iter_mut().for_each(Giver::interrupted);
            self.push(ms(200), Event::HandOver { from });
        }
    }

    /// Handles a question.
    pub(super) fn on_merge(
        &mut self,
        to: NodeId,
        from: Peer,
        question: MergeRequest,
        is_new: bool,
    ) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&to).filter(|node| !node.is_stopped) else {
            return self.link_breaks(from);
        };
        node.plane.now.set(node.clock.at(now));
        if is_new {
            node.merging.takers.remove(&from);
        }
        node.answer_merge(now, from, question);
        self.after(to);
    }

    /// Handles an answer.
    pub(super) fn on_merged(&mut self, to: Peer, by: NodeId, reply: MergeReply) {
        if self.network.is_cut(by, to.id) {
            return self.link_breaks(to);
        }
        let Some(node) = self.nodes.get_mut(&to.id).filter(|node| node.me == to) else { return };
        let Some(giver) = &mut node.merging.giver else { return };
        let after = match giver.answered(reply) {
            Course::On => Duration::ZERO,
            Course::Elsewhere(at) => {
                // Ports are node ids here.
                node.merging.asks = Some(NodeId(u64::from(at.peer)));
                ms(1)
            }
            Course::Later => ms(10),
        };
        self.push(after, Event::HandOver { from: to });
    }

    /// Breaks a rule on purpose: data of a process that was declared dead counts as newer.
    pub(super) fn merge_after_death(&mut self, id: NodeId) {
        let (Some(dead), Some(map)) = (self.nodes.get(&id), self.map()) else { return };
        let mut kept = Vec::new();
        for key in super::clients::KEYS {
            let slot = Slot::of(key.as_bytes());
            dead.plane.with_slot(slot, |state| {
                let found = state.table().peek(&dead.plane.key(key));
                kept.extend(found.and_then(|it| {
                    let text = super::clients::text_of(&it)?;
                    Some((key, text, it.item.version()))
                }));
            });
        }
        for (key, value, version) in kept {
            let slot = Slot::of(key.as_bytes());
            let primary = map.bucket_of(slot).primary().filter(|primary| *primary != id);
            let Some(node) = primary.and_then(|primary| self.nodes.get(&primary)) else { continue };
            let (plane, wall) = (&node.plane, UnixMillis(node.clock.wall_millis(self.now)));
            let name = plane.key(key);
            let here =
                plane.with_slot(slot, |it| it.table().peek(&name).map(|it| it.item.version()));
            if here.is_some_and(|here| here >= version) {
                continue;
            }
            let mut effects = EffectLog::default();
            let locked = LockedSlots::lock(plane, LockSet::One(slot));
            let Ok(mut slots) = ServedSlots::open(plane, locked, Access::WRITE, &mut effects)
            else {
                continue;
            };
            let put = Effect::Put { key: name, value: NewValue::Raw(&value), expires_at: None };
            let _ = slots.apply(slot, &put, ChangeContext { now: wall, touch: Touch::Nothing });
        }
    }

    /// Makes members from before a takeover greet each other, as far as they reach each other.
    pub(super) fn meet_partitioned(&mut self) {
        let mut met = Vec::new();
        for node in self.nodes.values().filter(|node| !node.is_stopped) {
            for other in node.control.partitioned_members() {
                let there = self.nodes.get(&other.id).filter(|it| it.me == other.peer());
                let cut = self.network.is_cut(node.me.id, other.id)
                    || self.network.is_cut(other.id, node.me.id);
                if there.is_some_and(|it| !it.is_stopped) && !cut {
                    met.push((node.me.id, other.id));
                }
            }
        }
        for (one, other) in met {
            for (to, of) in [(one, other), (other, one)] {
                if let Some(generation) = self.generation_of(of) {
                    self.give(to, Input::Met(generation));
                }
            }
        }
    }
}

impl Node {
    /// Answers a question, as `server/src/merge/take.rs` does.
    fn answer_merge(&mut self, now: Moment, from: Peer, question: MergeRequest) {
        if !self.has_lease(now) {
            return self.merging.answers.push((from, MergeReply::NotNow));
        }
        let reply = match question {
            MergeRequest::Since { first, count } => self.since(first, count),
            MergeRequest::Changes { slot, parted, changes } => {
                let slot = Slot::new(slot).expect("the giver names slots");
                let batch = ChangeBatch::read(&changes).expect("the giver writes changes");
                return self.take(from, slot, Version(parted), batch);
            }
        };
        self.merging.answers.push((from, reply));
    }

    fn since(&self, first: u16, count: u16) -> MergeReply {
        let slots = (first..first + count).map_while(Slot::new);
        let since = |slot: Slot| {
            self.plane.with_slot(slot, |state| {
                state.replica().is_serving().then(|| diverged_at(state.table()).0)
            })
        };
        let since: Vec<u64> = slots.map_while(since).collect();
        if since.is_empty() {
            return self.elsewhere(Slot::new(first).expect("the giver names slots"));
        }
        MergeReply::Since(since)
    }

    fn elsewhere(&self, slot: Slot) -> MergeReply {
        let map = self.map().expect("only a member is asked");
        let primary = map.bucket_of(slot).primary().filter(|node| *node != self.me.id);
        let member = primary.and_then(|node| map.member(node));
        member.map_or(MergeReply::NotNow, |member| MergeReply::Elsewhere(member.at.clone()))
    }

    fn take(&mut self, from: Peer, slot: Slot, parted: Version, batch: ChangeBatch<'_>) {
        self.bend_merge(slot);
        let wall = UnixMillis(batch.latest().time().0 + 1);
        let plane = &self.plane;
        let mut effects = EffectLog::default();
        let locked = LockedSlots::lock(plane, LockSet::One(slot));
        let Ok(mut slots) = ServedSlots::open(plane, locked, Access::WRITE, &mut effects) else {
            let reply = self.elsewhere(slot);
            return self.merging.answers.push((from, reply));
        };
        let mut ground = ServedGround::new(slot, &mut slots, wall);
        let taker = self.merging.takers.entry(from).or_default();
        let tally = taker.take(parted, batch, plane.seed(), &mut ground);
        let conflicts = ground.conflicts;
        let tickets = slots.finish().tickets;
        self.merging.ledger.note(tally, conflicts);
        self.merging.held.push((from, tickets, MergeReply::Merged(tally)));
        self.release_merged();
    }

    /// Breaks rules on purpose: forgets the deletions made here, or all changes made here.
    fn bend_merge(&self, slot: Slot) {
        let (forgets, looks_away) =
            (self.breaks(Sabotage::NoTombs), self.breaks(Sabotage::LastComeWins));
        self.plane.with_slot(slot, |state| {
            let (table, _) = state.parts_for_tests();
            if forgets {
                let _ = table.forget_tombstones();
            }
            if looks_away {
                // As if nothing had been changed here.
                let _ = table.end_divergence();
                table.begin_divergence(table.version());
            }
        });
    }

    /// Sends answers whose writes are safe, or will never be.
    pub(super) fn release_merged(&mut self) {
        for (to, mut tickets, reply) in core::mem::take(&mut self.merging.held) {
            let verdicts: Vec<ReplyVerdict> =
                tickets.iter_mut().map(|ticket| self.judge(ticket)).collect();
            if verdicts.contains(&ReplyVerdict::Abort) {
                self.merging.answers.push((to, MergeReply::NotNow));
            } else if verdicts.contains(&ReplyVerdict::Wait) {
                self.merging.held.push((to, tickets, reply));
            } else {
                self.merging.answers.push((to, reply));
            }
        }
    }
}

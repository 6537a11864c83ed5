//! Asks other nodes before a pop: this node was late, has no lease, was out of the map, or is no longer a
//! replica, so other nodes may have popped, changed or deleted the timer meanwhile.
//!
//! Called by `pop.rs` when a turn comes in doubt; ends in a call, in waiting, or in forgetting the timer.

use std::collections::BTreeSet;

use crate::core::Timers;
use crate::ids::{MonotonicMillis, TimeSpan, TimerId, TimerPeer};
use crate::input::ANSWER_WITHIN;
use crate::message::{Answered, Ask, TimerKnowledge, TimerMessage};
use crate::pop::{Pop, PopPhase};
use crate::record::TimerState;
use crate::spec::CALL_TIMEOUT_DEFAULT;
use crate::table::{ReplicaRank, STAGGER, TOMBSTONE_MIN};

/// Maximum number of timers left to other nodes that call for them, for a short time each.
const LEFT_TO_OTHERS_MAX: usize = 10_000;

/// The answers so far. An answer with a later state ends the asking at once.
#[derive(Default)]
pub(crate) struct DoubtRound {
    waiting: BTreeSet<TimerPeer>,
    /// Nodes that have the timer, with no more progress than we do.
    held_by: BTreeSet<TimerPeer>,
    /// Nodes that do not know the timer.
    unknown_to: BTreeSet<TimerPeer>,
    /// Nodes that may have missed how the timer ended, and so cannot tell.
    unsure: BTreeSet<TimerPeer>,
    /// True if another node follows a later list of members: ours is no basis for a decision.
    behind: bool,
}

impl Timers {
    pub(crate) fn doubt(&mut self, id: TimerId) {
        let entry = self.table.get(id).expect("the caller saw it");
        let progress = entry.progress();
        // A timer kept through an absence may be at any node by now.
        let is_unsure = entry.era.stay != self.era.stay;
        let asked = if is_unsure { self.members.all().to_vec() } else { self.others(id) };
        let waiting: BTreeSet<TimerPeer> =
            asked.into_iter().filter(|node| *node != self.me).collect();
        let epoch = self.members.epoch();
        let absent_for = if is_unsure { self.absent_for() } else { TimeSpan::ZERO };
        for node in &waiting {
            self.send(*node, TimerMessage::Ask(Ask { epoch, id, progress, absent_for }));
        }
        let nobody = waiting.is_empty();
        let asking = DoubtRound { waiting, ..DoubtRound::default() };
        self.pops.insert(id, Pop::new(progress, PopPhase::Asking(asking)));
        self.table.postpone(id, self.moment() + ANSWER_WITHIN);
        if nobody {
            self.doubt_over(id);
        }
    }

    pub(crate) fn on_ask(&mut self, from: TimerPeer, ask: &Ask) {
        let now = self.moment();
        let entry = self.table.get(ask.id);
        let is_newer = entry.is_some_and(|entry| entry.progress() > ask.progress);
        // Two nodes that are both in doubt would confirm each other.
        let is_sure = entry.is_some_and(|entry| entry.era.stay == self.era.stay);
        let known = match self.record(ask.id).filter(|_| is_newer) {
            Some(record) => TimerKnowledge::Newer(record),
            None if is_sure => TimerKnowledge::Held,
            None => {
                // The asking node will call, and we may receive the timer before we learn of that call.
                let until = self.moment() + ANSWER_WITHIN + CALL_TIMEOUT_DEFAULT + STAGGER;
                let is_held = entry.is_some();
                self.leave_to_others(ask.id, ask.progress, until);
                let was_away = self.restarted_at.is_some_and(|at| now - at < ask.absent_for);
                if is_held || was_away { TimerKnowledge::Unsure } else { TimerKnowledge::Nothing }
            }
        };
        let epoch = self.members.epoch();
        let answered = Answered { epoch, id: ask.id, progress: ask.progress, known };
        self.send(from, TimerMessage::Answered(answered));
    }

    /// Records that another node calls for a timer. If we do not have it yet, or with less progress, and
    /// receive it now, we must not call as well.
    pub(crate) fn leave_to_others(
        &mut self,
        id: TimerId,
        progress: TimerState,
        until: MonotonicMillis,
    ) {
        let now = self.moment();
        if self.left_to_others.len() >= LEFT_TO_OTHERS_MAX {
            self.left_to_others.retain(|_, (_, until)| *until > now);
        }
        if self.left_to_others.len() < LEFT_TO_OTHERS_MAX {
            self.left_to_others.insert(id, (progress, until));
        }
    }

    pub(crate) fn on_answered(&mut self, from: TimerPeer, answered: Answered) {
        let id = answered.id;
        let epoch = self.members.epoch();
        let Some(pop) = self.pops.get_mut(&id) else { return };
        let PopPhase::Asking(asking) = &mut pop.phase else { return };
        if pop.progress != answered.progress {
            return;
        }
        asking.waiting.remove(&from);
        asking.behind |= answered.epoch > epoch;
        match answered.known {
            TimerKnowledge::Newer(record) => return self.adopt(&record),
            TimerKnowledge::Held => asking.held_by.insert(from),
            TimerKnowledge::Nothing => asking.unknown_to.insert(from),
            TimerKnowledge::Unsure => asking.unsure.insert(from),
        };
        if asking.waiting.is_empty() {
            self.doubt_over(id);
        }
    }

    /// Decides when all nodes have answered or their time is up. None of them has a later state.
    pub(crate) fn doubt_over(&mut self, id: TimerId) {
        let Some(Pop { phase: PopPhase::Asking(asking), .. }) = self.pops.get_mut(&id) else {
            return;
        };
        let asking = std::mem::take(asking);
        let entry = self.table.get(id).expect("a pop under way has its entry");
        let (due, place) = (entry.due, entry.place);
        if asking.behind {
            return self.defer(id, self.moment() + ANSWER_WITHIN);
        }
        if entry.era.stay != self.era.stay {
            return self.unsure_over(id, &asking);
        }
        if entry.turn() > self.moment() {
            // We asked before its turn, and another node has confirmed it since.
            let turn = entry.turn();
            self.pops.remove(&id);
            return self.table.postpone(id, turn);
        }
        let ReplicaRank::Former(old) = place else { return self.call(id) };
        let replicas = self.members.replicas(id);
        let last_turn = due + STAGGER.times(replicas.len() as u64);
        if self.moment() >= last_turn {
            // All turns have passed. The nodes that have it are popping it.
            if !asking.held_by.is_empty() {
                return self.defer(id, self.moment() + STAGGER);
            }
            return self.call(id);
        }
        // Our old turn. It is still ours if no replica that ranks before us now has the timer.
        let before = &replicas[..replicas.len().min(usize::from(old) + 1)];
        if before.iter().all(|node| asking.unknown_to.contains(node)) {
            self.call(id);
        } else {
            self.defer(id, last_turn);
        }
    }

    /// Decides on a timer kept while this node was out of the map. If other nodes answer and none of them has
    /// it, it was ended meanwhile; but in that case they have its tombstone for a while. Within that time, no
    /// tombstone means that they have lost the timer. If nobody answers we cannot know. A pop too many is
    /// better than a missing one.
    fn unsure_over(&mut self, id: TimerId, asking: &DoubtRound) {
        let entry = self.table.get(id).expect("a pop under way has its entry");
        let remembered = entry.interval.max(TOMBSTONE_MIN);
        let is_from_there = self.parted_at.is_some_and(|at| entry.version.epoch > at);
        let would_be_forgotten = self.absent_for() >= remembered && !is_from_there;
        if would_be_forgotten && asking.held_by.is_empty() && !asking.unknown_to.is_empty() {
            return self.forget(id);
        }
        let (stay, turn) = (self.era.stay, entry.turn());
        self.change_entry(id, |entry| entry.era.stay = stay);
        if turn > self.moment() {
            self.pops.remove(&id);
            return;
        }
        // After a crash of all nodes, each holder finds the timer in doubt and overdue: the first one calls.
        let replicas = self.members.replicas(id);
        let before = replicas.iter().take_while(|node| **node != self.me);
        let places = before.filter(|node| asking.unsure.contains(node)).count() as u64;
        if places == 0 {
            return self.call(id);
        }
        self.pops.remove(&id);
        self.table.postpone(id, self.moment() + STAGGER.times(places));
    }

    fn defer(&mut self, id: TimerId, until: MonotonicMillis) {
        self.pops.get_mut(&id).expect("the caller saw it").phase = PopPhase::HeldBack;
        self.table.postpone(id, until);
    }
}

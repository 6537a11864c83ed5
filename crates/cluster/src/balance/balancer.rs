//! A node's part in balancing: when to look for a move, which nodes to ask, what to agree on, and when
//! a move is over.
//!
//! `handle` takes one input and appends its actions to `out`. The node takes part in one move at a time
//! (`Engagement`); it refuses any other meanwhile, because a transfer is already in progress.
//! `decide.rs` decides on the next move; `message.rs` shows the conversation.

mod leaving; //  Leaving, the safe way and the quick way.
mod shedding; // Memory: moves outside the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::backoff::Backoff;
use super::batch::{self, promotions_allowed};
use super::decide::{Decision, PlanCursor, PlanView, Reason, Step, StepKind, decide};
use super::engagement::{Engagement, MoveRole};
use super::levels::{LoadLevels, MoveReadiness, Vitals};
use super::memory::MemoryReport;
use super::message::{
    Attempt, BalanceAction, BalanceInput, BalanceMessage, Offered, Refused, Timer,
};
use super::pace::Pace;
use crate::Moment;
use crate::map::{Epoch, LeaveWay, Load, NodeId};
use placement::{Hashmask, SplitMix64};

/// Timeout for load levels, and for an answer to an offer.
const ANSWER_WAIT: Duration = Duration::from_millis(500);
/// Time after which a node that found no room for its copies looks for it again: in a cluster at its limit all
/// nodes do that.
const SHED_WAIT: Duration = Duration::from_secs(5);
/// Time for which a node that refused a copy for want of memory is not just offered the next one.
const FULL_WAIT: Duration = Duration::from_secs(2);

pub struct Balancer {
    me: NodeId,
    rng: SplitMix64,
    vitals: Vitals,
    engagement: Option<Engagement>,
    asking: Option<LevelsRound>,
    /// Latest load levels, only for display (`status`): decisions are made with fresh answers.
    heard: BTreeMap<NodeId, LoadLevels>,
    intent: Intent,
    /// True if the map has shown this node as leaving.
    was_marked: bool,
    /// The number of the timer that counts, and its due time.
    look_number: u64,
    look_at: Moment,
    attempts: u64,
    rounds: u64,
    last_pings: Option<Moment>,
    turn: Turn,
    /// Progress through the plan, and the basis of that plan.
    cursor: PlanCursor,
    cursor_basis: Epoch,
    /// Nodes that were stuck: nothing is copied to them for a while.
    backoff: Backoff,
    memory: MemoryReport,
    /// Bytes of the copies this node has agreed to take since its vitals were measured, estimated.
    taken_bytes: u64,
    /// Bytes of the copies given to each node for want of memory since the last report of this node.
    shed_to: BTreeMap<NodeId, u64>,
    /// No node had room for a copy: asked again then.
    shed_again_at: Moment,
    /// Until then a planned taker has no room, and the levels of all nodes matter.
    full_until: Moment,
    /// Nodes whose links stand, as far as this one knows: nothing is offered to the others.
    linked: BTreeSet<NodeId>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Intent {
    Stay,
    Leave(LeaveWay),
}

/// Givers take turns: a node that has given a copy lets the others go first. Promotions do not count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Mine,
    OfOthers,
}

/// A round of collecting load levels.
struct LevelsRound {
    round: u64,
    /// Epoch of the map when the round began: if the map changes meanwhile, the answers may be out of
    /// date.
    epoch: Epoch,
    waiting: BTreeSet<NodeId>,
    answers: BTreeMap<NodeId, LoadLevels>,
}

impl LevelsRound {
    fn is_out_of_date(&self, epoch: Epoch) -> bool {
        self.epoch != epoch
            || self.answers.values().any(|levels| levels.busy && levels.epoch < epoch)
    }
}

impl Balancer {
    pub fn new(me: NodeId, seed: u64) -> Balancer {
        Balancer {
            me,
            rng: SplitMix64::new(seed),
            vitals: Vitals::default(),
            engagement: None,
            asking: None,
            heard: BTreeMap::new(),
            intent: Intent::Stay,
            was_marked: false,
            look_number: 0,
            look_at: Moment::START,
            attempts: 0,
            rounds: 0,
            last_pings: None,
            turn: Turn::Mine,
            backoff: Backoff::default(),
            memory: MemoryReport::default(),
            taken_bytes: 0,
            shed_to: BTreeMap::new(),
            shed_again_at: Moment::START,
            full_until: Moment::START,
            linked: BTreeSet::new(),
            cursor: PlanCursor::default(),
            cursor_basis: Epoch(0),
        }
    }

    pub fn set_vitals(&mut self, vitals: Vitals) {
        self.vitals = vitals;
        self.taken_bytes = 0;
    }

    /// Returns the latest load levels of the other nodes, as far as they were asked.
    pub fn heard(&self) -> &BTreeMap<NodeId, LoadLevels> {
        &self.heard
    }

    /// Returns the move this node takes part in now.
    pub fn engagement(&self) -> Option<&Engagement> {
        self.engagement.as_ref()
    }

    /// Handles one input. The actions are appended to `out`.
    pub fn handle(
        &mut self,
        now: Moment,
        view: PlanView,
        input: BalanceInput,
        out: &mut Vec<BalanceAction>,
    ) {
        if self.cursor_basis != view.plan.basis() {
            self.cursor = PlanCursor::default();
            self.cursor_basis = view.plan.basis();
            self.turn = Turn::Mine;
        }
        self.was_marked |= self.intent != Intent::Stay && self.is_marked(view);
        match input {
            BalanceInput::Message { from, message } => {
                self.note_link(now, view, from, out);
                self.on_message(now, view, from, message, out);
            }
            BalanceInput::Timer(Timer::LookForMove { number }) => {
                if number == self.look_number {
                    self.look_for_move(now, view, out);
                }
            }
            BalanceInput::Timer(Timer::LevelsDue { round }) => {
                self.on_levels_due(now, view, round, out);
            }
            BalanceInput::Timer(Timer::AnswerDue { attempt }) => {
                self.on_answer_due(now, attempt, out);
            }
            BalanceInput::MapChanged => self.on_map_changed(now, view, out),
            BalanceInput::FillDone { attempt, buckets } => {
                self.on_fill_done(now, view, attempt, &buckets, out);
            }
            BalanceInput::Stuck { node } => self.backoff.note(now, node),
            BalanceInput::Memory(report) => self.on_memory(now, view, report, out),
            BalanceInput::LinkUp { node } => self.on_link_up(now, view, node, out),
            BalanceInput::LinkDown { node } => {
                self.linked.remove(&node);
            }
            BalanceInput::Leave(way) => self.on_leave(now, view, way, out),
        }
        self.notice_the_end(now, view, out);
    }

    fn on_message(
        &mut self,
        now: Moment,
        view: PlanView,
        from: NodeId,
        message: BalanceMessage,
        out: &mut Vec<BalanceAction>,
    ) {
        match message {
            BalanceMessage::Ping => {
                send(out, from, BalanceMessage::Pong);
                // A node that has just joined pings when it knows the map; before that it answers nothing.
                self.ask_again(now, view, from, out);
            }
            BalanceMessage::Pong => {}
            BalanceMessage::AskLevels { round } => {
                send(out, from, BalanceMessage::Levels { round, levels: self.levels(view) });
            }
            BalanceMessage::Levels { round, levels } => {
                self.on_levels(now, view, from, round, levels, out);
            }
            BalanceMessage::Offer { attempt, buckets, basis, what } => {
                let role = MoveRole::Taking { what };
                let offer = Engagement { attempt, buckets, basis, taker: self.me, role };
                self.agree_or_refuse(now, view, from, offer, out);
            }
            BalanceMessage::Fetch { attempt, buckets, basis, taker } => {
                let role = MoveRole::Sourcing { proposed: Vec::new() };
                let wanted = Engagement { attempt, buckets: buckets.clone(), basis, taker, role };
                self.agree_or_refuse(now, view, from, wanted, out);
                if self.is_engaged_in(attempt) {
                    out.push(BalanceAction::StartFill { attempt, buckets, taker });
                }
            }
            BalanceMessage::Accept { attempt, levels } => {
                self.on_accept(now, view, from, attempt, levels, out);
            }
            BalanceMessage::Refuse { attempt, because } => {
                if because == Refused::Full {
                    self.full_until = now + FULL_WAIT;
                }
                self.on_refuse(now, from, attempt, out);
            }
            BalanceMessage::Forget { attempt } => {
                if self.is_engaged_in(attempt) {
                    out.push(BalanceAction::CancelFill { attempt });
                    self.disengage(now, Pace::Soon, out);
                }
            }
        }
    }

    // ---- Looking for a move, ask for load levels, decide.

    fn look_for_move(&mut self, now: Moment, view: PlanView, out: &mut Vec<BalanceAction>) {
        if self.engagement.is_some() || self.asking.is_some() || view.map.member(self.me).is_none()
        {
            return; // One move at a time: the end of this one schedules the next event.
        }
        match self.intent {
            Intent::Leave(_) if !self.is_marked(view) => return self.mark_again(now, view, out),
            Intent::Leave(way) if self.may_leave(view, way) => {
                return self.ask_to_leave(now, view, way, out);
            }
            Intent::Leave(LeaveWay::Quick) => return self.hand_on(now, view, out),
            // A node of weight 0 carries out its part of the plan, in which it holds nothing.
            Intent::Stay | Intent::Leave(LeaveWay::Safe) => {}
        }
        let Some(possible) = decide(view, self.me, &mut self.cursor, |_| MoveReadiness::Free)
        else {
            if self.has_surplus(now, view) {
                return self.ask_levels(others(view, self.me), view, out);
            }
            self.ping_all(now, view, out);
            let is_done = view.plan.is_done(view.map);
            let pace = match self.intent {
                Intent::Leave(_) => Pace::Soon,
                Intent::Stay if is_done => Pace::Seldom,
                Intent::Stay => Pace::Often,
            };
            return self.set_event(now, pace, out);
        };
        if possible.step.kind != StepKind::Promote && self.turn == Turn::OfOthers {
            self.turn = Turn::Mine;
            if view.others_wait_for(self.me, possible.step.taker) {
                return self.set_event(now, Pace::AfterOthers, out);
            }
        }
        // A node below its share has no choice that load levels could help with: its step is a bucket
        // that lacks backups, or a promotion, and a busy partner will refuse.
        if possible.step.kind == StepKind::Drop {
            return self.begin(now, view, possible, out);
        }
        let is_full = now < self.full_until;
        if view.is_below_share(self.me) && !is_full {
            return self.begin_if_linked(now, view, possible, out);
        }
        let asks_all = is_full || self.has_surplus(now, view);
        let partners = || view.partners(self.me, &self.cursor);
        let asked = if asks_all { others(view, self.me) } else { partners() };
        self.ask_levels(asked, view, out);
    }

    /// Begins a move for which no load levels are needed. The taker may have joined just now, and have no
    /// link yet; then this node waits for it.
    fn begin_if_linked(
        &mut self,
        now: Moment,
        view: PlanView,
        decision: Decision,
        out: &mut Vec<BalanceAction>,
    ) {
        let taker = decision.step.taker;
        if self.linked.contains(&taker) {
            return self.begin(now, view, decision, out);
        }
        send(out, taker, BalanceMessage::Ping);
        self.set_event(now, Pace::Soon, out);
    }

    /// Asks the nodes to which this node might give something, or from which it might fetch it. A node
    /// that has just joined may have no link or no map yet: the request is lost then, and repeated by
    /// `ask_again`.
    fn ask_levels(
        &mut self,
        waiting: BTreeSet<NodeId>,
        view: PlanView,
        out: &mut Vec<BalanceAction>,
    ) {
        self.rounds += 1;
        let round = self.rounds;
        for node in &waiting {
            send(out, *node, BalanceMessage::AskLevels { round });
        }
        out.push(BalanceAction::SetTimer { timer: Timer::LevelsDue { round }, after: ANSWER_WAIT });
        let epoch = view.map.epoch();
        self.asking = Some(LevelsRound { round, epoch, waiting, answers: BTreeMap::new() });
    }

    /// Repeats what was lost because the link did not stand yet.
    fn on_link_up(
        &mut self,
        now: Moment,
        view: PlanView,
        node: NodeId,
        out: &mut Vec<BalanceAction>,
    ) {
        self.note_link(now, view, node, out);
        self.ask_again(now, view, node, out);
    }

    /// Repeats a request for load levels that a node has not answered.
    fn ask_again(
        &mut self,
        now: Moment,
        view: PlanView,
        node: NodeId,
        out: &mut Vec<BalanceAction>,
    ) {
        let asking = self.asking.as_ref().filter(|asking| asking.waiting.contains(&node));
        let Some(round) = asking.map(|asking| asking.round) else { return };
        if view.is_below_share(self.me) {
            // By the present map it needs no load levels.
            self.asking = None;
            self.set_event(now, Pace::MyTurn, out);
        } else {
            send(out, node, BalanceMessage::AskLevels { round });
        }
    }

    /// Records that the link to a node stands; this node may have waited for that.
    fn note_link(
        &mut self,
        now: Moment,
        view: PlanView,
        node: NodeId,
        out: &mut Vec<BalanceAction>,
    ) {
        if !self.linked.insert(node) {
            return;
        }
        self.linked.retain(|node| view.map.member(*node).is_some());
        let is_idle = self.engagement.is_none() && self.asking.is_none();
        if is_idle && view.plan.concerning(self.me).next().is_some() {
            self.set_event(now, Pace::MyTurn, out);
        }
    }

    fn on_levels(
        &mut self,
        now: Moment,
        view: PlanView,
        from: NodeId,
        round: u64,
        levels: LoadLevels,
        out: &mut Vec<BalanceAction>,
    ) {
        let Some(asking) = self.asking.as_mut().filter(|asking| asking.round == round) else {
            return;
        };
        if asking.waiting.remove(&from) {
            asking.answers.insert(from, levels);
            self.heard.insert(from, levels);
            self.heard.retain(|node, _| view.map.member(*node).is_some());
        }
        if asking.waiting.is_empty() {
            self.decide_with_answers(now, view, out);
        }
    }

    fn on_levels_due(
        &mut self,
        now: Moment,
        view: PlanView,
        round: u64,
        out: &mut Vec<BalanceAction>,
    ) {
        if self.asking.as_ref().is_some_and(|asking| asking.round == round) {
            self.decide_with_answers(now, view, out);
        }
    }

    fn decide_with_answers(&mut self, now: Moment, view: PlanView, out: &mut Vec<BalanceAction>) {
        let asking = self.asking.take().expect("answers belong to a question");
        if self.engagement.is_some() {
            return; // Meanwhile another node has offered something to this one; that comes first.
        }
        // A returning node takes nothing until it has brought back the copies it kept.
        let is_put_off = |node| self.backoff.is_waiting(now, node);
        let takes_part = |node: &NodeId| !view.map.may_bring_any(*node) && !is_put_off(*node);
        let answer = |node| asking.answers.get(&node).filter(|_| takes_part(&node));
        let readiness = |node| answer(node).map_or(MoveReadiness::Unfit, LoadLevels::readiness);
        let decision = decide(view, self.me, &mut self.cursor, readiness)
            .or_else(|| self.decide_for_memory(view, &asking.answers, readiness));
        match decision {
            Some(decision) => self.begin(now, view, decision, out),
            // A node was busy with a move that this node knows to be over, or the map has changed
            // since.
            None if asking.is_out_of_date(view.map.epoch()) => {
                self.set_event(now, Pace::MyTurn, out);
            }
            None => {
                let is_full = |node: &NodeId| readiness(*node) == MoveReadiness::Full;
                let no_room = asking.answers.keys().any(is_full);
                if no_room {
                    self.full_until = now + FULL_WAIT;
                }
                let has_surplus = self.has_surplus(now, view);
                if has_surplus {
                    self.shed_again_at = now + SHED_WAIT;
                }
                let waits = no_room || has_surplus;
                self.set_event(now, if waits { Pace::Often } else { Pace::Soon }, out);
            }
        }
    }

    /// R26: a node with nothing to give only makes sure that the others are reachable.
    fn ping_all(&mut self, now: Moment, view: PlanView, out: &mut Vec<BalanceAction>) {
        if self.last_pings.is_some_and(|last| now < last + Pace::Seldom.longest() / 2) {
            return;
        }
        self.last_pings = Some(now);
        for member in view.map.members().iter().filter(|member| member.id != self.me) {
            send(out, member.id, BalanceMessage::Ping);
        }
    }

    // ---- The giver: offer, fetch, propose.

    fn begin(
        &mut self,
        now: Moment,
        view: PlanView,
        mut decision: Decision,
        out: &mut Vec<BalanceAction>,
    ) {
        let Step { kind, bucket, taker, .. } = decision.step;
        if decision.rule == Reason::ShortOfMemory {
            let bytes = self.memory.copies.get(&bucket).copied().unwrap_or(0);
            *self.shed_to.entry(taker).or_default() += bytes;
        }
        if kind == StepKind::Drop {
            let changes = Engagement::drop_changes(view, &decision.step);
            out.push(BalanceAction::Propose { planned_at: Some(view.plan.basis()), changes });
            out.push(BalanceAction::Decided(decision));
            return self.set_event(now, Pace::Soon, out);
        }
        let attempt = self.next_attempt();
        let basis = view.plan.basis();
        let what = match kind {
            StepKind::Promote | StepKind::Drop => Offered::Promotion,
            StepKind::Fill => Offered::Fill,
            StepKind::GivePrimary | StepKind::GiveBackup => Offered::Gift,
        };
        let buckets = self.buckets_together(view, &decision);
        decision.buckets = buckets.len();
        let role = MoveRole::Offering { decision: Box::new(decision) };
        let offer = BalanceMessage::Offer { attempt, buckets: buckets.clone(), basis, what };
        self.engagement = Some(Engagement { attempt, buckets, basis, taker, role });
        send(out, taker, offer);
        out.push(BalanceAction::SetTimer {
            timer: Timer::AnswerDue { attempt },
            after: ANSWER_WAIT,
        });
    }

    /// Returns the buckets that move together with the decided one: as many as the taker has room for.
    fn buckets_together(&self, view: PlanView, decision: &Decision) -> Vec<Hashmask> {
        if self.intent != Intent::Stay || decision.rule == Reason::ShortOfMemory {
            return vec![decision.step.bucket];
        }
        let mut buckets = batch::buckets_of(view, &self.cursor, decision);
        if let Some(levels) = self.heard.get(&decision.step.taker) {
            let fit = levels.vitals.memory.room() / self.average_copy(view).max(1);
            buckets.truncate(usize::try_from(fit).unwrap_or(usize::MAX).max(1));
        }
        buckets
    }

    fn on_accept(
        &mut self,
        now: Moment,
        view: PlanView,
        from: NodeId,
        attempt: Attempt,
        levels: LoadLevels,
        out: &mut Vec<BalanceAction>,
    ) {
        if !self.is_engaged_in(attempt) {
            return send(out, from, BalanceMessage::Forget { attempt });
        }
        let engagement = self.engagement.as_mut().expect("engaged in this attempt");
        match engagement.role.clone() {
            MoveRole::Offering { decision } => {
                self.on_accept_by_taker(now, view, *decision, levels, out);
            }
            MoveRole::Fetching { decision } => {
                engagement.role = MoveRole::Giving { step: decision.step, proposed: Vec::new() };
                out.push(BalanceAction::Decided(*decision));
            }
            MoveRole::Giving { .. } | MoveRole::Taking { .. } | MoveRole::Sourcing { .. } => {}
        }
    }

    fn on_accept_by_taker(
        &mut self,
        now: Moment,
        view: PlanView,
        decision: Decision,
        levels: LoadLevels,
        out: &mut Vec<BalanceAction>,
    ) {
        let step = decision.step;
        if step.kind == StepKind::Promote {
            let allowed = self.promotions_still_allowed(view, &decision, levels);
            let engagement = self.engagement.as_mut().expect("agreed on just now");
            if allowed == 0 {
                let attempt = engagement.attempt;
                send(out, step.taker, BalanceMessage::Forget { attempt });
                return self.disengage(now, Pace::Soon, out);
            }
            engagement.buckets.truncate(allowed);
        }
        if step.source == self.me {
            return self.start_own(view, decision, out);
        }
        let engagement = self.engagement.as_mut().expect("agreed on just now");
        let (attempt, basis) = (engagement.attempt, engagement.basis);
        engagement.role = MoveRole::Fetching { decision: Box::new(decision) };
        let (buckets, taker) = (engagement.buckets.clone(), step.taker);
        send(out, step.source, BalanceMessage::Fetch { attempt, buckets, basis, taker });
        out.push(BalanceAction::SetTimer {
            timer: Timer::AnswerDue { attempt },
            after: ANSWER_WAIT,
        });
    }

    /// Returns how many promotions still help, by the latest numbers the taker has sent.
    fn promotions_still_allowed(
        &mut self,
        view: PlanView,
        decision: &Decision,
        levels: LoadLevels,
    ) -> usize {
        if self.intent != Intent::Stay {
            return 1;
        }
        let taker =
            Load { primaries: levels.primaries, backups: levels.backups, last_received: None };
        let phase = view.phase(&mut self.cursor);
        promotions_allowed(view, &decision.step, taker, phase, decision.buckets)
    }

    /// Starts the promotion or the fill itself, because the giver is the primary.
    fn start_own(&mut self, view: PlanView, decision: Decision, out: &mut Vec<BalanceAction>) {
        let engagement = self.engagement.as_mut().expect("agreed on just now");
        let (attempt, step) = (engagement.attempt, decision.step);
        let mut proposed = Vec::new();
        if step.kind == StepKind::Promote {
            proposed = engagement.propose_promotions(view, out);
        } else {
            let (buckets, taker) = (engagement.buckets.clone(), step.taker);
            out.push(BalanceAction::StartFill { attempt, buckets, taker });
        }
        engagement.role = MoveRole::Giving { step, proposed };
        out.push(BalanceAction::Decided(decision));
    }

    fn on_refuse(
        &mut self,
        now: Moment,
        from: NodeId,
        attempt: Attempt,
        out: &mut Vec<BalanceAction>,
    ) {
        if !self.is_engaged_in(attempt) {
            return;
        }
        let engagement = self.engagement.as_ref().expect("engaged in this attempt");
        if from != engagement.taker {
            send(out, engagement.taker, BalanceMessage::Forget { attempt });
        }
        self.disengage(now, Pace::Soon, out);
    }

    fn on_answer_due(&mut self, now: Moment, attempt: Attempt, out: &mut Vec<BalanceAction>) {
        if !self.is_engaged_in(attempt) {
            return;
        }
        let engagement = self.engagement.as_ref().expect("engaged in this attempt");
        let source = match &engagement.role {
            MoveRole::Offering { .. } => None,
            MoveRole::Fetching { decision } => Some(decision.step.source),
            MoveRole::Giving { .. } | MoveRole::Taking { .. } | MoveRole::Sourcing { .. } => return,
        };
        for node in source.into_iter().chain([engagement.taker]) {
            send(out, node, BalanceMessage::Forget { attempt });
        }
        self.disengage(now, Pace::Soon, out);
    }

    // ---- The taker and the source: agree, fill, propose.

    fn agree_or_refuse(
        &mut self,
        now: Moment,
        view: PlanView,
        giver: NodeId,
        wanted: Engagement,
        out: &mut Vec<BalanceAction>,
    ) {
        let attempt = wanted.attempt;
        // A copy this node has kept may be the only one; others must have it before this node takes
        // anything in.
        let brings = view.map.may_bring_any(self.me);
        let is_sound = (1..=batch::BUCKETS_MAX).contains(&wanted.buckets.len());
        let fits = is_sound && wanted.basis == view.plan.basis() && wanted.fits(view, self.me);
        let refusal = if !fits {
            Some(Refused::OtherMap)
        } else if self.engagement.is_some()
            || brings && wanted.taker == self.me
            || self.backoff.is_waiting(now, wanted.taker)
        {
            Some(Refused::Busy)
        } else if self.has_no_room_for(&wanted) {
            Some(Refused::Full)
        } else {
            None
        };
        if let Some(because) = refusal {
            return send(out, giver, BalanceMessage::Refuse { attempt, because });
        }
        send(out, giver, BalanceMessage::Accept { attempt, levels: self.levels(view) });
        if matches!(wanted.role, MoveRole::Taking { what: Offered::Fill | Offered::Gift }) {
            self.taken_bytes += self.average_copy(view) * wanted.buckets.len() as u64;
        }
        self.engagement = Some(wanted);
    }

    fn on_fill_done(
        &mut self,
        now: Moment,
        view: PlanView,
        attempt: Attempt,
        filled: &[Hashmask],
        out: &mut Vec<BalanceAction>,
    ) {
        if !self.is_engaged_in(attempt) {
            return;
        }
        let engagement = self.engagement.as_mut().expect("engaged in this attempt");
        if !engagement.propose_copies(view, filled, out) {
            self.abandon(now, out);
        }
    }

    // ---- The end: every participant sees it in the map.

    fn on_map_changed(&mut self, now: Moment, view: PlanView, out: &mut Vec<BalanceAction>) {
        let Some(engagement) = self.engagement.as_mut() else {
            if self.asking.is_none() && view.plan.concerning(self.me).next().is_some() {
                self.set_event(now, Pace::MyTurn, out);
            } else if self.look_number == 0 || self.intent != Intent::Stay {
                self.set_event(now, Pace::Soon, out);
            }
            return;
        };
        if engagement.basis != view.plan.basis() {
            // If some buckets have moved, the others move later. Checked before those that have moved are left
            // out, as no longer planned.
            let is_over = engagement.is_over(view);
            if is_over || !engagement.keep_planned(view) {
                return self.abandon(now, out);
            }
            engagement.basis = view.plan.basis();
            let (attempt, buckets) = (engagement.attempt, engagement.buckets.clone());
            out.push(BalanceAction::NarrowFill { attempt, buckets });
        }
        engagement.go_on(view, out);
        if engagement.has_failed(view) {
            self.abandon(now, out);
        }
    }

    /// Gives up a move and tells the other participants.
    fn abandon(&mut self, now: Moment, out: &mut Vec<BalanceAction>) {
        let engagement = self.engagement.as_ref().expect("only what was begun is abandoned");
        let attempt = engagement.attempt;
        for node in engagement.others(self.me) {
            send(out, node, BalanceMessage::Forget { attempt });
        }
        out.push(BalanceAction::CancelFill { attempt });
        self.disengage(now, Pace::MyTurn, out);
    }

    /// Ends the engagement if the map shows that its move is over. Runs after every input, not only
    /// after a map change: a delayed message may start a move that the map has already shown to be
    /// over.
    fn notice_the_end(&mut self, now: Moment, view: PlanView, out: &mut Vec<BalanceAction>) {
        let Some(engagement) = self.engagement.as_ref().filter(|part| part.is_over(view)) else {
            return;
        };
        let is_giver = engagement.attempt.giver == self.me;
        if engagement.has_given() {
            self.turn = Turn::OfOthers;
        }
        self.disengage(now, if is_giver { Pace::AtOnce } else { Pace::MyTurn }, out);
    }

    // ---- Helpers.

    fn next_attempt(&mut self) -> Attempt {
        self.attempts += 1;
        Attempt { giver: self.me, number: self.attempts }
    }

    fn levels(&self, view: PlanView) -> LoadLevels {
        let busy = self.engagement.is_some();
        let vitals = Vitals { memory: self.memory_now(), ..self.vitals };
        LoadLevels::new(view.map.epoch(), view.map.load(self.me), vitals, busy)
    }

    fn is_engaged_in(&self, attempt: Attempt) -> bool {
        self.engagement.as_ref().is_some_and(|engagement| engagement.attempt == attempt)
    }

    fn disengage(&mut self, now: Moment, pace: Pace, out: &mut Vec<BalanceAction>) {
        self.engagement = None;
        self.set_event(now, pace, out);
    }

    /// Schedules the next event, unless one is due sooner anyway.
    fn set_event(&mut self, now: Moment, pace: Pace, out: &mut Vec<BalanceAction>) {
        let after = pace.wait(self.draw());
        let pending = self.look_number > 0 && self.look_at > now;
        if pending && self.look_at <= now + after {
            return;
        }
        self.look_number += 1;
        self.look_at = now + after;
        let timer = Timer::LookForMove { number: self.look_number };
        out.push(BalanceAction::SetTimer { timer, after });
    }

    /// Draws the next random number.
    fn draw(&mut self) -> u64 {
        self.rng.draw()
    }
}

/// Returns the members that might take a copy from this node.
fn others(view: PlanView, me: NodeId) -> BTreeSet<NodeId> {
    let members = view.map.members().iter().filter(|it| it.id != me && it.weight > 0);
    members.map(|member| member.id).collect()
}

fn send(out: &mut Vec<BalanceAction>, to: NodeId, message: BalanceMessage) {
    out.push(BalanceAction::Send { to, message });
}

//! A node's part in balancing: when to look for a move, which nodes to ask, what to agree on, and when
//! a move is over.
//!
//! `handle` takes one input and appends its actions to `out`. The node takes part in one move at a time
//! (`Engagement`); it refuses any other meanwhile, because a transfer is already in progress.
//! `decide.rs` decides on the next move; `message.rs` shows the conversation.

mod looking; //  Looking for a move: load levels are asked for, and a step is chosen.
mod giving; //   Giving: the offer, its answer, and the fetch.
mod leaving; //  Leaving, the safe way and the quick way.
mod shedding; // Memory: moves outside the plan.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use looking::LevelsRound;

use super::backoff::Backoff;
use super::bundle;
use super::decide::{PlanCursor, PlanView};
use super::engagement::{Engagement, MoveRole};
use super::levels::{LoadLevels, Vitals};
use super::memory::MemoryReport;
use super::message::{
    BalanceAction, BalanceInput, BalanceMessage, MoveId, Offered, Refused, Timer,
};
use super::pace::Pace;
use crate::Moment;
use crate::map::{Epoch, LeaveWay, NodeId};
use placement::{Hashmask, SplitMix64};

/// Timeout for load levels, and for an answer to an offer.
const ANSWER_WAIT: Duration = Duration::from_millis(500);
/// Time after which a node that found no room for its copies looks for it again: in a cluster at its limit all
/// nodes do that.
const SHED_WAIT: Duration = Duration::from_secs(5);
/// Time for which this node, after another had no room for a copy, asks all nodes for their load levels before it
/// offers the next one.
const FULL_WAIT: Duration = Duration::from_secs(2);

pub struct Balancer {
    me: NodeId,
    rng: SplitMix64,
    vitals: Vitals,
    engagement: Option<Engagement>,
    asking: Option<LevelsRound>,
    /// Latest load levels of the others: for `status`, and to limit a bundle to the taker's room.
    heard: BTreeMap<NodeId, LoadLevels>,
    intent: Intent,
    /// True if the map has shown this node as leaving.
    was_marked: bool,
    /// The number of the latest timer for looking for a move (earlier ones are ignored), and its due time.
    look_number: u64,
    look_at: Moment,
    moves_begun: u64,
    rounds: u64,
    last_pings: Option<Moment>,
    precedence: Precedence,
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
    /// Earliest time at which this node looks for room again, after no node had any.
    shed_again_at: Moment,
    /// Until this time a planned taker counts as full: all nodes are asked for load levels.
    full_until: Moment,
    /// Nodes whose links stand, as far as this one knows: nothing is offered to the others.
    linked: BTreeSet<NodeId>,
}

/// This node's wish to stay in the cluster or to leave it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Intent {
    Stay,
    Leave(LeaveWay),
}

/// Givers take turns: a node that has given a copy lets the others go first. Promotions do not count.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Precedence {
    Mine,
    OfOthers,
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
            moves_begun: 0,
            rounds: 0,
            last_pings: None,
            precedence: Precedence::Mine,
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
    pub fn levels_of_others(&self) -> &BTreeMap<NodeId, LoadLevels> {
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
            self.precedence = Precedence::Mine;
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
            BalanceInput::Timer(Timer::AnswerDue { move_id }) => {
                self.on_answer_due(now, move_id, out);
            }
            BalanceInput::MapChanged => self.on_map_changed(now, view, out),
            BalanceInput::FillDone { move_id, buckets } => {
                self.on_fill_done(now, view, move_id, &buckets, out);
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
            BalanceMessage::Offer { move_id, buckets, basis, what } => {
                let role = MoveRole::Taking { what };
                let offer = Engagement { move_id, buckets, basis, taker: self.me, role };
                self.agree_or_refuse(now, view, from, offer, out);
            }
            BalanceMessage::RequestFill { move_id, buckets, basis, taker } => {
                let role = MoveRole::Sourcing { proposed: Vec::new() };
                let wanted = Engagement { move_id, buckets: buckets.clone(), basis, taker, role };
                self.agree_or_refuse(now, view, from, wanted, out);
                if self.is_engaged_in(move_id) {
                    out.push(BalanceAction::StartFill { move_id, buckets, taker });
                }
            }
            BalanceMessage::Accept { move_id, levels } => {
                self.on_accept(now, view, from, move_id, levels, out);
            }
            BalanceMessage::Refuse { move_id, because } => {
                if because == Refused::Full {
                    self.full_until = now + FULL_WAIT;
                }
                self.on_refuse(now, from, move_id, out);
            }
            BalanceMessage::Forget { move_id } => {
                if self.is_engaged_in(move_id) {
                    out.push(BalanceAction::CancelFill { move_id });
                    self.disengage(now, Pace::Soon, out);
                }
            }
        }
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
        let move_id = wanted.move_id;
        // A copy this node has kept may be the only one; others must have it before this node takes
        // anything in.
        let brings = view.map.may_bring_any(self.me);
        let is_sound = (1..=bundle::BUCKETS_MAX).contains(&wanted.buckets.len());
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
            return send(out, giver, BalanceMessage::Refuse { move_id, because });
        }
        send(out, giver, BalanceMessage::Accept { move_id, levels: self.levels(view) });
        if matches!(wanted.role, MoveRole::Taking { what: Offered::Fill | Offered::Gift }) {
            self.taken_bytes += self.average_copy(view) * wanted.buckets.len() as u64;
        }
        self.engagement = Some(wanted);
    }

    fn on_fill_done(
        &mut self,
        now: Moment,
        view: PlanView,
        move_id: MoveId,
        filled: &[Hashmask],
        out: &mut Vec<BalanceAction>,
    ) {
        if !self.is_engaged_in(move_id) {
            return;
        }
        let engagement = self.engagement.as_mut().expect("engaged in this move_id");
        if !engagement.propose_copies(view, filled, out) {
            self.abandon(now, out);
        }
    }

    // ---- The end: every participant sees it in the map.

    fn on_map_changed(&mut self, now: Moment, view: PlanView, out: &mut Vec<BalanceAction>) {
        let Some(engagement) = self.engagement.as_mut() else {
            if self.asking.is_none() && view.plan.concerning(self.me).next().is_some() {
                self.schedule_look(now, Pace::Next, out);
            } else if self.look_number == 0 || self.intent != Intent::Stay {
                self.schedule_look(now, Pace::Soon, out);
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
            let (move_id, buckets) = (engagement.move_id, engagement.buckets.clone());
            out.push(BalanceAction::NarrowFill { move_id, buckets });
        }
        engagement.go_on(view, out);
        if engagement.has_failed(view) {
            self.abandon(now, out);
        }
    }

    /// Gives up a move and tells the other participants.
    fn abandon(&mut self, now: Moment, out: &mut Vec<BalanceAction>) {
        let engagement = self.engagement.as_ref().expect("only what was begun is abandoned");
        let move_id = engagement.move_id;
        for node in engagement.others(self.me) {
            send(out, node, BalanceMessage::Forget { move_id });
        }
        out.push(BalanceAction::CancelFill { move_id });
        self.disengage(now, Pace::Next, out);
    }

    /// Ends the engagement if the map shows that its move is over. Runs after every input, not only
    /// after a map change: a delayed message may start a move that the map has already shown to be
    /// over.
    fn notice_the_end(&mut self, now: Moment, view: PlanView, out: &mut Vec<BalanceAction>) {
        let Some(engagement) = self.engagement.as_ref().filter(|part| part.is_over(view)) else {
            return;
        };
        let is_giver = engagement.move_id.giver == self.me;
        if engagement.has_given() {
            self.precedence = Precedence::OfOthers;
        }
        self.disengage(now, if is_giver { Pace::AtOnce } else { Pace::Next }, out);
    }

    // ---- Helpers.

    fn next_move(&mut self) -> MoveId {
        self.moves_begun += 1;
        MoveId { giver: self.me, number: self.moves_begun }
    }

    fn levels(&self, view: PlanView) -> LoadLevels {
        let busy = self.engagement.is_some();
        let vitals = Vitals { memory: self.memory_now(), ..self.vitals };
        LoadLevels::new(view.map.epoch(), view.map.load(self.me), vitals, busy)
    }

    fn is_engaged_in(&self, move_id: MoveId) -> bool {
        self.engagement.as_ref().is_some_and(|engagement| engagement.move_id == move_id)
    }

    fn disengage(&mut self, now: Moment, pace: Pace, out: &mut Vec<BalanceAction>) {
        self.engagement = None;
        self.schedule_look(now, pace, out);
    }

    /// Sets the timer for the next look for a move, unless an earlier one is set.
    fn schedule_look(&mut self, now: Moment, pace: Pace, out: &mut Vec<BalanceAction>) {
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

//! The part of a balancer that deals with memory: what it knows of its own, and moves outside the plan.

use std::collections::BTreeMap;

use super::{Balancer, Intent};
use crate::Moment;
use crate::balance::decide::{Decision, PlanView};
use crate::balance::engagement::{Engagement, MoveRole};
use crate::balance::levels::{LoadLevels, MoveReadiness};
use crate::balance::memory::{MemoryLevel, MemoryReport};
use crate::balance::message::{BalanceAction, Offered};
use crate::balance::pace::Pace;
use crate::balance::shed::{decide_elsewhere, decide_shedding, remaining_surplus};
use crate::map::NodeId;

impl Balancer {
    pub(super) fn on_memory(
        &mut self,
        now: Moment,
        view: PlanView,
        report: MemoryReport,
        out: &mut Vec<BalanceAction>,
    ) {
        self.memory = report;
        self.shed_to.clear();
        if self.has_surplus(now, view) && self.engagement.is_none() && self.asking.is_none() {
            self.schedule_look(now, Pace::Soon, out);
        }
    }

    /// Returns whether this node should give copies away because its memory is short.
    pub(super) fn has_surplus(&self, now: Moment, view: PlanView) -> bool {
        let is_time = self.intent == Intent::Stay && now >= self.shed_again_at;
        is_time && remaining_surplus(view, self.me, &self.memory) > 0
    }

    pub(super) fn memory_now(&self) -> MemoryLevel {
        let memory = self.vitals.memory;
        MemoryLevel { used: memory.used.saturating_add(self.taken_bytes), ..memory }
    }

    /// Returns the average size of a copy on this node: one that is not short of memory does not measure each.
    pub(super) fn average_copy(&self, view: PlanView) -> u64 {
        self.vitals.memory.used / u64::from(view.map.load(self.me).total().max(1))
    }

    pub(super) fn has_no_room_for(&self, wanted: &Engagement) -> bool {
        let memory = self.memory_now();
        match wanted.role {
            MoveRole::Taking { what: Offered::Gift } => memory.is_crowded(),
            MoveRole::Taking { what: Offered::Fill } => {
                memory.is_crowded() && !memory.takes_missing_copy()
            }
            MoveRole::Taking { what: Offered::Promotion }
            | MoveRole::AwaitingTaker { .. }
            | MoveRole::AwaitingSource { .. }
            | MoveRole::Giving { .. }
            | MoveRole::Sourcing { .. } => false,
        }
    }

    pub(super) fn decide_for_memory(
        &self,
        view: PlanView,
        answers: &BTreeMap<NodeId, LoadLevels>,
        readiness: impl Fn(NodeId) -> MoveReadiness,
    ) -> Option<Decision> {
        let room = |node: NodeId, bytes: u64| {
            let level = answers.get(&node).filter(|_| readiness(node) == MoveReadiness::Free)?;
            let memory = level.vitals.memory;
            let given = self.shed_to.get(&node).copied().unwrap_or(0);
            let has_room = memory.has_room_for(bytes + given);
            has_room.then(|| memory.room().saturating_sub(given))
        };
        let is_full = |node: NodeId| readiness(node) == MoveReadiness::Full;
        let average = self.average_copy(view);
        let may_overflow = |node: NodeId| {
            answers.get(&node).is_some_and(|it| it.vitals.memory.takes_missing_copy() && !it.busy)
        };
        let room_there = |node| room(node, average);
        let elsewhere = decide_elsewhere(view, self.me, is_full, room_there, may_overflow);
        elsewhere.or_else(|| match self.intent {
            Intent::Stay => decide_shedding(view, self.me, &self.memory, room),
            Intent::Leave(_) => None,
        })
    }
}

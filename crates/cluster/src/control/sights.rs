//! Reports of the members about themselves, for viewers of the cluster: their vitals, and the move each
//! takes part in. Members are asked only while a viewer is active (`Input::LookAround`), and no
//! decision depends on the reports: the console and `status` show them.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Control, Message};
use crate::Moment;
use crate::balance::Vitals;
use crate::map::NodeId;
use crate::status::{MoveStatus, Sight};

#[derive(Default)]
pub(super) struct Sights {
    mine: Vitals,
    seen: BTreeMap<NodeId, Sight>,
    /// Time since when questions to these have had no answer.
    unanswered: BTreeMap<NodeId, Moment>,
}

impl Control {
    /// Returns the latest reports of the others. Empty if no viewer has asked.
    pub fn sights(&self) -> &BTreeMap<NodeId, Sight> {
        &self.sights.seen
    }

    /// Returns how long a member that should have spoken has been silent; `None` if all is well.
    pub fn silence_of(&self, node: NodeId) -> Option<Duration> {
        let since = [self.sights.unanswered.get(&node).copied(), self.unreachable_since(node)];
        let silent = self.now.since(since.into_iter().flatten().min()?);
        let pending_after = self.map.as_ref()?.settings().pending_after;
        (silent >= pending_after).then_some(silent)
    }

    pub(super) fn on_look_around(&mut self) {
        let others: Vec<NodeId> = self.others().collect();
        self.sights.seen.retain(|node, _| others.contains(node));
        self.sights.unanswered.retain(|node, _| others.contains(node));
        for node in &others {
            self.sights.unanswered.entry(*node).or_insert(self.now);
        }
        self.send_all(others, &Message::Look);
    }

    pub(super) fn on_look(&mut self, from: NodeId) {
        let sight = Sight { vitals: self.sights.mine, moving: self.moving() };
        self.send(from, Message::Sight(Box::new(sight)));
    }

    pub(super) fn on_sight(&mut self, from: NodeId, sight: Sight) {
        if self.others().any(|node| node == from) {
            self.sights.seen.insert(from, sight);
        }
    }

    pub(super) fn note_vitals(&mut self, vitals: Vitals) {
        self.sights.mine = vitals;
    }

    /// Records any message of a member: it is not silent.
    pub(super) fn note_spoken(&mut self, node: NodeId) {
        self.sights.unanswered.remove(&node);
    }

    /// Returns the move this node takes part in, as far as it is known here.
    pub fn moving(&self) -> Option<MoveStatus> {
        let (map, engagement) = (self.map.as_ref()?, self.engagement()?);
        let decided = self.history.decisions().map(|(_, decision)| decision);
        let mut mine = decided.filter(|decision| decision.step.giver == self.me.id);
        let decision = mine.find(|decision| engagement.buckets.contains(&decision.step.bucket));
        let mut told = MoveStatus::of(map, engagement, decision.map(|decision| decision.rule));
        let fill = self.sights.mine.fill;
        let fill = fill.filter(|fill| engagement.buckets.contains(&fill.bucket));
        if let Some(fill) = fill {
            (told.sent_bytes, told.percent) = (fill.sent_bytes, fill.percent);
        }
        Some(told)
    }
}

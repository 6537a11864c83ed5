//! Wall clocks that differ: detected, and reported for as long as they do.
//!
//! No decision of the control plane depends on a wall clock. But times to live do when a bucket moves,
//! and so does the order in which two sides are merged. So once a second (`Input::Clock`) every node
//! sends the leader its wall clock, and the leader sends its own to all members.
//!
//! A reading is the sender's clock minus this node's when the message is handled. A delayed message
//! makes it smaller, never larger; so the largest of the last seconds is the best one.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use store::UnixMillis;

use super::{Action, Control, Message};
use crate::Moment;
use crate::map::{NodeId, Peer};
use crate::status::SKEW_MAX;

/// Clocks this close agree again.
const AGREED_MAX: Duration = Duration::from_millis(500);
/// Interval between reports of a lasting skew.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);
/// Time for which a reading counts. The message or its receiver may have been late.
const READINGS_FOR: Duration = Duration::from_secs(5);
/// Minimum number of readings for an estimate.
const READINGS_MIN: usize = 3;
const READINGS_MAX: usize = 8;

/// A finding about the wall clock of another node, compared with this node's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Skew {
    /// Repeated as long as it lasts. Positive: the other clock is ahead.
    Apart { node: NodeId, millis: i64 },
    /// The clocks agree again.
    Agreed { node: NodeId },
}

/// The wall clocks, as far as this node knows them.
#[derive(Default)]
pub(super) struct Clocks {
    /// This node's wall clock at a moment of its monotonic clock.
    mine: Option<(Moment, UnixMillis)>,
    readings: BTreeMap<NodeId, VecDeque<ClockReading>>,
    /// Reported skews that last, with the time of the latest report.
    reported: BTreeMap<NodeId, Moment>,
}

#[derive(Clone, Copy)]
struct ClockReading {
    at: Moment,
    ahead_millis: i64,
}

impl Clocks {
    /// Sets the present wall clock. If it was adjusted meanwhile, earlier readings are useless.
    fn set(&mut self, now: Moment, wall: UnixMillis) {
        let was_set = self
            .wall(now)
            .is_some_and(|known| Duration::from_millis(known.0.abs_diff(wall.0)) > AGREED_MAX);
        if was_set {
            self.readings.clear();
        }
        self.mine = Some((now, wall));
    }

    /// Returns this node's wall clock, derived from its monotonic one.
    fn wall(&self, now: Moment) -> Option<UnixMillis> {
        let (at, wall) = self.mine?;
        let since = u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX);
        Some(UnixMillis(wall.0.saturating_add(since)))
    }

    fn note(&mut self, now: Moment, node: NodeId, theirs: UnixMillis) {
        let Some(mine) = self.wall(now) else { return };
        let readings = self.readings.entry(node).or_default();
        readings.push_back(ClockReading { at: now, ahead_millis: difference(theirs, mine) });
        if readings.len() > READINGS_MAX {
            readings.pop_front();
        }
    }

    /// Forgets old readings, and nodes that are not members any more.
    fn tidy(&mut self, now: Moment, is_member: impl Fn(NodeId) -> bool) {
        self.readings.retain(|node, readings| {
            readings.retain(|reading| now < reading.at + READINGS_FOR);
            !readings.is_empty() && is_member(*node)
        });
        self.reported.retain(|node, _| is_member(*node));
    }

    fn estimate(&self, node: NodeId) -> Option<i64> {
        let readings = self.readings.get(&node).filter(|it| it.len() >= READINGS_MIN)?;
        readings.iter().map(|reading| reading.ahead_millis).max()
    }

    /// Returns the findings to report now.
    fn report(&mut self, now: Moment) -> Vec<Skew> {
        let nodes: Vec<NodeId> = self.readings.keys().copied().collect();
        nodes.into_iter().filter_map(|node| self.report_on(now, node)).collect()
    }

    fn report_on(&mut self, now: Moment, node: NodeId) -> Option<Skew> {
        let millis = self.estimate(node)?;
        let apart = Duration::from_millis(millis.unsigned_abs());
        let last = self.reported.get(&node).copied();
        if apart > SKEW_MAX {
            let is_due = last.is_none_or(|last| now >= last + REPORT_INTERVAL);
            is_due.then(|| {
                self.reported.insert(node, now);
                Skew::Apart { node, millis }
            })
        } else if apart <= AGREED_MAX {
            self.reported.remove(&node).map(|_| Skew::Agreed { node })
        } else {
            None
        }
    }
}

fn difference(theirs: UnixMillis, mine: UnixMillis) -> i64 {
    let signed = |time: UnixMillis| i64::try_from(time.0).unwrap_or(i64::MAX);
    signed(theirs).saturating_sub(signed(mine))
}

impl Control {
    /// Returns by how many milliseconds other wall clocks are ahead of this node's, as far as it knows:
    /// the leader's, and those of all members if this node leads.
    pub fn skews(&self) -> impl Iterator<Item = (NodeId, i64)> + use<'_> {
        let clocks = &self.clocks;
        clocks.readings.keys().filter_map(move |node| Some((*node, clocks.estimate(*node)?)))
    }

    /// Handles the wall clock, once a second.
    pub(super) fn on_clock(&mut self, wall: UnixMillis) {
        let others: Vec<NodeId> = self.others().collect();
        self.clocks.set(self.now, wall);
        self.clocks.tidy(self.now, |node| others.contains(&node));
        let skews = self.clocks.report(self.now);
        self.out.extend(skews.into_iter().map(Action::Skew));
        let told =
            if self.leads() { others } else { self.consensus.leader().into_iter().collect() };
        self.send_all(told, &Message::Clock { unix_millis: wall.0 });
    }

    /// Records the wall clock of a member; a message of an earlier process does not count.
    pub(super) fn on_clock_of(&mut self, from: Peer, theirs: UnixMillis) {
        let known = self.map.as_ref().and_then(|map| map.member(from.id));
        if known.is_some_and(|member| member.peer() == from) {
            self.clocks.note(self.now, from.id, theirs);
        }
    }
}

//! Carries out the control plane's actions, in their order: what must be on the disk is there before a
//! message that depends on it leaves. Effects that concern slots go to the applier.

use std::sync::Arc;
use std::time::Duration;

use cluster::control::{Action, Gone, MapChanged, Skew};
use cluster::map::{Change, NodeId, Peer};
use cluster::status::name;

use super::control::ControlThread;
use super::frame::CONTROL_BYTES_MAX;
use super::{Roster, StartupPhase};
use crate::data::boottime;
use crate::log;

impl ControlThread {
    pub(super) fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Persist(persist) => {
                    if let Some(directory) = &self.directory {
                        let begun = boottime::now();
                        // Panics: a node that cannot keep its promises must not go on making them.
                        self.context.data.count_disk_pulse();
                        let kept = directory.lock().persist(*persist);
                        self.context.data.count_disk_pulse();
                        kept.expect("the data directory can be written to");
                        let wait = boottime::now().since(begun);
                        self.control.note_disk_wait(wait);
                    }
                }
                Action::Send { to, message } => {
                    if self.links.send(to, &message).is_err() {
                        let line = format!(
                            "a message to node {to} is longer than {CONTROL_BYTES_MAX} bytes"
                        );
                        self.context.complaints.say(&line);
                    }
                }
                Action::MapChanged(changed) => self.follow(changed),
                Action::Lease { until } => {
                    self.lease_until = until;
                    self.applier.enqueue(move |data| data.lease_until(until));
                }
                Action::Order(order) => self.applier.enqueue(move |data| data.order(order)),
                Action::Yield { to } => self.applier.enqueue(move |data| data.yield_to(to)),
                Action::Bring { buckets } => self.applier.enqueue(move |data| data.bring(buckets)),
                Action::BackupLag { from, remaining_bytes, lags } => {
                    self.applier
                        .enqueue(move |data| data.note_backup_lag(from, remaining_bytes, lags));
                }
                Action::MakeRoom { node, bytes } => self.context.data.make_room(node, bytes),
                // Through the applier: when the answer comes, the change that it reports is applied.
                Action::Answer { id, answer } => {
                    if let Some(then) = self.asked.remove(&id) {
                        self.applier.enqueue(move |_| then(answer));
                    }
                }
                Action::Skew(skew) => self.report_skew(skew),
                Action::Gone(gone) => self.go(gone),
            }
        }
    }

    fn report_skew(&self, skew: Skew) {
        let name_of = |node| self.control.map().map_or_else(String::new, |map| name(map, node));
        let mine = &self.control.me().name;
        match skew {
            Skew::Apart { node, millis } => {
                let seconds = Duration::from_millis(millis.unsigned_abs()).as_secs_f64();
                let side = if millis > 0 { "ahead of" } else { "behind" };
                let line = format!(
                    "the clock of node {} is {seconds:.1} s {side} that of node {mine}; keys that expire do \
                     so this much too early or too late when a bucket moves between them: synchronise the \
                     clocks (NTP)",
                    name_of(node)
                );
                log::warn("clock", &line);
            }
            Skew::Agreed { node } => {
                let line = format!("the clocks of nodes {} and {mine} agree again", name_of(node));
                log::info("clock", &line);
            }
        }
    }

    /// Applies a new map: first to the data plane, because the next decisions rely on it; then to the links.
    fn follow(&mut self, changed: MapChanged) {
        // At once: a member that says it follows the map must also follow its settings.
        self.context.data.follow_settings(self.control.me().peer(), &changed.map);
        let changed = Arc::new(changed);
        let applied = Arc::clone(&changed);
        self.applier.enqueue(move |data| data.map_changed(&applied));
        let map = &changed.map;
        let (me, cluster) = (self.control.me().peer(), self.control.cluster());
        let mut roster = Roster::new(me, cluster, map.generation(), map.members());
        let known = self.context.roster.load_full();
        if let Some(known) = &known {
            roster = roster.with_former_voters(known, |node| self.control.is_voter(node));
        }
        if known.as_ref().is_some_and(|known| known.has_same_links(&roster)) {
            return;
        }
        self.dials.follow(boottime::now(), &roster);
        // The link of a process that was declared dead stays: it may have a vote, and must learn its fate.
        let has_left = |peer: &Peer| {
            let was_member = known.as_ref().is_some_and(|known| known.knows(peer.id));
            was_member && map.member(peer.id).is_none() && !is_given_up(&changed, peer.id)
        };
        for peer in self.links.peers().into_iter().filter(has_left) {
            self.part_with(peer);
        }
        self.context.roster.store(Some(Arc::new(roster.at(changed.index))));
    }

    /// Closes the link to a node that leaves, after sending the last messages to it.
    fn part_with(&mut self, peer: Peer) {
        self.links.flush(boottime::now());
        self.links.remove(peer.id);
    }

    pub(super) fn go(&mut self, gone: Gone) {
        self.links.flush(boottime::now());
        self.context.data.end_lease_for_good();
        let startup = Arc::clone(&self.startup);
        self.applier.enqueue(move |data| {
            data.gone(&gone);
            startup.set(StartupPhase::Gone(gone));
        });
    }
}

/// Returns whether this change of the map declares the node dead.
fn is_given_up(changed: &MapChanged, node: NodeId) -> bool {
    let names = |change: &Change| matches!(change, Change::Dead(nodes) if nodes.contains(&node));
    changed.entry.as_ref().is_some_and(|entry| entry.changes.iter().any(names))
}

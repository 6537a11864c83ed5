//! State and duties of a node while it leads.
//!
//! Every election creates a new `Leader`: none of it may outlive a term. `lease.rs`, `deaths.rs` and
//! `membership.rs` hold the parts.

use std::collections::BTreeMap;
use std::time::Duration;

use placement::Hashmask;

use super::Control;
use super::lease::Granter;
use super::membership::{AWAY_MAX, Absence, Candidates};
use super::recreate::LostBuckets;
use super::votes::Votes;
use crate::Moment;
use crate::balance::split::{split_by_count, split_by_size};
use crate::balance::{SizeReport, Sizes};
use crate::consensus::LogEntry;
use crate::map::{Change, DropReason, LeaveWay, Map, NodeId, Peer, Setting};
use crate::rules::{Rule, is_enforced};

/// Time a leader that wants to hand over waits for another to take over before it asks again.
const TRANSFER_WAIT: Duration = Duration::from_millis(600);

#[derive(Default)]
pub(super) struct Leader {
    pub(super) granter: Granter,
    /// True if a majority has confirmed it, and it knows everything committed before its election.
    pub(super) is_confirmed: bool,
    pub(super) candidates: Candidates,
    pub(super) lost: LostBuckets,
    pub(super) votes: Votes,
    /// Members that have handed everything on. They lose their vote before they leave.
    pub(super) leaving: BTreeMap<Peer, LeaveAnnouncement>,
    /// Time since when the places of a node are reserved.
    pub(super) away_since: BTreeMap<NodeId, Moment>,
    /// Entries in the log that are not applied yet.
    in_flight: Vec<LogEntry>,
    sizes: Sizes,
    /// A shorter lease that becomes the cluster's when every longer one has surely expired.
    shorter: Option<(Duration, Moment)>,
    transfer_again_at: Moment,
    /// Time since when it has wanted another leader to confirm deaths.
    pub(super) in_doubt_since: Option<Moment>,
}

/// The announcement of a leaving member, and its time.
#[derive(Clone, Copy)]
pub(super) struct LeaveAnnouncement {
    pub(super) absence: Absence,
    pub(super) way: LeaveWay,
    pub(super) since: Moment,
}

impl Leader {
    /// Returns the length of a granted lease: a shorter lease is granted before it is the cluster's.
    pub(super) fn lease_to_grant(&self, lease: Duration) -> Duration {
        self.shorter.map_or(lease, |(shorter, _)| lease.min(shorter))
    }

    pub(super) fn shorten_lease(&mut self, lease: Duration, at: Moment) {
        if self.shorter.is_none_or(|(known, _)| known != lease) {
            self.shorter = Some((lease, at));
        }
    }

    /// Returns whether every longer lease has expired.
    pub(super) fn is_shortened(&self, lease: Duration, now: Moment) -> bool {
        self.shorter.is_some_and(|(known, at)| known == lease && now >= at)
    }

    pub(super) fn lease_is(&mut self, lease: Duration) {
        self.shorter = self.shorter.filter(|(shorter, _)| *shorter < lease);
    }

    /// Returns the announcement of this node's process that wants to leave.
    pub(super) fn leave_announced_by(&self, node: NodeId) -> Option<&LeaveAnnouncement> {
        self.leaving.iter().find(|(peer, _)| peer.id == node).map(|(_, announcement)| announcement)
    }

    /// Returns whether the log is about to remove this member: it must not get a vote any more.
    pub(super) fn lets_go(&self, leaver: NodeId) -> bool {
        let is_last = |change: &Change| matches!(change, Change::Leave { node, .. } | Change::Away { node, .. } if *node == leaver);
        self.in_flight.iter().any(|entry| entry.changes.iter().any(is_last))
    }

    pub(super) fn is_in_flight(&self, entry: &LogEntry) -> bool {
        self.in_flight.contains(entry)
    }

    /// Returns whether a member is about to lose its weight: not all may.
    fn takes_weight(&self) -> bool {
        let takes = |change: &Change| matches!(change, Change::Join(member) if member.weight == 0);
        self.in_flight.iter().any(|entry| entry.changes.iter().any(takes))
    }

    pub(super) fn note_applied(&mut self, entry: &LogEntry) {
        if let Some(place) = self.in_flight.iter().position(|known| known == entry) {
            self.in_flight.swap_remove(place);
        }
    }

    pub(super) fn note_sizes(&mut self, node: NodeId, report: SizeReport) {
        self.sizes.note(node, report);
    }

    /// Returns the split of buckets that have outgrown the rest, after a report of sizes.
    fn split_by_size(&mut self, map: &Map) -> Option<Change> {
        if !self.sizes.take_news() {
            return None;
        }
        self.sizes.follow(map);
        split_by_size(map, &self.sizes)
    }
}

impl Control {
    /// Returns whether this node leads, as far as it knows.
    pub fn leads(&self) -> bool {
        self.leader.is_some()
    }

    /// Returns the most recently heard voter of those that could lead in place of this node.
    pub(super) fn transferee_among(&self, is_fit: impl Fn(&NodeId) -> bool) -> Option<NodeId> {
        let leader = self.leader.as_ref()?;
        let voters = self.consensus.voters().iter().copied();
        let fit = voters.filter(|node| *node != self.me.id).filter(is_fit);
        fit.max_by_key(|node| (leader.granter.last_ask(*node), *node))
    }

    pub(super) fn transfer_leadership_to(&mut self, transferee: NodeId) {
        let leader = self.leader.as_mut().filter(|it| self.now >= it.transfer_again_at);
        if let Some(leader) = leader {
            leader.transfer_again_at = self.now + TRANSFER_WAIT;
            self.consensus.transfer_leadership(transferee);
        }
    }

    /// Starts or stops leading, according to the election.
    pub(super) fn follow_election(&mut self) {
        match (self.consensus.is_leader(), self.leader.is_some()) {
            (true, false) => self.become_leader(),
            (false, true) => self.leader = None,
            (true, true) | (false, false) => {}
        }
    }

    fn become_leader(&mut self) {
        let mut leader = Leader::default();
        if let Some(map) = &self.map {
            let waits = is_enforced(Rule::NewLeaderWaits);
            let lease = if waits { map.settings().lease } else { Duration::ZERO };
            leader.granter.begin(map.members(), self.now, lease);
        }
        self.leader = Some(leader);
        // Its own lease depends on nothing else.
        self.ask_for_lease();
    }

    /// Counts all members as renewed: this leader has not read its sockets.
    pub(super) fn renew_after_stall(&mut self, now: Moment) {
        let (lease, notices) = (self.lease(), is_enforced(Rule::StallIsNoticed));
        if let Some(leader) = self.leader.as_mut().filter(|_| notices) {
            leader.granter.renew_all(now, lease);
        }
    }

    /// Performs all duties of a leader; called again after every change.
    pub(super) fn lead(&mut self) {
        if self.leader.is_none() || self.map.is_none() {
            return;
        }
        self.grant_leases();
        self.declare_deaths();
        self.choose_voters();
        self.remove_leavers();
        self.split_if_needed();
        self.recreate_lost();
        self.give_up_awaited();
        self.release_reserved_places();
    }

    /// Proposes an entry of the leader itself, or of another node once it is permitted.
    pub(super) fn put_into_log(&mut self, entry: LogEntry) -> Proposed {
        let Some(leader) = &mut self.leader else { return Proposed::NotNow };
        if leader.is_in_flight(&entry) {
            return Proposed::Already;
        }
        match self.consensus.propose(&entry) {
            Ok(()) => {
                leader.in_flight.push(entry);
                Proposed::Now
            }
            Err(_) => Proposed::NotNow,
        }
    }

    fn split_if_needed(&mut self) {
        let Some(map) = self.map.clone() else { return };
        let Some(leader) = &mut self.leader else { return };
        let outgrown = || leader.split_by_size(&map);
        if let Some(split) = split_by_count(&map).or_else(outgrown) {
            self.put_into_log(LogEntry { planned_at: None, changes: vec![split] });
        }
    }

    /// Handles a member's proposal. A member may change only what it is responsible for; changes of buckets
    /// that it no longer serves must not keep back the others.
    pub(super) fn on_propose(&mut self, from: Peer, mut entry: LogEntry) {
        entry.changes.retain(|change| self.may_propose(from, change));
        if !self.leads() || entry.changes.is_empty() {
            return;
        }
        match entry.changes[..] {
            [Change::Leave { way, .. }] => return self.on_wants_to_go(from, Absence::ForGood, way),
            [Change::Away { absence, way, .. }] => {
                return self.on_wants_to_go(from, Absence::For(absence), way);
            }
            _ => {}
        }
        if let [Change::Set(Setting::Lease(lease))] = entry.changes[..] {
            return self.on_set_lease(lease, entry);
        }
        self.put_into_log(entry);
    }

    fn may_propose(&self, from: Peer, change: &Change) -> bool {
        let (Some(map), Some(leader)) = (&self.map, &self.leader) else { return false };
        let Some(known) = map.member(from.id).filter(|member| member.peer() == from) else {
            return false;
        };
        let from = from.id;
        let serves = |bucket: &Hashmask| {
            map.bucket(*bucket).is_some_and(|bucket| bucket.primary() == Some(from))
        };
        match change {
            // A node that reaches hardly any other would drop backup after backup and end as the only
            // copy.
            Change::DropBackup { bucket, because: DropReason::OutOfSync, .. } => {
                serves(bucket) && !leader.granter.record(from).is_some_and(|it| it.is_cut_off)
            }
            Change::AddBackup { bucket, .. }
            | Change::Promote { bucket, .. }
            | Change::DropBackup { bucket, .. } => serves(bucket),
            Change::Join(member) => {
                let takes_weight = member.weight == 0 && known.weight > 0;
                let is_spared = || has_successors(map, from) && !leader.takes_weight();
                member.peer() == known.peer() && (!takes_weight || is_spared())
            }
            Change::Leave { node, .. } | Change::KeptCopiesHandedOver { node, .. } => *node == from,
            Change::Away { node, absence, .. } => *node == from && *absence <= AWAY_MAX,
            Change::Split(_) | Change::Set(_) | Change::Write { .. } => true,
            Change::Recreate { node, .. } => *node == from && map.members().len() == 1,
            Change::Yield(generation) => {
                *generation > map.generation() || !is_enforced(Rule::FoundersDiffer)
            }
            Change::Dead(_) | Change::Forget(_) => false,
        }
    }
}

/// Returns whether another node could hold a node's buckets.
pub(super) fn has_successors(map: &Map, node: NodeId) -> bool {
    map.members().iter().any(|member| member.id != node && member.weight > 0)
}

/// The result of proposing an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Proposed {
    Now,
    Already,
    /// This node does not lead, or is about to hand leadership over.
    NotNow,
}

//! A node's replica of one slot: its role, the reign it holds the role under, and its downstreams.
//!
//! The replica is stored beside the slot's table, under the same lock (`data::SlotState`). Its fields are private:
//! every transition of the role is one of the methods below; everything else that changes (downstreams, refusals)
//! changes in `downstream.rs`.
//!
//! ```text
//!          begin_filling             follow (AddBackup)         follow (Promote, Dead)
//!   Absent ─────────────▶ Filling ─────────────────────▶ Backup ──────────────────────▶ Serving
//!     ▲                      │                            │  ▲                           │   ▲
//!     │◀─ abandon_filling ───┘          await_promotion   ▼  │ stop_awaiting      pause  ▼   │ follow
//!     │                                          PromotionPending                     Paused ─┘
//!     │◀─ follow (dropped) ── any ── stand_aside ──▶ Stale     follow (inherits): Reconciling ── reconciled ─▶ Serving
//! ```

use smallvec::SmallVec;
use store::{SlotTable, Version};

use super::downstream::{Downstream, SyncState};
use super::{FrameNumber, LinkId, LinkProgress, Past, Position};
use crate::map::{Bucket, LogIndex, NodeId};
use crate::rules::{Rule, is_enforced};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// The node holds nothing of the slot.
    #[default]
    Absent,
    /// Primary; runs commands.
    Serving,
    /// Primary that hands the bucket over: nothing runs until the map has changed.
    Paused,
    /// Primary after a failover that brings the other backups in line with itself: nothing runs until they agree.
    Reconciling,
    /// In-sync copy.
    Backup,
    /// Backup that is about to be promoted: commands for the slot are parked here.
    PromotionPending,
    /// Target of a fill that is not decided yet.
    Filling,
    /// Stale copy from an earlier membership. Not authoritative, but a fill may need to send only the difference.
    Stale,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SlotReplica {
    role: Role,
    /// The reign under which the node holds the role.
    reign: LogIndex,
    /// The reign in which the last change was made. Together with the table's version it is the slot's position.
    written_in: LogIndex,
    downstreams: SmallVec<[Downstream; 1]>,
    /// Most slots have none. One box for all of it keeps a slot small (`slot_state::THREE_LINES`).
    history: Option<Box<History>>,
}

/// Memories of a slot from the time before its present holders.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct History {
    /// Removals since a copy went away.
    past: Option<Past>,
    /// Acknowledgements at the end of the last reign in which this node was primary.
    deposed: Option<Deposed>,
}

/// The acknowledged frames at the end of a reign of this node. Held replies of that reign are judged by these
/// alone: a later acknowledgement may cover a frame that was refused.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Deposed {
    reign: LogIndex,
    acked: SmallVec<[(LinkId, FrameNumber); 1]>,
}

impl SlotReplica {
    /// Creates a replica with this role, for a node that starts.
    pub fn with_role(role: Role) -> SlotReplica {
        SlotReplica { role, ..SlotReplica::default() }
    }

    #[inline]
    pub fn role(&self) -> Role {
        self.role
    }

    #[inline]
    pub fn reign(&self) -> LogIndex {
        self.reign
    }

    pub fn written_in(&self) -> LogIndex {
        self.written_in
    }

    #[inline]
    pub fn downstreams(&self) -> &[Downstream] {
        &self.downstreams
    }

    pub fn past(&self) -> Option<&Past> {
        self.history.as_ref()?.past.as_ref()
    }

    #[inline]
    pub fn is_serving(&self) -> bool {
        self.role == Role::Serving
    }

    #[inline]
    pub fn is_primary(&self) -> bool {
        matches!(self.role, Role::Serving | Role::Paused | Role::Reconciling)
    }

    /// Returns whether this primary must not run anything on the slot.
    pub fn is_paused_or_reconciling(&self) -> bool {
        matches!(self.role, Role::Paused | Role::Reconciling)
    }

    /// Returns whether this node is a backup that is about to be promoted.
    pub fn awaits_promotion(&self) -> bool {
        self.role == Role::PromotionPending
    }

    /// Returns whether this node has an in-sync copy, about to be promoted or not.
    pub fn is_backup(&self) -> bool {
        matches!(self.role, Role::Backup | Role::PromotionPending)
    }

    /// Returns whether this node has all of the slot, in sync.
    pub fn holds(&self) -> bool {
        self.is_primary() || self.is_backup()
    }

    /// Returns whether the slot's content was in sync once and has not been changed since.
    pub fn has_copy(&self) -> bool {
        self.holds() || self.role == Role::Stale
    }

    /// Returns whether this copy accepts frames of a primary.
    pub(crate) fn takes_in(&self) -> bool {
        self.is_backup() || self.role == Role::Filling
    }

    /// Returns the slot's position.
    pub fn position(&self, table: &SlotTable) -> Position {
        Position { reign: self.written_in, version: table.version() }
    }

    /// Returns whether the slot was once at this position and all changes since are known.
    pub fn history_includes(&self, then: Position, table: &SlotTable) -> bool {
        let now = self.position(table);
        then == now || self.past().is_some_and(|past| past.history_includes(then, now))
    }

    /// Returns whether a command's changes to the slot must be recorded, because another node gets them or they
    /// are remembered. The first write of a reign is always recorded, so that the position names the reign it
    /// was made in.
    #[inline]
    pub fn wants_effects(&self) -> bool {
        !self.downstreams.is_empty() || self.past().is_some() || self.written_in != self.reign
    }

    /// Returns whether this node serves the slot and its changes need no recording.
    pub(crate) fn is_plain(&self) -> bool {
        self.role == Role::Serving && !self.wants_effects()
    }

    /// Returns whether this node serves the slot, and no other node has a copy or may come back with one.
    pub(crate) fn is_alone(&self) -> bool {
        self.role == Role::Serving && self.downstreams.is_empty() && self.past().is_none()
    }

    // ---- Transitions that the map makes.

    /// Applies the map's entry of the slot's bucket.
    ///
    /// A downstream that is not a backup by the map belongs to a fill; `fill_to` is the link of a fill of
    /// this bucket that is in progress or undecided. A copy that a fill has brought here stays `Filling` until
    /// the map makes it a backup, or the intake frees it. `inherits` is true if this node takes over from a dead primary and must bring
    /// the other backups in line before it serves.
    pub fn follow(
        &mut self,
        bucket: &Bucket,
        me: NodeId,
        fill_to: Option<LinkId>,
        inherits: bool,
        links: &impl LinkProgress,
    ) {
        if bucket.primary() == Some(me) {
            let goes_on = self.reign == bucket.reign && self.is_primary();
            if !goes_on {
                self.end_reign(links);
            }
            let reconciles = if goes_on { self.role == Role::Reconciling } else { inherits };
            let reconciles =
                reconciles && !bucket.backups().is_empty() && is_enforced(Rule::Comparison);
            self.role = if reconciles { Role::Reconciling } else { Role::Serving };
            self.feed_backups(bucket, fill_to, links);
        } else {
            self.end_reign(links);
            self.role = match self.role {
                _ if bucket.is_held_by(me) => Role::Backup,
                Role::Filling => Role::Filling,
                Role::Stale => Role::Stale,
                Role::Absent
                | Role::Serving
                | Role::Paused
                | Role::Reconciling
                | Role::Backup
                | Role::PromotionPending => Role::Absent,
            };
        }
        self.reign = bucket.reign;
    }

    /// Applies a map in which this process is not a member: whatever its role was, it only keeps the data it held.
    pub fn stand_aside(&mut self, bucket: &Bucket, links: &impl LinkProgress) {
        self.end_reign(links);
        self.role = if self.has_copy() { Role::Stale } else { Role::Absent };
        self.reign = bucket.reign;
    }

    /// Freezes the acknowledgements of the ending reign, and removes all downstreams.
    fn end_reign(&mut self, links: &impl LinkProgress) {
        if self.is_primary() && !self.downstreams.is_empty() {
            let acked = self.downstreams.iter().filter(|downstream| downstream.is_in_wait_set());
            let acked = acked.map(|downstream| {
                (downstream.link(), downstream.acked(links.acked(downstream.link())))
            });
            let deposed = Deposed { reign: self.reign, acked: acked.collect() };
            self.history.get_or_insert_default().deposed = Some(deposed);
        }
        self.downstreams.clear();
    }

    fn feed_backups(
        &mut self,
        bucket: &Bucket,
        fill_to: Option<LinkId>,
        links: &impl LinkProgress,
    ) {
        let backups: SmallVec<[LinkId; 4]> =
            bucket.backups().iter().filter_map(|node| links.link_to(*node)).collect();
        self.downstreams.retain(|downstream| {
            backups.contains(&downstream.link()) || fill_to == Some(downstream.link())
        });
        for link in backups {
            match self.downstream_mut(link) {
                Some(downstream) if downstream.is_in_wait_set() => {}
                // The backup was committed before this node saw its fill end: it has proposed the taker, so the
                // taker counts.
                Some(downstream) => *downstream = Downstream::backup(link, links.last(link)),
                None => self.downstreams.push(Downstream::backup(link, links.last(link))),
            }
        }
    }

    // ---- Transitions of a handover and of a reconciliation, made by the mover.

    /// Pauses a slot that is served: its bucket is being handed over.
    pub(crate) fn pause(&mut self) {
        if self.role == Role::Serving {
            self.role = Role::Paused;
        }
    }

    /// Marks a backup as about to be promoted.
    pub(crate) fn await_promotion(&mut self) {
        if self.role == Role::Backup {
            self.role = Role::PromotionPending;
        }
    }

    /// Reverts `await_promotion`: the promotion did not come.
    pub(crate) fn stop_awaiting(&mut self) {
        if self.role == Role::PromotionPending {
            self.role = Role::Backup;
        }
    }

    /// Starts to serve the slot after all backups agree. Returns false if it was not reconciling.
    pub(crate) fn reconciled(&mut self) -> bool {
        let reconciles = self.role == Role::Reconciling;
        if reconciles {
            self.role = Role::Serving;
        }
        reconciles
    }

    // ---- Transitions of a copy, made by the intake and by the loader of a stale copy.

    /// Starts a fill of this reign; the slot's position was written in `written_in`.
    pub(crate) fn begin_filling(&mut self, reign: LogIndex, written_in: LogIndex) {
        debug_assert!(!self.holds(), "a slot that is held is not filled: {self:?}");
        (self.role, self.reign, self.written_in) = (Role::Filling, reign, written_in);
    }

    /// Abandons the fill. Returns whether there was one.
    pub(crate) fn abandon_filling(&mut self) -> bool {
        let was_filling = self.role == Role::Filling;
        if was_filling {
            (self.role, self.written_in) = (Role::Absent, LogIndex(0));
        }
        was_filling
    }

    /// Starts a stale copy whose last change was made in this reign.
    pub(crate) fn load_stale(&mut self, written_in: LogIndex) {
        debug_assert!(!self.holds(), "a slot that is held is not loaded: {self:?}");
        (self.role, self.written_in) = (Role::Stale, written_in);
    }

    /// Drops the stale copy, which is no longer useful. Returns whether there was one.
    pub(crate) fn drop_stale(&mut self) -> bool {
        let was_stale = self.role == Role::Stale;
        if was_stale {
            (self.role, self.written_in) = (Role::Absent, LogIndex(0));
        }
        was_stale
    }

    /// Resets the position after the table was emptied.
    pub(crate) fn emptied(&mut self) {
        self.written_in = LogIndex(0);
    }

    /// Records the reign of the last change.
    pub(crate) fn written_by(&mut self, reign: LogIndex) {
        self.written_in = reign;
    }

    /// Remembers removals from this version on, as long as the slot is held; `None` stops it.
    pub(crate) fn remember_removals(&mut self, since: Option<Version>) {
        match since.filter(|_| self.holds()) {
            Some(since) => {
                let history = self.history.get_or_insert_default();
                history.past.get_or_insert_with(|| Past::since(since));
            }
            None => {
                self.history.take_if(|history| {
                    history.past = None;
                    history.deposed.is_none()
                });
            }
        }
    }

    pub(crate) fn past_mut(&mut self) -> Option<&mut Past> {
        self.history.as_mut()?.past.as_mut()
    }

    // ---- Feeds.

    pub(crate) fn downstreams_mut(&mut self) -> &mut [Downstream] {
        &mut self.downstreams
    }

    pub fn downstream(&self, link: LinkId) -> Option<&Downstream> {
        self.downstreams.iter().find(|downstream| downstream.link() == link)
    }

    pub(crate) fn downstream_mut(&mut self, link: LinkId) -> Option<&mut Downstream> {
        self.downstreams.iter_mut().find(|downstream| downstream.link() == link)
    }

    /// Starts feeding the taker of a fill; `last` is the last frame on the link so far.
    pub(crate) fn add_downstream(&mut self, link: LinkId, last: FrameNumber) {
        self.remove_downstream(link);
        self.downstreams.push(Downstream::not_begun(link, last));
    }

    pub(crate) fn remove_downstream(&mut self, link: LinkId) {
        self.downstreams.retain(|downstream| downstream.link() != link);
    }

    /// Records that the other end of the link has refused this frame of the slot. Returns false if that does
    /// not matter: nothing is sent there any more, or the frame is older than this downstream.
    pub fn note_refused(&mut self, link: LinkId, frame: FrameNumber) -> bool {
        is_enforced(Rule::RefusalCheck)
            && self.downstream_mut(link).is_some_and(|downstream| downstream.refuse(frame))
    }

    /// Returns whether the other end of the link has refused something of the slot that still matters.
    pub fn is_refused(&self, link: LinkId) -> bool {
        self.downstream(link).is_some_and(|downstream| downstream.refused().is_some())
    }

    /// Clears a refusal: the slot is sent again, after the frame `last`.
    pub(crate) fn clear_refusal(&mut self, link: LinkId, last: FrameNumber) {
        if let Some(downstream) = self.downstream_mut(link) {
            downstream.clear_refusal(last);
        }
    }

    /// Returns the links whose acknowledgements replies wait for.
    pub fn wait_set(&self) -> impl Iterator<Item = LinkId> {
        self.downstreams
            .iter()
            .filter(|downstream| downstream.is_in_wait_set())
            .map(Downstream::link)
    }

    /// Returns whether every member of the wait set has acknowledged all of the slot.
    pub fn is_drained(&self, acked: impl Fn(LinkId) -> FrameNumber) -> bool {
        self.downstreams.iter().all(|downstream| !downstream.lags(acked(downstream.link())))
    }

    /// Returns the number of backups that have acknowledged all of the slot.
    pub fn backups_in_sync(&self, acked: impl Fn(LinkId) -> FrameNumber) -> usize {
        let counting = self.downstreams.iter().filter(|downstream| downstream.is_in_wait_set());
        counting.filter(|downstream| !downstream.lags(acked(downstream.link()))).count()
    }

    /// Returns the last acknowledged frame of a link at the end of this reign, if it was this node's last reign.
    pub(crate) fn acked_in(&self, reign: LogIndex, link: LinkId) -> Option<FrameNumber> {
        let deposed = self.history.as_ref()?.deposed.as_ref();
        let deposed = deposed.filter(|deposed| deposed.reign == reign)?;
        deposed.acked.iter().find(|(known, _)| *known == link).map(|(_, acked)| *acked)
    }
}

/// For tests.
impl SlotReplica {
    #[cfg(test)]
    pub(crate) fn for_tests(role: Role, reign: LogIndex) -> SlotReplica {
        SlotReplica { role, reign, ..SlotReplica::default() }
    }

    /// Sets role and reign, and nothing else.
    #[doc(hidden)]
    pub fn become_for_tests(&mut self, role: Role, reign: LogIndex) {
        (self.role, self.reign) = (role, reign);
    }

    #[doc(hidden)]
    pub fn sync_state(&self, link: LinkId) -> Option<SyncState> {
        self.downstream(link).map(Downstream::sync_state)
    }
}

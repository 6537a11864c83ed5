//! Tickets: the acknowledgements that a reply waits for before it may leave, slot by slot.

use placement::Slot;
use smallvec::SmallVec;

use super::slots::ServingPlane;
use crate::map::LogIndex;
use crate::replication::{FrameNumber, LinkId, SlotReplica, Wait};
use crate::rules::{Rule, is_enforced};

/// A reply's wait for one slot, created under the slot's lock when a command has run (`SlotReplica::ticket`). A reply
/// that depends on several slots has one for each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    slot: Slot,
    /// The reign in which the command ran.
    reign: LogIndex,
    waits: SmallVec<[Wait; 1]>,
    /// While the node's ack epoch equals this, acknowledgements alone decide.
    epoch: AckEpoch,
}

/// Counts the events after which an acknowledgement may mean something else than before: a refusal, a
/// new map, a downstream that was dropped, an announced promotion that expired.
/// A refusal is counted before the acknowledgement that covers it becomes visible, a new map after all replicas
/// have changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct AckEpoch(pub u64);

impl AckEpoch {
    /// An ack epoch that never equals the node's: the slot must be checked.
    const UNKNOWN: AckEpoch = AckEpoch(u64::MAX);
}

/// The result of checking the tickets of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReplyVerdict {
    /// The reply may leave.
    Release,
    Wait,
    /// This node was deposed before the write was safe. The write may or may not be lost: no reply may be sent,
    /// and the connection is closed.
    Abort,
}

impl SlotReplica {
    /// Returns whether a backup in the wait set has not acknowledged all writes.
    #[inline]
    pub fn has_unacknowledged(&mut self, acked: impl Fn(LinkId) -> FrameNumber) -> bool {
        self.downstreams_mut().iter_mut().any(|downstream| downstream.is_awaited(&acked))
    }

    /// Returns the acknowledgements that a reply depending on the slot's content has to wait for; `None` if all
    /// writes are acknowledged. `epoch` is the node's ack epoch, read under the slot's lock.
    #[inline]
    pub fn ticket(
        &self,
        slot: Slot,
        epoch: AckEpoch,
        acked: impl Fn(LinkId) -> FrameNumber,
    ) -> Option<Ticket> {
        if self.downstreams().is_empty() || !is_enforced(Rule::BackupWait) {
            return None; // Always the case on a node without a cluster.
        }
        let waits: SmallVec<[Wait; 1]> = self
            .downstreams()
            .iter()
            .filter_map(|downstream| downstream.wait(acked(downstream.link())))
            .collect();
        let is_refused = self.downstreams().iter().any(|downstream| downstream.refused().is_some());
        let epoch = if is_refused { AckEpoch::UNKNOWN } else { epoch };
        (!waits.is_empty()).then_some(Ticket { slot, reign: self.reign(), waits, epoch })
    }
}

impl Ticket {
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// Judges a reply that waits with this ticket: by acknowledgements alone if that is enough, else under the
    /// slot's lock. While a slow script holds that lock, the reply waits: this thread has other clients.
    #[inline]
    pub fn judge_on(&mut self, plane: &impl ServingPlane) -> ReplyVerdict {
        let acked = |link| plane.acked(link);
        self.judge_quickly(acked, || plane.ack_epoch()).unwrap_or_else(|| {
            let Some(state) = plane.lock_unless_busy(self.slot) else { return ReplyVerdict::Wait };
            self.judge(&state.replica, plane.ack_epoch(), acked)
        })
    }

    /// Judges by acknowledgements alone. `None` if the slot must be checked ([`Ticket::judge`]). The epoch is
    /// read after the acknowledgements: if one of them covers a refusal, the epoch has changed by then.
    #[inline]
    pub fn judge_quickly(
        &self,
        acked: impl Fn(LinkId) -> FrameNumber,
        epoch: impl FnOnce() -> AckEpoch,
    ) -> Option<ReplyVerdict> {
        let is_acked = self.waits.iter().all(|wait| acked(wait.link) >= wait.number);
        let verdict = if is_acked { ReplyVerdict::Release } else { ReplyVerdict::Wait };
        (epoch() == self.epoch).then_some(verdict)
    }

    /// Judges by this node's current role in the slot. Called under the slot's lock.
    ///
    /// In the reign in which the command ran, a backup that was dropped from the wait set need not acknowledge.
    /// After that reign, only the acknowledgements made before its end count.
    pub fn judge(
        &mut self,
        replica: &SlotReplica,
        epoch: AckEpoch,
        acked: impl Fn(LinkId) -> FrameNumber,
    ) -> ReplyVerdict {
        let is_current = replica.is_primary() && replica.reign() == self.reign;
        if !is_current && is_enforced(Rule::ReignCheck) {
            let is_acked =
                |wait: &Wait| replica.acked_in(self.reign, wait.link) >= Some(wait.number);
            let safe = self.waits.iter().all(is_acked);
            return if safe { ReplyVerdict::Release } else { ReplyVerdict::Abort };
        }
        let downstream_of = |wait: &Wait| {
            replica.downstream(wait.link).filter(|downstream| downstream.is_in_wait_set())
        };
        let lags = |wait: &Wait| {
            downstream_of(wait)
                .is_some_and(|downstream| downstream.acked(acked(wait.link)) < wait.number)
        };
        if !self.waits.iter().any(lags) {
            return ReplyVerdict::Release;
        }
        let is_refused =
            replica.downstreams().iter().any(|downstream| downstream.refused().is_some());
        self.epoch = if is_refused { AckEpoch::UNKNOWN } else { epoch };
        ReplyVerdict::Wait
    }
}

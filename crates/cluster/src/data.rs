//! The data plane of one node: its role in each slot, incoming frames of other nodes, and outgoing buckets.
//!
//! `replication` and `fill` are the building blocks; this module puts them together. Everything that locks,
//! sends or waits is behind `Plane`: the server implements it with locks, sockets and threads, the simulator
//! with plain memory.

mod follow; //   Applies a new map to the role of every slot.
mod intake; //   Frames from one other node.
mod mover; //    Outgoing buckets (fills, handovers), and backups that fall behind.
mod pending; //  Backups whose data may be stale.
mod lag; //      Changes that a backup has not acknowledged.
mod replace; //  A slot that is resent whole after a failover.
mod reconcile; //   A new primary brings the other backups in line before it serves.
mod refusals; // Slots of which the other end of a link has refused something.
mod window; //   Maximum size of a fill in flight.
mod tombstones; //    Limits on the tombstones kept during a split brain.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use placement::{Hashmask, Slot};

pub use follow::follow;
pub use intake::{ApplyContext, FrameOutcome, Intake};
pub use lag::{BucketLag, LAGS_MAX};
pub use mover::{Mover, MoverInput, Order, Report};
pub use refusals::Refusals;

pub use crate::replication::SlotState;

use crate::Moment;
use crate::fill::FillSource;
use crate::map::{Boot, Epoch, Generation, LogIndex, Map, NodeId};
use crate::replication::{LinkId, Outbox};
use crate::serving::ServingPlane;

/// A bucket that is being copied to another node, or was and is not decided on, as far as applying a new map
/// needs to know it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    pub bucket: Hashmask,
    pub reign: LogIndex,
    pub link: LinkId,
    /// The bucket's epoch when `FillEnd` was sent.
    pub ended_at: Option<Epoch>,
    pub progress: SendProgress,
}

/// Progress of a fill.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SendProgress {
    pub sent_bytes: u64,
    /// Percentage of slots sent.
    pub percent: u8,
}

impl SendProgress {
    fn of(source: &FillSource) -> SendProgress {
        let all = source.bucket.slots().len();
        let sent = all.saturating_sub(source.slots_left());
        let percent = u8::try_from(sent * 100 / all).unwrap_or(100);
        SendProgress { sent_bytes: source.sent().bytes, percent }
    }
}

/// The environment of the data plane: locks, links, the map and the control plane. Nested calls must follow
/// this order: `with_moves`, `with_slot`, `with_outbox`.
pub trait Plane: ServingPlane {
    fn me(&self) -> NodeId;
    /// Returns this process's boot. Map entries of another boot of this node do not apply to this process.
    fn boot(&self) -> Boot;
    /// Returns the generation of the copies that were kept over a restart, if there are any.
    fn kept_in(&self) -> Option<Generation>;
    /// Returns the map this node currently follows.
    fn map(&self) -> Arc<Map>;
    /// Makes this the map the node follows.
    fn publish(&self, map: &Arc<Map>);

    /// Runs `work` on a slot under the slot's lock.
    fn with_slot<R>(&self, slot: Slot, work: impl FnOnce(&mut SlotState) -> R) -> R {
        let mut state = self.lock_slot(slot);
        let result = work(&mut state);
        state.refresh();
        result
    }

    /// Returns all links to members.
    fn links(&self) -> Vec<(LinkId, NodeId)>;
    /// Returns whether the process at the other end is no longer a member.
    fn is_gone(&self, link: LinkId) -> bool;
    /// Lets `work` append frames to the link.
    fn with_outbox<R>(&self, link: LinkId, work: impl FnOnce(&mut Outbox) -> R) -> R;
    /// Returns the number of unacknowledged bytes.
    fn unacknowledged_bytes(&self, link: LinkId) -> usize;
    /// Returns whether the other end owes an acknowledgement and has sent none for `timeout`
    /// (`Backlog::is_stuck`).
    fn is_stuck(&self, link: LinkId, timeout: Duration) -> bool;
    /// Returns the slots of which the other end has refused something; some refusals may no longer matter.
    fn refused_slots(&self, link: LinkId) -> Vec<Slot>;
    /// Forgets the refusals of this slot, which no longer matter.
    fn forget_refusal(&self, link: LinkId, slot: Slot);
    /// Increments `ack_epoch` and has held replies and parked commands checked again. Called when
    /// acknowledgements may mean something else from now on.
    fn recheck_waiting(&self);
    /// Sends the appended frames of all links.
    fn flush(&self);
    /// Yields the CPU to the threads that serve clients.
    fn yield_cpu(&self);

    /// Lends `work` the buckets that are being copied. No new map is applied while `work` runs, and none is
    /// half applied: every decision in there sees a single map.
    fn with_moves<R>(&self, work: impl FnOnce(&mut Vec<Outgoing>) -> R) -> R;
    /// Sends a report to the control plane.
    fn report(&self, report: Report);
    /// Returns the time, by this node's clock, of the last data from this primary, or of its last report that
    /// nothing is outstanding.
    fn heard(&self, primary: NodeId) -> Moment;
    /// Marks this node's copies of buckets of these primaries as pending (possibly stale).
    fn set_pending(&self, primaries: BTreeSet<NodeId>);
}

/// Returns this node's id if the map has this very process as a member.
fn me_in(map: &Map, plane: &impl Plane) -> Option<NodeId> {
    let member = map.member(plane.me())?;
    (member.boot == plane.boot()).then_some(member.id)
}

fn slots_of(bucket: Hashmask) -> impl Iterator<Item = Slot> {
    bucket.slots().filter_map(Slot::new)
}

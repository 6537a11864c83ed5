//! The data plane of one node: what it is to each slot, what comes from other nodes, what leaves.
//!
//! `replication` and `fill` are the parts; here they are put together. All that locks, sends or waits
//! is behind `Plane`: the server stands on locks, sockets and threads, the simulator on plain memory.

mod follow; //   A new map: what this node is to each slot from now on.
mod intake; //   What comes from one other node.
mod mover; //    Buckets that leave: fills, handovers; and backups that fall behind.
mod pending; //  Backups that may be behind.
mod replace; //  A slot that comes whole after a death.
mod settle; //   A new primary makes the other backups agree with it before it serves.
mod refusals; // Slots of which the other end of a link has refused something.
mod slot_state; // A slot's table and this node's duty to it.
mod window; //   How much of a fill may be under way.
mod tombs; //    How much is remembered since another side parted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use placement::{Hashmask, Slot};

pub use follow::follow;
pub use intake::{Intake, Surface, Taken};
pub use mover::{Mover, Order, Report};
pub use refusals::Refusals;
pub use slot_state::SlotState;

use crate::fill::Source;
use crate::map::{Boot, Epoch, Generation, LogIndex, Map, NodeId};
use crate::replication::{LinkId, Outbox};
use crate::serving::ServingPlane;

/// The bucket that is being copied to another node, as far as a new map must know of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    pub bucket: Hashmask,
    pub reign: LogIndex,
    pub link: LinkId,
    /// The bucket's epoch when the end was sent.
    pub ended_at: Option<Epoch>,
    pub progress: Progress,
}

/// How far a fill is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Progress {
    pub sent_bytes: u64,
    /// By slots.
    pub percent: u8,
}

impl Progress {
    fn of(source: &Source) -> Progress {
        let all = source.bucket.slots().len();
        let sent = all.saturating_sub(source.slots_left());
        let percent = u8::try_from(sent * 100 / all).unwrap_or(100);
        Progress { sent_bytes: source.sent().bytes, percent }
    }
}

/// What the data plane stands on. One call may be made inside another only in this order: `with_moves`,
/// `with_slot`, `with_outbox`.
pub trait Plane: ServingPlane {
    fn me(&self) -> NodeId;
    /// This process: what the map says of another boot of this node does not concern it.
    fn boot(&self) -> Boot;
    /// The generation of the copies that were kept over a restart, if any were.
    fn kept_in(&self) -> Option<Generation>;
    /// The map this node goes by.
    fn map(&self) -> Arc<Map>;
    /// Goes by this map from now on.
    fn publish(&self, map: &Arc<Map>);

    /// Lets `work` do something to a slot, and nobody else meanwhile.
    fn with_slot<R>(&self, slot: Slot, work: impl FnOnce(&mut SlotState) -> R) -> R {
        let mut state = self.lock_slot(slot);
        let result = work(&mut state);
        state.refresh();
        result
    }

    /// All links to members.
    fn links(&self) -> Vec<(LinkId, NodeId)>;
    /// Whether the process at the other end is no member any more.
    fn is_gone(&self, link: LinkId) -> bool;
    /// Lets `work` append frames.
    fn with_outbox<R>(&self, link: LinkId, work: impl FnOnce(&mut Outbox) -> R) -> R;
    /// Bytes that are not acknowledged yet.
    fn kept_bytes(&self, link: LinkId) -> usize;
    /// Whether the other end has acknowledged nothing for `long` although it should
    /// (`Backlog::is_stuck`).
    fn is_stuck(&self, link: LinkId, long: Duration) -> bool;
    /// Slots of which the other end has refused something, perhaps without consequence by now.
    fn refused(&self, link: LinkId) -> Vec<Slot>;
    /// The refusals of this slot are of no consequence any more.
    fn forget_refusal(&self, link: LinkId, slot: Slot);
    /// From here on an acknowledgement may mean something else than before: counts `ack_epoch` up, and has
    /// replies and parked commands looked at again.
    fn disturb(&self);
    /// Sends what was appended, on all links.
    fn flush(&self);
    /// Lets threads run that serve clients.
    fn give_way(&self);

    /// The bucket that is being copied. While `work` runs no new map is taken over, and none is
    /// halfway: what is decided in there is decided by one map.
    fn with_moves<R>(&self, work: impl FnOnce(&mut Option<Outgoing>) -> R) -> R;
    /// Tells the control plane.
    fn report(&self, report: Report);
    /// When something came from this primary last, or word that nothing was left to come; by the
    /// node's clock.
    fn heard(&self, primary: NodeId) -> Duration;
    /// What these are primaries of may be old here.
    fn set_pending(&self, primaries: BTreeSet<NodeId>);
}

/// This node, if the map has this very process as a member.
fn me_in(map: &Map, plane: &impl Plane) -> Option<NodeId> {
    let member = map.member(plane.me())?;
    (member.boot == plane.boot()).then_some(member.id)
}

fn slots_of(bucket: Hashmask) -> impl Iterator<Item = Slot> {
    bucket.slots().filter_map(Slot::new)
}

//! What the data plane stands on here: plain memory. A call inside another that the server's locks
//! would not allow panics (`RefCell`).

use core::cell::{Cell, RefCell};
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cluster::data::{Outgoing, Plane, Refusals, Report, SlotState};
use cluster::map::{Boot, Generation, Map, NodeId, Peer};
use cluster::replication::{Backlog, Duty, FrameNumber, LinkId, LinkTable, Outbox, Role};
use placement::Slot;
use store::Seed;

use super::network::StreamId;

/// The way out to one process.
pub(super) struct Link {
    pub peer: Peer,
    pub backlog: Backlog,
    pub refusals: Refusals,
    pub stream: Option<StreamId>,
}

pub(super) struct SimPlane {
    pub me: Peer,
    /// The generation of what was found on the disk.
    pub kept_in: Option<Generation>,
    seed: Seed,
    /// The node's clock.
    pub now: Cell<Duration>,
    map: RefCell<Option<Arc<Map>>>,
    slots: RefCell<Vec<SlotState>>,
    pub links: RefCell<LinkTable<Link>>,
    outgoing: RefCell<Option<Outgoing>>,
    /// For the control plane.
    pub reports: RefCell<Vec<Report>>,
    /// When something came of each primary.
    pub heard: RefCell<BTreeMap<NodeId, Duration>>,
    pub pending: RefCell<BTreeSet<NodeId>>,
    /// Bytes for streams.
    pub sent: RefCell<Vec<(StreamId, Vec<u8>)>>,
}

impl SimPlane {
    pub(super) fn new(me: Peer, now: Duration) -> SimPlane {
        SimPlane {
            me,
            kept_in: None,
            seed: Seed::new(me.id.0),
            now: Cell::new(now),
            map: RefCell::default(),
            slots: RefCell::new((0..Slot::COUNT).map(|_| SlotState::default()).collect()),
            links: RefCell::default(),
            outgoing: RefCell::default(),
            reports: RefCell::default(),
            heard: RefCell::default(),
            pending: RefCell::default(),
            sent: RefCell::default(),
        }
    }

    pub(super) fn known_map(&self) -> Option<Arc<Map>> {
        self.map.borrow().clone()
    }

    /// Makes links to new members, and lets go of those who are none any more.
    pub(super) fn follow_members(&self, members: &[Peer]) {
        let now = self.now.get();
        let part = |link: &mut Link| {
            link.stream = None;
            link.backlog.forget();
        };
        let make = |_, peer| {
            let (backlog, refusals) = (Backlog::new(now), Refusals::default());
            Link { peer, backlog, refusals, stream: None }
        };
        self.links.borrow_mut().follow(members, part, make);
    }

    /// Everything that was in sync once, as a process that ends writes it down (`keep.rs`).
    pub(super) fn take_copies(&self) -> Vec<(Slot, SlotState)> {
        let mut slots = self.slots.borrow_mut();
        let kept = slots.iter_mut().zip(Slot::all());
        let kept = kept.filter(|(state, _)| state.duty.has_copy());
        kept.map(|(state, slot)| (slot, core::mem::take(state))).collect()
    }

    /// Reads it again, for another process.
    pub(super) fn keep(&self, copies: Vec<(Slot, SlotState)>) {
        let mut slots = self.slots.borrow_mut();
        for (slot, SlotState { table, duty }) in copies {
            let written_in = duty.written_in;
            let duty = Duty { role: Role::Kept, written_in, ..Duty::default() };
            slots[slot.index()] = SlotState { table, duty };
        }
    }

    /// Looks at a link. One that is long gone has nothing, as a new one.
    fn link<R: Default>(&self, id: LinkId, look: impl FnOnce(&Link) -> R) -> R {
        self.links.borrow().get(id).map(look).unwrap_or_default()
    }
}

impl Plane for SimPlane {
    fn me(&self) -> NodeId {
        self.me.id
    }

    fn boot(&self) -> Boot {
        self.me.boot
    }

    fn kept_in(&self) -> Option<Generation> {
        self.kept_in
    }

    fn map(&self) -> Arc<Map> {
        self.known_map().expect("the data plane begins with the first map")
    }

    fn publish(&self, map: &Arc<Map>) {
        *self.map.borrow_mut() = Some(Arc::clone(map));
    }

    fn seed(&self) -> &Seed {
        &self.seed
    }

    fn with_slot<R>(&self, slot: Slot, work: impl FnOnce(&mut SlotState) -> R) -> R {
        work(&mut self.slots.borrow_mut()[slot.index()])
    }

    fn note(&self, _slot: Slot, _state: &SlotState) {}

    fn link_to(&self, node: NodeId) -> Option<LinkId> {
        self.links.borrow().to_node(node)
    }

    fn links(&self) -> Vec<(LinkId, NodeId)> {
        self.links.borrow().living().map(|(id, peer, _)| (id, peer.id)).collect()
    }

    fn is_gone(&self, link: LinkId) -> bool {
        self.links.borrow().is_gone(link)
    }

    fn with_outbox<R>(&self, link: LinkId, work: impl FnOnce(&mut Outbox) -> R) -> R {
        let mut links = self.links.borrow_mut();
        let is_gone = links.is_gone(link);
        let Some(link) = links.get_mut(link) else { return work(&mut Outbox::default()) };
        let result = link.backlog.append(|| self.now.get(), work);
        if is_gone {
            link.backlog.forget();
        }
        result
    }

    fn last(&self, link: LinkId) -> FrameNumber {
        self.link(link, |link| link.backlog.outbox().last())
    }

    fn acked(&self, link: LinkId) -> FrameNumber {
        self.link(link, |link| link.backlog.outbox().acked())
    }

    fn acked_for(&self, link: LinkId, slot: Slot) -> FrameNumber {
        self.link(link, |link| link.refusals.limit(link.backlog.outbox().acked(), Some(slot)))
    }

    fn kept_bytes(&self, link: LinkId) -> usize {
        self.link(link, |link| link.backlog.outbox().kept_bytes())
    }

    fn is_stuck(&self, link: LinkId, long: Duration) -> bool {
        self.link(link, |link| link.backlog.is_stuck(self.now.get(), long))
    }

    fn refused(&self, link: LinkId) -> Vec<Slot> {
        self.link(link, |link| link.refusals.slots().collect())
    }

    fn forget_refusals(&self, slots: &Range<u16>) {
        self.links.borrow_mut().living_mut().for_each(|(.., link)| link.refusals.forget(slots));
    }

    fn flush(&self) {
        for (.., link) in self.links.borrow_mut().living_mut() {
            let Some(stream) = link.stream else { continue };
            let outbox = link.backlog.outbox_mut();
            let mut bytes = Vec::new();
            while let Some(unsent) = outbox.unsent() {
                bytes.extend_from_slice(unsent);
                let count = unsent.len();
                outbox.sent(count);
            }
            if !bytes.is_empty() {
                self.sent.borrow_mut().push((stream, bytes));
            }
        }
    }

    fn with_moves<R>(&self, work: impl FnOnce(&mut Option<Outgoing>) -> R) -> R {
        work(&mut self.outgoing.borrow_mut())
    }

    fn report(&self, report: Report) {
        self.reports.borrow_mut().push(report);
    }

    fn heard(&self, primary: NodeId) -> Duration {
        self.heard.borrow().get(&primary).copied().unwrap_or_default()
    }

    fn set_pending(&self, primaries: BTreeSet<NodeId>) {
        *self.pending.borrow_mut() = primaries;
    }
}

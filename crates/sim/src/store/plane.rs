//! The simulated surroundings of the data plane: plain memory. A nested call that the server's locks would
//! not allow panics (`RefCell`).

use core::cell::{Cell, RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use cluster::Moment;
use cluster::data::{Outgoing, Plane, Refusals, Report, SlotState};
use cluster::map::{Boot, Generation, Map, NodeId, Peer};
use cluster::replication::{Backlog, Frame, FrameNumber, LinkId, LinkProgress, LinkTable, Outbox};
use cluster::serving::{AckEpoch, KeyWaiters, ServingPlane, Waiter};
use commands::cluster::View;
use placement::Slot;
use sim_engine::StreamId;
use store::{Database, Key, Seed};

/// The outgoing link to one process.
pub(super) struct Link {
    pub peer: Peer,
    pub backlog: Backlog,
    pub refusals: Refusals,
    pub stream: Option<StreamId>,
}

pub(super) struct SimPlane {
    pub me: Peer,
    /// The generation of the data found on the disk.
    pub kept_in: Option<Generation>,
    seed: Seed,
    /// The database that all clients use.
    pub database: Database,
    /// The time of the node's clock.
    pub now: Cell<Moment>,
    view: RefCell<Option<Arc<View>>>,
    slots: Vec<RefCell<SlotState>>,
    epoch: Cell<u64>,
    pub links: RefCell<LinkTable<Link>>,
    outgoing: RefCell<Vec<Outgoing>>,
    /// Reports for the control plane.
    pub reports: RefCell<Vec<Report>>,
    /// Time of the last sign of life from each primary.
    pub heard: RefCell<BTreeMap<NodeId, Moment>>,
    pub pending: RefCell<BTreeSet<NodeId>>,
    /// Bytes to be sent on streams.
    pub sent: RefCell<Vec<(StreamId, Vec<u8>)>>,
}

impl SimPlane {
    pub(super) fn new(me: Peer, now: Moment) -> SimPlane {
        SimPlane {
            me,
            kept_in: None,
            seed: Seed::new(me.id.0),
            database: Database::ZERO,
            now: Cell::new(now),
            view: RefCell::default(),
            slots: (0..Slot::COUNT).map(|_| RefCell::default()).collect(),
            epoch: Cell::new(1),
            links: RefCell::default(),
            outgoing: RefCell::default(),
            reports: RefCell::default(),
            heard: RefCell::default(),
            pending: RefCell::default(),
            sent: RefCell::default(),
        }
    }

    /// Returns a key of the clients.
    pub(super) fn key<'k>(&self, name: &'k str) -> Key<'k> {
        self.seed.key(name.as_bytes()).in_database(self.database)
    }

    pub(super) fn known_map(&self) -> Option<Arc<Map>> {
        self.view.borrow().as_ref().map(|view| Arc::clone(view.map()))
    }

    /// Returns the map as clients' commands see it.
    pub(super) fn view(&self) -> Option<Arc<View>> {
        self.view.borrow().clone()
    }

    /// Records that the other end of a link has refused a frame of a slot. Counted before its
    /// acknowledgement.
    pub(super) fn refused_by(&self, link: LinkId, slot: Slot, frame: FrameNumber) {
        if self.with_slot(slot, |state| state.note_refused(link, frame)) {
            self.with_link(link, |link| link.refusals.note(slot));
        }
        self.epoch.set(self.epoch.get() + 1);
    }

    /// Creates links to new members, and drops links to former members.
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

    /// Takes all copies that were in sync once, as a process that ends saves them (`keep.rs`).
    pub(super) fn take_copies(&self) -> Vec<(Slot, SlotState)> {
        let kept = self.slots.iter().zip(Slot::all());
        let kept = kept.filter(|(state, _)| state.borrow().replica().has_copy());
        kept.map(|(state, slot)| (slot, state.take())).collect()
    }

    /// Loads saved copies into another process.
    pub(super) fn keep(&self, copies: Vec<(Slot, SlotState)>) {
        for (slot, state) in copies {
            self.slots[slot.index()].replace(state.into_stale());
        }
    }

    pub(super) fn has_unacknowledged(&self) -> bool {
        let lags = |link: &Link| link.backlog.outbox().acked() < link.backlog.outbox().last();
        self.links.borrow().living().any(|(.., link)| lags(link))
    }

    pub(super) fn has_refusals(&self) -> bool {
        self.links.borrow().living().any(|(.., link)| !link.refusals.is_empty())
    }

    /// Reads from a link. One that is long gone has nothing, like a new one.
    fn link<R: Default>(&self, id: LinkId, look: impl FnOnce(&Link) -> R) -> R {
        self.links.borrow().get(id).map(look).unwrap_or_default()
    }

    fn with_link(&self, id: LinkId, change: impl FnOnce(&mut Link)) {
        if let Some(link) = self.links.borrow_mut().get_mut(id) {
            change(link);
        }
    }
}

impl LinkProgress for SimPlane {
    fn link_to(&self, node: NodeId) -> Option<LinkId> {
        self.links.borrow().to_node(node)
    }

    fn last(&self, link: LinkId) -> FrameNumber {
        self.link(link, |link| link.backlog.outbox().last())
    }

    fn acked(&self, link: LinkId) -> FrameNumber {
        self.link(link, |link| link.backlog.outbox().acked())
    }
}

impl ServingPlane for SimPlane {
    type Guard<'a> = RefMut<'a, SlotState>;

    fn try_lock_slot(&self, slot: Slot) -> Option<RefMut<'_, SlotState>> {
        Some(self.lock_slot(slot))
    }

    fn lock_slot(&self, slot: Slot) -> RefMut<'_, SlotState> {
        self.slots[slot.index()].borrow_mut()
    }

    fn seed(&self) -> &Seed {
        &self.seed
    }

    fn push_frame(&self, link: LinkId, frame: &Frame<'_>) -> FrameNumber {
        self.with_outbox(link, |outbox| outbox.push(frame))
    }

    fn ack_epoch(&self) -> AckEpoch {
        AckEpoch(self.epoch.get())
    }

    fn publish_counts(&self, _slot: Slot, _state: &SlotState) {}

    /// Finds only slots that are not locked: a walk has unlocked the one before.
    fn next_occupied(&self, from: Slot) -> Option<Slot> {
        Slot::all().skip(from.index()).find(|slot| self.key_count_of(*slot) > 0)
    }

    fn next_with_databases(&self, from: Slot) -> Option<Slot> {
        let has = |slot: &Slot| {
            let state = self.slots[slot.index()].try_borrow();
            let is_mine = |state: &SlotState| state.replica().is_primary();
            state.is_ok_and(|state| is_mine(&state) && state.table().has_other_databases())
        };
        Slot::all().skip(from.index()).find(has)
    }

    fn key_count_of(&self, slot: Slot) -> usize {
        let state = self.slots[slot.index()].try_borrow();
        state.map_or(0, |state| if state.replica().is_primary() { state.table().len() } else { 0 })
    }

    fn key_count(&self) -> usize {
        Slot::all().map(|slot| self.key_count_of(slot)).sum()
    }

    fn has_congestion(&self) -> bool {
        self.links.borrow().living().any(|(.., link)| link.backlog.is_congested())
    }

    fn is_congested(&self, link: LinkId) -> bool {
        self.link(link, |link| link.backlog.is_congested())
    }

    fn roles_may_be_ahead(&self) -> bool {
        true // Checking the slot is cheap here.
    }

    fn with_waiters<R>(&self, _: Slot, work: impl FnOnce(&mut KeyWaiters) -> R) -> R {
        work(&mut KeyWaiters::default()) // No simulated client waits for keys.
    }

    fn wake(&self, _: Waiter) {}
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
        *self.view.borrow_mut() = Some(Arc::new(View::new(Arc::clone(map), self.me.id)));
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

    fn unacknowledged_bytes(&self, link: LinkId) -> usize {
        self.link(link, |link| link.backlog.outbox().unacknowledged_bytes())
    }

    fn is_stuck(&self, link: LinkId, timeout: Duration) -> bool {
        self.link(link, |link| link.backlog.is_stuck(self.now.get(), timeout))
    }

    fn refused_slots(&self, link: LinkId) -> Vec<Slot> {
        self.link(link, |link| link.refusals.slots().collect())
    }

    fn forget_refusal(&self, link: LinkId, slot: Slot) {
        self.with_link(link, |link| link.refusals.forget(slot));
    }

    fn recheck_waiting(&self) {
        self.epoch.set(self.epoch.get() + 1);
    }

    fn yield_cpu(&self) {} // There is one thread.

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

    fn with_moves<R>(&self, work: impl FnOnce(&mut Vec<Outgoing>) -> R) -> R {
        work(&mut self.outgoing.borrow_mut())
    }

    fn report(&self, report: Report) {
        self.reports.borrow_mut().push(report);
    }

    fn heard(&self, primary: NodeId) -> Moment {
        self.heard.borrow().get(&primary).copied().unwrap_or_default()
    }

    fn set_pending(&self, primaries: BTreeSet<NodeId>) {
        *self.pending.borrow_mut() = primaries;
    }
}

//! A slot: its table and this node's replica of it, under one lock.
//!
//! The fields are private to this crate. Outside, a served slot is changed through `serving::ServedSlot` or
//! `ServedSlots`, a copy by the intake, and a stale copy is loaded by the methods below.

use store::{Applied, DecodeError, DecodedItem, Seed, SlotTable, Version};

use super::{FrameNumber, LinkId, Position, Role, SlotReplica};

/// A slot's table and replica, laid out so that a command on a plain slot touches one cache line, together with
/// the lock before it.
#[repr(C)]
#[derive(Default)]
pub struct SlotState {
    /// True if this node serves the slot, and its changes need neither be recorded nor acknowledged. Kept up to
    /// date by [`SlotState::refresh`].
    is_plain: bool,
    /// True if connections wait for keys of the slot (`serving/lines.rs`).
    pub(crate) has_waiters: bool,
    pub(crate) table: SlotTable,
    pub(crate) replica: SlotReplica,
}

/// The first cache line, less the lock that precedes the slot.
const FIRST_LINE: usize = 56;
const _: () = assert!(core::mem::offset_of!(SlotState, table) + SlotTable::HOT_BYTES <= FIRST_LINE);

/// A slot with its lock fills three cache lines. A fourth would be nearly empty, and the first lines of all slots, which
/// nearly every command reads, would share a quarter of the sets of each cache.
const THREE_LINES: usize = 3 * 64 - 8;
const _: () = assert!(size_of::<SlotState>() <= THREE_LINES);

impl SlotState {
    /// Creates an empty slot in which the node has this role.
    pub fn with_role(role: Role) -> SlotState {
        SlotState::new(SlotTable::default(), SlotReplica::with_role(role))
    }

    fn new(table: SlotTable, replica: SlotReplica) -> SlotState {
        let is_plain = replica.is_plain();
        SlotState { is_plain, has_waiters: false, table, replica }
    }

    /// Returns whether a command may run at once, records nothing and waits for no acknowledgement.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Updates `is_plain`. Must be called before the lock is released if the replica may have changed
    /// (`Plane::with_slot` does).
    #[inline]
    pub(crate) fn refresh(&mut self) {
        self.is_plain = self.replica.is_plain();
    }

    #[inline]
    pub fn table(&self) -> &SlotTable {
        &self.table
    }

    #[inline]
    pub fn replica(&self) -> &SlotReplica {
        &self.replica
    }

    pub fn position(&self) -> Position {
        self.replica.position(&self.table)
    }

    /// Records that the other end of a link has refused a frame of this slot. Returns false if that does not matter.
    pub fn note_refused(&mut self, link: LinkId, frame: FrameNumber) -> bool {
        self.replica.note_refused(link, frame)
    }

    /// Empties the slot, when this node no longer holds it.
    pub(crate) fn empty(&mut self, seed: &Seed) -> Applied {
        self.replica.emptied();
        self.table.begin_copy(Version::ZERO, seed)
    }

    // ---- A stale copy, loaded when a process starts.

    /// Starts loading a stale copy of the slot, which was at this position.
    pub fn load_stale(&mut self, at: Position, seed: &Seed) -> Applied {
        self.replica.load_stale(at.reign);
        self.refresh();
        self.table.begin_copy(at.version, seed)
    }

    /// Adds an item to the stale copy.
    pub fn load_stale_item(&mut self, item: &DecodedItem<'_>, seed: &Seed) -> Applied {
        self.expect_stale();
        self.table.copy_item(item, seed)
    }

    /// Adds a piece of what the slot remembers since the split brain.
    pub fn load_stale_divergence(&mut self, piece: &[u8]) -> Result<Applied, DecodeError> {
        self.expect_stale();
        self.table.take_divergence(piece)
    }

    /// Drops the stale copy, if there is one.
    pub fn drop_stale(&mut self, seed: &Seed) -> Option<Applied> {
        self.replica.drop_stale().then(|| self.empty(seed))
    }

    /// Turns the slot of another process of this node into a stale copy.
    pub fn into_stale(self) -> SlotState {
        let mut replica = SlotReplica::default();
        replica.load_stale(self.replica.written_in());
        SlotState::new(self.table, replica)
    }

    fn expect_stale(&self) {
        assert_eq!(self.replica.role(), Role::Stale, "only a stale copy is loaded");
    }
}

/// For tests that put a slot into a state.
impl SlotState {
    /// Frees an undecided fill, as if it had failed.
    #[doc(hidden)]
    pub fn abandon_filling(&mut self, seed: &Seed) {
        if self.replica.abandon_filling() {
            let _ = self.empty(seed);
        }
    }

    /// Gives mutable access to table and replica. The caller must not rely on `is_plain` afterwards.
    #[doc(hidden)]
    pub fn parts_for_tests(&mut self) -> (&mut SlotTable, &mut SlotReplica) {
        self.is_plain = false; // The slow path is always correct.
        (&mut self.table, &mut self.replica)
    }
}

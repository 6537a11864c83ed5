//! A slot: its table, and this node's duty to it, under one lock.
//!
//! The fields are private to this crate. Outside, a served slot is changed through
//! `serving::ServedSlots`, a copy by the intake, and a stale copy is loaded by the methods below.

use store::{Applied, DecodeError, DecodedItem, Seed, SlotTable, Version};

use crate::replication::{Duty, FrameNumber, LinkId, Position, Role};

/// Laid out so that a command on a plain slot touches one cache line, together with the lock before it.
#[repr(C)]
#[derive(Default)]
pub struct SlotState {
    /// This node serves the slot, and nobody else is concerned: nothing to record, nothing to wait for. Kept by
    /// [`SlotState::refresh`].
    is_plain: bool,
    pub(crate) table: SlotTable,
    pub(crate) duty: Duty,
}

/// The first cache line, less the lock that stands before the slot.
const FIRST_LINE: usize = 56;
const _: () = assert!(core::mem::offset_of!(SlotState, table) + SlotTable::HOT_BYTES <= FIRST_LINE);

impl SlotState {
    /// An empty slot to which the node has this role.
    pub fn with_role(role: Role) -> SlotState {
        SlotState::new(SlotTable::default(), Duty::with_role(role))
    }

    fn new(table: SlotTable, duty: Duty) -> SlotState {
        let is_plain = duty.is_plain();
        SlotState { is_plain, table, duty }
    }

    /// True if a command may run at once, records nothing and waits for nobody.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// To be called when the duty may have changed, before the lock is let go (`Plane::with_slot` does).
    #[inline]
    pub(crate) fn refresh(&mut self) {
        self.is_plain = self.duty.is_plain();
    }

    #[inline]
    pub fn table(&self) -> &SlotTable {
        &self.table
    }

    #[inline]
    pub fn duty(&self) -> &Duty {
        &self.duty
    }

    pub fn position(&self) -> Position {
        self.duty.position(&self.table)
    }

    /// The other end of a link has refused a frame of this slot. False if that is of no consequence.
    pub fn refused(&mut self, link: LinkId, frame: FrameNumber) -> bool {
        self.duty.refused(link, frame)
    }

    /// Empties the slot: nothing of it is here any more.
    pub(crate) fn empty(&mut self, seed: &Seed) -> Applied {
        self.duty.emptied();
        self.table.begin_copy(Version::ZERO, seed)
    }

    // ---- A stale copy, as a process that starts loads it.

    /// Begins with a stale copy of the slot, which was at this position.
    pub fn load_stale(&mut self, at: Position, seed: &Seed) -> Applied {
        self.duty.load_stale(at.reign);
        self.refresh();
        self.table.begin_copy(at.version, seed)
    }

    /// Adds an item to the stale copy.
    pub fn load_stale_item(&mut self, item: &DecodedItem<'_>, seed: &Seed) -> Applied {
        self.expect_stale();
        self.table.copy_item(item, seed)
    }

    /// Adds what the slot remembers since its cluster parted.
    pub fn load_stale_parting(&mut self, piece: &[u8]) -> Result<Applied, DecodeError> {
        self.expect_stale();
        self.table.take_parting(piece)
    }

    /// Throws a stale copy away, if there is one.
    pub fn drop_stale(&mut self, seed: &Seed) -> Option<Applied> {
        self.duty.drop_stale().then(|| self.empty(seed))
    }

    /// Makes what another process of this node held its stale copy.
    pub fn into_stale(self) -> SlotState {
        let mut duty = Duty::default();
        duty.load_stale(self.duty.written_in());
        SlotState::new(self.table, duty)
    }

    fn expect_stale(&self) {
        assert_eq!(self.duty.role(), Role::Kept, "only a stale copy is loaded");
    }
}

/// For tests that put a slot into a state.
impl SlotState {
    /// Frees a fill that was not decided on, as if it had come to nothing.
    #[doc(hidden)]
    pub fn abandon_filling(&mut self, seed: &Seed) {
        if self.duty.abandon_filling() {
            let _ = self.empty(seed);
        }
    }

    /// Whoever changes the duty this way calls nothing that relies on `is_plain`.
    #[doc(hidden)]
    pub fn parts_for_tests(&mut self) -> (&mut SlotTable, &mut Duty) {
        self.is_plain = false; // The long way is always right.
        (&mut self.table, &mut self.duty)
    }
}

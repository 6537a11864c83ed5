//! A slot that a new primary resends whole after a failover. It is swapped in at once: until its end has
//! arrived, the backup keeps its old content.

use placement::Slot;
use store::{Applied, DecodeError, Seed, SlotTable, decode_item};

use crate::map::LogIndex;
use crate::replication::{Position, ReceivingSlot};

pub(super) struct SlotReplacement {
    pub(super) slot: Slot,
    reign: LogIndex,
    position: Position,
    table: SlotTable,
}

impl SlotReplacement {
    pub(super) fn new(slot: Slot, reign: LogIndex, position: Position) -> SlotReplacement {
        SlotReplacement { slot, reign, position, table: SlotTable::default() }
    }

    pub(super) fn take_items(&mut self, items: &[u8], seed: &Seed) -> Result<(), DecodeError> {
        let mut rest = items;
        while !rest.is_empty() {
            let (item, behind) = decode_item(rest)?;
            // Memory is accounted for as a whole in `swap_in`.
            let _ = self.table.copy_item(&item, seed);
            rest = behind;
        }
        Ok(())
    }

    /// Replaces the backup's content, if this node is still a backup in this reign.
    pub(super) fn swap_in(mut self, to: &mut ReceivingSlot<'_>) -> Option<Applied> {
        if !to.replica.is_backup() || to.replica.reign() != self.reign {
            return None;
        }
        self.table.inherit_divergence(to.table);
        self.table.advance_to(self.position.version);
        let before = to.table.bytes() as i64;
        core::mem::swap(to.table, &mut self.table);
        to.replica.written_by(self.position.reign);
        let grown_bytes = to.table.bytes() as i64 - before;
        Some(Applied { grown_bytes, reshaped: true, garbage: None })
    }
}

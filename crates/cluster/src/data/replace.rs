//! A slot that comes whole after a death, to be swapped in at once: until its end is here, the backup
//! keeps what it had.

use placement::Slot;
use store::{Applied, DecodeError, Seed, SlotTable, decode_item};

use crate::map::LogIndex;
use crate::replication::{Position, Receiver};

pub(super) struct Replacement {
    pub(super) slot: Slot,
    reign: LogIndex,
    position: Position,
    table: SlotTable,
}

impl Replacement {
    pub(super) fn new(slot: Slot, reign: LogIndex, position: Position) -> Replacement {
        Replacement { slot, reign, position, table: SlotTable::default() }
    }

    pub(super) fn take_items(&mut self, items: &[u8], seed: &Seed) -> Result<(), DecodeError> {
        let mut rest = items;
        while !rest.is_empty() {
            let (item, behind) = decode_item(rest)?;
            // Counted as a whole when it is swapped in.
            let _ = self.table.copy_item(&item, seed);
            rest = behind;
        }
        Ok(())
    }

    /// Takes the place of what the backup had, if it is still one of this reign.
    pub(super) fn swap_in(mut self, to: &mut Receiver<'_>) -> Option<Applied> {
        if !to.duty.is_backup() || to.duty.reign() != self.reign {
            return None;
        }
        self.table.inherit_parting(to.table);
        self.table.advance_to(self.position.version);
        let before = to.table.bytes() as i64;
        core::mem::swap(to.table, &mut self.table);
        to.duty.written_by(self.position.reign);
        let grown_bytes = to.table.bytes() as i64 - before;
        Some(Applied { grown_bytes, reshaped: true, garbage: None })
    }
}

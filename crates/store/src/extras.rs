//! The parts of a slot that few slots have: the record of a split brain (`divergence.rs`), and the deadlines of hashes' fields
//! (`field_deadlines.rs`). They are behind one pointer, because each of 16,384 slots has room for it.

use crate::field_deadlines::FieldDeadlines;
use crate::{DivergenceLog, SlotTable};

#[derive(Default)]
pub(crate) struct SlotExtras {
    divergence: Option<DivergenceLog>,
    field_deadlines: FieldDeadlines,
}

impl SlotTable {
    pub fn divergence(&self) -> Option<&DivergenceLog> {
        self.extras.as_ref()?.divergence.as_ref()
    }

    pub(crate) fn divergence_mut(&mut self) -> Option<&mut DivergenceLog> {
        self.extras.as_mut()?.divergence.as_mut()
    }

    pub(crate) fn set_divergence(&mut self, divergence: Option<DivergenceLog>) {
        if divergence.is_some() || self.extras.is_some() {
            self.extras.get_or_insert_default().divergence = divergence;
            self.drop_empty_extras();
        }
    }

    pub(crate) fn take_divergence_log(&mut self) -> Option<DivergenceLog> {
        let taken = self.extras.as_mut()?.divergence.take();
        self.drop_empty_extras();
        taken
    }

    /// Returns the deadlines of fields, if there are any.
    #[inline]
    pub(crate) fn field_deadlines(&self) -> Option<&FieldDeadlines> {
        self.extras.as_ref().map(|extras| &extras.field_deadlines).filter(|it| !it.is_empty())
    }

    pub(crate) fn change_field_deadlines(&mut self, change: impl FnOnce(&mut FieldDeadlines)) {
        change(&mut self.extras.get_or_insert_default().field_deadlines);
        self.drop_empty_extras();
    }

    fn drop_empty_extras(&mut self) {
        let is_empty = |it: &SlotExtras| it.divergence.is_none() && it.field_deadlines.is_empty();
        if self.extras.as_deref().is_some_and(is_empty) {
            self.extras = None;
        }
    }
}

//! The large list of an item, in memory of its own.

use containers::List;

use super::{Item, ItemRef, ValueKind, long_bit};

impl Item {
    /// Takes a large list out, leaving a number behind.
    pub(super) fn take_list(&mut self) -> Option<Box<List>> {
        let item = self.as_ref();
        if item.kind() != ValueKind::LargeList {
            return None;
        }
        let (shape, pointer) = (item.shape(), item.list_pointer());
        // As in `take_shared`, the block keeps its shape.
        self.write_at(super::KIND_AT, &[ValueKind::Integer as u8 | long_bit(shape)]);
        // SAFETY: the pointer came from `Box::into_raw` in `write_value`, and the kind just written says that the item
        // no longer owns it.
        Some(unsafe { Box::from_raw(pointer) })
    }

    /// Returns the large list, to be changed.
    pub(crate) fn list_mut(&mut self) -> Option<&mut List> {
        let item = self.as_ref();
        // SAFETY: the item owns the list, and `self` is borrowed for as long as the reference lives.
        (item.kind() == ValueKind::LargeList).then(|| unsafe { &mut *item.list_pointer() })
    }
}

impl<'a> ItemRef<'a> {
    fn list_pointer(self) -> *mut List {
        let shape = self.shape();
        let address = u64::from_ne_bytes(self.array(shape.data_at() + shape.key_len));
        core::ptr::with_exposed_provenance_mut(address as usize)
    }

    /// Returns the list of an item whose kind is `LargeList`.
    pub(super) fn list(self) -> &'a List {
        // SAFETY: the item owns the list, and is not changed during `'a`.
        unsafe { &*self.list_pointer() }
    }
}

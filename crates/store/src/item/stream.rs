//! The stream of an item, in memory of its own.

use containers::Stream;

use super::{Item, ItemRef, ValueKind, long_bit};

impl Item {
    /// Takes a stream out, leaving a number behind.
    pub(super) fn take_stream(&mut self) -> Option<Box<Stream>> {
        let item = self.as_ref();
        if item.kind() != ValueKind::Stream {
            return None;
        }
        let (shape, pointer) = (item.shape(), item.stream_pointer());
        // As in `take_shared`, the block keeps its shape.
        self.write_at(super::KIND_AT, &[ValueKind::Integer as u8 | long_bit(shape)]);
        // SAFETY: the pointer came from `Box::into_raw` in `write_value`, and the kind just written says that the item
        // no longer owns it.
        Some(unsafe { Box::from_raw(pointer) })
    }

    /// Returns the stream, to be changed.
    pub(crate) fn stream_mut(&mut self) -> Option<&mut Stream> {
        let item = self.as_ref();
        // SAFETY: the item owns the stream, and `self` is borrowed for as long as the reference lives.
        (item.kind() == ValueKind::Stream).then(|| unsafe { &mut *item.stream_pointer() })
    }
}

impl<'a> ItemRef<'a> {
    fn stream_pointer(self) -> *mut Stream {
        let shape = self.shape();
        let address = u64::from_ne_bytes(self.array(shape.data_at() + shape.key_len));
        core::ptr::with_exposed_provenance_mut(address as usize)
    }

    /// Returns the stream of an item whose kind is `Stream`.
    pub(super) fn stream(self) -> &'a Stream {
        // SAFETY: the item owns the stream, and is not changed during `'a`.
        unsafe { &*self.stream_pointer() }
    }
}

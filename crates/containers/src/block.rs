//! A growing block of bytes whose capacity is always one of the allocator's sizes, so that no memory is asked for and
//! not used. Called by `bucket.rs` and `sequence.rs`.

use core::ops::Range;

use crate::memory::block_bytes;

/// Replaces a range of the block.
pub(crate) fn splice(block: &mut Vec<u8>, range: Range<usize>, with: &[u8]) {
    let (old_len, new_len) = (block.len(), block.len() - range.len() + with.len());
    if new_len > block.capacity() {
        block.reserve_exact(block_bytes(new_len) - old_len);
    }
    if new_len > old_len {
        block.resize(new_len, 0);
        block.copy_within(range.end..old_len, range.start + with.len());
    } else {
        block.copy_within(range.end.., range.start + with.len());
        block.truncate(new_len);
    }
    block[range.start..range.start + with.len()].copy_from_slice(with);
    release_slack(block);
}

/// Returns memory to the allocator if a quarter of the block is unused.
fn release_slack(block: &mut Vec<u8>) {
    if block.is_empty() {
        *block = Vec::new();
        return;
    }
    let fitting = block_bytes(block.len());
    if fitting + fitting / 3 < block.capacity() {
        block.shrink_to(fitting);
    }
}

/// Returns a block that contains a copy of `bytes`.
pub(crate) fn of(bytes: &[u8]) -> Vec<u8> {
    let mut block = Vec::with_capacity(block_bytes(bytes.len()));
    block.extend_from_slice(bytes);
    block
}

/// Returns the memory of an array of `capacity` elements of type `T`.
pub(crate) fn array_bytes<T>(capacity: usize) -> usize {
    if capacity == 0 { 0 } else { block_bytes(capacity * size_of::<T>()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_replaced_and_the_capacity_stays_close() {
        let mut block = of(b"0123456789");
        splice(&mut block, 2..4, b"abcdef");
        assert_eq!(block, b"01abcdef456789");
        splice(&mut block, 0..10, b"");
        assert_eq!(block, b"6789");
        splice(&mut block, 4..4, &[b'x'; 200]);
        assert_eq!((block.len(), block.capacity()), (204, 224));
        splice(&mut block, 1..203, b"");
        assert_eq!(block, b"6x");
        assert!(block.capacity() <= 16);
        splice(&mut block, 0..2, b"");
        assert_eq!(block.capacity(), 0);
    }
}

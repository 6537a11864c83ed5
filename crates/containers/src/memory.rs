//! The real size of a block in the allocator. Blocks are rounded up to it, and `maxmemory` counts the memory really
//! used.

/// Returns the size of the block that jemalloc allocates for `bytes`: multiples of 16 up to 128, then four sizes
/// for every doubling.
pub const fn block_bytes(bytes: usize) -> usize {
    if bytes <= 8 {
        return 8;
    }
    if bytes <= 128 {
        return bytes.next_multiple_of(16);
    }
    let doubling = (bytes - 1).ilog2();
    let step = 1 << (doubling - 2);
    bytes.next_multiple_of(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_the_allocators_size_classes() {
        let classes = [
            (1, 8),
            (8, 8),
            (9, 16),
            (17, 32),
            (62, 64),
            (65, 80),
            (128, 128),
            (129, 160),
            (161, 192),
            (256, 256),
            (257, 320),
            (1000, 1024),
            (1025, 1280),
            (70_000, 81_920),
        ];
        for (asked, given) in classes {
            assert_eq!(block_bytes(asked), given, "for {asked} bytes");
        }
    }
}

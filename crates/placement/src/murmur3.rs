//! MurmurHash3, x86, 32 bit: the hash that ranks servers for a timer (`rendezvous.rs`).
//!
//! Chronos uses the same hash, so a Chronos cluster and ours place timers alike.

const C1: u32 = 0xCC9E_2D51;
const C2: u32 = 0x1B87_3593;

pub fn murmur3(bytes: &[u8], seed: u32) -> u32 {
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash = seed;
    for block in blocks {
        hash ^= scrambled(u32::from_le_bytes(*block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64);
    }
    let mut last = [0; 4];
    last[..tail.len()].copy_from_slice(tail);
    hash ^= scrambled(u32::from_le_bytes(last));
    // The definition counts the length in 32 bits; nothing we hash comes near that limit.
    finished(hash ^ bytes.len() as u32)
}

fn scrambled(block: u32) -> u32 {
    block.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2)
}

fn finished(mut hash: u32) -> u32 {
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85EB_CA6B);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xC2B2_AE35);
    hash ^ (hash >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the commonly published test vectors of this hash, with every length of tail.
    #[test]
    fn hashes_are_those_of_the_reference() {
        assert_eq!(murmur3(b"", 0), 0);
        assert_eq!(murmur3(b"", 1), 0x514E_28B7);
        assert_eq!(murmur3(b"", 0xFFFF_FFFF), 0x81F1_6F39);
        assert_eq!(murmur3(&[0, 0, 0, 0], 0), 0x2362_F9DE);
        assert_eq!(murmur3(&[0xFF, 0xFF, 0xFF, 0xFF], 0), 0x7629_3B50);
        assert_eq!(murmur3(&[0x21, 0x43, 0x65, 0x87], 0), 0xF55B_516B);
        assert_eq!(murmur3(&[0x21, 0x43, 0x65, 0x87], 0x5082_EDEE), 0x2362_F9DE);
        assert_eq!(murmur3(&[0x21, 0x43, 0x65], 0), 0x7E4A_8634);
        assert_eq!(murmur3(&[0x21, 0x43], 0), 0xA0F7_B07A);
        assert_eq!(murmur3(&[0x21], 0), 0x7266_1CF4);
        assert_eq!(murmur3(b"Hello, world!", 0x9747_B28C), 0x2488_4CBA);
        assert_eq!(murmur3(b"aaaa", 0x9747_B28C), 0x5A97_808A);
    }
}

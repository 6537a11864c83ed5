//! MurmurHash64A, the hash of elements. It is part of the format: registers of two HyperLogLogs are compared.

/// The seed that Redis uses.
const SEED: u64 = 0xADC8_3B19;
const MULTIPLIER: u64 = 0xC6A4_A793_5BD1_E995;
const SHIFT: u32 = 47;

/// Returns the hash of an element.
pub(super) fn hash(element: &[u8]) -> u64 {
    murmur(element, SEED)
}

fn murmur(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        word ^= word >> SHIFT;
        hash = (hash ^ word.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    }
    if !tail.is_empty() {
        let mut word = [0; 8];
        word[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ hash >> SHIFT).wrapping_mul(MULTIPLIER);
    hash ^ hash >> SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verification value that SMHasher publishes for MurmurHash64A: the hash of the hashes of 256 keys.
    #[test]
    fn the_hash_has_the_published_verification_value() {
        let key: Vec<u8> = (0..=255).collect();
        let mut hashes = Vec::new();
        for len in 0..256 {
            hashes.extend_from_slice(&murmur(&key[..len], 256 - len as u64).to_le_bytes());
        }
        assert_eq!(murmur(&hashes, 0) as u32, 0x1F0D_3804);
    }
}

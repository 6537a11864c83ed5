//! SHA-1, only for `DEBUG DIGEST`: a fingerprint to compare two servers, not for security.

pub(super) type Sha1Digest = [u8; 20];

const START: [u32; 5] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0];
const BLOCK_BYTES: usize = 64;

pub(super) fn sha1(bytes: &[u8]) -> Sha1Digest {
    let mut state = START;
    let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
    blocks.iter().for_each(|block| mix(&mut state, block));

    // Padding of the last block or two: a one bit, zeros, and the number of bits.
    let mut end = rest.to_vec();
    end.push(0x80);
    let zeros = (BLOCK_BYTES * 2 - 8 - end.len()) % BLOCK_BYTES;
    end.resize(end.len() + zeros, 0);
    end.extend_from_slice(&(bytes.len() as u64 * 8).to_be_bytes());
    let (blocks, _) = end.as_chunks::<BLOCK_BYTES>();
    blocks.iter().for_each(|block| mix(&mut state, block));

    let mut hash = Sha1Digest::default();
    for (four, word) in hash.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *four = word.to_be_bytes();
    }
    hash
}

fn mix(state: &mut [u32; 5], block: &[u8; BLOCK_BYTES]) {
    let mut words = [0u32; 80];
    for (word, four) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*four);
    }
    for at in 16..80 {
        let mixed = words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16];
        words[at] = mixed.rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (round, word) in words.into_iter().enumerate() {
        let (choice, constant) = match round {
            0..20 => (b & c | !b & d, 0x5A82_7999),
            20..40 => (b ^ c ^ d, 0x6ED9_EBA1),
            40..60 => (b & c | b & d | c & d, 0x8F1B_BCDC),
            _ => (b ^ c ^ d, 0xCA62_C1D6_u32),
        };
        let sum = a.rotate_left(5).wrapping_add(choice).wrapping_add(e);
        let next = sum.wrapping_add(constant).wrapping_add(word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    for (sum, term) in state.iter_mut().zip([a, b, c, d, e]) {
        *sum = sum.wrapping_add(term);
    }
}

#[cfg(test)]
mod tests {
    use super::super::digest::hex;
    use super::*;

    #[test]
    fn hashes_are_those_of_the_standard() {
        let vectors: [(&[u8], &str); 4] = [
            (b"", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            (b"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
            ),
            (&[b'a'; 1_000], "291e9a6c66994949b57ba5e650361e98fc36b1ba"),
        ];
        for (bytes, expected) in vectors {
            assert_eq!(hex(&sha1(bytes)), expected);
        }
    }
}

//! LZF, the compression inside Redis's payloads: runs of literal bytes, and references to bytes up to 8 KiB before.
//!
//! ~~~text
//! 000LLLLL literal...                  L + 1 literal bytes
//! LLLooooo oooooooo                    L + 2 bytes (L from 1 to 6) from o + 1 bytes before
//! 111ooooo LLLLLLLL oooooooo           L + 9 bytes from o + 1 bytes before
//! ~~~
//!
//! There are many ways to compress the same bytes. [`compress`] makes exactly the same choices as Redis, so that
//! the payload of DUMP is the same on both, byte for byte.

const LITERALS_MAX: usize = 32;
const REACH_BYTES: usize = 1 << 13;
const REFERENCE_MIN: usize = 3;
const REFERENCE_MAX: usize = (1 << 8) + (1 << 3);
/// From this length on, a reference's length takes a byte of its own.
const LONG_REFERENCE: usize = 7;

/// The last positions of byte triples, by their hash. 0 means none: the very first position is never referenced.
struct SeenTriples(Vec<u32>);

const HASH_BITS: u32 = 16;

impl SeenTriples {
    fn new() -> SeenTriples {
        SeenTriples(vec![0; 1 << HASH_BITS])
    }

    /// Records the three bytes at `at`, and returns a possible earlier position of the same bytes.
    fn note(&mut self, bytes: &[u8], at: usize) -> usize {
        let place = &mut self.0[hash(bytes, at)];
        let before = *place as usize;
        *place = u32::try_from(at).expect("no string has 4 GiB");
        before
    }
}

/// Returns a hash of the three bytes at `at`.
fn hash(bytes: &[u8], at: usize) -> usize {
    let three =
        u32::from(bytes[at]) << 16 | u32::from(bytes[at + 1]) << 8 | u32::from(bytes[at + 2]);
    let mixed = (three >> (24 - HASH_BITS)).wrapping_sub(three.wrapping_mul(5));
    (mixed & ((1 << HASH_BITS) - 1)) as usize
}

/// The output of [`compress`]: a run of literals is always open, possibly empty.
struct Packed {
    bytes: Vec<u8>,
    /// Number of literals in the open run; its length byte is right before them.
    literals: usize,
}

impl Packed {
    fn new() -> Packed {
        Packed { bytes: vec![0], literals: 0 }
    }

    fn literal(&mut self, byte: u8) {
        self.bytes.push(byte);
        self.literals += 1;
        if self.literals == LITERALS_MAX {
            self.close_run();
            self.open_run();
        }
    }

    fn reference(&mut self, len: usize, offset: usize) {
        self.close_run();
        let (len, [low, high, ..]) = (len - 2, offset.to_le_bytes());
        if len < LONG_REFERENCE {
            self.bytes.push(high | narrow(len) << 5);
        } else {
            self.bytes.push(high | narrow(LONG_REFERENCE) << 5);
            self.bytes.push(narrow(len - LONG_REFERENCE));
        }
        self.bytes.push(low);
        self.open_run();
    }

    fn open_run(&mut self) {
        self.bytes.push(0);
        self.literals = 0;
    }

    /// Writes the length of the open run, or removes its length byte if the run is empty.
    fn close_run(&mut self) {
        if self.literals == 0 {
            self.bytes.pop();
        } else {
            let at = self.bytes.len() - self.literals - 1;
            self.bytes[at] = narrow(self.literals - 1);
        }
    }

    /// Returns the size of the output, without the length byte of an empty run.
    fn taken(&self) -> usize {
        self.bytes.len() - usize::from(self.literals == 0)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "lengths are bounded by the format")]
fn narrow(len: usize) -> u8 {
    debug_assert!(len <= usize::from(u8::MAX));
    len as u8
}

/// Compresses `bytes`; `None` if the result would not fit `room`.
pub(super) fn compress(bytes: &[u8], room: usize) -> Option<Vec<u8>> {
    let mut seen = SeenTriples::new();
    let mut packed = Packed::new();
    let mut at = 0;
    while at + 2 < bytes.len() {
        let before = seen.note(bytes, at);
        let Some(len) = repeated(bytes, before, at) else {
            if packed.bytes.len() >= room {
                return None;
            }
            packed.literal(bytes[at]);
            at += 1;
            continue;
        };
        if packed.taken() + 4 >= room {
            return None;
        }
        packed.reference(len, at - before - 1);
        at += len;
        // Of the bytes just referenced, only the last positions are worth recording.
        if at + 2 < bytes.len() {
            seen.note(bytes, at - 2);
            seen.note(bytes, at - 1);
        }
    }
    if packed.bytes.len() + 3 > room {
        return None;
    }
    bytes[at.min(bytes.len())..].iter().for_each(|byte| packed.literal(*byte));
    packed.close_run();
    Some(packed.bytes)
}

/// Returns the number of equal bytes at `before` and at `at`, if `before` can be referenced and that saves space.
fn repeated(bytes: &[u8], before: usize, at: usize) -> Option<usize> {
    let in_reach = before > 0 && at - before <= REACH_BYTES;
    if !in_reach || bytes[before..before + 3] != bytes[at..at + 3] {
        return None;
    }
    let limit = length_limit(bytes.len() - at);
    let mut len = REFERENCE_MIN;
    while len < limit && bytes[before + len] == bytes[at + len] {
        len += 1;
    }
    Some(len)
}

/// Returns the maximum length of a reference when `left` bytes are left. Redis stops two bytes before the end,
/// except that its unrolled loop runs to the very end when 19 or 20 are left.
fn length_limit(left: usize) -> usize {
    match left - 2 {
        0..REFERENCE_MIN => REFERENCE_MIN,
        17 | 18 => 19,
        limit => limit.min(REFERENCE_MAX),
    }
}

/// Reverts [`compress`]; `None` if this is not the compressed form of exactly `len` bytes. Memory is allocated as
/// bytes are produced, never by trusting `len`.
pub(super) fn decompress(packed: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = packed;
    while let [control, behind @ ..] = rest {
        let control = usize::from(*control);
        rest = if control < LITERALS_MAX {
            let (literals, behind) = behind.split_at_checked(control + 1)?;
            bytes.extend_from_slice(literals);
            behind
        } else {
            copy_before(&mut bytes, control, behind)?
        };
        if bytes.len() > len {
            return None;
        }
    }
    (bytes.len() == len).then_some(bytes)
}

/// Executes one reference, and returns the bytes that follow it.
fn copy_before<'a>(bytes: &mut Vec<u8>, control: usize, behind: &'a [u8]) -> Option<&'a [u8]> {
    let (long, behind) = match (control >> 5, behind) {
        (LONG_REFERENCE, [long, behind @ ..]) => (usize::from(*long), behind),
        (LONG_REFERENCE, []) => return None,
        (_, behind) => (0, behind),
    };
    let (low, behind) = behind.split_first()?;
    let offset = ((control & 0x1F) << 8 | usize::from(*low)) + 1;
    let start = bytes.len().checked_sub(offset)?;
    // The source may overlap the bytes being written: a run of one byte references itself.
    for at in start..start + (control >> 5) + long + 2 {
        bytes.push(bytes[at]);
    }
    Some(behind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement::SplitMix64;

    fn packed(bytes: &[u8]) -> Option<Vec<u8>> {
        compress(bytes, bytes.len().saturating_sub(4))
    }

    #[test]
    fn what_is_compressed_comes_back_whatever_it_was() {
        let mut rng = SplitMix64::new(1);
        let mut compressed = 0;
        for round in 0..3_000u64 {
            // Few different letters compress well, many do not.
            let letters = 1 + rng.draw() % (1 + round % 200);
            let len = rng.draw() % (1 + round);
            let bytes: Vec<u8> = (0..len).map(|_| (rng.draw() % letters) as u8).collect();
            if let Some(packed) = packed(&bytes) {
                assert!(packed.len() + 4 <= bytes.len());
                assert_eq!(decompress(&packed, bytes.len()).as_ref(), Some(&bytes));
                compressed += 1;
            }
        }
        assert!(compressed > 500, "only {compressed} were worth it");
    }

    #[test]
    fn references_reach_back_8_kib_and_no_further() {
        for distance in [REACH_BYTES - 1, REACH_BYTES, REACH_BYTES + 1] {
            let mut bytes: Vec<u8> = (0..distance as u32).flat_map(u32::to_be_bytes).collect();
            bytes.truncate(distance);
            let again = bytes[10..60].to_vec();
            bytes.extend_from_slice(&bytes.clone());
            bytes.extend_from_slice(&again);
            let packed = packed(&bytes).expect("it repeats itself");
            assert_eq!(decompress(&packed, bytes.len()), Some(bytes));
        }
    }

    #[test]
    fn a_length_that_is_not_so_is_refused() {
        let bytes = [b'a'; 100];
        let packed = packed(&bytes).expect("a run compresses");
        assert!(decompress(&packed, 99).is_none());
        assert!(decompress(&packed, 101).is_none());
        assert!(decompress(&packed, usize::MAX).is_none());
    }

    #[test]
    fn broken_bytes_are_refused_and_never_read_outside() {
        let mut rng = SplitMix64::new(7);
        for _ in 0..20_000 {
            let len = rng.draw() % 12;
            let bytes: Vec<u8> = (0..len).map(|_| rng.draw() as u8).collect();
            let claimed = (rng.draw() % 64) as usize;
            if let Some(out) = decompress(&bytes, claimed) {
                assert_eq!(out.len(), claimed);
            }
        }
        assert!(decompress(&[0x20, 0], 3).is_none(), "refers to before the start");
        assert!(decompress(&[0xE0], 9).is_none(), "ends within a reference");
        assert!(decompress(&[5, b'a'], 6).is_none(), "ends within literals");
    }
}

//! A key together with what finding it needs: its slot and its hash, computed once.

use core::hash::{BuildHasher, Hasher};

use placement::Slot;

/// The seed of the hash tables. Drawn per process by the server, fixed in tests and the simulator.
#[derive(Clone, Debug)]
pub struct Seed(foldhash::quality::FixedState);

impl Seed {
    pub fn new(seed: u64) -> Seed {
        Seed(foldhash::quality::FixedState::with_seed(seed))
    }

    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    /// A key with its slot and its hash under this seed.
    #[inline]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        Key { bytes, slot: Slot::of(bytes), hash: self.hash(bytes) }
    }
}

/// A key, its slot and its hash. Only [`Seed::key`] makes one, so the three always belong together.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    bytes: &'a [u8],
    slot: Slot,
    hash: u64,
}

impl<'a> Key<'a> {
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub fn slot(&self) -> Slot {
        self.slot
    }

    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }
}

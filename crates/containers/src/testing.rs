//! A hash function for the tests.

use core::hash::{BuildHasher, Hasher};

use crate::HashBytes;

pub(crate) struct Fold(pub(crate) u64);

impl HashBytes for Fold {
    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = foldhash::quality::FixedState::with_seed(self.0).build_hasher();
        hasher.write(bytes);
        hasher.finish()
    }
}

//! A key together with its database, its slot and its hash, computed once.
//!
//! Slot and hash depend on the client's bytes only, so a key has the same ones in every database. Where a key has to be
//! kept, or sent on its own, as bytes, its *name* is used: the bytes in database 0, and a tag before them otherwise.

use core::hash::Hasher;
use std::borrow::Cow;

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;
use placement::Slot;

use crate::slot_table::ScanPosition;

/// The seed of the hash tables. Chosen at random per process by the server, fixed in tests and the simulator.
///
/// All constants that the hash mixes a key with come from it. If some were foldhash's own (its `FixedState`), an
/// attacker could craft keys that collide under every seed.
#[derive(Clone, Debug)]
pub struct Seed {
    start: u64,
    shared: SharedSeed,
}

impl Seed {
    pub fn new(seed: u64) -> Seed {
        // The two values must be independent of each other.
        let start = FoldHasher::with_seed(seed, SharedSeed::global_fixed()).finish();
        Seed { start, shared: SharedSeed::from_u64(seed) }
    }

    /// Creates a seed with known colliding keys ([`tests::alike`]).
    #[cfg(test)]
    pub(crate) fn weak() -> Seed {
        Seed { start: 1, shared: SharedSeed::global_fixed().clone() }
    }

    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = FoldHasher::with_seed(self.start, &self.shared);
        hasher.write(key);
        hasher.finish()
    }

    /// Returns a key of database 0 with its slot and its hash under this seed.
    #[inline]
    pub fn key<'a>(&self, bytes: &'a [u8]) -> Key<'a> {
        Key { bytes, slot: Slot::of(bytes), database: Database::ZERO, hash: self.hash(bytes) }
    }

    /// Returns the key that has this name ([`Key::name`]).
    pub fn named<'a>(&self, name: &'a [u8]) -> Key<'a> {
        let (database, bytes) = split_name(name);
        self.key(bytes).in_database(database)
    }
}

/// The number of a database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Database(u16);

impl Database {
    pub const ZERO: Database = Database(0);
    /// Maximum number of databases.
    pub const COUNT_MAX: u16 = 10_000;

    /// Returns `None` if the number is too large for any setting.
    #[inline]
    pub const fn new(number: u16) -> Option<Database> {
        if number < Self::COUNT_MAX { Some(Database(number)) } else { None }
    }

    #[inline]
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// The first byte of a name that is not simply the key's bytes.
const NAME_TAG: u8 = 0xFF;

/// Returns the name of a key: in database 0 its bytes, with a second tag before them if they begin like a tag; in another
/// database a tag, the number in two bytes, and the key's bytes. A number's first byte is never a tag.
pub(crate) fn name_of(database: Database, bytes: &[u8]) -> Cow<'_, [u8]> {
    if database != Database::ZERO {
        let [high, low] = database.0.to_be_bytes();
        return Cow::Owned([&[NAME_TAG, high, low], bytes].concat());
    }
    match bytes {
        [NAME_TAG, ..] => Cow::Owned([&[NAME_TAG], bytes].concat()),
        bytes => Cow::Borrowed(bytes),
    }
}

/// Reverts [`name_of`]. Bytes that are no name stand for themselves, in database 0.
fn split_name(name: &[u8]) -> (Database, &[u8]) {
    match name {
        [NAME_TAG, NAME_TAG, ..] => (Database::ZERO, &name[1..]),
        [NAME_TAG, high, low, bytes @ ..] => {
            match Database::new(u16::from_be_bytes([*high, *low])) {
                Some(Database::ZERO) | None => (Database::ZERO, name),
                Some(database) => (database, bytes),
            }
        }
        bytes => (Database::ZERO, bytes),
    }
}

/// A key, its database, its slot and its hash. Only [`Seed::key`] creates one, so bytes, slot and hash always match.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    bytes: &'a [u8],
    slot: Slot,
    database: Database,
    hash: u64,
}

impl<'a> Key<'a> {
    /// Returns the key as clients write it, without its database.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    #[inline]
    pub fn database(&self) -> Database {
        self.database
    }

    /// Returns the same key in another database.
    #[inline]
    #[must_use]
    pub fn in_database(self, database: Database) -> Key<'a> {
        Key { database, ..self }
    }

    /// Returns the key's name: bytes that no other key of any database has. [`Seed::named`] reverts it.
    #[inline]
    pub fn name(&self) -> Cow<'a, [u8]> {
        name_of(self.database, self.bytes)
    }

    #[inline]
    pub fn slot(&self) -> Slot {
        self.slot
    }

    #[inline]
    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the key's position in a walk over its slot.
    pub fn scan_position(&self) -> ScanPosition {
        ScanPosition::of_hash(self.hash).in_database(self.database)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a key of the slot of `{a}` whose last eight bytes are the constant by which foldhash, left at its
    /// defaults, multiplies the rest of the key: the rest then no longer influences the hash.
    pub(crate) fn alike(number: u32) -> Vec<u8> {
        const FOLDHASH_CONSTANT: u64 = 0x3F84_D5B5_B547_0917;
        [b"{a}:", &number.to_be_bytes()[..], &FOLDHASH_CONSTANT.to_ne_bytes()].concat()
    }

    fn different_hashes(seed: &Seed) -> usize {
        let mut hashes: Vec<u64> = (0..1_000).map(|number| seed.hash(&alike(number))).collect();
        hashes.sort_unstable();
        hashes.dedup();
        hashes.len()
    }

    #[test]
    fn no_two_keys_of_any_databases_have_the_same_name() {
        let seed = Seed::new(7);
        let texts: [&[u8]; 11] = [
            b"",
            b"k",
            b"\xFF",
            b"\xFF\xFF",
            b"\xFF\xFF\xFF",
            b"\xFF\0",
            b"\xFF\0\0",
            b"\xFF\0\x03k",
            b"\xFF\x27\x0Fk",
            b"\xFF\x27\x10k",
            b"\0\x03k",
        ];
        let mut names = std::collections::BTreeSet::new();
        for number in [0, 1, 3, 255, 256, 9_999] {
            let database = Database::new(number).expect("small enough");
            for bytes in texts {
                let key = seed.key(bytes).in_database(database);
                let name = key.name();
                let back = seed.named(&name);
                assert_eq!((back.database(), back.bytes()), (database, bytes));
                assert_eq!((back.slot(), back.hash()), (key.slot(), key.hash()));
                assert!(names.insert(name.into_owned()), "{number} {bytes:?}");
            }
        }
        assert_eq!(seed.key(b"k").name(), Cow::Borrowed(b"k"), "nothing is copied");
        assert!(Database::new(10_000).is_none());
    }

    #[test]
    fn nobody_makes_keys_that_hash_alike_under_every_seed() {
        assert_eq!(different_hashes(&Seed::weak()), 1);
        for seed in [0, 1, 42, u64::MAX] {
            assert_eq!(different_hashes(&Seed::new(seed)), 1_000);
        }
    }
}

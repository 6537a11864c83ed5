//! A fingerprint of content: equal for equal keys, values and expiry times, regardless of the order, the hash seed
//! and the versions. Used by `DEBUG DIGEST`, and in tests that compare two copies.

use core::hash::{BuildHasher, Hasher};

use containers::{Stream, StreamPosition, deadline_of};

use crate::hash_value::pair;
use crate::{Found, HashValue, ListValue, SetValue, SlotTable, SortedSetValue, StoredValue};

/// Length of the portions in which a stream is hashed. A part of the fingerprint.
const STREAM_PORTION_BYTES: usize = 64 * 1024;

/// The fingerprint of a set of items: 128 bits, combined independently of the order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digest(pub [u64; 2]);

impl Digest {
    pub fn add(&mut self, other: Digest) {
        for (sum, term) in self.0.iter_mut().zip(other.0) {
            *sum = sum.wrapping_add(term);
        }
    }

    /// Returns the fingerprint of one item.
    pub fn of_item(found: &Found<'_>) -> Digest {
        Digest([1, 2].map(|seed| {
            let mut hasher = foldhash::quality::FixedState::with_seed(seed).build_hasher();
            let key = &*found.name();
            hasher.write_usize(key.len());
            hasher.write(key);
            match found.value() {
                StoredValue::String(string) => hasher.write(&string.to_bytes()),
                StoredValue::Hash(hash) => hasher.write_u64(sum_of_pairs(hash, seed)),
                StoredValue::List(list) => write_elements(list, &mut hasher),
                StoredValue::SortedSet(set) => hasher.write_u64(sum_of_scores(set, seed)),
                StoredValue::Set(set) => hasher.write_u64(sum_of_members(set, seed)),
                StoredValue::Stream(stream) => write_stream(stream, &mut hasher),
            }
            hasher.write_u64(found.expires_at.map_or(0, |at| at.0));
            hasher.finish()
        }))
    }
}

/// Returns the fingerprint of a hash, independent of the order of its fields.
fn sum_of_pairs(hash: HashValue<'_>, seed: u64) -> u64 {
    let state = foldhash::quality::FixedState::with_seed(!seed);
    hash.entries().fold(0, |sum: u64, entry| {
        let mut hasher = state.build_hasher();
        let (field, value) = pair(entry);
        hasher.write_u64(deadline_of(entry).unwrap_or(0));
        hasher.write_usize(field.len());
        field.with_text(|text| hasher.write(text));
        value.with_text(|text| hasher.write(text));
        sum.wrapping_add(hasher.finish())
    })
}

fn write_elements(list: ListValue<'_>, hasher: &mut impl Hasher) {
    for element in list.iter_from(0) {
        hasher.write_usize(element.len());
        element.with_text(|text| hasher.write(text));
    }
}

/// Returns the fingerprint of a sorted set. Its members are always in the same order, but a copy may have lost the sign of
/// a zero: a packed set has none.
fn sum_of_scores(set: SortedSetValue<'_>, seed: u64) -> u64 {
    let state = foldhash::quality::FixedState::with_seed(seed.rotate_left(32));
    let mut hasher = state.build_hasher();
    for it in set.iter_from(0) {
        hasher.write_u64((it.score.get() + 0.0).to_bits());
        hasher.write_usize(it.member.len());
        it.member.with_text(|text| hasher.write(text));
    }
    hasher.finish()
}

/// Writes a stream and its groups, portion by portion: its records do not depend on its blocks.
fn write_stream(stream: &Stream, hasher: &mut impl Hasher) {
    let mut portion = Vec::new();
    let mut position = Some(StreamPosition::Start);
    while let Some(from) = position {
        position = stream.copy_some(&from, STREAM_PORTION_BYTES, &mut portion);
        hasher.write(&portion);
        portion.clear();
    }
}

/// Returns the fingerprint of a set, independent of the order of its members.
fn sum_of_members(set: SetValue<'_>, seed: u64) -> u64 {
    // Another seed than that of hashes, so that a set never looks like one.
    let state = foldhash::quality::FixedState::with_seed(seed ^ 0x5E75);
    set.members().fold(0, |sum: u64, member| {
        let mut hasher = state.build_hasher();
        member.with_text(|text| hasher.write(text));
        sum.wrapping_add(hasher.finish())
    })
}

/// Returns the fingerprint of a slot's content.
pub fn digest_of(table: &SlotTable) -> Digest {
    let mut sum = Digest::default();
    table.for_each(|found| sum.add(Digest::of_item(&found)));
    sum
}

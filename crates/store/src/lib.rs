//! The data of a node: one table per slot, the items in it, their expiry and eviction.
//!
//! No locks and no clock: the caller holds the slot's lock and provides the time, the hash seed and the random
//! numbers. `commands` produces an [`Effect`] and [`SlotTable::apply`] applies it; a backup applies the same
//! effects with the same function.
//!
//! Read `effect.rs` first (everything that can change a slot), then `slot_table.rs` (one slot),
//! `databases.rs`, `index.rs` and `segment.rs` (how a key is found), `item.rs` (one item's bytes; the `unsafe`).
mod effect; //      All kinds of changes of a slot.
mod slot_table; //  One slot: its index, version, expiry, counters. `apply` is the only way to change it.
mod change; //      `apply`, effect by effect.
mod databases; //   The index of a slot: one for each database that has items.
mod index; //       Finds items by hash: one segment, or a directory of them.
mod segment; //     A sorted open-addressing table of 8-byte entries, with expiry times beside it.
mod item; //        One item in one heap block.
mod value; //       A value as it is read, and as it is written.
mod hash_value; //  A hash as it is read.
mod extras; //      The parts of a slot that few slots have.
mod field_deadlines; // The hashes of a slot whose fields expire.
mod list_value; //  A list as it is read.
mod list_ranges; // Ranges of a list's indices.
mod sorted_value; // A sorted set as it is read.
mod set_value; //   A set as it is read.
mod key; //         A key with its slot and hash; the hash seed.
mod version; //     Time and versions: the hybrid logical clock.
mod access; //      Time and frequency of an item's use: LRU and LFU.
mod evict; //       Chooses the keys to evict when memory is short.
mod encoding; //    Encodes items and effects as bytes.
mod recorded; //    An effect with its position in the history of its slot.
mod copy; //        Replaces a slot's content by a copy from another node.
mod divergence; //     Tombstones of removals since a split of the cluster.
mod digest; //      A fingerprint of content, independent of order and seed.
mod prefetch; //    Prefetches a cache line before it is needed.

pub use access::{AccessMark, AccessTracking, LfuTuning, Touch};
pub use containers::{
    Consumer, Element, Group, MalformedRow, PendingEntry, Row, Score, ScoredMember, ScoredRow,
    Stream, StreamEntry, StreamId, StreamPosition, StreamRecord, StreamRecords, Table,
    TablePosition, block_bytes, compare_texts, deadline_of, with_deadline, write_field,
};
pub use databases::DatabaseSize;
pub use digest::{Digest, digest_of};
pub use divergence::{DivergenceLog, Tombstone};
pub use effect::{Cause, Effect};
pub use encoding::{
    DecodeError, DecodedItem, ItemExtent, decode_effect, decode_item, encode_effect, encode_item,
    encode_item_as, encode_item_in_parts, encode_item_part, encode_item_without_value,
};
pub use evict::{Candidate, EvictionPool, Policy, SAMPLES_MAX};
pub use field_deadlines::{DueFields, DueHashes};
pub use hash_value::{HashValue, LiveHash};
pub use index::At;
pub use item::{ItemRef, SharedValue};
pub use key::{Database, Key, Seed};
pub use list_ranges::ListRanges;
pub use list_value::{ListValue, listpack_entry_len};
pub use prefetch::prefetch;
pub use recorded::Recorded;
pub use set_value::SetValue;
pub use slot_table::{
    Applied, Expired, Found, Garbage, Items, SHARED_FROM_BYTES, ScanPosition, SlotTable,
};
pub use sorted_value::SortedSetValue;
pub use value::{Encoding, NewValue, StoredValue, StringValue};
pub use version::{LEAD_MAX_MILLIS, UnixMillis, Version};

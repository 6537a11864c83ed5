//! Data structures of hashes, lists, sets, sorted sets and streams: pure memory, without keys, versions and locks.
//!
//! Everything is made of [`Element`]s in packed form. A small container is one row of them ([`Row`]), which `store`
//! keeps in the block of its key. A large one is a [`Table`], a [`List`] or a [`SortedSet`], and every stream is a
//! [`Stream`]: many small blocks, so that no operation moves more than a few kilobytes, and the container can be
//! copied and freed in portions (docs/decisions/0027).
//!
//! Every structure knows its exact memory in the allocator. Hash functions and random numbers come from the caller.
mod element; //  One element as bytes.
mod row; //      Elements in a row: the form of small containers, and of all containers on the wire.
mod deadline; // The time at which a field of a hash expires.
mod table; //    Entries found by their first element: large hashes and sets, the members of a sorted set.
mod bucket; //   One bucket of a table.
mod sequence; // Entries found by index or by comparison: lists, the order of a sorted set.
mod list; //     A large list.
mod sorted; //   A large sorted set.
mod scored_row; // A small sorted set in a row.
mod score; //    A score as an element, and the order of scores.
mod stream; //   A stream and its consumer groups.
mod stream_id; // The id of a stream's entry.
mod id_map; //   Entries found by their ids: those of streams, and pending ones.
mod varint; //   Numbers of seven bits a byte.
mod block; //    A growing block of bytes.
mod memory; //   The real size of a block in the allocator.

#[cfg(test)]
mod testing;

pub use deadline::{deadline_of, earliest_of, with_deadline, write_field};
pub use element::Element;
pub use list::List;
pub use memory::block_bytes;
pub use row::{Entries, MalformedRow, Row};
pub use score::Score;
pub use scored_row::ScoredRow;
pub use sequence::Sequence;
pub use sorted::{ScoredMember, SortedSet, compare_texts};
pub use stream::{
    Consumer, Group, PendingEntry, Stream, StreamEntry, StreamPosition, StreamRecord, StreamRecords,
};
pub use stream_id::StreamId;
pub use table::{HashBytes, Table, TablePosition};

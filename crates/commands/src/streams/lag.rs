//! The number of entries that a group has read of all that were ever added, and of those that it has not read yet. Like
//! Redis, a stream only counts its entries: where entries were deleted in the middle, the numbers are unknown.

use store::{Group, Stream, StreamId};

fn first_id(stream: &Stream) -> StreamId {
    stream.first().map_or(StreamId::MIN, |entry| entry.id())
}

/// Returns whether an entry that was deleted may lie behind an id.
fn has_deletions_from(stream: &Stream, id: StreamId) -> bool {
    !stream.is_empty() && stream.max_deleted() != StreamId::MIN && id <= stream.max_deleted()
}

/// Returns the counter of a group behind its next entry, which has this id.
pub(super) fn read_after(
    stream: &Stream,
    last_id: StreamId,
    read: Option<u64>,
    id: StreamId,
) -> Option<u64> {
    let is_counted = last_id >= first_id(stream) && !has_deletions_from(stream, last_id);
    if let Some(read) = read.filter(|_| is_counted) {
        return Some(read.wrapping_add(1));
    }
    if stream.entries_added() > 0 { distance_from_first(stream, id) } else { read }
}

/// Returns the number of entries that a group has not read yet, if it is known.
pub(super) fn lag(stream: &Stream, group: &Group) -> Option<i64> {
    if stream.entries_added() == 0 {
        return Some(0);
    }
    let is_counted = !has_deletions_from(stream, group.last_id());
    let read = group.entries_read().filter(|_| is_counted);
    let read = read.or_else(|| distance_from_first(stream, group.last_id()));
    read.map(|read| stream.entries_added().wrapping_sub(read).cast_signed())
}

/// Returns the number of entries ever added up to an id, if it is known: only for ids at the ends.
pub(crate) fn distance_from_first(stream: &Stream, id: StreamId) -> Option<u64> {
    let (added, len) = (stream.entries_added(), stream.len() as u64);
    if added == 0 {
        return Some(0);
    }
    if stream.is_empty() && id <= stream.last_id() {
        return Some(added);
    }
    if id != StreamId::MIN && id < stream.max_deleted() {
        return None;
    }
    if id >= stream.last_id() {
        return (id == stream.last_id()).then_some(added);
    }
    let first = first_id(stream);
    let is_whole = stream.max_deleted() == StreamId::MIN || stream.max_deleted() < first;
    if !is_whole || id > first {
        return None;
    }
    Some(added.wrapping_sub(len).wrapping_add(u64::from(id == first)))
}

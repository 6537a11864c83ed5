//! All kinds of changes of a slot. A command produces effects, the primary applies them and sends them to the
//! backups, and a backup applies them in the same way: an effect depends on no clock, no random number, and nothing
//! but the slot's content.

use crate::{AccessMark, Database, Key, NewValue, UnixMillis};

/// One change of one slot.
#[derive(Clone, Debug)]
pub enum Effect<'a> {
    /// Sets the key to this value, with this expiry or none.
    Put { key: Key<'a>, value: NewValue<'a>, expires_at: Option<UnixMillis> },
    /// Appends these bytes to the string.
    Append { key: Key<'a>, tail: &'a [u8] },
    /// Writes these bytes at `offset`, and fills up with zeros before them if the string was shorter.
    Overwrite { key: Key<'a>, offset: usize, bytes: &'a [u8] },
    /// Sets fields of a hash: fields and values in a row (`containers::Row`), with their deadlines. A field given without
    /// a deadline has none afterwards.
    SetFields { key: Key<'a>, pairs: &'a [u8] },
    /// Removes fields of a hash, but not all of them: then the effect is `Remove`.
    RemoveFields { key: Key<'a>, fields: &'a [u8] },
    /// Sets the deadlines of fields of a hash: fields and times in a row; time 0 removes the deadline.
    ExpireFields { key: Key<'a>, deadlines: &'a [u8] },
    /// Inserts the elements of a row into a list, before the element at `index`, or at the end. A missing key becomes a
    /// list.
    InsertElements { key: Key<'a>, index: usize, elements: &'a [u8] },
    /// Replaces the element at `index` of a list by the one in this row.
    SetElement { key: Key<'a>, index: usize, element: &'a [u8] },
    /// Removes elements of a list by their indices (`ListRanges`), but not all of them: then the effect is `Remove`.
    RemoveElements { key: Key<'a>, ranges: &'a [u8] },
    /// Sets scores of members of a sorted set: scores and members in a row (`containers::ScoredRow`).
    SetScores { key: Key<'a>, pairs: &'a [u8] },
    /// Removes members of a sorted set, but not all of them: then the effect is `Remove`.
    RemoveScored { key: Key<'a>, members: &'a [u8] },
    /// Adds members to a set: a row (`containers::Row`).
    AddMembers { key: Key<'a>, members: &'a [u8] },
    /// Removes members of a set, but not all of them: then the effect is `Remove`.
    RemoveMembers { key: Key<'a>, members: &'a [u8] },
    /// Changes a stream: records in a row (`containers::StreamRecords`). A missing key becomes a stream. A stream may be
    /// empty, so no record removes the key.
    ChangeStream { key: Key<'a>, records: &'a [u8] },
    /// Sets or removes the key's expiry time.
    Expire { key: Key<'a>, at: Option<UnixMillis> },
    /// Sets the access mark as `RESTORE` asks; only eviction reads it.
    Mark { key: Key<'a>, mark: AccessMark },
    /// Removes the key.
    Remove { key: Key<'a>, cause: Cause },
    /// Removes all keys of the slot, in all databases.
    Clear,
    /// Exchanges the contents of two databases. Only while no other node has, or had, a copy of the slot
    /// (`ServedSlots::is_alone`).
    SwapDatabases { one: Database, other: Database },
}

impl<'a> Effect<'a> {
    /// Returns the key that the effect changes; `None` if it changes a whole slot.
    #[inline]
    pub fn key(&self) -> Option<Key<'a>> {
        match self {
            Effect::Put { key, .. }
            | Effect::Append { key, .. }
            | Effect::Overwrite { key, .. }
            | Effect::SetFields { key, .. }
            | Effect::RemoveFields { key, .. }
            | Effect::ExpireFields { key, .. }
            | Effect::InsertElements { key, .. }
            | Effect::SetElement { key, .. }
            | Effect::RemoveElements { key, .. }
            | Effect::SetScores { key, .. }
            | Effect::RemoveScored { key, .. }
            | Effect::AddMembers { key, .. }
            | Effect::RemoveMembers { key, .. }
            | Effect::ChangeStream { key, .. }
            | Effect::Expire { key, .. }
            | Effect::Mark { key, .. }
            | Effect::Remove { key, .. } => Some(*key),
            Effect::Clear | Effect::SwapDatabases { .. } => None,
        }
    }
}

/// The reason for a key's removal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    Deleted,
    Expired,
    Evicted,
}

//! Everything that can happen to a slot. A command decides on effects, the primary applies them and
//! sends them on, a backup applies them just the same: nothing in them depends on a clock, on chance
//! or on anything but the slot's content.

use crate::{AccessMark, Key, NewValue, UnixMillis};

/// One change of one slot.
#[derive(Clone, Debug)]
pub enum Effect<'a> {
    /// The key has this value from now on, and this expiry or none.
    Put { key: Key<'a>, value: NewValue<'a>, expires_at: Option<UnixMillis> },
    /// The string has these bytes behind what it had.
    Append { key: Key<'a>, tail: &'a [u8] },
    /// The string has these bytes at `offset`, with zeros before them where it was shorter.
    Overwrite { key: Key<'a>, offset: usize, bytes: &'a [u8] },
    /// The key expires at this time, or no longer.
    Expire { key: Key<'a>, at: Option<UnixMillis> },
    /// The key was used as `RESTORE` says; only eviction cares.
    Mark { key: Key<'a>, mark: AccessMark },
    /// The key is gone.
    Remove { key: Key<'a>, cause: Cause },
    /// All keys of the slot are gone.
    Clear,
}

/// Why a key is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    Deleted,
    Expired,
    Evicted,
}

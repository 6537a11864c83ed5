//! Commands on keys of any type: removing, renaming, expiring, scanning, inspecting them. Each file has the table
//! entries of its commands next to the functions that run them.
pub(crate) mod remove; // DEL, UNLINK, EXISTS, TOUCH, TYPE.
pub(crate) mod rename; // RENAME, RENAMENX, COPY, MOVE.
pub(crate) mod swap; //   SWAPDB.
pub(crate) mod expire; // EXPIRE, TTL and their variants, PERSIST.
pub(crate) mod scan; //   KEYS, SCAN.
pub(crate) mod dump; //   DUMP, RESTORE.
pub(crate) mod object; // OBJECT.
pub(crate) mod whole; //  DBSIZE, RANDOMKEY, FLUSHALL, FLUSHDB.
pub(crate) mod memory; // MEMORY.
pub(crate) mod debug; //  DEBUG.
pub(crate) mod wait; //   WAIT.
pub(crate) mod walk; //   Iterates over the occupied slots.

use store::StoredValue;

pub(crate) use expire::ExpireCondition;
pub(crate) use scan::{PageOptions, parse_cursor, reply_page};

/// Returns the type name that `TYPE` returns and `SCAN ... TYPE` filters by.
fn type_name(value: StoredValue<'_>) -> &'static str {
    match value {
        StoredValue::String(_) => "string",
        StoredValue::Hash(_) => "hash",
        StoredValue::List(_) => "list",
        StoredValue::SortedSet(_) => "zset",
        StoredValue::Set(_) => "set",
        StoredValue::Stream(_) => "stream",
    }
}

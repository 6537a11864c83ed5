//! Keys whatever they hold: removing, renaming, expiring, walking over them, looking into them.
//! Each file has the table entries of its commands beside the functions that run them.
pub(crate) mod remove; // DEL, UNLINK, EXISTS, TOUCH, TYPE.
pub(crate) mod rename; // RENAME, RENAMENX, COPY.
pub(crate) mod expire; // EXPIRE and its kin, TTL and its kin, PERSIST.
pub(crate) mod scan; //   KEYS, SCAN.
pub(crate) mod dump; //   DUMP, RESTORE.
pub(crate) mod object; // OBJECT.
pub(crate) mod whole; //  DBSIZE, RANDOMKEY, FLUSHALL, FLUSHDB.
pub(crate) mod memory; // MEMORY.
pub(crate) mod debug; //  DEBUG.
pub(crate) mod wait; //   WAIT.
mod walk; //              From one occupied slot to the next.

use store::Value;

/// What `TYPE` says of a value, and `SCAN ... TYPE` asks for.
fn type_name(value: Value<'_>) -> &'static str {
    match value {
        Value::Bytes(_) | Value::Integer(_) | Value::Shared(_) => "string",
    }
}

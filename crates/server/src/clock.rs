//! The time of day, read in one place and handed on as a value.

use std::time::{SystemTime, UNIX_EPOCH};

use store::UnixMillis;

pub(crate) fn now() -> UnixMillis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

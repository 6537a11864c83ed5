//! Changes of streams: records applied to a structure of its own, which even a stream without entries has.

use containers::{Stream, StreamRecords};

use super::{ChangeInProgress, GARBAGE_FROM_BYTES};
use crate::slot_table::{Garbage, SlotTable};
use crate::value::ItemValue;
use crate::{Key, StoredValue};

impl SlotTable {
    /// Applies records to a stream. A missing key, or one of another type, becomes a new stream.
    pub(super) fn change_stream(
        &mut self,
        change: &mut ChangeInProgress<'_>,
        key: &Key<'_>,
        records: &[u8],
    ) {
        let records = StreamRecords::new(records);
        let new = || ItemValue::Stream(Box::new(Stream::of(records)));
        let Some(at) = self.locate(key) else {
            self.insert(change, key, new());
            return;
        };
        if !matches!(self.index.item(at).value(), StoredValue::Stream(_)) {
            self.replace(change, at, new());
            return;
        }
        self.index.change(at, |item| {
            change.edit(item, |change, item| {
                let stream = item.stream_mut().expect("the type was checked");
                let removed = stream.change(records);
                if removed.bytes() >= GARBAGE_FROM_BYTES {
                    change.garbage = Some(Garbage::Stream(Box::new(removed)));
                }
                change.stamp(item);
            });
        });
    }
}

/// A stream in the form in which an item keeps it.
pub(super) fn stream_value<'a>(records: &[u8]) -> ItemValue<'a> {
    ItemValue::Stream(Box::new(Stream::of(StreamRecords::new(records))))
}

#[cfg(test)]
mod tests;

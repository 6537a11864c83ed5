//! Items of a stopped node: those that no other node may have, or that the node wants to return with. The file
//! holds the map, then for each slot its position, its divergence record (`DivergenceLog`) and its items.
//!
//! The thread that stops the node writes them when nothing changes any more; they are read before the node
//! joins. As in a fill, items carry their version, expiry and access mark.

use std::io;

use cluster::map::{ClusterId, LogIndex, Map};
use cluster::replication::Position;
use placement::{Hashmask, Slot};
use serde::{Deserialize, Serialize};
use store::{
    DecodeError, DecodedItem, DivergenceLog, ItemExtent, SlotTable, Version, decode_item,
    encode_item_in_parts,
};

use super::directory::{Directory, ReplacementFile};
use super::record::{Magic, NextRecord, RecordsReader, RecordsWriter};
use super::{Damage, DiskError};

pub(super) const FILE: &str = "items";
const MAGIC: Magic = *b"OCITEM01";

/// Target size of a record of items. A larger string has a record of its own, a larger hash has several.
const RECORD_BYTES: usize = 64 * 1024;

/// The cluster, map and buckets that the items belong to.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(crate) struct ItemsHead {
    pub(crate) cluster: ClusterId,
    /// The map, including its generation.
    pub(crate) map: Map,
    /// The buckets that are complete here.
    pub(crate) held: Vec<Hashmask>,
}

/// Tags: all records but the first begin with one of these.
const SLOT: u8 = 1;
const ITEMS: u8 = 2;
const END: u8 = 3;
const PARTING: u8 = 4;

/// Content of a `SLOT` record.
#[derive(Serialize, Deserialize)]
struct SlotHead {
    slot: u16,
    reign: LogIndex,
    version: u64,
}

pub(crate) struct ItemsWriter<D: Directory> {
    writer: RecordsWriter<D::Replacement>,
    /// The current record of items, with its tag.
    items: Vec<u8>,
    count: u64,
}

impl<D: Directory> ItemsWriter<D> {
    pub(super) fn begin(files: &D, head: &ItemsHead) -> io::Result<ItemsWriter<D>> {
        let mut writer = RecordsWriter::begin(files, FILE, MAGIC)?;
        writer.put(&postcard::to_allocvec(head).expect("a map can be written"))?;
        Ok(ItemsWriter { writer, items: vec![ITEMS], count: 0 })
    }

    /// Writes a slot. A slot that was never written to may be left out.
    pub(crate) fn slot(&mut self, slot: Slot, at: Position, table: &SlotTable) -> io::Result<()> {
        let head = SlotHead { slot: slot.number(), reign: at.reign, version: at.version.0 };
        self.put_tagged(SLOT, &head)?;
        if let Some(divergence) = table.divergence() {
            self.put_divergence(divergence)?;
        }
        let mut result = Ok(());
        table.for_each(|found| {
            let (writer, count) = (&mut self.writer, &mut self.count);
            *count += 1;
            encode_item_in_parts(&found, &mut self.items, |items| {
                if result.is_ok() && items.len() >= RECORD_BYTES {
                    result = put_items(writer, items);
                }
            });
        });
        result?;
        put_items(&mut self.writer, &mut self.items)
    }

    /// Puts the file in place. Returns the number of items. Until then nothing has changed.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        let count = self.count;
        self.put_tagged(END, &count)?;
        self.writer.finish()?;
        Ok(count)
    }

    fn put_divergence(&mut self, divergence: &DivergenceLog) -> io::Result<()> {
        let mut after = None;
        loop {
            let mut record = vec![PARTING];
            after = divergence.encode(after.as_deref(), RECORD_BYTES, &mut record);
            self.writer.put(&record)?;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    fn put_tagged(&mut self, tag: u8, content: &impl Serialize) -> io::Result<()> {
        let record = postcard::to_extend(content, vec![tag]).expect("numbers can be written");
        self.writer.put(&record)
    }
}

/// Writes a record of items, and leaves its tag for the next one.
fn put_items<R: ReplacementFile>(
    writer: &mut RecordsWriter<R>,
    items: &mut Vec<u8>,
) -> io::Result<()> {
    if items.len() > 1 {
        writer.put(items)?;
    }
    items.truncate(1);
    Ok(())
}

/// Receiver of the items read.
pub(crate) trait TakeItems {
    /// Begins a slot: it is empty, and at this position.
    fn slot(&mut self, slot: Slot, at: Position);

    /// Takes a piece of the current slot's divergence record. Refuses a piece that is invalid.
    fn divergence(&mut self, slot: Slot, piece: &[u8]) -> Result<(), DecodeError>;

    /// Takes an item of the current slot, or a further part of one.
    fn item(&mut self, slot: Slot, item: &DecodedItem<'_>);
}

pub(crate) struct ItemsReader<D: Directory> {
    reader: RecordsReader<D::Reader>,
    head: ItemsHead,
}

impl<D: Directory> ItemsReader<D> {
    /// Opens the file. Returns `None` if there is none.
    pub(super) fn open(files: &D) -> Result<Option<ItemsReader<D>>, DiskError> {
        let Some(mut reader) = RecordsReader::open(files, FILE, MAGIC)? else { return Ok(None) };
        let head = match reader.next()? {
            NextRecord::Record(record) => postcard::from_bytes(record).ok(),
            NextRecord::End | NextRecord::Torn => return Err(reader.damaged(Damage::CutOff)),
        };
        let head = head.ok_or_else(|| reader.unreadable())?;
        Ok(Some(ItemsReader { reader, head }))
    }

    pub(crate) fn head(&self) -> &ItemsHead {
        &self.head
    }

    /// Reads everything. Returns the number of items. After an error, what was read is correct but incomplete.
    pub(crate) fn read(mut self, to: &mut impl TakeItems) -> Result<u64, DiskError> {
        let mut progress = ReadProgress { slot: None, count: 0 };
        loop {
            let taken = match self.reader.next()? {
                NextRecord::Record(record) => progress.take(record, to),
                // The end is a record too, and nothing follows it.
                NextRecord::End | NextRecord::Torn => {
                    return Err(self.reader.damaged(Damage::CutOff));
                }
            };
            match taken {
                Some(ReadStep::More) => {}
                Some(ReadStep::All) => return Ok(progress.count),
                None => return Err(self.reader.unreadable()),
            }
        }
    }
}

struct ReadProgress {
    slot: Option<Slot>,
    count: u64,
}

enum ReadStep {
    More,
    All,
}

impl ReadProgress {
    /// Takes one record. Returns `None` if the record is invalid here.
    fn take(&mut self, record: &[u8], to: &mut impl TakeItems) -> Option<ReadStep> {
        let (tag, content) = record.split_first()?;
        match *tag {
            SLOT => {
                let head: SlotHead = postcard::from_bytes(content).ok()?;
                let slot = Slot::new(head.slot).filter(|slot| self.slot < Some(*slot))?;
                self.slot = Some(slot);
                to.slot(slot, Position { reign: head.reign, version: Version(head.version) });
                Some(ReadStep::More)
            }
            ITEMS => {
                self.take_items(content, to)?;
                Some(ReadStep::More)
            }
            PARTING => {
                to.divergence(self.slot?, content).ok()?;
                Some(ReadStep::More)
            }
            END => {
                let count: u64 = postcard::from_bytes(content).ok()?;
                (count == self.count).then_some(ReadStep::All)
            }
            _ => None,
        }
    }

    fn take_items(&mut self, mut bytes: &[u8], to: &mut impl TakeItems) -> Option<()> {
        let slot = self.slot?;
        while !bytes.is_empty() {
            let (item, rest) = decode_item(bytes).ok()?;
            if Slot::of(item.key) != slot {
                return None;
            }
            to.item(slot, &item);
            // Further parts of an item are not counted.
            self.count += u64::from(item.extent == ItemExtent::Whole);
            bytes = rest;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;

//! A stream and its changes as bytes: records in a row. Those that set something are the form of a stream in fills,
//! snapshots and copies; together with those that remove something they are the form of its changes. Every record is
//! absolute: applied twice, or before or after a copy of the same part, it gives the same result.
//!
//! Records of consumers and pending entries belong to the group, and to the consumer, that a record before them names.

use crate::row::{MalformedRow, Row};
use crate::stream_id::StreamId;
use crate::varint;

/// One part of a stream, or a change of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamRecord<'a> {
    /// Sets what the stream knows besides its entries.
    Head {
        last_id: StreamId,
        entries_added: u64,
        max_deleted: StreamId,
    },
    /// Adds an entry: its fields and values in a row of pairs.
    Entry {
        id: StreamId,
        pairs: &'a [u8],
    },
    /// Sets a group without its consumers, and names it for the records that follow.
    Group {
        name: &'a [u8],
        last_id: StreamId,
        entries_read: Option<u64>,
    },
    /// Names a group for the records that follow.
    InGroup {
        name: &'a [u8],
    },
    /// Sets a consumer without its pending entries, and names it for the records that follow.
    Consumer {
        name: &'a [u8],
        seen_at: i64,
        active_at: i64,
    },
    /// Names a consumer for the records that follow.
    OfConsumer {
        name: &'a [u8],
    },
    /// Sets a pending entry of the consumer; takes it from another one if needed.
    Pending {
        id: StreamId,
        delivered_at: i64,
        deliveries: u64,
    },
    RemoveEntry {
        id: StreamId,
    },
    /// Removes all entries before this id.
    Trim {
        id: StreamId,
    },
    /// Removes the group.
    RemoveGroup,
    /// Removes the consumer and its pending entries.
    RemoveConsumer,
    /// Removes a pending entry of the group, whoever has it.
    RemovePending {
        id: StreamId,
    },
}

const HEAD: u8 = 1;
const ENTRY: u8 = 2;
const GROUP: u8 = 3;
const IN_GROUP: u8 = 4;
const CONSUMER: u8 = 5;
const OF_CONSUMER: u8 = 6;
const PENDING: u8 = 7;
const REMOVE_ENTRY: u8 = 8;
const TRIM: u8 = 9;
const REMOVE_GROUP: u8 = 10;
const REMOVE_CONSUMER: u8 = 11;
const REMOVE_PENDING: u8 = 12;

impl<'a> StreamRecord<'a> {
    /// Appends the record.
    pub fn write(&self, out: &mut Vec<u8>) {
        match *self {
            StreamRecord::Head { last_id, entries_added, max_deleted } => {
                put_id(out, HEAD, last_id);
                varint::put(out, entries_added);
                put_plain_id(out, max_deleted);
            }
            StreamRecord::Entry { id, pairs } => {
                put_id(out, ENTRY, id);
                varint::put_bytes(out, pairs);
            }
            StreamRecord::Group { name, last_id, entries_read } => {
                put_id(out, GROUP, last_id);
                varint::put_bytes(out, name);
                match entries_read {
                    Some(count) => {
                        out.push(1);
                        varint::put(out, count);
                    }
                    None => out.push(0),
                }
            }
            StreamRecord::InGroup { name } => put_name(out, IN_GROUP, name),
            StreamRecord::Consumer { name, seen_at, active_at } => {
                put_name(out, CONSUMER, name);
                varint::put_signed(out, seen_at);
                varint::put_signed(out, active_at);
            }
            StreamRecord::OfConsumer { name } => put_name(out, OF_CONSUMER, name),
            StreamRecord::Pending { id, delivered_at, deliveries } => {
                put_id(out, PENDING, id);
                varint::put_signed(out, delivered_at);
                varint::put(out, deliveries);
            }
            StreamRecord::RemoveEntry { id } => put_id(out, REMOVE_ENTRY, id),
            StreamRecord::Trim { id } => put_id(out, TRIM, id),
            StreamRecord::RemoveGroup => out.push(REMOVE_GROUP),
            StreamRecord::RemoveConsumer => out.push(REMOVE_CONSUMER),
            StreamRecord::RemovePending { id } => put_id(out, REMOVE_PENDING, id),
        }
    }

    /// Reads a record; returns it and the remaining bytes. `None` if the bytes are incomplete or have no meaning.
    pub fn read(bytes: &'a [u8]) -> Option<(StreamRecord<'a>, &'a [u8])> {
        let (tag, rest) = bytes.split_first()?;
        Some(match *tag {
            HEAD => {
                let (last_id, rest) = read_id(rest)?;
                let (entries_added, rest) = varint::read(rest)?;
                let (max_deleted, rest) = read_id(rest)?;
                (StreamRecord::Head { last_id, entries_added, max_deleted }, rest)
            }
            ENTRY => {
                let (id, rest) = read_id(rest)?;
                let (pairs, rest) = varint::read_bytes(rest)?;
                (StreamRecord::Entry { id, pairs }, rest)
            }
            GROUP => {
                let (last_id, rest) = read_id(rest)?;
                let (name, rest) = varint::read_bytes(rest)?;
                let (entries_read, rest) = read_optional(rest)?;
                (StreamRecord::Group { name, last_id, entries_read }, rest)
            }
            IN_GROUP => {
                let (name, rest) = varint::read_bytes(rest)?;
                (StreamRecord::InGroup { name }, rest)
            }
            CONSUMER => {
                let (name, rest) = varint::read_bytes(rest)?;
                let (seen_at, rest) = varint::read_signed(rest)?;
                let (active_at, rest) = varint::read_signed(rest)?;
                (StreamRecord::Consumer { name, seen_at, active_at }, rest)
            }
            OF_CONSUMER => {
                let (name, rest) = varint::read_bytes(rest)?;
                (StreamRecord::OfConsumer { name }, rest)
            }
            PENDING => {
                let (id, rest) = read_id(rest)?;
                let (delivered_at, rest) = varint::read_signed(rest)?;
                let (deliveries, rest) = varint::read(rest)?;
                (StreamRecord::Pending { id, delivered_at, deliveries }, rest)
            }
            REMOVE_GROUP => (StreamRecord::RemoveGroup, rest),
            REMOVE_CONSUMER => (StreamRecord::RemoveConsumer, rest),
            tag @ (REMOVE_ENTRY | TRIM | REMOVE_PENDING) => {
                let (id, rest) = read_id(rest)?;
                let record = match tag {
                    REMOVE_ENTRY => StreamRecord::RemoveEntry { id },
                    TRIM => StreamRecord::Trim { id },
                    _ => StreamRecord::RemovePending { id },
                };
                (record, rest)
            }
            _ => return None,
        })
    }

    /// Returns whether the record may be a part of a stream, rather than only a change of one.
    fn is_part(&self) -> bool {
        match self {
            StreamRecord::Head { .. }
            | StreamRecord::Entry { .. }
            | StreamRecord::Group { .. }
            | StreamRecord::InGroup { .. }
            | StreamRecord::Consumer { .. }
            | StreamRecord::OfConsumer { .. }
            | StreamRecord::Pending { .. } => true,
            StreamRecord::RemoveEntry { .. }
            | StreamRecord::Trim { .. }
            | StreamRecord::RemoveGroup
            | StreamRecord::RemoveConsumer
            | StreamRecord::RemovePending { .. } => false,
        }
    }
}

/// Records in a row.
#[derive(Clone, Copy)]
pub struct StreamRecords<'a>(&'a [u8]);

impl<'a> StreamRecords<'a> {
    /// Takes bytes that this crate has written, or that a check has accepted.
    pub fn new(bytes: &'a [u8]) -> StreamRecords<'a> {
        StreamRecords(bytes)
    }

    /// Checks a stream, or a part of one, from another node.
    pub fn check_parts(bytes: &'a [u8]) -> Result<StreamRecords<'a>, MalformedRow> {
        let records = StreamRecords::check_changes(bytes)?;
        if records.iter().all(|record| record.is_part()) { Ok(records) } else { Err(MalformedRow) }
    }

    /// Checks changes from another node.
    pub fn check_changes(bytes: &'a [u8]) -> Result<StreamRecords<'a>, MalformedRow> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (record, behind) = StreamRecord::read(rest).ok_or(MalformedRow)?;
            if let StreamRecord::Entry { pairs, .. } = record {
                Row::check(pairs, 2)?;
            }
            rest = behind;
        }
        Ok(StreamRecords(bytes))
    }

    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    pub fn iter(self) -> impl Iterator<Item = StreamRecord<'a>> {
        let mut rest = self.0;
        core::iter::from_fn(move || {
            let (record, behind) = StreamRecord::read(rest)?;
            rest = behind;
            Some(record)
        })
    }
}

fn put_id(out: &mut Vec<u8>, tag: u8, id: StreamId) {
    out.push(tag);
    put_plain_id(out, id);
}

fn put_plain_id(out: &mut Vec<u8>, id: StreamId) {
    varint::put(out, id.ms);
    varint::put(out, id.seq);
}

fn put_name(out: &mut Vec<u8>, tag: u8, name: &[u8]) {
    out.push(tag);
    varint::put_bytes(out, name);
}

fn read_id(bytes: &[u8]) -> Option<(StreamId, &[u8])> {
    let (ms, rest) = varint::read(bytes)?;
    let (seq, rest) = varint::read(rest)?;
    Some((StreamId { ms, seq }, rest))
}

fn read_optional(bytes: &[u8]) -> Option<(Option<u64>, &[u8])> {
    match bytes.split_first()? {
        (0, rest) => Some((None, rest)),
        (1, rest) => varint::read(rest).map(|(number, rest)| (Some(number), rest)),
        _ => None,
    }
}

//! Encodes items and effects as bytes: for links between nodes, fills, snapshots and logs alike.
//!
//! Every item and every effect begins with a tag byte that also identifies the format version; a released format
//! keeps its tag forever, a new one gets a new tag. Numbers are little-endian; lengths are LEB128. Decoding never
//! trusts a length beyond the bytes at hand.

use containers::{Row, ScoredRow, StreamRecords};

use crate::hash_value::{HashValue, PAIR};
use crate::item::ItemRef;
use crate::list_value::ListValue;
use crate::set_value::{MEMBER, SetValue};
use crate::sorted_value::SortedSetValue;
use crate::{
    AccessMark, Cause, Database, Effect, Encoding, Found, Key, ListRanges, NewValue, ScoredMember,
    Seed, StoredValue, Stream, StreamPosition, StringValue, UnixMillis, Version,
};

/// The bytes were not written by this encoding, or are incomplete. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// The bytes end in the middle.
    Truncated,
    /// This version does not know the tag.
    UnknownTag(u8),
    /// A length or number is out of range.
    BadNumber,
}

/// Approximate length of the elements in a part of an item.
const PART_BYTES: usize = 64 * 1024;

const ITEM_V1: u8 = 0x11;
const ITEM_PART_V1: u8 = 0x12;

const PUT_V1: u8 = 0x21;
const APPEND_V1: u8 = 0x22;
const OVERWRITE_V1: u8 = 0x23;
const EXPIRE_V1: u8 = 0x24;
const MARK_V1: u8 = 0x25;
const REMOVE_V1: u8 = 0x26;
const CLEAR_V1: u8 = 0x27;
const SET_FIELDS_V1: u8 = 0x28;
const REMOVE_FIELDS_V1: u8 = 0x29;
const EXPIRE_FIELDS_V1: u8 = 0x2A;
const INSERT_ELEMENTS_V1: u8 = 0x30;
const SET_ELEMENT_V1: u8 = 0x31;
const REMOVE_ELEMENTS_V1: u8 = 0x32;
const SET_SCORES_V1: u8 = 0x2E;
const REMOVE_SCORED_V1: u8 = 0x2F;
const ADD_MEMBERS_V1: u8 = 0x38;
const REMOVE_MEMBERS_V1: u8 = 0x39;
const CHANGE_STREAM_V1: u8 = 0x3C;

const SWAP_DATABASES_V1: u8 = 0x41;

/// Precedes an item or an effect whose key is not in database 0; the number of the database follows.
const IN_DATABASE_V1: u8 = 0x40;

const VALUE_PLAIN: u8 = 0;
const VALUE_RAW: u8 = 1;
const VALUE_INTEGER: u8 = 2;
const VALUE_HASH: u8 = 3;
const VALUE_LIST: u8 = 4;
const VALUE_SORTED_SET: u8 = 6;
const VALUE_SET: u8 = 5;
const VALUE_STREAM: u8 = 7;

/// An item read from a fill or a snapshot.
#[derive(Debug)]
pub struct DecodedItem<'a> {
    pub database: Database,
    pub key: &'a [u8],
    pub value: NewValue<'a>,
    pub version: Version,
    pub mark: AccessMark,
    pub expires_at: Option<UnixMillis>,
    pub extent: ItemExtent,
}

/// The share of an item's value that was encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ItemExtent {
    /// All of it: it replaces a present value.
    Whole,
    /// More elements of a container whose first ones were sent before.
    More,
}

/// Appends an item.
pub fn encode_item(found: &Found<'_>, out: &mut Vec<u8>) {
    encode_item_as(found, found.item.version(), out);
}

/// Appends an item with this version instead of its own.
pub fn encode_item_as(found: &Found<'_>, version: Version, out: &mut Vec<u8>) {
    put_item_head(out, ITEM_V1, found, version);
    put_stored_value(out, found.item);
}

/// Appends an item with an empty value of its type; the value is sent separately.
pub fn encode_item_without_value(found: &Found<'_>, out: &mut Vec<u8>) {
    put_item_head(out, ITEM_V1, found, found.item.version());
    put_string(out, value_tag(found), &[]);
}

/// Appends an item, a large container in several parts, and calls `appended` after each of them.
pub fn encode_item_in_parts(
    found: &Found<'_>,
    out: &mut Vec<u8>,
    mut appended: impl FnMut(&mut Vec<u8>),
) {
    match found.value() {
        StoredValue::List(ListValue::Large(list)) if found.goes_in_parts() => {
            let write = |entry: &[u8], row: &mut Vec<u8>| row.extend_from_slice(entry);
            encode_entries(found, list.entries(), write, out, appended);
        }
        StoredValue::Hash(HashValue::Table(table)) | StoredValue::Set(SetValue::Table(table))
            if found.goes_in_parts() =>
        {
            let write = |entry: &[u8], row: &mut Vec<u8>| row.extend_from_slice(entry);
            encode_entries(found, table.entries(), write, out, appended);
        }
        StoredValue::SortedSet(SortedSetValue::Large(set)) if found.goes_in_parts() => {
            encode_entries(found, set.iter_from(0), ScoredMember::write, out, appended);
        }
        StoredValue::Stream(stream) if found.goes_in_parts() => {
            encode_stream(found, stream, out, appended);
        }
        StoredValue::Hash(_)
        | StoredValue::List(_)
        | StoredValue::Set(_)
        | StoredValue::SortedSet(_)
        | StoredValue::Stream(_)
        | StoredValue::String(_) => {
            encode_item(found, out);
            appended(out);
        }
    }
}

/// Appends the entries of a large container in several parts.
fn encode_entries<E>(
    found: &Found<'_>,
    entries: impl Iterator<Item = E>,
    write: impl Fn(E, &mut Vec<u8>),
    out: &mut Vec<u8>,
    mut appended: impl FnMut(&mut Vec<u8>),
) {
    let mut row = Vec::new();
    let mut extent = ItemExtent::Whole;
    let mut entries = entries.peekable();
    while let Some(entry) = entries.next() {
        write(entry, &mut row);
        if row.len() >= PART_BYTES || entries.peek().is_none() {
            encode_item_part(found, &row, extent, out);
            appended(out);
            row.clear();
            extent = ItemExtent::More;
        }
    }
}

/// Appends the records of a stream in several parts.
fn encode_stream(
    found: &Found<'_>,
    stream: &Stream,
    out: &mut Vec<u8>,
    mut appended: impl FnMut(&mut Vec<u8>),
) {
    let mut records = Vec::new();
    let mut extent = ItemExtent::Whole;
    let mut position = Some(StreamPosition::Start);
    while let Some(from) = position {
        position = stream.copy_some(&from, PART_BYTES, &mut records);
        encode_item_part(found, &records, extent, out);
        appended(out);
        records.clear();
        extent = ItemExtent::More;
    }
}

/// Appends elements of a container: its first ones, which replace a present value, or more of them.
pub fn encode_item_part(found: &Found<'_>, row: &[u8], extent: ItemExtent, out: &mut Vec<u8>) {
    let tag = match extent {
        ItemExtent::Whole => ITEM_V1,
        ItemExtent::More => ITEM_PART_V1,
    };
    put_item_head(out, tag, found, found.item.version());
    put_string(out, value_tag(found), row);
}

/// Returns the tag of a value of the item's type; of a string, the one that any string may have.
fn value_tag(found: &Found<'_>) -> u8 {
    match found.value() {
        StoredValue::String(_) => VALUE_RAW,
        StoredValue::Hash(_) => VALUE_HASH,
        StoredValue::List(_) => VALUE_LIST,
        StoredValue::Set(_) => VALUE_SET,
        StoredValue::SortedSet(_) => VALUE_SORTED_SET,
        StoredValue::Stream(_) => VALUE_STREAM,
    }
}

fn put_item_head(out: &mut Vec<u8>, tag: u8, found: &Found<'_>, version: Version) {
    let item = found.item;
    put_database(out, found.database);
    out.push(tag);
    put_u64(out, version.0);
    put_varint(out, u64::from(item.mark().0));
    put_expiry(out, found.expires_at);
    put_bytes(out, item.key());
}

/// Reads an item; returns it and the remaining bytes.
pub fn decode_item(bytes: &[u8]) -> Result<(DecodedItem<'_>, &[u8]), DecodeError> {
    let mut input = ByteReader(bytes);
    let database = input.database()?;
    let extent = match input.u8()? {
        ITEM_V1 => ItemExtent::Whole,
        ITEM_PART_V1 => ItemExtent::More,
        tag => return Err(DecodeError::UnknownTag(tag)),
    };
    let version = Version(input.u64()?);
    let mark = input.mark()?;
    let expires_at = input.expiry()?;
    let key = input.bytes()?;
    let value = input.value()?;
    Ok((DecodedItem { database, key, value, version, mark, expires_at, extent }, input.0))
}

/// Appends an effect.
pub fn encode_effect(effect: &Effect<'_>, out: &mut Vec<u8>) {
    match effect {
        Effect::Put { key, value, expires_at } => {
            put_tag_key(out, PUT_V1, key);
            put_expiry(out, *expires_at);
            put_new_value(out, value);
        }
        Effect::Append { key, tail } => put_key_bytes(out, APPEND_V1, key, tail),
        Effect::Overwrite { key, offset, bytes } => {
            put_tag_key(out, OVERWRITE_V1, key);
            put_varint(out, *offset as u64);
            put_bytes(out, bytes);
        }
        Effect::SetFields { key, pairs } => put_key_bytes(out, SET_FIELDS_V1, key, pairs),
        Effect::RemoveFields { key, fields } => put_key_bytes(out, REMOVE_FIELDS_V1, key, fields),
        Effect::ExpireFields { key, deadlines } => {
            put_key_bytes(out, EXPIRE_FIELDS_V1, key, deadlines);
        }
        Effect::InsertElements { key, index, elements } => {
            put_tag_key(out, INSERT_ELEMENTS_V1, key);
            put_varint(out, *index as u64);
            put_bytes(out, elements);
        }
        Effect::SetElement { key, index, element } => {
            put_tag_key(out, SET_ELEMENT_V1, key);
            put_varint(out, *index as u64);
            put_bytes(out, element);
        }
        Effect::RemoveElements { key, ranges } => {
            put_key_bytes(out, REMOVE_ELEMENTS_V1, key, ranges);
        }
        Effect::SetScores { key, pairs } => put_key_bytes(out, SET_SCORES_V1, key, pairs),
        Effect::RemoveScored { key, members } => put_key_bytes(out, REMOVE_SCORED_V1, key, members),
        Effect::AddMembers { key, members } => put_key_bytes(out, ADD_MEMBERS_V1, key, members),
        Effect::RemoveMembers { key, members } => {
            put_key_bytes(out, REMOVE_MEMBERS_V1, key, members);
        }
        Effect::ChangeStream { key, records } => put_key_bytes(out, CHANGE_STREAM_V1, key, records),
        Effect::Expire { key, at } => {
            put_tag_key(out, EXPIRE_V1, key);
            put_expiry(out, *at);
        }
        Effect::Mark { key, mark } => {
            put_tag_key(out, MARK_V1, key);
            put_varint(out, u64::from(mark.0));
        }
        Effect::Remove { key, cause } => {
            put_tag_key(out, REMOVE_V1, key);
            out.push(match cause {
                Cause::Deleted => 0,
                Cause::Expired => 1,
                Cause::Evicted => 2,
            });
        }
        Effect::Clear => out.push(CLEAR_V1),
        Effect::SwapDatabases { one, other } => {
            out.push(SWAP_DATABASES_V1);
            out.extend_from_slice(&one.number().to_le_bytes());
            out.extend_from_slice(&other.number().to_le_bytes());
        }
    }
}

/// Reads an effect; returns it and the remaining bytes.
pub fn decode_effect<'a>(
    bytes: &'a [u8],
    seed: &Seed,
) -> Result<(Effect<'a>, &'a [u8]), DecodeError> {
    let mut input = ByteReader(bytes);
    let database = input.database()?;
    let key = |input: &mut ByteReader<'a>| {
        Ok::<_, DecodeError>(seed.key(input.bytes()?).in_database(database))
    };
    let effect = match input.u8()? {
        PUT_V1 => {
            let key = key(&mut input)?;
            let expires_at = input.expiry()?;
            Effect::Put { key, expires_at, value: input.value()? }
        }
        APPEND_V1 => Effect::Append { key: key(&mut input)?, tail: input.bytes()? },
        OVERWRITE_V1 => {
            let key = key(&mut input)?;
            let offset = usize::try_from(input.varint()?).ok().filter(|at| *at <= OFFSET_MAX);
            let offset = offset.ok_or(DecodeError::BadNumber)?;
            Effect::Overwrite { key, offset, bytes: input.bytes()? }
        }
        SET_FIELDS_V1 => Effect::SetFields { key: key(&mut input)?, pairs: input.fields()? },
        REMOVE_FIELDS_V1 => Effect::RemoveFields { key: key(&mut input)?, fields: input.row(1)? },
        EXPIRE_FIELDS_V1 => {
            Effect::ExpireFields { key: key(&mut input)?, deadlines: input.row(PAIR)? }
        }
        INSERT_ELEMENTS_V1 => {
            let (key, index) = (key(&mut input)?, input.index()?);
            Effect::InsertElements { key, index, elements: input.row(1)? }
        }
        SET_ELEMENT_V1 => {
            let (key, index) = (key(&mut input)?, input.index()?);
            Effect::SetElement { key, index, element: input.one_element()? }
        }
        REMOVE_ELEMENTS_V1 => {
            Effect::RemoveElements { key: key(&mut input)?, ranges: input.list_ranges()? }
        }
        SET_SCORES_V1 => Effect::SetScores { key: key(&mut input)?, pairs: input.scored_row()? },
        REMOVE_SCORED_V1 => Effect::RemoveScored { key: key(&mut input)?, members: input.row(1)? },
        ADD_MEMBERS_V1 => Effect::AddMembers { key: key(&mut input)?, members: input.row(MEMBER)? },
        REMOVE_MEMBERS_V1 => {
            Effect::RemoveMembers { key: key(&mut input)?, members: input.row(MEMBER)? }
        }
        EXPIRE_V1 => Effect::Expire { key: key(&mut input)?, at: input.expiry()? },
        MARK_V1 => Effect::Mark { key: key(&mut input)?, mark: input.mark()? },
        REMOVE_V1 => Effect::Remove { key: key(&mut input)?, cause: input.cause()? },
        // Effects without a key have no database before them.
        CLEAR_V1 if database == Database::ZERO => Effect::Clear,
        SWAP_DATABASES_V1 if database == Database::ZERO => {
            Effect::SwapDatabases { one: input.database_number()?, other: input.database_number()? }
        }
        CHANGE_STREAM_V1 => {
            Effect::ChangeStream { key: key(&mut input)?, records: input.stream_changes()? }
        }
        tag => return Err(DecodeError::UnknownTag(tag)),
    };
    Ok((effect, input.0))
}

/// Maximum length of a string, so no effect writes beyond it. A backup refuses a larger offset, so
/// `proto-max-bulk-len` must not allow longer strings (`settings/src/table.rs`, `BULK`).
const OFFSET_MAX: usize = 512 * 1024 * 1024;

pub(crate) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits at a time")]
fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends an effect that is a key and bytes.
fn put_key_bytes(out: &mut Vec<u8>, tag: u8, key: &Key<'_>, bytes: &[u8]) {
    put_tag_key(out, tag, key);
    put_bytes(out, bytes);
}

#[inline]
fn put_database(out: &mut Vec<u8>, database: Database) {
    if database != Database::ZERO {
        out.push(IN_DATABASE_V1);
        out.extend_from_slice(&database.number().to_le_bytes());
    }
}

fn put_tag_key(out: &mut Vec<u8>, tag: u8, key: &Key<'_>) {
    put_database(out, key.database());
    out.push(tag);
    put_bytes(out, key.bytes());
}

/// Appends the expiry time, zero for none: nothing expires in 1970.
fn put_expiry(out: &mut Vec<u8>, expires_at: Option<UnixMillis>) {
    put_varint(out, expires_at.map_or(0, |at| at.0.max(1)));
}

fn put_integer(out: &mut Vec<u8>, number: i64) {
    out.push(VALUE_INTEGER);
    put_u64(out, number.cast_unsigned());
}

fn put_string(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    put_bytes(out, bytes);
}

fn put_new_value(out: &mut Vec<u8>, value: &NewValue<'_>) {
    match value {
        NewValue::Plain(bytes) => put_string(out, VALUE_PLAIN, bytes),
        NewValue::Raw(bytes) => put_string(out, VALUE_RAW, bytes),
        NewValue::Shared(shared) => put_string(out, VALUE_RAW, shared),
        NewValue::Integer(number) => put_integer(out, *number),
        NewValue::Hash(row) => put_string(out, VALUE_HASH, row),
        NewValue::List(row) => put_string(out, VALUE_LIST, row),
        NewValue::SortedSet(row) => put_string(out, VALUE_SORTED_SET, row),
        NewValue::Set(row) => put_string(out, VALUE_SET, row),
        NewValue::Stream(records) => put_string(out, VALUE_STREAM, records),
    }
}

fn put_stored_value(out: &mut Vec<u8>, item: ItemRef<'_>) {
    let tag = if item.encoding() == Encoding::Raw { VALUE_RAW } else { VALUE_PLAIN };
    match item.value() {
        StoredValue::String(StringValue::Bytes(bytes)) => put_string(out, tag, bytes),
        StoredValue::String(StringValue::Shared(shared)) => {
            put_string(out, VALUE_RAW, shared.bytes());
        }
        StoredValue::String(StringValue::Integer(number)) => put_integer(out, number),
        StoredValue::Hash(hash) => {
            out.push(VALUE_HASH);
            put_varint(out, hash.row_len() as u64);
            hash.write_row(out);
        }
        StoredValue::List(list) => {
            out.push(VALUE_LIST);
            put_varint(out, list.row_len() as u64);
            list.write_row(out);
        }
        StoredValue::SortedSet(set) => {
            out.push(VALUE_SORTED_SET);
            put_varint(out, set.row_len() as u64);
            set.write_row(out);
        }
        StoredValue::Set(set) => {
            out.push(VALUE_SET);
            put_varint(out, set.row_len() as u64);
            set.write_row(out);
        }
        StoredValue::Stream(stream) => {
            let mut records = Vec::new();
            stream.write_records(&mut records);
            put_string(out, VALUE_STREAM, &records);
        }
    }
}

/// The unread bytes.
pub(crate) struct ByteReader<'a>(pub(crate) &'a [u8]);

impl<'a> ByteReader<'a> {
    fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn u64(&mut self) -> Result<u64, DecodeError> {
        let bytes = self.take(size_of::<u64>())?;
        Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes were taken")))
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut number = 0u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7F);
            if bits.leading_zeros() < shift && bits << shift >> shift != bits {
                return Err(DecodeError::BadNumber);
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DecodeError::BadNumber)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(DecodeError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = usize::try_from(self.varint()?).map_err(|_| DecodeError::BadNumber)?;
        self.take(len)
    }

    /// Reads a row of entries with `width` elements.
    fn row(&mut self, width: usize) -> Result<&'a [u8], DecodeError> {
        let bytes = self.bytes()?;
        Row::check(bytes, width).map(Row::bytes).map_err(|_| DecodeError::BadNumber)
    }

    /// Reads a row of fields and values, with their deadlines.
    fn fields(&mut self) -> Result<&'a [u8], DecodeError> {
        let bytes = self.bytes()?;
        Row::check_fields(bytes).map(Row::bytes).map_err(|_| DecodeError::BadNumber)
    }

    /// Reads the index of an element.
    fn index(&mut self) -> Result<usize, DecodeError> {
        usize::try_from(self.varint()?).map_err(|_| DecodeError::BadNumber)
    }

    /// Reads a row of exactly one element.
    fn one_element(&mut self) -> Result<&'a [u8], DecodeError> {
        let row = self.row(1)?;
        if Row::new(row, 1).len() == 1 { Ok(row) } else { Err(DecodeError::BadNumber) }
    }

    /// Reads ranges of indices.
    fn list_ranges(&mut self) -> Result<&'a [u8], DecodeError> {
        let row = self.bytes()?;
        if ListRanges::is_valid(row) { Ok(row) } else { Err(DecodeError::BadNumber) }
    }

    /// Reads a row of scores and members.
    fn scored_row(&mut self) -> Result<&'a [u8], DecodeError> {
        let bytes = self.bytes()?;
        ScoredRow::check(bytes).map(ScoredRow::bytes).map_err(|_| DecodeError::BadNumber)
    }

    /// Reads a stream, or a part of one.
    fn stream_parts(&mut self) -> Result<&'a [u8], DecodeError> {
        let records = StreamRecords::check_parts(self.bytes()?);
        records.map(StreamRecords::bytes).map_err(|_| DecodeError::BadNumber)
    }

    /// Reads changes of a stream.
    fn stream_changes(&mut self) -> Result<&'a [u8], DecodeError> {
        let records = StreamRecords::check_changes(self.bytes()?);
        records.map(StreamRecords::bytes).map_err(|_| DecodeError::BadNumber)
    }

    pub(crate) fn flag(&mut self) -> Result<bool, DecodeError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            tag => Err(DecodeError::UnknownTag(tag)),
        }
    }

    /// Reads the database before an item or an effect: 0 if there is none.
    fn database(&mut self) -> Result<Database, DecodeError> {
        if self.0.first() != Some(&IN_DATABASE_V1) {
            return Ok(Database::ZERO);
        }
        self.take(1)?;
        let database = self.database_number()?;
        if database == Database::ZERO { Err(DecodeError::BadNumber) } else { Ok(database) }
    }

    fn database_number(&mut self) -> Result<Database, DecodeError> {
        let bytes = self.take(size_of::<u16>())?;
        let number = u16::from_le_bytes(bytes.try_into().expect("two bytes were taken"));
        Database::new(number).ok_or(DecodeError::BadNumber)
    }

    fn expiry(&mut self) -> Result<Option<UnixMillis>, DecodeError> {
        Ok(match self.varint()? {
            0 => None,
            at => Some(UnixMillis(at)),
        })
    }

    fn mark(&mut self) -> Result<AccessMark, DecodeError> {
        let bits = u32::try_from(self.varint()?).ok().filter(|bits| bits >> 24 == 0);
        bits.map(AccessMark).ok_or(DecodeError::BadNumber)
    }

    fn cause(&mut self) -> Result<Cause, DecodeError> {
        match self.u8()? {
            0 => Ok(Cause::Deleted),
            1 => Ok(Cause::Expired),
            2 => Ok(Cause::Evicted),
            tag => Err(DecodeError::UnknownTag(tag)),
        }
    }

    fn value(&mut self) -> Result<NewValue<'a>, DecodeError> {
        match self.u8()? {
            VALUE_PLAIN => Ok(NewValue::Plain(self.bytes()?)),
            VALUE_RAW => Ok(NewValue::Raw(self.bytes()?)),
            VALUE_INTEGER => Ok(NewValue::Integer(self.u64()?.cast_signed())),
            VALUE_HASH => Ok(NewValue::Hash(self.fields()?)),
            VALUE_LIST => Ok(NewValue::List(self.row(1)?)),
            VALUE_SORTED_SET => Ok(NewValue::SortedSet(self.scored_row()?)),
            VALUE_SET => Ok(NewValue::Set(self.row(MEMBER)?)),
            VALUE_STREAM => Ok(NewValue::Stream(self.stream_parts()?)),
            tag => Err(DecodeError::UnknownTag(tag)),
        }
    }
}

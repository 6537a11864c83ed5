//! A value in Redis's serialisation format, as DUMP writes it and RESTORE reads it: a type, the value as in an RDB
//! file, the format's version, a checksum.
//!
//! The output is byte for byte that of Redis 7.0, including compression, except that a hash whose fields expire is
//! written as by Redis 8, because Redis 7.0 has no form for it; the input may come from Redis up to 8 and Valkey up to
//! 9. Called by `keyspace/dump.rs`.
mod lzf; //   The compression of strings.
mod crc64; // The checksum.
mod hash; //  Hashes.
mod list; //  Lists.
mod ziplist; // Redis's older packed form of small containers.
mod sorted; // Sorted sets.
mod set; //   Sets.
mod stream; // Streams.
mod listpack; // Redis's packed form of small containers.
#[cfg(any(test, feature = "testing"))]
mod fuzz; // Claims that must hold for arbitrary payloads.

#[cfg(any(test, feature = "testing"))]
pub use fuzz::fuzz_payload;

use std::borrow::Cow;

use store::{NewValue, StoredValue, StringValue, UnixMillis};

use crate::strings::text_value;

/// The version of the format that Redis 7.0 writes.
const VERSION: u16 = 10;
/// The version of the format with deadlines of fields, since Redis 7.4.
const VERSION_TIMED: u16 = 12;
/// The first version that is Valkey's and not Redis's.
const VERSION_VALKEY: u16 = 80;
/// The latest version that can be read: that of Valkey 9. Later versions than 11 have further types, which are refused; those that
/// are known here have kept their form. Redis 8 writes version 12.
const VERSION_READ_MAX: u16 = 80;
const TYPE_STRING: u8 = 0;
const CHECKSUM_BYTES: usize = 8;
const FOOTER_BYTES: usize = 2 + CHECKSUM_BYTES;

/// The two high bits of a length's first byte; they define the form of the rest.
const LENGTH_14_BITS: u8 = 0x40;
const LENGTH_32_BITS: u8 = 0x80;
const LENGTH_64_BITS: u8 = 0x81;
/// Both high bits set: not a length but a string in one of these forms.
const STRING_INT_8: u8 = 0xC0;
const STRING_INT_16: u8 = 0xC1;
const STRING_INT_32: u8 = 0xC2;
const STRING_COMPRESSED: u8 = 0xC3;

/// Maximum length of a text that may be a number of 32 bits.
const INTEGER_TEXT_BYTES_MAX: usize = 11;
/// Strings up to this length are not compressed.
const UNCOMPRESSED_BYTES_MAX: usize = 20;
/// Minimum gain for compression to be used.
const COMPRESSION_GAIN_BYTES: usize = 4;

/// The reason why a payload cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PayloadError {
    /// The payload has a later version, or was corrupted.
    WrongChecksum,
    /// The payload is not a value of a supported type.
    BadFormat,
}

/// A value read from a payload.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum RestoredValue<'a> {
    String(Cow<'a, [u8]>),
    /// The fields and values of a hash in a row, with their deadlines, no field twice.
    Hash(Vec<u8>),
    /// The elements of a list in a row.
    List(Vec<u8>),
    /// The scores and members of a sorted set in a row, in order.
    SortedSet(Vec<u8>),
    /// The members of a set in a row, none twice.
    Set(Vec<u8>),
    /// A stream as records.
    Stream(Vec<u8>),
}

impl RestoredValue<'_> {
    /// Returns the value to be stored.
    pub(crate) fn new_value(&self) -> NewValue<'_> {
        match self {
            RestoredValue::String(bytes) => text_value(bytes),
            RestoredValue::Hash(row) => NewValue::Hash(row),
            RestoredValue::List(row) => NewValue::List(row),
            RestoredValue::SortedSet(row) => NewValue::SortedSet(row),
            RestoredValue::Set(row) => NewValue::Set(row),
            RestoredValue::Stream(records) => NewValue::Stream(records),
        }
    }
}

/// Returns the payload of DUMP. A hash goes without the fields that are due at `now`.
pub(crate) fn dump(value: StoredValue<'_>, now: UnixMillis) -> Vec<u8> {
    let mut payload = vec![match value {
        StoredValue::String(_) => TYPE_STRING,
        StoredValue::Hash(value) => hash::type_of(value.at(now)),
        StoredValue::List(_) => list::TYPE_LIST_QUICKLIST_2,
        StoredValue::SortedSet(value) => sorted::type_of(value),
        StoredValue::Set(value) => set::type_of(value),
        StoredValue::Stream(_) => stream::TYPE_STREAM_2,
    }];
    let is_timed = payload == [hash::TYPE_HASH_TIMED];
    put_value(&mut payload, value, now);
    let version = if is_timed { VERSION_TIMED } else { VERSION };
    payload.extend_from_slice(&version.to_le_bytes());
    let checksum = crc64::crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// Returns the value in a payload of DUMP. Never produces a value longer than `bytes_max`.
pub(crate) fn restore(payload: &[u8], bytes_max: usize) -> Result<RestoredValue<'_>, PayloadError> {
    let version = check(payload)?;
    let body = &payload[..payload.len() - FOOTER_BYTES];
    read_value(body, version, bytes_max).ok_or(PayloadError::BadFormat)
}

fn read_value(payload: &[u8], version: u16, bytes_max: usize) -> Option<RestoredValue<'_>> {
    let mut reader = RdbReader(payload);
    match reader.byte()? {
        TYPE_STRING => reader.string(bytes_max).map(RestoredValue::String),
        hash::TYPE_HASH => hash::read_pairs(&mut reader, bytes_max).map(RestoredValue::Hash),
        hash::TYPE_HASH_LISTPACK => {
            hash::read_listpack(&mut reader, bytes_max).map(RestoredValue::Hash)
        }
        hash::TYPE_HASH_TIMED => hash::read_timed(&mut reader, bytes_max).map(RestoredValue::Hash),
        hash::TYPE_HASH_TIMED_LISTPACK => {
            hash::read_timed_listpack(&mut reader, bytes_max).map(RestoredValue::Hash)
        }
        hash::TYPE_HASH_VALKEY if version >= VERSION_VALKEY => {
            hash::read_valkey(&mut reader, bytes_max).map(RestoredValue::Hash)
        }
        kind if list::is_list(kind) => {
            list::read(&mut reader, kind, bytes_max).map(RestoredValue::List)
        }
        sorted::TYPE_TEXT_SCORES => {
            sorted::read_text_scores(&mut reader, bytes_max).map(RestoredValue::SortedSet)
        }
        sorted::TYPE_SORTED_SET => {
            sorted::read_binary(&mut reader, bytes_max).map(RestoredValue::SortedSet)
        }
        sorted::TYPE_SORTED_SET_LISTPACK => {
            sorted::read_listpack(&mut reader, bytes_max).map(RestoredValue::SortedSet)
        }
        set::TYPE_SET => set::read_members(&mut reader, bytes_max).map(RestoredValue::Set),
        set::TYPE_SET_INTSET => set::read_intset(&mut reader, bytes_max).map(RestoredValue::Set),
        set::TYPE_SET_LISTPACK => {
            set::read_listpack(&mut reader, bytes_max).map(RestoredValue::Set)
        }
        kind @ (stream::TYPE_STREAM_1 | stream::TYPE_STREAM_2 | stream::TYPE_STREAM_3) => {
            stream::read(&mut reader, kind, bytes_max).map(RestoredValue::Stream)
        }
        _ => None,
    }
}

/// Returns the number of bytes of the value in an RDB file, for `DEBUG OBJECT`.
pub(crate) fn serialized_len(value: StoredValue<'_>) -> usize {
    let mut bytes = Vec::new();
    put_value(&mut bytes, value, UnixMillis::default());
    bytes.len()
}

/// Checks the checksum. Returns the version of the format.
fn check(payload: &[u8]) -> Result<u16, PayloadError> {
    let body = payload.len().checked_sub(FOOTER_BYTES).ok_or(PayloadError::WrongChecksum)?;
    let version = u16::from_le_bytes([payload[body], payload[body + 1]]);
    let (summed, sum) = payload.split_at(body + 2);
    if version > VERSION_READ_MAX || crc64::crc64(summed).to_le_bytes() != sum {
        return Err(PayloadError::WrongChecksum);
    }
    Ok(version)
}

fn put_value(out: &mut Vec<u8>, value: StoredValue<'_>, now: UnixMillis) {
    match value {
        StoredValue::String(StringValue::Integer(number)) => put_integer(out, number),
        StoredValue::String(StringValue::Bytes(bytes)) => put_string(out, bytes),
        StoredValue::String(StringValue::Shared(shared)) => put_string(out, shared.bytes()),
        StoredValue::Hash(value) => hash::put_hash(out, value.at(now)),
        StoredValue::List(value) => list::put_list(out, value),
        StoredValue::SortedSet(value) => sorted::put_sorted_set(out, value),
        StoredValue::Set(value) => set::put_set(out, value),
        StoredValue::Stream(value) => stream::put_stream(out, value),
    }
}

fn put_integer(out: &mut Vec<u8>, number: i64) {
    if !put_small_integer(out, number) {
        put_plain(out, number.to_string().as_bytes());
    }
}

fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() <= INTEGER_TEXT_BYTES_MAX
        && let Some(number) = resp::parse_integer(bytes)
        && put_small_integer(out, number)
    {
        return;
    }
    if bytes.len() > UNCOMPRESSED_BYTES_MAX
        && let Some(compressed) = lzf::compress(bytes, bytes.len() - COMPRESSION_GAIN_BYTES)
    {
        out.push(STRING_COMPRESSED);
        put_length(out, compressed.len());
        put_length(out, bytes.len());
        out.extend_from_slice(&compressed);
        return;
    }
    put_plain(out, bytes);
}

/// Writes the number if it fits 32 bits; returns whether it does.
fn put_small_integer(out: &mut Vec<u8>, number: i64) -> bool {
    if let Ok(number) = i8::try_from(number) {
        out.push(STRING_INT_8);
        out.extend_from_slice(&number.to_le_bytes());
    } else if let Ok(number) = i16::try_from(number) {
        out.push(STRING_INT_16);
        out.extend_from_slice(&number.to_le_bytes());
    } else if let Ok(number) = i32::try_from(number) {
        out.push(STRING_INT_32);
        out.extend_from_slice(&number.to_le_bytes());
    } else {
        return false;
    }
    true
}

fn put_plain(out: &mut Vec<u8>, bytes: &[u8]) {
    put_length(out, bytes.len());
    out.extend_from_slice(bytes);
}

#[expect(clippy::cast_possible_truncation, reason = "each form is used for what fits it")]
fn put_length(out: &mut Vec<u8>, len: usize) {
    if len < 1 << 6 {
        out.push(len as u8);
    } else if len < 1 << 14 {
        out.extend_from_slice(&(u16::from(LENGTH_14_BITS) << 8 | len as u16).to_be_bytes());
    } else if let Ok(len) = u32::try_from(len) {
        out.push(LENGTH_32_BITS);
        out.extend_from_slice(&len.to_be_bytes());
    } else {
        out.push(LENGTH_64_BITS);
        out.extend_from_slice(&(len as u64).to_be_bytes());
    }
}

fn decimal(number: impl Into<i64>) -> Cow<'static, [u8]> {
    Cow::Owned(number.into().to_string().into_bytes())
}

/// The unread bytes.
struct RdbReader<'a>(&'a [u8]);

impl<'a> RdbReader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn array<const LEN: usize>(&mut self) -> Option<[u8; LEN]> {
        self.take(LEN)?.try_into().ok()
    }

    /// Reads the bytes after a tag.
    fn tagged<const LEN: usize>(&mut self) -> Option<[u8; LEN]> {
        self.byte()?;
        self.array()
    }

    /// Reads a string in any of its forms.
    fn string(&mut self, bytes_max: usize) -> Option<Cow<'a, [u8]>> {
        let string = match *self.0.first()? {
            STRING_INT_8 => decimal(i8::from_le_bytes(self.tagged()?)),
            STRING_INT_16 => decimal(i16::from_le_bytes(self.tagged()?)),
            STRING_INT_32 => decimal(i32::from_le_bytes(self.tagged()?)),
            STRING_COMPRESSED => {
                self.byte()?;
                let (compressed, len) = (self.length()?, self.length()?);
                let compressed = self.take(compressed)?;
                let len = Some(len).filter(|len| *len <= bytes_max)?;
                Cow::Owned(lzf::decompress(compressed, len)?)
            }
            _ => {
                let len = self.length()?;
                Cow::Borrowed(self.take(len)?)
            }
        };
        (string.len() <= bytes_max).then_some(string)
    }

    fn length(&mut self) -> Option<usize> {
        let first = self.byte()?;
        match first {
            0..LENGTH_14_BITS => Some(usize::from(first)),
            LENGTH_14_BITS..LENGTH_32_BITS => {
                let high = usize::from(first - LENGTH_14_BITS);
                Some(high << 8 | usize::from(self.byte()?))
            }
            LENGTH_32_BITS => usize::try_from(u32::from_be_bytes(self.array()?)).ok(),
            LENGTH_64_BITS => usize::try_from(u64::from_be_bytes(self.array()?)).ok(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;

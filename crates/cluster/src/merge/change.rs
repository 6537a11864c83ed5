//! Encoding of a slot's changes since the split: items in their current state, removed keys, the emptying of
//! the slot; and large values in pieces. Written by the giver, read by the taker.

use store::encode_item_without_value;
use store::{DecodeError, DecodedItem, Found, Version, decode_item, encode_item_as};

const ITEM: u8 = 1;
const GONE: u8 = 2;
const EMPTIED: u8 = 3;
const PIECE: u8 = 4;
const WHOLE: u8 = 5;

/// One change, borrowed from the received bytes.
#[derive(Debug)]
pub(super) enum MergedChange<'a> {
    Item(DecodedItem<'a>),
    Gone {
        key: &'a [u8],
        version: Version,
    },
    /// All keys of the slot were removed.
    Emptied {
        version: Version,
    },
    /// The next piece of one large value.
    Piece(&'a [u8]),
    /// Completes an item, encoded here with an empty value: the received pieces are its value.
    Whole(DecodedItem<'a>),
}

/// Changes of one slot, all of them decoded.
#[derive(Debug)]
pub struct ChangeBatch<'a>(pub(super) Vec<MergedChange<'a>>);

impl<'a> ChangeBatch<'a> {
    pub fn read(bytes: &'a [u8]) -> Result<ChangeBatch<'a>, DecodeError> {
        let mut changes = Vec::new();
        let mut rest = bytes;
        while let Some((tag, behind)) = rest.split_first() {
            let (change, behind) = read(*tag, behind)?;
            changes.push(change);
            rest = behind;
        }
        Ok(ChangeBatch(changes))
    }

    /// Returns the latest version among the changes: the writes made for them must be later.
    pub fn latest(&self) -> Version {
        let version = |change: &MergedChange<'_>| match change {
            MergedChange::Item(item) | MergedChange::Whole(item) => item.version,
            MergedChange::Gone { version, .. } | MergedChange::Emptied { version } => *version,
            MergedChange::Piece(_) => Version::ZERO,
        };
        self.0.iter().map(version).max().unwrap_or(Version::ZERO)
    }
}

fn read(tag: u8, bytes: &[u8]) -> Result<(MergedChange<'_>, &[u8]), DecodeError> {
    Ok(match tag {
        ITEM => {
            let (item, rest) = decode_item(bytes)?;
            (MergedChange::Item(item), rest)
        }
        WHOLE => {
            let (item, rest) = decode_item(bytes)?;
            (MergedChange::Whole(item), rest)
        }
        GONE => {
            let (version, rest) = version(bytes)?;
            let (key, rest) = counted(rest)?;
            (MergedChange::Gone { key, version }, rest)
        }
        EMPTIED => {
            let (version, rest) = version(bytes)?;
            (MergedChange::Emptied { version }, rest)
        }
        PIECE => {
            let (piece, rest) = counted(bytes)?;
            (MergedChange::Piece(piece), rest)
        }
        tag => return Err(DecodeError::UnknownTag(tag)),
    })
}

fn version(bytes: &[u8]) -> Result<(Version, &[u8]), DecodeError> {
    let (number, rest) = bytes.split_first_chunk::<8>().ok_or(DecodeError::Truncated)?;
    Ok((Version(u64::from_le_bytes(*number)), rest))
}

fn counted(bytes: &[u8]) -> Result<(&[u8], &[u8]), DecodeError> {
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or(DecodeError::Truncated)?;
    let length = u32::from_le_bytes(*length) as usize;
    rest.split_at_checked(length).ok_or(DecodeError::Truncated)
}

pub(super) fn put_item(found: &Found<'_>, made: Version, out: &mut Vec<u8>) {
    out.push(ITEM);
    encode_item_as(found, made, out);
}

pub(super) fn put_whole(found: &Found<'_>, out: &mut Vec<u8>) {
    out.push(WHOLE);
    encode_item_without_value(found, out);
}

pub(super) fn put_gone(key: &[u8], version: Version, out: &mut Vec<u8>) {
    out.push(GONE);
    out.extend_from_slice(&version.0.to_le_bytes());
    put_counted(key, out);
}

pub(super) fn put_emptied(version: Version, out: &mut Vec<u8>) {
    out.push(EMPTIED);
    out.extend_from_slice(&version.0.to_le_bytes());
}

pub(super) fn put_piece(piece: &[u8], out: &mut Vec<u8>) {
    out.push(PIECE);
    put_counted(piece, out);
}

fn put_counted(bytes: &[u8], out: &mut Vec<u8>) {
    let length = u32::try_from(bytes.len()).expect("keys and pieces are shorter than 4 GiB");
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
}

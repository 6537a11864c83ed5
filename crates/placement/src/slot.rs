//! A key's slot, exactly as Redis Cluster computes it: CRC16 of the key, or of its hash tag, in 14 bits.
//!
//! Every command of every client computes this, so the CRC processes eight bytes per step.
//! Next: `hashmask.rs`, which groups slots into buckets.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One of the 16,384 slots that keys are distributed over.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Slot(u16);

impl From<Slot> for u16 {
    fn from(slot: Slot) -> u16 {
        slot.0
    }
}

impl TryFrom<u16> for Slot {
    type Error = &'static str;

    fn try_from(number: u16) -> Result<Slot, &'static str> {
        Slot::new(number).ok_or("slots are numbered from 0 to 16383")
    }
}

impl Slot {
    pub const COUNT: u16 = 16_384;

    /// Returns the slot of a key. Keys with the same hash tag share one.
    #[inline]
    pub fn of(key: &[u8]) -> Slot {
        Slot(crc16(hash_tag(key)) % Slot::COUNT)
    }

    /// Returns the slot with this number, if there is one.
    #[inline]
    pub const fn new(number: u16) -> Option<Slot> {
        if number < Slot::COUNT { Some(Slot(number)) } else { None }
    }

    #[inline]
    pub const fn number(self) -> u16 {
        self.0
    }

    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    pub fn all() -> impl DoubleEndedIterator<Item = Slot> + ExactSizeIterator + Clone {
        (0..Slot::COUNT).map(Slot)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns the part of a key that is hashed: the text between the first `{` and the first `}` after it, or the
/// whole key if that text is missing or empty.
#[inline]
pub fn hash_tag(key: &[u8]) -> &[u8] {
    let Some(open) = memchr::memchr(b'{', key) else { return key };
    let rest = &key[open + 1..];
    match memchr::memchr(b'}', rest) {
        Some(0) | None => key,
        Some(close) => &rest[..close],
    }
}

/// CRC16-XMODEM: polynomial 0x1021, start 0, most significant bit first.
fn crc16(bytes: &[u8]) -> u16 {
    let (chunks, tail) = bytes.as_chunks::<8>();
    let mut crc = 0u16;
    for chunk in chunks {
        // Only the first two bytes depend on the CRC so far; the other six lookups are independent.
        let [high, low] = crc.to_be_bytes();
        crc = TABLES[7][usize::from(chunk[0] ^ high)]
            ^ TABLES[6][usize::from(chunk[1] ^ low)]
            ^ TABLES[5][usize::from(chunk[2])]
            ^ TABLES[4][usize::from(chunk[3])]
            ^ TABLES[3][usize::from(chunk[4])]
            ^ TABLES[2][usize::from(chunk[5])]
            ^ TABLES[1][usize::from(chunk[6])]
            ^ TABLES[0][usize::from(chunk[7])];
    }
    tail.iter().fold(crc, |crc, byte| step(crc, *byte))
}

#[inline]
const fn step(crc: u16, byte: u8) -> u16 {
    (crc << 8) ^ TABLES[0][((crc >> 8) as u8 ^ byte) as usize]
}

/// `TABLES[n][byte]` is the CRC of `byte` followed by `n` zero bytes.
static TABLES: [[u16; 256]; 8] = tables();

const fn tables() -> [[u16; 256]; 8] {
    let mut tables = [[0u16; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let shorter = tables[zeros - 1][byte];
            tables[zeros][byte] = (shorter << 8) ^ tables[0][(shorter >> 8) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the CRC bit by bit, as it is defined: the reference for testing `crc16`.
    fn crc16_by_definition(bytes: &[u8]) -> u16 {
        bytes.iter().fold(0u16, |crc, byte| {
            (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
                if crc & 0x8000 != 0 { (crc << 1) ^ 0x1021 } else { crc << 1 }
            })
        })
    }

    #[test]
    fn the_check_value_of_the_crc_is_right() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(crc16(b""), 0);
    }

    #[test]
    fn the_crc_of_any_length_equals_its_definition() {
        let bytes: Vec<u8> = (0..200u32).map(|i| (i * 167 + 13) as u8).collect();
        for end in 0..bytes.len() {
            for start in [0, 1, end / 2] {
                let part = &bytes[start.min(end)..end];
                assert_eq!(crc16(part), crc16_by_definition(part));
            }
        }
    }

    /// The expected slots come from CLUSTER KEYSLOT of a redis-server 7.0.
    #[test]
    fn slots_are_those_of_redis() {
        for (key, slot) in REDIS_SLOTS {
            assert_eq!(Slot::of(key.as_bytes()).number(), *slot, "{key}");
        }
    }
    const REDIS_SLOTS: &[(&str, u16)] = &[
        ("", 0),
        ("a", 15495),
        ("foo", 12182),
        ("123456789", 12739),
        ("CustomerDetails:45543", 13456),
        ("{user1000}.following", 3443),
        ("{user1000}.followers", 3443),
        ("foo{}{bar}", 8363),
        ("foo{{bar}}zap", 4015),
        ("foo{bar}{zap}", 5061),
        ("{}", 15257),
        ("{", 4092),
        ("}{", 12793),
        ("a{b", 13340),
        ("a}b{c}", 7365),
        ("{a}", 15495),
        ("key:000000000001", 8924),
        ("a much longer key, of more than thirty-two bytes", 2782),
        ("ключ", 10303),
        ("x{}y", 16116),
        ("{{}}", 4092),
        ("12345678", 4117),
        ("1234567", 1750),
    ];

    #[test]
    fn only_a_tag_with_something_in_it_counts() {
        assert_eq!(hash_tag(b"{user}.name"), b"user");
        assert_eq!(hash_tag(b"a{user}b{other}"), b"user");
        assert_eq!(hash_tag(b"{}whole"), b"{}whole");
        assert_eq!(hash_tag(b"{}{not this}"), b"{}{not this}");
        assert_eq!(hash_tag(b"open{never closed"), b"open{never closed");
        assert_eq!(hash_tag(b"}{"), b"}{");
        assert_eq!(hash_tag(b"}{a}"), b"a");
        assert_eq!(hash_tag(b"{{a}}"), b"{a");
        assert_eq!(hash_tag(b""), b"");
    }

    #[test]
    fn a_number_past_the_last_slot_is_no_slot() {
        assert_eq!(Slot::new(16_383).map(Slot::index), Some(16_383));
        assert_eq!(Slot::new(16_384), None);
        assert_eq!(Slot::all().len(), 16_384);
        assert!(Slot::all().enumerate().all(|(index, slot)| slot.index() == index));
    }
}

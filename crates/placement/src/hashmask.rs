//! Slots grouped into buckets: a hashmask picks all hashes whose low bits have one value.
//!
//! The hash is the slot with its 14 bits reversed, so the *low* bits of a hash are the *high* bits of
//! a slot and a bucket is one run of neighbouring slots. A split adds bits to the mask; no key moves.
//! Called by `cluster::map`, which records the holders of each bucket.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Slot;

/// A slot with its 14 bits reversed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hash(u16);

impl Hash {
    pub const fn of_slot(slot: Slot) -> Hash {
        Hash(reversed(slot.number()))
    }

    pub const fn slot(self) -> Slot {
        Slot::new(reversed(self.0)).expect("14 bits reversed are 14 bits")
    }

    pub const fn number(self) -> u16 {
        self.0
    }
}

/// Reverses the 14 bits of a slot or a hash.
const fn reversed(number: u16) -> u16 {
    number.reverse_bits() >> 2
}

/// The number of low bits of the hash that distinguish buckets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Mask {
    /// 4 bits: 16 buckets of 1,024 slots.
    M000F,
    /// 8 bits: 256 buckets of 64 slots.
    M00FF,
    /// 12 bits: 4,096 buckets of 4 slots.
    M0FFF,
    /// All 14 bits: every slot is a bucket.
    M3FFF,
}

impl Mask {
    pub const ALL: [Mask; 4] = [Mask::M000F, Mask::M00FF, Mask::M0FFF, Mask::M3FFF];

    pub const fn bits(self) -> u16 {
        match self {
            Mask::M000F => 0x000F,
            Mask::M00FF => 0x00FF,
            Mask::M0FFF => 0x0FFF,
            Mask::M3FFF => 0x3FFF,
        }
    }

    /// Returns the number of buckets of a map in which all buckets have this mask.
    pub const fn buckets(self) -> u16 {
        self.bits() + 1
    }

    /// Returns the number of slots of a bucket with this mask.
    pub const fn slots(self) -> u16 {
        Slot::COUNT / self.buckets()
    }

    /// Returns the mask with this number of buckets, if there is one.
    pub fn with_buckets(buckets: u16) -> Option<Mask> {
        Mask::ALL.into_iter().find(|mask| mask.buckets() == buckets)
    }

    /// Returns the mask after a split, or `None` if a bucket is a single slot already.
    pub const fn next(self) -> Option<Mask> {
        match self {
            Mask::M000F => Some(Mask::M00FF),
            Mask::M00FF => Some(Mask::M0FFF),
            Mask::M0FFF => Some(Mask::M3FFF),
            Mask::M3FFF => None,
        }
    }

    /// Returns the mask before a split, or `None` if buckets cannot be larger.
    pub const fn previous(self) -> Option<Mask> {
        match self {
            Mask::M000F => None,
            Mask::M00FF => Some(Mask::M000F),
            Mask::M0FFF => Some(Mask::M00FF),
            Mask::M3FFF => Some(Mask::M0FFF),
        }
    }

    /// Returns the bits of a hash of any width that this mask selects.
    pub const fn apply(self, wide_hash: u128) -> u16 {
        (wide_hash & self.bits() as u128) as u16
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04X}", self.bits())
    }
}

/// A mask and a value, written `00FF/0014`: the name of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "(Mask, u16)", into = "(Mask, u16)")]
pub struct Hashmask {
    mask: Mask,
    value: u16,
}

impl From<Hashmask> for (Mask, u16) {
    fn from(hashmask: Hashmask) -> (Mask, u16) {
        (hashmask.mask, hashmask.value)
    }
}

impl TryFrom<(Mask, u16)> for Hashmask {
    type Error = &'static str;

    fn try_from((mask, value): (Mask, u16)) -> Result<Hashmask, &'static str> {
        Hashmask::new(mask, value).ok_or("a hashmask's value has no bits outside its mask")
    }
}

impl Hashmask {
    /// The bucket of `mask` with this value, if the value has no bits outside the mask.
    pub const fn new(mask: Mask, value: u16) -> Option<Hashmask> {
        if value & !mask.bits() == 0 { Some(Hashmask { mask, value }) } else { None }
    }

    /// The bucket that a slot belongs to under `mask`.
    pub const fn of_slot(mask: Mask, slot: Slot) -> Hashmask {
        Hashmask { mask, value: Hash::of_slot(slot).number() & mask.bits() }
    }

    /// All buckets of one mask, in the order of their values.
    pub fn all(mask: Mask) -> impl ExactSizeIterator<Item = Hashmask> {
        (0..mask.buckets()).map(move |value| Hashmask { mask, value })
    }

    pub const fn mask(self) -> Mask {
        self.mask
    }

    pub const fn value(self) -> u16 {
        self.value
    }

    pub const fn contains(self, hash: Hash) -> bool {
        hash.number() & self.mask.bits() == self.value
    }

    /// The numbers of this bucket's slots: always one unbroken run.
    pub const fn slots(self) -> Range<u16> {
        let first = reversed(self.value);
        first..first + self.mask.slots()
    }

    /// Returns the smaller buckets this one splits into, in the order of their values; none if it is a single slot.
    pub fn split(self) -> impl Iterator<Item = Hashmask> {
        self.mask.next().into_iter().flat_map(move |mask| {
            (self.value..=mask.bits())
                .step_by(usize::from(self.mask.buckets()))
                .map(move |value| Hashmask { mask, value })
        })
    }
}

impl fmt::Display for Hashmask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{:04X}", self.mask, self.value)
    }
}

impl fmt::Debug for Hashmask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The reason why a text is not a valid hashmask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum HashmaskError {
    /// The text has no `/`, or a part is not four hexadecimal digits.
    Form(String),
    /// The mask is none of `000F`, `00FF`, `0FFF`, `3FFF`.
    Mask(u16),
    /// The value has bits outside its mask.
    Value { mask: Mask, value: u16 },
}

impl fmt::Display for HashmaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HashmaskError::Form(text) => {
                write!(f, "a hashmask is written like 00FF/0014, not {text:?}")
            }
            HashmaskError::Mask(mask) => {
                write!(f, "{mask:04X} is no mask; masks are 000F, 00FF, 0FFF and 3FFF")
            }
            HashmaskError::Value { mask, value } => {
                write!(f, "{value:04X} has bits outside the mask {mask}")
            }
        }
    }
}

impl std::error::Error for HashmaskError {}

impl FromStr for Hashmask {
    type Err = HashmaskError;

    fn from_str(text: &str) -> Result<Hashmask, HashmaskError> {
        let form = || HashmaskError::Form(text.to_owned());
        let (mask, value) = text.split_once('/').ok_or_else(form)?;
        let mask = four_digits(mask).ok_or_else(form)?;
        let value = four_digits(value).ok_or_else(form)?;
        let mask = Mask::ALL
            .into_iter()
            .find(|known| known.bits() == mask)
            .ok_or(HashmaskError::Mask(mask))?;
        Hashmask::new(mask, value).ok_or(HashmaskError::Value { mask, value })
    }
}

fn four_digits(text: &str) -> Option<u16> {
    let plain = text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if plain { u16::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hashmask(text: &str) -> Hashmask {
        text.parse().unwrap()
    }

    #[test]
    fn a_wide_hash_falls_into_the_bucket_of_its_last_digit() {
        let bucket = |hash| Mask::M000F.apply(hash);
        assert_eq!(bucket(0x0a0b_ec73_c713_7532_9404_fe63_2c76_79c9), 0x9);
        assert_eq!(bucket(0x10b3_1df6_183b_032f_53f5_dbbc_07c2_c976), 0x6);
        assert_eq!(bucket(0x06f9_2937_ee3a_664b_afab_f5a4_b0e9_0834), 0x4);
        assert_eq!(Mask::M00FF.apply(0x06f9_2937_ee3a_664b_afab_f5a4_b0e9_0834), 0x34);
    }

    #[test]
    fn a_hash_is_the_slot_reversed() {
        assert_eq!(Hash::of_slot(Slot::new(1).unwrap()).number(), 0x2000);
        assert_eq!(Hash::of_slot(Slot::new(0x2000).unwrap()).number(), 1);
        assert!(Slot::all().all(|slot| Hash::of_slot(slot).slot() == slot));
    }

    #[test]
    fn a_split_slides_the_mask_by_a_digit() {
        let children: Vec<String> = hashmask("000F/0004").split().map(|h| h.to_string()).collect();
        assert_eq!(children.len(), 16);
        assert_eq!(children[..3], ["00FF/0004", "00FF/0014", "00FF/0024"]);
        assert_eq!(children[15], "00FF/00F4");
        let last: Vec<String> = hashmask("0FFF/0ABC").split().map(|h| h.to_string()).collect();
        assert_eq!(last, ["3FFF/0ABC", "3FFF/1ABC", "3FFF/2ABC", "3FFF/3ABC"]);
        assert_eq!(hashmask("3FFF/0ABC").split().count(), 0);
    }

    #[test]
    fn a_bucket_is_one_run_of_slots_and_its_children_share_it_out() {
        for mask in Mask::ALL {
            let mut owner = vec![None; usize::from(Slot::COUNT)];
            for bucket in Hashmask::all(mask) {
                assert_eq!(bucket.slots().len(), usize::from(mask.slots()));
                for number in bucket.slots() {
                    let slot = Slot::new(number).unwrap();
                    assert!(bucket.contains(Hash::of_slot(slot)));
                    assert_eq!(Hashmask::of_slot(mask, slot), bucket);
                    assert_eq!(owner[slot.index()].replace(bucket), None);
                }
                let children: Vec<Hashmask> = bucket.split().collect();
                let slots: usize = children.iter().map(|child| child.slots().len()).sum();
                assert!(children.is_empty() || slots == bucket.slots().len());
                for child in children {
                    let (inner, outer) = (child.slots(), bucket.slots());
                    assert!(outer.start <= inner.start && inner.end <= outer.end);
                }
            }
            assert!(owner.iter().all(Option::is_some));
        }
    }

    #[test]
    fn every_hashmask_survives_printing_and_parsing() {
        for bucket in Mask::ALL.into_iter().flat_map(Hashmask::all) {
            assert_eq!(bucket.to_string().parse(), Ok(bucket));
        }
        assert_eq!(hashmask("00ff/00a4").to_string(), "00FF/00A4");
    }

    #[test]
    fn bad_text_is_told_what_is_wrong() {
        let error = |text: &str| text.parse::<Hashmask>().unwrap_err().to_string();
        for text in ["", "00FF", "00FF/14", "00FF/+014", "00FF/0014/", "0x0F/0001", "00FF/001G"] {
            assert_eq!(error(text), format!("a hashmask is written like 00FF/0014, not {text:?}"));
        }
        assert_eq!(error("FFFF/0001"), "FFFF is no mask; masks are 000F, 00FF, 0FFF and 3FFF");
        assert_eq!(error("000F/0014"), "0014 has bits outside the mask 000F");
    }

    #[test]
    fn a_mask_is_found_by_its_number_of_buckets() {
        assert_eq!(Mask::with_buckets(256), Some(Mask::M00FF));
        assert_eq!(Mask::with_buckets(16_384), Some(Mask::M3FFF));
        assert_eq!(Mask::with_buckets(100), None);
    }
}

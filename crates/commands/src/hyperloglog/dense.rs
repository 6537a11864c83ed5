//! The dense form of a HyperLogLog: 16,384 registers of 6 bits behind the header, the lowest bits first.

use std::collections::BTreeMap;

use super::sketch::{ESTIMATE_END, HEADER_BYTES, OUT_OF_DATE, REGISTERS};

const REGISTER_BITS: usize = 6;
const REGISTER_MAX: u16 = (1 << REGISTER_BITS) - 1;
/// Length of a dense HyperLogLog.
pub(super) const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * REGISTER_BITS / 8;

/// The place of a register.
struct Place {
    /// The byte in which it begins.
    at: usize,
    /// Its first bit there.
    shift: usize,
}

impl Place {
    fn of(index: usize) -> Place {
        let bit = index * REGISTER_BITS;
        Place { at: HEADER_BYTES + bit / 8, shift: bit % 8 }
    }

    fn read(&self, byte_at: impl Fn(usize) -> u8) -> u8 {
        (self.pair(byte_at) >> self.shift & REGISTER_MAX) as u8
    }

    /// Returns the two bytes that the register may touch, with another value of it.
    fn with(&self, byte_at: impl Fn(usize) -> u8, value: u8) -> [u8; 2] {
        let others = self.pair(byte_at) & !(REGISTER_MAX << self.shift);
        (others | u16::from(value) << self.shift).to_le_bytes()
    }

    fn pair(&self, byte_at: impl Fn(usize) -> u8) -> u16 {
        u16::from_le_bytes([byte_at(self.at), byte_at(self.at + 1)])
    }
}

/// Returns a byte of the string; behind its end, zero.
fn byte_of(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or(0)
}

pub(super) fn register(bytes: &[u8], index: usize) -> u8 {
    Place::of(index).read(|at| byte_of(bytes, at))
}

pub(super) fn set_register(bytes: &mut [u8], index: usize, value: u8) {
    let place = Place::of(index);
    let pair = place.with(|at| byte_of(bytes, at), value);
    bytes[place.at..].iter_mut().zip(pair).for_each(|(byte, new)| *byte = new);
}

/// A dense HyperLogLog, and changes of it that are not written yet.
pub(super) struct DenseChanges<'a> {
    bytes: &'a [u8],
    changed: BTreeMap<usize, u8>,
}

impl<'a> DenseChanges<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> DenseChanges<'a> {
        DenseChanges { bytes, changed: BTreeMap::new() }
    }

    fn byte(&self, at: usize) -> u8 {
        self.changed.get(&at).copied().unwrap_or_else(|| byte_of(self.bytes, at))
    }

    /// Sets a register to `value`, if it is lower.
    pub(super) fn raise(&mut self, index: usize, value: u8) {
        let place = Place::of(index);
        if place.read(|at| self.byte(at)) >= value {
            return;
        }
        let pair = place.with(|at| self.byte(at), value);
        for (at, byte) in (place.at..self.bytes.len()).zip(pair) {
            if self.byte(at) != byte {
                self.changed.insert(at, byte);
            }
        }
    }

    /// Returns the changed ranges: offsets and bytes, the mark of an outdated estimate included. Ranges that are less
    /// than `gap` bytes apart are one.
    pub(super) fn into_ranges(mut self, gap: usize) -> Vec<(usize, Vec<u8>)> {
        if self.changed.is_empty() {
            return Vec::new();
        }
        let mark = ESTIMATE_END - 1;
        self.changed.insert(mark, self.byte(mark) | OUT_OF_DATE);
        let mut ranges: Vec<(usize, Vec<u8>)> = Vec::new();
        for (at, byte) in &self.changed {
            match ranges.last_mut() {
                Some((start, bytes)) if at - (*start + bytes.len()) < gap => {
                    bytes.extend_from_slice(&self.bytes[*start + bytes.len()..*at]);
                    bytes.push(*byte);
                }
                Some(_) | None => ranges.push((*at, vec![*byte])),
            }
        }
        ranges
    }
}

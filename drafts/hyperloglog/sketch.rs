//! A HyperLogLog as the string that Redis keeps: a header of 16 bytes, then 16,384 registers of 6 bits (dense), or runs
//! of equal registers (sparse, `sparse.rs`).

use super::hash::murmur;
use super::sparse;

pub(super) const REGISTERS: usize = 1 << INDEX_BITS;
const INDEX_BITS: u32 = 14;
const REGISTER_BITS: usize = 6;
const REGISTER_MAX: u16 = (1 << REGISTER_BITS) - 1;

pub(super) const HEADER_BYTES: usize = 16;
const DENSE_BYTES: usize = HEADER_BYTES + REGISTERS * REGISTER_BITS / 8;
const MAGIC: &[u8] = b"HYLL";
const ENCODING_AT: usize = 4;
const ESTIMATE_AT: usize = 8;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
/// Set in the last byte of the header if the estimate in it is out of date.
const OUT_OF_DATE: u8 = 0x80;

/// The registers, one in each byte.
pub(super) type Registers = [u8; REGISTERS];

/// The sparse form contradicts itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Corrupted;

/// A HyperLogLog in Redis's form. Its length and its header are valid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Sketch(Vec<u8>);

impl Sketch {
    /// Creates an empty one, in the sparse form.
    pub(super) fn new() -> Sketch {
        let mut bytes = [MAGIC, &[SPARSE, 0, 0, 0], &[0; 8]].concat();
        sparse::write_zeros(&mut bytes, REGISTERS);
        Sketch(bytes)
    }

    /// Returns the HyperLogLog that a string is; `None` if it is none.
    pub(super) fn of(bytes: &[u8]) -> Option<Sketch> {
        let is_long_enough = bytes.len() >= HEADER_BYTES && bytes.starts_with(MAGIC);
        let is_valid = is_long_enough
            && match bytes[ENCODING_AT] {
                DENSE => bytes.len() == DENSE_BYTES,
                SPARSE => true,
                _ => false,
            };
        is_valid.then(|| Sketch(bytes.to_vec()))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn is_dense(&self) -> bool {
        self.0[ENCODING_AT] == DENSE
    }

    /// Returns the estimate in the header, if it is up to date.
    pub(super) fn kept_estimate(&self) -> Option<u64> {
        let bytes = self.0[ESTIMATE_AT..HEADER_BYTES].try_into().expect("eight bytes");
        let is_valid = self.0[HEADER_BYTES - 1] & OUT_OF_DATE == 0;
        is_valid.then(|| u64::from_le_bytes(bytes))
    }

    pub(super) fn invalidate_estimate(&mut self) {
        self.0[HEADER_BYTES - 1] |= OUT_OF_DATE;
    }

    /// Counts an element. Returns whether a register has changed.
    pub(super) fn add(&mut self, element: &[u8]) -> Result<bool, Corrupted> {
        let hash = murmur(element);
        let index = hash as usize % REGISTERS;
        // The highest bit ends the count.
        let counted = hash >> INDEX_BITS | 1 << (u64::BITS - INDEX_BITS);
        self.raise(index, counted.trailing_zeros() as u8 + 1)
    }

    /// Sets a register to `value`, if it is lower. Returns whether it was.
    pub(super) fn raise(&mut self, index: usize, value: u8) -> Result<bool, Corrupted> {
        if !self.is_dense() {
            match sparse::raise(&self.0[HEADER_BYTES..], index, value)? {
                sparse::Raised::Unchanged => return Ok(false),
                sparse::Raised::Runs(runs) => {
                    self.0.truncate(HEADER_BYTES);
                    self.0.extend_from_slice(&runs);
                    self.invalidate_estimate();
                    return Ok(true);
                }
                sparse::Raised::TooLong => self.make_dense()?,
            }
        }
        let is_raised = self.dense_register(index) < value;
        if is_raised {
            self.set_dense_register(index, value);
        }
        Ok(is_raised)
    }

    /// Returns all registers.
    pub(super) fn registers(&self) -> Result<Box<Registers>, Corrupted> {
        let mut registers = Box::new([0; REGISTERS]);
        if self.is_dense() {
            for (index, register) in registers.iter_mut().enumerate() {
                *register = self.dense_register(index);
            }
        } else {
            sparse::read(&self.0[HEADER_BYTES..], &mut registers)?;
        }
        Ok(registers)
    }

    pub(super) fn make_dense(&mut self) -> Result<(), Corrupted> {
        if self.is_dense() {
            return Ok(());
        }
        let registers = self.registers()?;
        self.0.truncate(HEADER_BYTES);
        self.0.resize(DENSE_BYTES, 0);
        self.0[ENCODING_AT] = DENSE;
        for (index, value) in registers.iter().enumerate() {
            self.set_dense_register(index, *value);
        }
        Ok(())
    }

    fn dense_register(&self, index: usize) -> u8 {
        let (at, shift) = place_of(index);
        let pair = u16::from_le_bytes([self.0[at], self.0.get(at + 1).copied().unwrap_or(0)]);
        (pair >> shift & REGISTER_MAX) as u8
    }

    fn set_dense_register(&mut self, index: usize, value: u8) {
        let (at, shift) = place_of(index);
        let old = u16::from_le_bytes([self.0[at], self.0.get(at + 1).copied().unwrap_or(0)]);
        let pair = old & !(REGISTER_MAX << shift) | u16::from(value) << shift;
        let [low, high] = pair.to_le_bytes();
        self.0[at] = low;
        if let Some(byte) = self.0.get_mut(at + 1) {
            *byte = high;
        }
    }
}

/// Returns the byte in which a register begins, and its first bit there.
fn place_of(index: usize) -> (usize, usize) {
    let bit = index * REGISTER_BITS;
    (HEADER_BYTES + bit / 8, bit % 8)
}

//! A HyperLogLog as the string that Redis keeps: a header of 16 bytes, then all registers (dense, `dense.rs`), or runs of
//! equal registers (sparse, `sparse.rs`).

use super::dense::{self, DENSE_BYTES};
use super::hash::hash;
use super::sparse;

pub(super) const REGISTERS: usize = 1 << INDEX_BITS;
/// Number of bits of a hash that choose the register.
const INDEX_BITS: usize = 14;
/// Number of bits of a hash that are counted.
pub(super) const COUNTED_BITS: usize = 64 - INDEX_BITS;

pub(super) const HEADER_BYTES: usize = 16;
const MAGIC: &[u8] = b"HYLL";
const ENCODING_AT: usize = 4;
pub(super) const ESTIMATE_AT: usize = 8;
pub(super) const ESTIMATE_END: usize = HEADER_BYTES;
const DENSE: u8 = 0;
const SPARSE: u8 = 1;
/// Set in the last byte of the header if the estimate in it is out of date.
pub(super) const OUT_OF_DATE: u8 = 0x80;

/// The registers, one in each byte.
pub(super) type Registers = [u8; REGISTERS];

/// The form of a HyperLogLog.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    Dense,
    Sparse,
}

impl Form {
    /// Returns the form of a string with a valid length and header; `None` for any other string.
    pub(super) fn of(bytes: &[u8]) -> Option<Form> {
        if bytes.len() < HEADER_BYTES || !bytes.starts_with(MAGIC) {
            return None;
        }
        match bytes[ENCODING_AT] {
            DENSE if bytes.len() == DENSE_BYTES => Some(Form::Dense),
            SPARSE => Some(Form::Sparse),
            _ => None,
        }
    }
}

/// An error: the runs of a sparse HyperLogLog are not 16,384 registers.
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
        Form::of(bytes).map(|_| Sketch(bytes.to_vec()))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn is_dense(&self) -> bool {
        self.0[ENCODING_AT] == DENSE
    }

    /// Returns the estimate in the header, if it is up to date.
    pub(super) fn kept_estimate(&self) -> Option<u64> {
        let bytes = self.0[ESTIMATE_AT..ESTIMATE_END].try_into().expect("eight bytes");
        let is_valid = self.0[ESTIMATE_END - 1] & OUT_OF_DATE == 0;
        is_valid.then(|| u64::from_le_bytes(bytes))
    }

    pub(super) fn invalidate_estimate(&mut self) {
        self.0[ESTIMATE_END - 1] |= OUT_OF_DATE;
    }

    /// Counts an element. Returns whether a register has changed.
    pub(super) fn add(&mut self, element: &[u8]) -> Result<bool, Corrupted> {
        let (index, value) = register_of(element);
        self.raise(index, value)
    }

    /// Sets a register to `value`, if it is lower. Returns whether it was.
    pub(super) fn raise(&mut self, index: usize, value: u8) -> Result<bool, Corrupted> {
        if !self.is_dense() {
            match sparse::raise(&mut self.0, index, value)? {
                sparse::Raised::Unchanged => return Ok(false),
                sparse::Raised::Changed => {
                    self.invalidate_estimate();
                    return Ok(true);
                }
                sparse::Raised::TooLong => self.make_dense()?,
            }
        }
        let is_raised = dense::register(&self.0, index) < value;
        if is_raised {
            dense::set_register(&mut self.0, index, value);
        }
        Ok(is_raised)
    }

    pub(super) fn registers(&self) -> Result<Box<Registers>, Corrupted> {
        let mut registers = Box::new([0; REGISTERS]);
        if self.is_dense() {
            for (index, register) in registers.iter_mut().enumerate() {
                *register = dense::register(&self.0, index);
            }
        } else {
            sparse::read(&self.0, &mut registers)?;
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
            dense::set_register(&mut self.0, index, *value);
        }
        Ok(())
    }
}

/// Returns the register of an element, and the value that the element gives it: one more than the number of zeros before
/// the first one in the rest of its hash.
pub(super) fn register_of(element: &[u8]) -> (usize, u8) {
    let hash = hash(element);
    // The highest bit ends the count.
    let counted = hash >> INDEX_BITS | 1 << COUNTED_BITS;
    (hash as usize % REGISTERS, counted.trailing_zeros() as u8 + 1)
}

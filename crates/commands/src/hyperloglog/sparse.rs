//! The sparse form of a HyperLogLog: runs of equal registers behind the header. Changed step by step as in Redis, so
//! that the same elements give the same bytes.
//!
//! ~~~text
//! 00xxxxxx             1 to 64 registers of zero
//! 01xxxxxx xxxxxxxx    1 to 16,384 registers of zero
//! 1vvvvvxx             1 to 4 registers of a value from 1 to 32
//! ~~~

use super::sketch::{Corrupted, HEADER_BYTES, REGISTERS, Registers};

/// A longer HyperLogLog is dense, as in Redis (`hll-sparse-max-bytes`).
const BYTES_MAX: usize = 3_000;
const SHORT_ZEROS_MAX: usize = 64;
const VALUE_MAX: u8 = 32;
const VALUES_MAX: usize = 4;
const LONG_ZEROS: u8 = 0x40;
const VALUES: u8 = 0x80;
/// Number of runs that are examined for runs to be joined.
const EXAMINED_RUNS: usize = 5;

/// A run of equal registers.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) value: u8,
    pub(super) len: usize,
    /// Length of its encoded form.
    bytes: usize,
}

impl Run {
    fn read(runs: &[u8]) -> Option<Run> {
        let first = *runs.first()?;
        Some(if first & VALUES != 0 {
            let value = (first >> 2 & 0x1F) + 1;
            Run { value, len: usize::from(first & 3) + 1, bytes: 1 }
        } else if first & LONG_ZEROS != 0 {
            let len = usize::from(first & 0x3F) << 8 | usize::from(*runs.get(1)?);
            Run { value: 0, len: len + 1, bytes: 2 }
        } else {
            Run { value: 0, len: usize::from(first) + 1, bytes: 1 }
        })
    }

    /// Returns the run as PFDEBUG DECODE prints it.
    pub(super) fn describe(self) -> String {
        match (self.value, self.bytes) {
            (0, 1) => format!("z:{}", self.len),
            (0, _) => format!("Z:{}", self.len),
            (value, _) => format!("v:{value},{}", self.len),
        }
    }
}

/// The result of raising a register.
pub(super) enum Raised {
    Unchanged,
    Changed,
    /// The result does not fit this form; nothing is changed.
    TooLong,
}

/// Iterates over the runs of a sparse HyperLogLog, up to the first that is cut off.
pub(super) fn runs(sketch: &[u8]) -> impl Iterator<Item = Run> {
    let mut rest = &sketch[HEADER_BYTES..];
    core::iter::from_fn(move || {
        let run = Run::read(rest)?;
        rest = &rest[run.bytes..];
        Some(run)
    })
}

/// Reads all runs into registers that are zero.
pub(super) fn read(sketch: &[u8], registers: &mut Registers) -> Result<(), Corrupted> {
    let mut index = 0;
    for run in runs(sketch) {
        registers.get_mut(index..index + run.len).ok_or(Corrupted)?.fill(run.value);
        index += run.len;
    }
    if index == REGISTERS { Ok(()) } else { Err(Corrupted) }
}

/// Sets a register to `value`, if it is lower.
pub(super) fn raise(sketch: &mut Vec<u8>, index: usize, value: u8) -> Result<Raised, Corrupted> {
    if value > VALUE_MAX {
        return Ok(Raised::TooLong);
    }
    let Place { previous, at, first, run } = find(sketch, index).ok_or(Corrupted)?;
    if run.value >= value {
        return Ok(Raised::Unchanged);
    }
    let mut new = Vec::with_capacity(5);
    write_run(&mut new, run.value, index - first);
    write_run(&mut new, value, 1);
    write_run(&mut new, run.value, first + run.len - 1 - index);
    let is_longer = new.len() > run.bytes;
    if is_longer && sketch.len() + new.len() - run.bytes > BYTES_MAX {
        return Ok(Raised::TooLong);
    }
    sketch.splice(at..at + run.bytes, new);
    join_runs(sketch, previous);
    Ok(Raised::Changed)
}

/// The run of a register.
struct Place {
    /// Offset of the run before it, or of itself if it is the first.
    previous: usize,
    at: usize,
    /// Index of its first register.
    first: usize,
    run: Run,
}

fn find(sketch: &[u8], index: usize) -> Option<Place> {
    let (mut previous, mut at, mut first) = (HEADER_BYTES, HEADER_BYTES, 0);
    for run in runs(sketch) {
        if index < first + run.len {
            return Some(Place { previous, at, first, run });
        }
        previous = at;
        at += run.bytes;
        first += run.len;
    }
    None
}

fn write_run(out: &mut Vec<u8>, value: u8, len: usize) {
    if value == 0 {
        write_zeros(out, len);
    } else if len > 0 {
        out.push(VALUES | (value - 1) << 2 | (len - 1) as u8);
    }
}

/// Appends a run of zeros.
pub(super) fn write_zeros(out: &mut Vec<u8>, len: usize) {
    match len {
        0 => {}
        1..=SHORT_ZEROS_MAX => out.push((len - 1) as u8),
        _ => out.extend_from_slice(&[LONG_ZEROS | ((len - 1) >> 8) as u8, (len - 1) as u8]),
    }
}

/// Joins neighbouring runs of the same value, among a few runs from `at` on.
fn join_runs(sketch: &mut Vec<u8>, mut at: usize) {
    for _ in 0..EXAMINED_RUNS {
        let Some(run) = sketch.get(at..).and_then(Run::read) else { return };
        let next = sketch.get(at + run.bytes..).and_then(Run::read);
        match next {
            Some(next)
                if run.value > 0 && next.value == run.value && run.len + next.len <= VALUES_MAX =>
            {
                sketch.remove(at);
                sketch[at] = VALUES | (run.value - 1) << 2 | (run.len + next.len - 1) as u8;
            }
            Some(_) | None => at += run.bytes,
        }
    }
}

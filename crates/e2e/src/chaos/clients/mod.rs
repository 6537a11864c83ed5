//! The clients of a run, one kind per file. Each repeats its step until the load ends (`load.rs`),
//! whatever happens to the cluster, and records the replies in the book.
mod writer; //       One SET or DEL at a time.
mod reader; //       GETs of keys that others write.
mod pipeline; //     Batches of SETs and DELs.
mod walker; //       DBSIZE, SCAN, KEYS, RANDOMKEY and WAIT.
mod locker; //       SET NX PX, and its release.
mod large; //        Values of up to hundreds of megabytes.
mod transactions; // MULTI, hundreds of COPYs, EXEC.
mod debris; //       Removal of large keys whose last write has an unknown fate.

pub use large::{LARGE_PLACES, LargeWriter, read as read_large};
pub use locker::{Locker, Locks};
pub use pipeline::PipelinedWriter;
pub use reader::Reader;
pub use transactions::{Transactor, judge as judge_transaction};
pub use walker::Walker;
pub use writer::Writer;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use resp::Value;

use super::book::{Key, Owner};
use super::history::Number;
use crate::Rng;

/// Number of keys of each writer at a time: together enough that every bucket is written to all the time.
pub const PLACES: usize = 1_000;

/// A client on a thread of its own.
pub trait Client: Send {
    fn step(&mut self);

    /// Returns the pause before the next step.
    fn pause(&mut self) -> Duration {
        // The pause limits the load: we test the cluster, not how little of two cores a node can live on.
        Duration::from_micros(300)
    }
}

/// The current life of each place of one owner.
#[derive(Debug)]
pub struct Lives {
    pub owner: Owner,
    places: Vec<AtomicU32>,
}

impl Lives {
    pub fn new(owner: Owner, places: usize) -> Lives {
        Lives { owner, places: (0..places).map(|_| AtomicU32::new(0)).collect() }
    }

    pub fn key(&self, place: usize) -> Key {
        Key { owner: self.owner, place, life: self.places[place].load(Ordering::Relaxed) }
    }

    /// Abandons the current key of a place: a write to it may still be carried out at any time.
    pub fn leave(&self, place: usize) {
        self.places[place].fetch_add(1, Ordering::Relaxed);
    }
}

/// Returns a value that contains the number of the operation that writes it; some values are long.
fn value(number: Number, rng: &mut Rng) -> Vec<u8> {
    let length = if rng.one_in(64) { rng.index(20_000) } else { rng.index(40) };
    let mut value = format!("{number}:").into_bytes();
    value.resize(value.len() + length, b'x');
    value
}

/// Returns the operation that wrote this value. A value that no client writes counts as never written.
pub fn number(reply: &Value) -> Option<Number> {
    let Value::Bulk(bytes) = reply else { return None };
    let digits = bytes.split(|byte| *byte == b':').next().unwrap_or_default();
    let text = std::str::from_utf8(digits).unwrap_or_default();
    Some(text.parse().unwrap_or(Number::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_names_its_operation_whatever_its_length() {
        let mut rng = Rng::new(1);
        for expected in 0..500 {
            assert_eq!(number(&Value::Bulk(value(expected, &mut rng))), Some(expected));
        }
        assert_eq!(number(&Value::Null), None);
        assert_eq!(number(&Value::Bulk(b"junk".to_vec())), Some(Number::MAX));
    }
}

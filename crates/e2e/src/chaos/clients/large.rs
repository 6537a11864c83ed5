//! A writer of large values: most have 1 to 20 MB, a few up to 300 MB. A value carries its number
//! and length at both ends, so that a read can be judged without fetching all of it.
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use resp::Value;

use super::debris::Debris;
use super::{Client, Lives};
use crate::Rng;
use crate::chaos::causes::Rank;
use crate::chaos::courier::{Courier, Fate};
use crate::chaos::history::{Act, Number};
use crate::chaos::load::{Desk, Sizes};

/// Number of keys in use at a time.
pub const LARGE_PLACES: usize = 4;
/// The only place that gets values above `USUAL_BYTES_MAX`, so that memory stays bounded.
const HUGE_PLACE: usize = 0;
const USUAL_BYTES_MAX: usize = 20_000_000;
const BYTES_MIN: usize = 1_000_000;
/// Size of the mark (number and length) at either end of a value.
const MARK_BYTES: usize = 32;
static CHUNK: [u8; 64 * 1024] = [b'x'; 64 * 1024];

pub struct LargeWriter {
    courier: Courier,
    desk: Desk,
    lives: Arc<Lives>,
    sizes: Sizes,
    debris: Debris,
    rng: Rng,
}

impl LargeWriter {
    pub fn new(desk: &Desk, lives: Arc<Lives>, sizes: Sizes, mut rng: Rng) -> LargeWriter {
        let courier = Courier::new(desk, Rng::new(rng.draw())).patient();
        LargeWriter { courier, desk: desk.clone(), lives, sizes, debris: Debris::default(), rng }
    }

    fn set(&mut self, place: usize, length: usize) {
        let key = self.lives.key(place);
        let number = self.desk.book.issue(key, Act::Set);
        let name = key.name();
        let label = format!("SET {name} of {length} bytes");
        let lane = Arc::clone(&self.desk.lane);
        let is_huge = length > USUAL_BYTES_MAX;
        let _alone = is_huge.then(|| lane.lock().expect("no client panics in its lane"));
        let entry =
            is_huge.then(|| self.desk.journal.begin("large value".into(), Rank::LargeRequest));
        let fate = self.courier.deliver(&name, &label, &|line| {
            write_value(&name, number, length, &mut |bytes| line.send_raw(bytes))
        });
        if let Some(entry) = entry {
            self.desk.journal.end(entry);
        }
        self.desk.book.large_values.fetch_add(1, Ordering::Relaxed);
        self.record(place, number, &fate);
    }

    fn delete(&mut self, place: usize) {
        let key = self.lives.key(place);
        let number = self.desk.book.issue(key, Act::Delete);
        let name = key.name();
        let fate = self.courier.send(&name, &[b"UNLINK", name.as_bytes()]);
        self.record(place, number, &fate);
    }

    fn check(&mut self, place: usize) {
        let key = self.lives.key(place);
        let floor = self.desk.book.floor(key);
        if let Some(found) = read(&mut self.courier, &key.name()) {
            self.desk.book.judge(key, found, floor);
        }
    }

    fn record(&mut self, place: usize, number: Number, fate: &Fate) {
        let (key, book) = (self.lives.key(place), &self.desk.book);
        match fate {
            Fate::Answered(_) => book.acknowledge(key, number),
            Fate::NotDone => book.refuse(key, number),
            Fate::Unknown => {
                book.unknown.fetch_add(1, Ordering::Relaxed);
                // The key would take up memory for the rest of the run.
                book.forget(key);
                self.debris.add(vec![key.name()]);
                self.lives.leave(place);
            }
        }
    }
}

impl Client for LargeWriter {
    fn step(&mut self) {
        let mut rng = Rng::new(self.rng.draw());
        self.debris.sweep(&mut self.courier);
        let (place, action) = (rng.index(LARGE_PLACES), rng.below(8));
        let max = self.sizes.value_bytes_max;
        let is_huge = place == HUGE_PLACE && rng.one_in(4);
        let bound = if is_huge { max } else { USUAL_BYTES_MAX.min(max) };
        let length = BYTES_MIN + rng.index(bound - BYTES_MIN);
        match action {
            0 => self.delete(place),
            1 | 2 => self.check(place),
            _ => self.set(place, length),
        }
    }

    fn pause(&mut self) -> Duration {
        self.sizes.large_every
    }
}

/// Reads a value's length and both marks. Returns None if there is no answer, `Some(None)` if there is no value.
pub fn read(courier: &mut Courier, name: &str) -> Option<Option<Number>> {
    let Value::Integer(length) = courier.ask(name, &[b"STRLEN", name.as_bytes()])? else {
        return Some(Some(Number::MAX));
    };
    if length == 0 {
        return Some(None);
    }
    let mut range =
        |first: &[u8], last: &[u8]| courier.ask(name, &[b"GETRANGE", name.as_bytes(), first, last]);
    let (head, tail) = (range(b"0", b"31")?, range(b"-32", b"-1")?);
    Some(Some(number_of(&head, &tail, usize::try_from(length).unwrap_or_default())))
}

/// Returns the operation that wrote a value with these ends and this length. A torn value counts as never written.
fn number_of(head: &Value, tail: &Value, length: usize) -> Number {
    let is_whole = |number: &Number| {
        let expected = Value::Bulk(mark(*number, length));
        *head == expected && *tail == expected
    };
    super::number(head).filter(is_whole).unwrap_or(Number::MAX)
}

fn mark(number: Number, length: usize) -> Vec<u8> {
    let mut mark = format!("{number}:{length}:").into_bytes();
    mark.resize(MARK_BYTES, b'x');
    mark
}

/// Sends a SET piece by piece, so that this process never holds a whole value in memory.
fn write_value(
    name: &str,
    number: Number,
    length: usize,
    send: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mark = mark(number, length);
    let name_bytes = name.len();
    send(format!("*3\r\n$3\r\nSET\r\n${name_bytes}\r\n{name}\r\n${length}\r\n").as_bytes())?;
    send(&mark)?;
    let mut remaining = length - 2 * MARK_BYTES;
    while remaining > 0 {
        let count = remaining.min(CHUNK.len());
        send(&CHUNK[..count])?;
        remaining -= count;
    }
    send(&mark)?;
    send(b"\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_sent_with_its_length_and_known_by_its_ends() {
        let mut sent = Vec::new();
        write_value("k", 7, 200_000, &mut |bytes| {
            sent.extend_from_slice(bytes);
            Ok(())
        })
        .unwrap();
        let head = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$200000\r\n";
        let value = sent.strip_prefix(head).unwrap().strip_suffix(b"\r\n").unwrap();
        assert_eq!(value.len(), 200_000);
        let end = |bytes: &[u8]| Value::Bulk(bytes.to_vec());
        let (first, last) = (end(&value[..32]), end(&value[value.len() - 32..]));
        assert_eq!(number_of(&first, &last, 200_000), 7);
        assert_eq!(number_of(&first, &last, 199_999), Number::MAX, "it was cut short");
        assert_eq!(number_of(&first, &end(b"xx"), 200_000), Number::MAX);
    }
}

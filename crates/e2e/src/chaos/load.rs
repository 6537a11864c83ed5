//! Writers and readers that go on whatever happens, and write into the book (`book.rs`) what they were told.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use placement::Slot;
use resp::Value;

use super::book::{Book, Key};
use super::courier::{Courier, Fate, Town};
use super::history::{Act, Number};
use super::outages::Outages;
use crate::Rng;

const WRITERS: usize = 4;
const READERS: usize = 2;
/// Keys of each writer at a time.
const PLACES: usize = 300;
/// Between two operations of a thread: so that it is the cluster that is tested, and not how little of two
/// cores a node can live on.
const PACE: Duration = Duration::from_micros(300);

/// What all threads of a load share.
#[derive(Clone, Debug)]
pub struct Desk {
    pub town: Town,
    pub book: Arc<Book>,
    pub outages: Arc<Outages>,
}

pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    pub fn start(desk: &Desk, rng: &mut Rng) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let lives: Arc<Vec<Lives>> = Arc::new((0..WRITERS).map(|_| Lives::default()).collect());
        let mut threads = Vec::new();
        for writer in 0..WRITERS {
            let mut writer = Writer::new(writer, desk, Arc::clone(&lives), Rng::new(rng.draw()));
            let stop = Arc::clone(&stop);
            threads.push(thread::spawn(move || writer.work(&stop)));
        }
        for _ in 0..READERS {
            let mut reader = Reader::new(desk, Arc::clone(&lives), Rng::new(rng.draw()));
            let stop = Arc::clone(&stop);
            threads.push(thread::spawn(move || reader.work(&stop)));
        }
        Load { stop, threads }
    }

    pub fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a writer or reader does not panic");
        }
    }
}

/// Which life each place of a writer is in.
#[derive(Debug)]
struct Lives(Vec<std::sync::atomic::AtomicU32>);

impl Default for Lives {
    fn default() -> Lives {
        Lives((0..PLACES).map(|_| std::sync::atomic::AtomicU32::new(0)).collect())
    }
}

impl Lives {
    fn key(&self, writer: usize, place: usize) -> Key {
        Key { writer, place, life: self.0[place].load(Ordering::Relaxed) }
    }
}

struct Writer {
    number: usize,
    courier: Courier,
    desk: Desk,
    lives: Arc<Vec<Lives>>,
    rng: Rng,
}

impl Writer {
    fn new(number: usize, desk: &Desk, lives: Arc<Vec<Lives>>, mut rng: Rng) -> Writer {
        let book = Arc::clone(&desk.book);
        let courier = Courier::new(desk.town.clone(), book, Rng::new(rng.draw()));
        Writer { number, courier, desk: desk.clone(), lives, rng }
    }

    fn work(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            self.write();
            thread::sleep(PACE);
        }
    }

    fn write(&mut self) {
        let place = self.rng.index(PLACES);
        let key = self.lives[self.number].key(self.number, place);
        let act = if self.rng.one_in(16) { Act::Delete } else { Act::Set };
        let number = self.desk.book.issue(key, act);
        let (name, value) = (key.name(), value(number, &mut self.rng));
        let words: &[&[u8]] = match act {
            Act::Set => &[b"SET", name.as_bytes(), &value],
            Act::Delete => &[b"DEL", name.as_bytes()],
        };
        let (slot, begun) = (Slot::of(name.as_bytes()), Instant::now());
        match self.courier.send(&name, words) {
            Fate::Answered(_) => {
                self.desk.outages.came_through(slot, begun, Instant::now());
                self.desk.book.acknowledge(key, number);
            }
            Fate::NotDone => {
                self.desk.outages.failed(slot, begun);
                self.desk.book.refuse(key, number);
            }
            Fate::Unknown => {
                self.desk.outages.failed(slot, begun);
                self.desk.book.unknown.fetch_add(1, Ordering::Relaxed);
                // It may be carried out at any time from now on.
                self.lives[self.number].0[place].fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

struct Reader {
    courier: Courier,
    book: Arc<Book>,
    lives: Arc<Vec<Lives>>,
    rng: Rng,
}

impl Reader {
    fn new(desk: &Desk, lives: Arc<Vec<Lives>>, mut rng: Rng) -> Reader {
        let book = Arc::clone(&desk.book);
        let courier = Courier::new(desk.town.clone(), Arc::clone(&book), Rng::new(rng.draw()));
        Reader { courier, book, lives, rng }
    }

    fn work(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let writer = self.rng.index(WRITERS);
            let key = self.lives[writer].key(writer, self.rng.index(PLACES));
            let floor = self.book.floor(key);
            let name = key.name();
            if let Fate::Answered(answer) = self.courier.send(&name, &[b"GET", name.as_bytes()]) {
                self.book.judge(key, number(&answer), floor);
            }
            thread::sleep(PACE);
        }
    }
}

/// A value tells which operation wrote it; some are long.
fn value(number: Number, rng: &mut Rng) -> Vec<u8> {
    let length = if rng.one_in(64) { rng.index(20_000) } else { rng.index(40) };
    let mut value = format!("{number}:").into_bytes();
    value.resize(value.len() + length, b'x');
    value
}

/// The operation that wrote this value. What is no value of ours is taken for one that never was.
pub fn number(answer: &Value) -> Option<Number> {
    let Value::Bulk(bytes) = answer else { return None };
    let digits = bytes.split(|byte| *byte == b':').next().unwrap_or_default();
    let text = std::str::from_utf8(digits).unwrap_or_default();
    Some(text.parse().unwrap_or(Number::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_tells_its_number_whatever_its_length() {
        let mut rng = Rng::new(1);
        for expected in 0..500 {
            assert_eq!(number(&Value::Bulk(value(expected, &mut rng))), Some(expected));
        }
        assert_eq!(number(&Value::Null), None);
        assert_eq!(number(&Value::Bulk(b"junk".to_vec())), Some(Number::MAX));
    }
}

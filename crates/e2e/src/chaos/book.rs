//! The book of a run: every key with its history, and every promise that was found broken.
//!
//! Writers and readers (`load.rs`) write in it from many threads; at the end `settle` reads everything once
//! more. What counts as broken is in `history.rs`.
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::history::{Act, Breach, History, Number};

/// So many words tell one error from another.
const ERROR_WORDS: usize = 5;

/// The key of a place in the book. A place gets a new life when the fate of a write to it is unknown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    pub writer: usize,
    pub place: usize,
    pub life: u32,
}

impl Key {
    pub fn name(self) -> String {
        format!("c{}:{}:{}", self.writer, self.place, self.life)
    }
}

/// What a run has counted and found.
#[derive(Debug, Default)]
pub struct Book {
    keys: Mutex<BTreeMap<Key, History>>,
    breaches: Mutex<Vec<String>>,
    lost: Mutex<Vec<Key>>,
    /// Errors that reached a client, by their first words.
    errors: Mutex<BTreeMap<String, u64>>,
    pub writes: AtomicU64,
    pub reads: AtomicU64,
    /// Writes of which nobody knows whether they were carried out.
    pub unknown: AtomicU64,
}

impl Book {
    /// The next operation on a key, before it is sent.
    pub fn issue(&self, key: Key, act: Act) -> Number {
        self.with(key, |history| history.issue(act))
    }

    pub fn acknowledge(&self, key: Key, number: Number) {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.with(key, |history| history.acknowledge(number));
    }

    pub fn refuse(&self, key: Key, number: Number) {
        self.with(key, |history| history.refuse(number));
    }

    /// What a read of this key that begins now may not fall below.
    pub fn floor(&self, key: Key) -> Number {
        self.with(key, |history| history.floor())
    }

    pub fn judge(&self, key: Key, found: Option<Number>, floor: Number) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if let Err(breach) = self.with(key, |history| history.judge(found, floor)) {
            self.note(key, &breach);
        }
    }

    /// An error that reached a client and was not followed (as MOVED is).
    pub fn error(&self, text: &str) {
        let words: Vec<&str> = text.split(' ').take(ERROR_WORDS).collect();
        *lock(&self.errors).entry(words.join(" ")).or_default() += 1;
    }

    /// Claims that one more write was acknowledged than was: to see that the loss is found.
    pub fn lie(&self) {
        let key = lock(&self.keys).keys().next().copied().expect("something was written");
        let number = self.issue(key, Act::Set);
        self.acknowledge(key, number);
    }

    /// Reads every key that was ever written, when all is quiet, through `read`.
    pub fn settle(&self, mut read: impl FnMut(&str) -> Option<Number>) {
        let keys: Vec<Key> = lock(&self.keys).keys().copied().collect();
        for key in keys {
            let found = read(&key.name());
            let (floor, acknowledged) =
                self.with(key, |history| (history.floor(), history.acknowledged()));
            let Err(breach) = self.with(key, |history| history.judge(found, floor)) else {
                continue;
            };
            self.note(key, &breach);
            let is_below = |found: Number| found < acknowledged;
            if matches!(breach, Breach::Stale { .. }) && found.is_none_or(is_below) {
                lock(&self.lost).push(key);
            }
        }
    }

    /// Keys whose last acknowledged write is not there at the end.
    pub fn lost(&self) -> Vec<Key> {
        lock(&self.lost).clone()
    }

    /// Everything that was found broken, in words.
    pub fn breaches(&self) -> Vec<String> {
        lock(&self.breaches).clone()
    }

    pub fn errors(&self) -> BTreeMap<String, u64> {
        lock(&self.errors).clone()
    }

    fn note(&self, key: Key, breach: &Breach) {
        let name = key.name();
        let line = match breach {
            Breach::Stale { found: Some(found), floor } => {
                format!("{name}: {found} was read after {floor}")
            }
            Breach::Stale { found: None, floor } => {
                format!("{name}: nothing was read after {floor}")
            }
            Breach::Ghost { found } => format!("{name}: {found} was read, which was never done"),
        };
        lock(&self.breaches).push(line);
    }

    fn with<T>(&self, key: Key, act: impl FnOnce(&mut History) -> T) -> T {
        act(lock(&self.keys).entry(key).or_default())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("nobody panics with the book in hand")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { writer: 1, place: 2, life: 0 };

    fn written() -> Book {
        let book = Book::default();
        let number = book.issue(KEY, Act::Set);
        book.acknowledge(KEY, number);
        book
    }

    #[test]
    fn a_write_that_is_there_at_the_end_is_not_lost() {
        let book = written();
        book.settle(|name| (name == "c1:2:0").then_some(1));
        assert_eq!((book.lost(), book.breaches()), (vec![], vec![]));
    }

    #[test]
    fn a_write_that_is_not_there_at_the_end_is_lost() {
        let book = written();
        book.settle(|_| None);
        assert_eq!(book.lost(), [KEY]);
        assert_eq!(book.breaches(), ["c1:2:0: nothing was read after 1"]);
    }

    #[test]
    fn a_lie_is_found_out() {
        let book = written();
        book.lie();
        book.settle(|_| Some(1));
        assert_eq!(book.lost(), [KEY]);
    }

    #[test]
    fn what_was_read_and_never_acknowledged_is_missed_but_not_lost() {
        let book = written();
        let open = book.issue(KEY, Act::Set);
        book.judge(KEY, Some(open), 1);
        book.settle(|_| Some(1));
        assert_eq!(book.lost(), []);
        assert_eq!(book.breaches(), ["c1:2:0: 1 was read after 2"]);
    }
}

//! The book of a run: every key with its history, and every anomaly that was found.
//!
//! Clients (`clients/`) write in it from many threads; at the end `settle` reads everything once more.
//! `history.rs` judges the reads of one key.
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::anomalies::{Anomaly, Class};
use super::history::{Act, Breach, History, Number};

/// Number of leading words by which errors are grouped.
const ERROR_WORDS: usize = 5;

/// The client that a key belongs to. No other client writes to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Owner {
    Writer(usize),
    Pipeline(usize),
    Large,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Writer(number) => write!(f, "c{number}"),
            Owner::Pipeline(number) => write!(f, "p{number}"),
            Owner::Large => f.write_str("large"),
        }
    }
}

/// The key of a place in the book. A place gets a new life, and so a new key, when the fate of a write is unknown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Key {
    pub owner: Owner,
    pub place: usize,
    pub life: u32,
}

impl Key {
    pub fn name(self) -> String {
        format!("{}:{}:{}", self.owner, self.place, self.life)
    }
}

/// Histories, anomalies and counts of a run.
#[derive(Debug, Default)]
pub struct Book {
    keys: Mutex<BTreeMap<Key, History>>,
    anomalies: Mutex<Vec<Anomaly>>,
    /// Errors that reached a client, by their first words.
    errors: Mutex<BTreeMap<String, u64>>,
    pub writes: AtomicU64,
    pub reads: AtomicU64,
    /// Writes that may or may not have been carried out.
    pub unknown: AtomicU64,
    /// Answered commands that walk over all keys of a node.
    pub walks: AtomicU64,
    /// Transactions whose effect was checked.
    pub transactions: AtomicU64,
    /// Values of a megabyte or more that were written.
    pub large_values: AtomicU64,
}

impl Book {
    /// Numbers the next operation on a key, before it is sent.
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

    /// Returns the oldest state that a read of this key may show if it begins now.
    pub fn floor(&self, key: Key) -> Number {
        self.with(key, |history| history.floor())
    }

    pub fn judge(&self, key: Key, found: Option<Number>, floor: Number) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if let Err(breach) = self.with(key, |history| history.judge(found, floor)) {
            self.note(class(&breach), describe(key, &breach));
        }
    }

    /// Drops a key that its owner removes without waiting for the outcome.
    pub fn forget(&self, key: Key) {
        lock(&self.keys).remove(&key);
    }

    /// Counts an error that a client got, other than a redirect (MOVED), which clients follow.
    pub fn error(&self, text: &str) {
        let words: Vec<&str> = text.split(' ').take(ERROR_WORDS).collect();
        *lock(&self.errors).entry(words.join(" ")).or_default() += 1;
    }

    pub fn note(&self, class: Class, details: String) {
        lock(&self.anomalies).push(Anomaly { class, details });
    }

    /// Reads every key of the book through `read`, after all clients have ended. `read` returns
    /// None if it gets no answer.
    pub fn settle(&self, mut read: impl FnMut(Key) -> Option<Option<Number>>) {
        for key in self.keys() {
            let Some(found) = read(key) else {
                self.note(Class::Hung, format!("{}: no answer at the end", key.name()));
                continue;
            };
            let floor = self.floor(key);
            let Err(breach) = self.with(key, |history| history.judge(found, floor)) else {
                continue;
            };
            let class = self.with(key, |history| class_at_end(history, &breach));
            self.note(class, describe(key, &breach));
        }
    }

    pub fn keys(&self) -> Vec<Key> {
        lock(&self.keys).keys().copied().collect()
    }

    /// Returns whether the last operation on the key was a SET and is acknowledged.
    pub fn is_set(&self, key: Key) -> bool {
        self.with(key, |history| history.is_set())
    }

    /// Returns every anomaly found so far.
    pub fn anomalies(&self) -> Vec<Anomaly> {
        lock(&self.anomalies).clone()
    }

    pub fn count(&self, class: Class) -> usize {
        super::anomalies::count(&lock(&self.anomalies), class)
    }

    pub fn errors(&self) -> BTreeMap<String, u64> {
        lock(&self.errors).clone()
    }

    fn with<T>(&self, key: Key, act: impl FnOnce(&mut History) -> T) -> T {
        act(lock(&self.keys).entry(key).or_default())
    }
}

fn class(breach: &Breach) -> Class {
    match breach {
        Breach::Stale { .. } => Class::Stale,
        Breach::Resurrected { .. } => Class::Resurrected,
        Breach::Phantom { .. } => Class::Phantom,
    }
}

/// Returns the class of a breach found by the last read of a key, after which nothing newer arrives.
fn class_at_end(history: &History, breach: &Breach) -> Class {
    let is_below = |found: Number| found < history.acknowledged();
    match breach {
        Breach::Stale { found, .. } if found.is_none_or(is_below) => Class::Lost,
        Breach::Resurrected { .. } if !history.ends_deleted() => Class::Lost,
        Breach::Stale { .. } | Breach::Resurrected { .. } | Breach::Phantom { .. } => class(breach),
    }
}

fn describe(key: Key, breach: &Breach) -> String {
    let name = key.name();
    match breach {
        Breach::Stale { found: Some(found), floor } => {
            format!("{name}: read {found}, older than {floor}")
        }
        Breach::Stale { found: None, floor } => {
            format!("{name}: key missing, although {floor} was acknowledged or read")
        }
        Breach::Resurrected { found, delete } => {
            format!("{name}: read {found} after delete {delete} was acknowledged")
        }
        Breach::Phantom { found } => {
            format!("{name}: read {found}, which was refused or never written")
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().expect("no thread panics with the book in hand")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { owner: Owner::Writer(1), place: 2, life: 0 };

    fn written() -> Book {
        let book = Book::default();
        let number = book.issue(KEY, Act::Set);
        book.acknowledge(KEY, number);
        book
    }

    fn found(book: &Book) -> Vec<String> {
        book.anomalies().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_write_that_is_there_at_the_end_is_not_lost() {
        let book = written();
        book.settle(|key| Some((key.name() == "c1:2:0").then_some(1)));
        assert_eq!(book.anomalies(), []);
    }

    #[test]
    fn a_write_that_is_not_there_at_the_end_is_lost() {
        let book = written();
        book.settle(|_| Some(None));
        let expected = "lost: c1:2:0: key missing, although 1 was acknowledged or read";
        assert_eq!(found(&book), [expected]);
    }

    #[test]
    fn an_older_value_at_the_end_is_a_loss_and_before_that_it_is_stale() {
        let book = written();
        let second = book.issue(KEY, Act::Set);
        book.acknowledge(KEY, second);
        book.judge(KEY, Some(1), book.floor(KEY));
        book.settle(|_| Some(Some(1)));
        assert_eq!(
            found(&book),
            ["stale: c1:2:0: read 1, older than 2", "lost: c1:2:0: read 1, older than 2"]
        );
    }

    #[test]
    fn a_deleted_value_that_is_there_at_the_end_is_resurrected() {
        let book = written();
        let delete = book.issue(KEY, Act::Delete);
        book.acknowledge(KEY, delete);
        book.settle(|_| Some(Some(1)));
        let expected = "resurrected: c1:2:0: read 1 after delete 2 was acknowledged";
        assert_eq!(found(&book), [expected]);
    }

    #[test]
    fn a_value_that_was_read_and_never_acknowledged_is_stale_but_not_lost() {
        let book = written();
        let open = book.issue(KEY, Act::Set);
        book.judge(KEY, Some(open), 1);
        book.settle(|_| Some(Some(1)));
        assert_eq!(found(&book), ["stale: c1:2:0: read 1, older than 2"]);
    }

    #[test]
    fn a_refused_write_that_is_read_is_a_phantom() {
        let book = written();
        let refused = book.issue(KEY, Act::Set);
        book.refuse(KEY, refused);
        book.settle(|_| Some(Some(refused)));
        let expected = "phantoms: c1:2:0: read 2, which was refused or never written";
        assert_eq!(found(&book), [expected]);
    }
}

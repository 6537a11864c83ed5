//! A client of clusters that knows what became of every command: answered, surely not done, or unknown. It
//! follows `MOVED`, keeps a map of slots as clients do, and goes to another node when one does not answer.
//!
//! Used by `load.rs` for all that is written and read, and by `figures.rs`.
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use load::slots::ranges;
use placement::Slot;
use resp::Value;

use super::book::Book;
use crate::{Client, Rng};

/// An answer that takes longer is not waited for. A primary whose backup dies answers after about a lease.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// How long a command is tried again that was surely not done.
const PATIENCE: Duration = Duration::from_secs(30);
/// After an error or a refused connection.
const AGAIN_AFTER: Duration = Duration::from_millis(10);
/// How often the map of slots is read anew, at most.
const REFRESH_EVERY: Duration = Duration::from_millis(200);
/// A node that did not answer is left alone for so long, if there are others.
const SUSPECT_FOR: Duration = Duration::from_secs(2);

/// Where clients reach the nodes that are there now.
#[derive(Clone, Default, Debug)]
pub struct Town(Arc<Mutex<Vec<SocketAddr>>>);

impl Town {
    pub fn set(&self, addresses: Vec<SocketAddr>) {
        *self.0.lock().expect("it is only read and written") = addresses;
    }

    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.0.lock().expect("it is only read and written").clone()
    }
}

/// What became of a command.
#[derive(Clone, PartialEq, Debug)]
pub enum Fate {
    Answered(Value),
    /// Every node that was asked said that it was not done.
    NotDone,
    /// It was sent, and no answer came.
    Unknown,
}

#[derive(Debug)]
pub struct Courier {
    town: Town,
    book: Arc<Book>,
    rng: Rng,
    /// Where each slot was last found.
    places: Vec<Option<SocketAddr>>,
    lines: BTreeMap<SocketAddr, Client>,
    /// Who did not answer, and when.
    suspects: BTreeMap<SocketAddr, Instant>,
    refreshed: Option<Instant>,
    connect_within: Duration,
    answer_within: Duration,
}

impl Courier {
    pub fn new(town: Town, book: Arc<Book>, rng: Rng) -> Courier {
        let (places, lines) = (vec![None; usize::from(Slot::COUNT)], BTreeMap::new());
        let suspects = BTreeMap::new();
        Courier {
            town,
            book,
            rng,
            places,
            lines,
            suspects,
            refreshed: None,
            connect_within: ANSWER_WITHIN,
            answer_within: ANSWER_WITHIN,
        }
    }

    /// One that waits for an answer rather than asks again, and not long for a machine that is gone: so it
    /// sees when there is an answer.
    pub fn patient(self) -> Courier {
        Courier { connect_within: REFRESH_EVERY, answer_within: PATIENCE, ..self }
    }

    /// Sends a command on `key` once, at most: it is tried again only where it was surely not done.
    pub fn send(&mut self, key: &str, words: &[&[u8]]) -> Fate {
        let slot = Slot::of(key.as_bytes());
        let until = Instant::now() + PATIENCE;
        let mut hops = 0;
        while Instant::now() < until {
            let Some(at) = self.place(slot) else {
                thread::sleep(AGAIN_AFTER);
                continue;
            };
            let Ok(line) = self.line(at) else {
                self.lose(at, "unreachable");
                thread::sleep(AGAIN_AFTER);
                continue;
            };
            let answer = match line.send(words).and_then(|()| line.receive()) {
                Ok(answer) => answer.value,
                Err(error) => {
                    self.lose(at, kind(&error));
                    return Fate::Unknown;
                }
            };
            let Value::Error(text) = &answer else { return Fate::Answered(answer) };
            hops += 1;
            self.on_error(slot, &String::from_utf8_lossy(text), hops);
        }
        Fate::NotDone
    }

    /// Sends a command that may be carried out twice, until it is answered.
    pub fn ask(&mut self, key: &str, words: &[&[u8]]) -> Option<Value> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Fate::Answered(answer) = self.send(key, words) {
                return Some(answer);
            }
        }
        None
    }

    /// The node that should have a slot, or any of those that answer.
    fn place(&mut self, slot: Slot) -> Option<SocketAddr> {
        if let Some(at) = self.places[slot.index()] {
            return Some(at);
        }
        let all = self.town.addresses();
        let (suspects, sound): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|at| self.is_suspect(*at));
        let from = if sound.is_empty() { suspects } else { sound };
        if from.is_empty() { None } else { Some(from[self.rng.index(from.len())]) }
    }

    fn is_suspect(&self, at: SocketAddr) -> bool {
        self.suspects.get(&at).is_some_and(|since| since.elapsed() < SUSPECT_FOR)
    }

    /// A connection that the other end has not closed.
    fn line(&mut self, at: SocketAddr) -> io::Result<&mut Client> {
        if self.lines.get(&at).is_some_and(|line| !line.is_open()) {
            self.lines.remove(&at);
        }
        match self.lines.entry(at) {
            std::collections::btree_map::Entry::Occupied(line) => Ok(line.into_mut()),
            std::collections::btree_map::Entry::Vacant(place) => Ok(
                place.insert(Client::connect_within(self.connect_within, at, self.answer_within)?)
            ),
        }
    }

    fn lose(&mut self, at: SocketAddr, why: &str) {
        self.book.error(why);
        self.lines.remove(&at);
        self.suspects.insert(at, Instant::now());
        for place in &mut self.places {
            place.take_if(|place| *place == at);
        }
    }

    fn on_error(&mut self, slot: Slot, text: &str, hops: u32) {
        let words: Vec<&str> = text.split(' ').collect();
        let target = words.get(2).and_then(|at| at.parse::<SocketAddr>().ok());
        let (Some(&"MOVED"), Some(at)) = (words.first(), target) else {
            self.book.error(text);
            self.places[slot.index()] = None;
            thread::sleep(AGAIN_AFTER);
            return;
        };
        if self.is_suspect(at) {
            self.places[slot.index()] = None; // The others will know better in a moment.
            thread::sleep(AGAIN_AFTER);
            return;
        }
        self.places[slot.index()] = Some(at);
        if hops > 3 {
            thread::sleep(AGAIN_AFTER); // Two nodes do not agree yet.
        }
        if self.refreshed.is_none_or(|then| then.elapsed() > REFRESH_EVERY) {
            self.refreshed = Some(Instant::now());
            self.refresh(at);
        }
    }

    /// Reads the whole map of slots, as clients do after a `MOVED`.
    fn refresh(&mut self, at: SocketAddr) {
        let Ok(line) = self.line(at) else { return };
        let asked = line.send(&["CLUSTER", "SLOTS"]).and_then(|()| line.receive());
        match asked {
            Ok(answer) => {
                for (first, last, at) in ranges(&answer.value) {
                    self.places[first..=last].fill(Some(at));
                }
            }
            Err(_) => drop(self.lines.remove(&at)),
        }
    }
}

fn kind(error: &io::Error) -> &'static str {
    let is_timeout = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
    if is_timeout { "timeout" } else { "closed" }
}

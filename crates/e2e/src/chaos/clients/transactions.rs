//! A client of large transactions: hundreds of COPYs of one value in a MULTI. Afterwards either all
//! copies must exist, or none.
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use placement::Slot;
use resp::Value;

use super::Client;
use super::debris::Debris;
use crate::Rng;
use crate::chaos::anomalies::Class;
use crate::chaos::causes::Rank;
use crate::chaos::courier::{Command, Courier, Fate};
use crate::chaos::load::{Desk, Sizes};

const VALUE_BYTES: usize = 1024 * 1024;
/// Number of attempts at a transaction that was surely not done, mostly because its slot had moved.
const ATTEMPTS: usize = 5;
/// Interval at which keys whose fate is unknown are removed.
const SWEEP_EVERY: Duration = Duration::from_secs(4);

pub struct Transactor {
    courier: Courier,
    desk: Desk,
    sizes: Sizes,
    debris: Debris,
    count: u64,
    /// Start of the last transaction.
    last: Option<Instant>,
}

/// The keys of one transaction, all in one slot.
struct Keys {
    source: String,
    copies: Vec<String>,
}

impl Keys {
    fn new(number: u64, copies: usize) -> Keys {
        let copies = (0..copies).map(|copy| format!("{{t{number}}}x{copy}")).collect();
        Keys { source: format!("{{t{number}}}v"), copies }
    }

    fn slot(&self) -> Slot {
        Slot::of(self.source.as_bytes())
    }

    fn all(&self) -> Vec<String> {
        [std::slice::from_ref(&self.source), &self.copies].concat()
    }

    fn transaction(&self) -> Vec<Command> {
        let slot = self.slot();
        let copy = |to: &String| {
            Command::new(slot, &[b"COPY", self.source.as_bytes(), to.as_bytes(), b"REPLACE"])
        };
        let mut commands = vec![Command::new(slot, &[b"MULTI"])];
        commands.extend(self.copies.iter().map(copy));
        commands.push(Command::new(slot, &[b"EXEC"]));
        commands
    }
}

impl Transactor {
    pub fn new(desk: &Desk, sizes: Sizes, mut rng: Rng) -> Transactor {
        let courier = Courier::new(desk, Rng::new(rng.draw())).patient();
        let (desk, debris) = (desk.clone(), Debris::default());
        Transactor { courier, desk, sizes, debris, count: 0, last: None }
    }

    /// Writes the source, runs the transaction, checks it, and removes everything.
    fn run(&mut self, keys: &Keys) {
        let value = vec![b'x'; VALUE_BYTES];
        let set = self.courier.send(&keys.source, &[b"SET", keys.source.as_bytes(), &value]);
        if !matches!(set, Fate::Answered(_)) {
            self.debris.add(vec![keys.source.clone()]);
            return;
        }
        let fate = self.execute(keys);
        let is_clear = fate != Fate::Unknown;
        let found = self.count_copies(keys);
        let details = format!("{}: {found:?} copies after {}", keys.source, name(&fate));
        self.note(judge(&fate, found, keys.copies.len()), details);
        self.desk.book.transactions.fetch_add(1, Ordering::Relaxed);
        if !is_clear || !self.remove(keys) {
            self.debris.add(keys.all());
        }
    }

    fn execute(&mut self, keys: &Keys) -> Fate {
        for _ in 0..ATTEMPTS {
            let Some(at) = self.courier.place(keys.slot()) else { break };
            let fates = self.courier.pipeline(at, &keys.transaction());
            match fates.into_iter().next_back() {
                Some(Fate::NotDone | Fate::Answered(Value::Null)) | None => {}
                Some(fate) => return fate,
            }
        }
        Fate::NotDone
    }

    /// Removes the keys. Returns false if it is unknown whether all are removed.
    fn remove(&mut self, keys: &Keys) -> bool {
        let all = keys.all();
        let mut words: Vec<&[u8]> = vec![b"UNLINK"];
        words.extend(all.iter().map(String::as_bytes));
        if !matches!(self.courier.send(&keys.source, &words), Fate::Answered(_)) {
            return false;
        }
        let found = self.count_copies(keys);
        let is_back = found.is_some_and(|count| count > 0);
        let details = format!("{}: {found:?} copies after UNLINK", keys.source);
        self.note(is_back.then_some(Class::Resurrected), details);
        !is_back
    }

    /// Counts the existing copies with a single command, so that the count is of a single point in time.
    fn count_copies(&mut self, keys: &Keys) -> Option<usize> {
        let mut words: Vec<&[u8]> = vec![b"EXISTS"];
        words.extend(keys.copies.iter().map(String::as_bytes));
        let Value::Integer(count) = self.courier.ask(&keys.source, &words)? else { return None };
        usize::try_from(count).ok()
    }

    fn note(&self, class: Option<Class>, details: String) {
        if let Some(class) = class {
            self.desk.book.note(class, details);
        }
    }
}

impl Client for Transactor {
    fn step(&mut self) {
        self.debris.sweep(&mut self.courier);
        if self.last.is_some_and(|last| last.elapsed() < self.sizes.transaction_every) {
            return;
        }
        self.last = Some(Instant::now());
        let lane = Arc::clone(&self.desk.lane);
        let _alone = lane.lock().expect("no client panics in its lane");
        self.count += 1;
        let entry = self.desk.journal.begin("large transaction".into(), Rank::LargeRequest);
        self.run(&Keys::new(self.count, self.sizes.copies));
        self.desk.journal.end(entry);
    }

    fn pause(&mut self) -> Duration {
        self.sizes.transaction_every.min(SWEEP_EVERY)
    }
}

fn name(fate: &Fate) -> &'static str {
    match fate {
        Fate::Answered(_) => "EXEC was answered",
        Fate::NotDone => "EXEC was refused",
        Fate::Unknown => "EXEC had no reply",
    }
}

/// Judges the copies found after a transaction with this fate. A missing answer proves nothing.
pub fn judge(exec: &Fate, found: Option<usize>, wanted: usize) -> Option<Class> {
    let found = found?;
    match exec {
        _ if found != 0 && found != wanted => Some(Class::Partial),
        Fate::Answered(_) if found == 0 => Some(Class::Lost),
        Fate::NotDone if found == wanted => Some(Class::Phantom),
        Fate::Answered(_) | Fate::NotDone | Fate::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transaction_is_there_as_a_whole_or_not_at_all() {
        let done = Fate::Answered(Value::Array(Vec::new()));
        assert_eq!(judge(&done, Some(40), 40), None);
        assert_eq!(judge(&done, Some(0), 40), Some(Class::Lost));
        assert_eq!(judge(&done, None, 40), None);
        assert_eq!(judge(&Fate::NotDone, Some(40), 40), Some(Class::Phantom));
        assert_eq!(judge(&Fate::NotDone, Some(0), 40), None);
        assert_eq!(judge(&Fate::Unknown, Some(40), 40), None);
        for fate in [done, Fate::NotDone, Fate::Unknown] {
            assert_eq!(judge(&fate, Some(39), 40), Some(Class::Partial));
        }
    }

    #[test]
    fn all_keys_of_a_transaction_share_a_slot() {
        let keys = Keys::new(3, 601);
        assert!(keys.all().iter().all(|key| Slot::of(key.as_bytes()) == keys.slot()));
        assert_eq!(keys.transaction().len(), 603);
    }
}

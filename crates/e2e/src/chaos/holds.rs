//! The times during which clients surely held a lock, and the search for two holders at once.
//!
//! A client that gets `OK` for `SET lock token NX PX ttl` holds the lock from the reply until the ttl has passed
//! since it *sent* the request, less a margin; or until it sends the `DEL` that releases it. A release of unknown
//! fate may be carried out at any later time: from then on nothing is certain for that lock.
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hold {
    pub lock: String,
    pub token: String,
    pub from: Instant,
    pub until: Instant,
}

#[derive(Debug, Default)]
pub struct Holds {
    all: Mutex<Vec<Hold>>,
    /// The time at which the first release of unknown fate was sent, by lock.
    uncertain: Mutex<BTreeMap<String, Instant>>,
}

impl Holds {
    pub fn add(&self, hold: Hold) {
        self.all.lock().expect("it is only read and written").push(hold);
    }

    /// Marks this lock as uncertain from `at` on.
    pub fn doubt(&self, lock: &str, at: Instant) {
        let mut uncertain = self.uncertain.lock().expect("it is only read and written");
        let first = uncertain.entry(lock.to_owned()).or_insert(at);
        *first = (*first).min(at);
    }

    pub fn count(&self) -> usize {
        self.all.lock().expect("it is only read and written").len()
    }

    /// Returns every pair of neighbours in time that held one lock at the same time.
    pub fn overlaps(&self) -> Vec<String> {
        let mut holds = self.certain();
        holds.sort_by(|a, b| (&a.lock, a.from).cmp(&(&b.lock, b.from)));
        let is_overlap = |two: &&[Hold]| two[0].lock == two[1].lock && two[1].from < two[0].until;
        let describe = |two: &[Hold]| {
            let common = two[0].until.min(two[1].until) - two[1].from;
            let [first, second] = [&two[0].token, &two[1].token];
            format!("{}: {first} and {second} for {} ms", two[0].lock, common.as_millis())
        };
        holds.windows(2).filter(is_overlap).map(describe).collect()
    }

    fn certain(&self) -> Vec<Hold> {
        let uncertain = self.uncertain.lock().expect("it is only read and written");
        let mut holds = self.all.lock().expect("it is only read and written").clone();
        for hold in &mut holds {
            let end = uncertain.get(&hold.lock).copied().unwrap_or(hold.until);
            hold.until = hold.until.min(end);
        }
        holds.retain(|hold| hold.from < hold.until);
        holds
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn holds(times: &[(&str, u64, u64)]) -> (Holds, Instant) {
        let (start, holds) = (Instant::now(), Holds::default());
        let at = |millis| start + Duration::from_millis(millis);
        for (number, (lock, from, until)) in times.iter().enumerate() {
            let (lock, token) = ((*lock).to_owned(), number.to_string());
            holds.add(Hold { lock, token, from: at(*from), until: at(*until) });
        }
        (holds, start)
    }

    #[test]
    fn two_holders_of_one_lock_at_the_same_time_are_found() {
        let (holds, _) = holds(&[("a", 0, 100), ("b", 50, 150), ("a", 90, 200)]);
        assert_eq!(holds.overlaps(), ["a: 0 and 2 for 10 ms"]);
    }

    #[test]
    fn one_holder_after_another_is_right() {
        let (holds, _) = holds(&[("a", 0, 100), ("a", 100, 200), ("a", 300, 250)]);
        assert_eq!(holds.overlaps(), Vec::<String>::new());
    }

    #[test]
    fn nothing_is_certain_after_a_release_of_unknown_fate() {
        let (holds, start) = holds(&[("a", 0, 100), ("a", 120, 220), ("a", 150, 250)]);
        assert_eq!(holds.overlaps().len(), 1);
        holds.doubt("a", start + Duration::from_millis(80));
        assert_eq!(holds.overlaps(), Vec::<String>::new());
    }
}

//! Connections that wait until a key of a slot has a value of some type (BLPOP and others), in order of arrival.
//!
//! A connection enters the lines of its keys under the slot's lock, so it misses no change. A change of a key marks it
//! as ready; when the command that made the change is done (EXEC included), the first connection in line is woken and
//! runs its own command again. It stays in line until that command is answered; then the next one is woken, if the key
//! still has such a value. So connections are served in turn, and a push costs as much as it wakes. Functions that
//! need the slot's state are in `lines.rs`.

use core::ops::RangeInclusive;
use std::collections::BTreeMap;
use std::sync::Arc;

use store::{Effect, Key, NewValue, StoredValue};

/// The type of value that a blocked command waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Wanted {
    List,
    SortedSet,
}

impl Wanted {
    /// Returns the type of a value, if any command waits for such values.
    pub fn of(value: &StoredValue<'_>) -> Option<Wanted> {
        match value {
            StoredValue::List(_) => Some(Wanted::List),
            StoredValue::SortedSet(_) => Some(Wanted::SortedSet),
            StoredValue::String(_) | StoredValue::Hash(_) | StoredValue::Set(_) => None,
        }
    }

    /// Returns the key of an effect and the type of its value, if the effect may end a wait for such a value.
    pub fn brought_by<'e>(effect: &'e Effect<'_>) -> Option<(&'e Key<'e>, Wanted)> {
        match effect {
            Effect::InsertElements { key, .. }
            | Effect::Put { key, value: NewValue::List(_), .. } => Some((key, Wanted::List)),
            Effect::SetScores { key, .. }
            | Effect::Put { key, value: NewValue::SortedSet(_), .. } => {
                Some((key, Wanted::SortedSet))
            }
            Effect::Put { .. }
            | Effect::Append { .. }
            | Effect::Overwrite { .. }
            | Effect::SetFields { .. }
            | Effect::RemoveFields { .. }
            | Effect::SetElement { .. }
            | Effect::RemoveElements { .. }
            | Effect::RemoveScored { .. }
            | Effect::AddMembers { .. }
            | Effect::RemoveMembers { .. }
            | Effect::Expire { .. }
            | Effect::Mark { .. }
            | Effect::Remove { .. }
            | Effect::Clear => None,
        }
    }

    /// Returns whether a value ends the wait of all connections in line, because none of them takes anything away.
    fn serves_all(self) -> bool {
        match self {
            Wanted::List | Wanted::SortedSet => false,
        }
    }
}

/// A place in line: lower numbers came earlier. A connection has the same number in the lines of all its keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WaitNumber(pub u64);

/// The address of a connection that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Waiter {
    pub client: u64,
    pub worker: u32,
    /// The index of the connection at its worker.
    pub index: u32,
}

/// The connections that wait for keys of one slot.
#[derive(Default)]
pub struct KeyWaiters {
    places: BTreeMap<Place, Entry>,
    /// Keys that may have got what somebody waits for, since the last call of `take_woken`.
    ready: Vec<(Arc<[u8]>, Wanted)>,
}

/// A connection's place in the line of one key. The order puts a line's places one after the other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    key: Arc<[u8]>,
    wanted: Wanted,
    number: WaitNumber,
}

struct Entry {
    waiter: Waiter,
    /// True if it has been woken, and its command has not run since.
    is_woken: bool,
}

impl KeyWaiters {
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Puts a connection in line. If it is there already, it keeps its place and may be woken again.
    pub fn enter(&mut self, key: &Arc<[u8]>, wanted: Wanted, number: WaitNumber, waiter: Waiter) {
        let place = Place { key: Arc::clone(key), wanted, number };
        self.places.insert(place, Entry { waiter, is_woken: false });
    }

    /// Takes a connection out of the line.
    pub fn leave(&mut self, key: &Arc<[u8]>, wanted: Wanted, number: WaitNumber) {
        self.places.remove(&Place { key: Arc::clone(key), wanted, number });
    }

    /// Returns whether somebody is in line who came earlier than `number`, or at all.
    pub fn is_behind(&self, key: &[u8], wanted: Wanted, number: Option<WaitNumber>) -> bool {
        let first = self.places.range(line(key, wanted)).next();
        first.is_some_and(|(first, _)| number.is_none_or(|number| first.number < number))
    }

    /// Records that a key may have got such a value. Returns whether anybody waits for it.
    pub fn note_value(&mut self, key: &[u8], wanted: Wanted) -> bool {
        let first = self.places.range(line(key, wanted)).next();
        let Some((place, _)) = first else { return false };
        self.ready.push((Arc::clone(&place.key), wanted));
        true
    }

    /// Returns the connections to be woken for the keys that are ready, and marks them as woken.
    pub fn take_woken(&mut self) -> Vec<Waiter> {
        let mut woken = Vec::new();
        for (key, wanted) in core::mem::take(&mut self.ready) {
            let count = if wanted.serves_all() { usize::MAX } else { 1 };
            for (_, entry) in self.places.range_mut(line(&key, wanted)).take(count) {
                if !core::mem::replace(&mut entry.is_woken, true) {
                    woken.push(entry.waiter);
                }
            }
        }
        woken
    }

    /// Returns all connections that are not woken yet, and marks them as woken: the slot is no longer served here.
    pub fn take_all(&mut self) -> Vec<Waiter> {
        let entries = self.places.values_mut().filter(|entry| !entry.is_woken);
        let waiters = entries.map(|entry| {
            entry.is_woken = true;
            entry.waiter
        });
        waiters.collect()
    }
}

/// Returns the range of all places in a line.
fn line(key: &[u8], wanted: Wanted) -> RangeInclusive<Place> {
    let key: Arc<[u8]> = Arc::from(key);
    let end = Place { key: Arc::clone(&key), wanted, number: WaitNumber(u64::MAX) };
    Place { key, wanted, number: WaitNumber(0) }..=end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Arc<[u8]> {
        Arc::from(text.as_bytes())
    }

    fn waiter(client: u64) -> Waiter {
        Waiter { client, worker: 0, index: 0 }
    }

    /// Puts connections in line for a list, in this order; the number of each is its id.
    fn in_line(text: &str, clients: &[u64]) -> KeyWaiters {
        let mut waiters = KeyWaiters::default();
        for client in clients {
            waiters.enter(&key(text), Wanted::List, WaitNumber(*client), waiter(*client));
        }
        waiters
    }

    fn woken(waiters: &mut KeyWaiters) -> Vec<u64> {
        waiters.take_woken().into_iter().map(|waiter| waiter.client).collect()
    }

    #[test]
    fn the_first_in_line_is_woken_once_until_its_command_has_run() {
        let mut waiters = in_line("k", &[1, 2]);
        assert!(waiters.note_value(b"k", Wanted::List));
        assert!(waiters.note_value(b"k", Wanted::List));
        assert_eq!(woken(&mut waiters), [1]);
        assert!(waiters.note_value(b"k", Wanted::List));
        assert_eq!(woken(&mut waiters), [0u64; 0], "it is on its way");
        // It has found nothing: somebody else was faster. It waits on, and keeps its place.
        waiters.enter(&key("k"), Wanted::List, WaitNumber(1), waiter(1));
        assert!(waiters.note_value(b"k", Wanted::List));
        assert_eq!(woken(&mut waiters), [1]);
        waiters.leave(&key("k"), Wanted::List, WaitNumber(1));
        assert!(waiters.note_value(b"k", Wanted::List));
        assert_eq!(woken(&mut waiters), [2]);
    }

    #[test]
    fn only_a_value_of_the_wanted_type_of_that_key_wakes() {
        let mut waiters = in_line("k", &[2]);
        waiters.enter(&key("k"), Wanted::SortedSet, WaitNumber(1), waiter(1));
        waiters.enter(&key("kk"), Wanted::List, WaitNumber(3), waiter(3));
        assert!(!waiters.note_value(b"other", Wanted::List));
        assert!(!waiters.note_value(b"kk", Wanted::SortedSet));
        assert_eq!(woken(&mut waiters), [0u64; 0]);
        assert!(waiters.note_value(b"k", Wanted::List));
        assert_eq!(woken(&mut waiters), [2]);
        assert!(waiters.note_value(b"k", Wanted::SortedSet));
        assert!(waiters.note_value(b"kk", Wanted::List));
        assert_eq!(woken(&mut waiters), [1, 3]);
    }

    #[test]
    fn a_connection_is_behind_those_that_came_earlier() {
        let waiters = in_line("k", &[3, 5]);
        let is_behind = |number| waiters.is_behind(b"k", Wanted::List, number);
        assert!(is_behind(None), "a new one is behind all");
        assert!(is_behind(Some(WaitNumber(5))));
        assert!(!is_behind(Some(WaitNumber(3))));
        assert!(!waiters.is_behind(b"k", Wanted::SortedSet, None));
        assert!(!waiters.is_behind(b"j", Wanted::List, None));
    }

    #[test]
    fn all_are_woken_when_the_slot_moves_away() {
        let mut waiters = in_line("k", &[1, 2]);
        waiters.enter(&key("j"), Wanted::SortedSet, WaitNumber(3), waiter(3));
        assert!(waiters.note_value(b"k", Wanted::List));
        assert_eq!(woken(&mut waiters), [1]);
        let all: Vec<u64> = waiters.take_all().iter().map(|waiter| waiter.client).collect();
        assert_eq!(all, [3, 2]);
        assert_eq!(waiters.take_all(), []);
    }

    #[test]
    fn nothing_is_left_of_those_who_have_left() {
        let mut waiters = in_line("k", &[1, 2]);
        waiters.note_value(b"k", Wanted::List);
        waiters.leave(&key("k"), Wanted::List, WaitNumber(1));
        waiters.leave(&key("k"), Wanted::List, WaitNumber(1));
        waiters.leave(&key("k"), Wanted::List, WaitNumber(2));
        assert!(waiters.is_empty());
        assert_eq!(woken(&mut waiters), [0u64; 0]);
    }
}

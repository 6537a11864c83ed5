//! Connections that wait until a key of a slot has a value of some type (BLPOP and others), in order of arrival.
//!
//! A connection enters the lines of its keys under the slot's lock, so it misses no change. A change of a key marks it
//! as ready; when the command that made the change is done (EXEC included), the first connection in line is woken and
//! runs its own command again. It stays in line until that command is answered; then the next one is woken, if the key
//! still has such a value. So connections are served in turn, and a push costs as much as it wakes. Functions that
//! need the slot's state are in `lines.rs`.

use core::ops::{Bound, RangeInclusive};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use placement::Slot;
use store::{Effect, Key, NewValue, StoredValue, StreamRecord, StreamRecords};

/// The type of value that a blocked command waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Wanted {
    List,
    SortedSet,
    /// Entries of a stream, which all readers get.
    Stream,
    /// Entries of a stream that one consumer of a group gets: the hash of the group's name. Also the end of that group.
    StreamGroup(u64),
}

impl Wanted {
    /// Returns the type of a value, if any command waits for such values.
    pub fn of(value: &StoredValue<'_>) -> Option<Wanted> {
        match value {
            StoredValue::List(_) => Some(Wanted::List),
            StoredValue::SortedSet(_) => Some(Wanted::SortedSet),
            StoredValue::Stream(_) => Some(Wanted::Stream),
            StoredValue::String(_) | StoredValue::Hash(_) | StoredValue::Set(_) => None,
        }
    }

    /// Returns whether the next in line may be served when a connection has left, by the value of the key.
    pub fn may_go_on(self, value: Option<&StoredValue<'_>>) -> bool {
        match self {
            Wanted::List | Wanted::SortedSet => value.and_then(Wanted::of) == Some(self),
            // All were woken.
            Wanted::Stream => false,
            // If the stream or the group is gone, each of them gets an error.
            Wanted::StreamGroup(_) => true,
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
            Effect::ChangeStream { key, records } => StreamRecords::new(records)
                .iter()
                .any(|it| may_serve(&it))
                .then_some((key, Wanted::Stream)),
            // It may take the stream away from a group that waits.
            Effect::Put { key, .. } | Effect::Remove { key, .. } => Some((key, Wanted::Stream)),
            Effect::Append { .. }
            | Effect::Overwrite { .. }
            | Effect::SetFields { .. }
            | Effect::RemoveFields { .. }
            | Effect::ExpireFields { .. }
            | Effect::SetElement { .. }
            | Effect::RemoveElements { .. }
            | Effect::RemoveScored { .. }
            | Effect::AddMembers { .. }
            | Effect::RemoveMembers { .. }
            | Effect::Expire { .. }
            | Effect::Mark { .. }
            | Effect::Clear
            | Effect::SwapDatabases { .. } => None,
        }
    }

    /// Returns whether a value ends the wait of all connections in line, because none of them takes anything away.
    fn serves_all(self) -> bool {
        match self {
            Wanted::List | Wanted::SortedSet | Wanted::StreamGroup(_) => false,
            Wanted::Stream => true,
        }
    }
}

/// Returns whether a change of a stream may end a wait: it adds an entry, or changes what a group has read.
fn may_serve(record: &StreamRecord<'_>) -> bool {
    match record {
        StreamRecord::Entry { .. } | StreamRecord::Group { .. } | StreamRecord::RemoveGroup => true,
        StreamRecord::Head { .. }
        | StreamRecord::InGroup { .. }
        | StreamRecord::Consumer { .. }
        | StreamRecord::OfConsumer { .. }
        | StreamRecord::Pending { .. }
        | StreamRecord::RemoveEntry { .. }
        | StreamRecord::Trim { .. }
        | StreamRecord::RemoveConsumer
        | StreamRecord::RemovePending { .. } => false,
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

/// The connections that wait for keys of some slots. Slots share one map, because most have no waiting connection or few.
#[derive(Default)]
pub struct KeyWaiters {
    places: BTreeMap<Place, Entry>,
    /// Keys that may have got what somebody waits for, and that `take_woken` has not looked at since.
    ready: BTreeSet<Line>,
}

/// The line of the connections that wait for a type of value of one key.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    slot: Slot,
    /// The key's name (`Key::name`).
    key: Arc<[u8]>,
    wanted: Wanted,
}

/// A connection's place in a line. The order puts a slot's lines, and a line's places, one after the other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    line: Line,
    number: WaitNumber,
}

struct Entry {
    waiter: Waiter,
    /// True if it has been woken, and its command has not run since.
    is_woken: bool,
}

impl KeyWaiters {
    /// Returns whether nobody waits for a key of this slot.
    pub fn is_empty(&self, slot: Slot) -> bool {
        self.places.range(places_of(slot)).next().is_none()
    }

    /// Puts a connection in line. If it is there already, it keeps its place and may be woken again.
    pub fn enter(
        &mut self,
        slot: Slot,
        key: &Arc<[u8]>,
        wanted: Wanted,
        (number, waiter): (WaitNumber, Waiter),
    ) {
        let line = Line { slot, key: Arc::clone(key), wanted };
        self.places.insert(Place { line, number }, Entry { waiter, is_woken: false });
    }

    /// Takes a connection out of the line.
    pub fn leave(&mut self, slot: Slot, key: &Arc<[u8]>, wanted: Wanted, number: WaitNumber) {
        let line = Line { slot, key: Arc::clone(key), wanted };
        self.places.remove(&Place { line, number });
    }

    /// Returns whether somebody is in line who came earlier than `number`, or at all.
    pub fn is_behind(&self, key: &Key<'_>, wanted: Wanted, number: Option<WaitNumber>) -> bool {
        let line = Line::at(key, wanted);
        let first = self.places.range(line.places()).next();
        first.is_some_and(|(first, _)| number.is_none_or(|number| first.number < number))
    }

    /// Records that a key may have got such a value, and with it, unless the value is for one group, may serve or end the
    /// groups of its stream. Returns whether anybody waits for it.
    pub fn note_value(&mut self, key: &Key<'_>, wanted: Wanted) -> bool {
        let is_noted = self.note_line(Line::at(key, wanted));
        let is_for_one = matches!(wanted, Wanted::StreamGroup(_));
        is_noted | (!is_for_one && self.note_groups(key))
    }

    /// Records that the slot was emptied: groups that connections wait for may be gone. Returns whether there are any.
    pub fn note_emptied(&mut self, slot: Slot) -> bool {
        self.note_lines(slot, |line| matches!(line.wanted, Wanted::StreamGroup(_)))
    }

    /// Records that every key of a slot may have got another value. Returns whether anybody waits for one.
    pub fn note_all(&mut self, slot: Slot) -> bool {
        self.note_lines(slot, |_| true)
    }

    /// Records that these lines of a slot may be ready. Returns whether there are any.
    fn note_lines(&mut self, slot: Slot, may_be_ready: impl Fn(&Line) -> bool) -> bool {
        let mut is_noted = false;
        for (place, _) in self.places.range(places_of(slot)) {
            if may_be_ready(&place.line) {
                self.ready.insert(place.line.clone());
                is_noted = true;
            }
        }
        is_noted
    }

    fn note_line(&mut self, line: Line) -> bool {
        let is_awaited = self.places.range(line.places()).next().is_some();
        if is_awaited {
            self.ready.insert(line);
        }
        is_awaited
    }

    /// Records that all groups of a stream may be ready.
    fn note_groups(&mut self, key: &Key<'_>) -> bool {
        let end = Line::at(key, Wanted::StreamGroup(u64::MAX)).places().into_inner().1;
        let mut is_noted = false;
        let mut next = Some(Wanted::StreamGroup(0));
        while let Some(first) = next {
            let begin = Line::at(key, first).places().into_inner().0;
            let Some((place, _)) = self.places.range(begin..=end.clone()).next() else { break };
            let Wanted::StreamGroup(group) = place.line.wanted else { break };
            self.ready.insert(place.line.clone());
            is_noted = true;
            next = group.checked_add(1).map(Wanted::StreamGroup);
        }
        is_noted
    }

    /// Returns the connections to be woken for the keys of a slot that are ready, and marks them as woken.
    pub fn take_woken(&mut self, slot: Slot) -> Vec<Waiter> {
        let mut woken = Vec::new();
        for line in self.ready.extract_if(.., |line| line.slot == slot) {
            let count = if line.wanted.serves_all() { usize::MAX } else { 1 };
            for (_, entry) in self.places.range_mut(line.places()).take(count) {
                woken.extend(entry.wake());
            }
        }
        woken
    }

    /// Returns all connections of a slot that are not woken yet, and marks them as woken: it is no longer served here.
    pub fn take_all(&mut self, slot: Slot) -> Vec<Waiter> {
        let entries = self.places.range_mut(places_of(slot));
        entries.filter_map(|(_, entry)| entry.wake()).collect()
    }
}

impl Entry {
    /// Marks the connection as woken. Returns it unless it was marked before.
    fn wake(&mut self) -> Option<Waiter> {
        (!core::mem::replace(&mut self.is_woken, true)).then_some(self.waiter)
    }
}

impl Line {
    fn at(key: &Key<'_>, wanted: Wanted) -> Line {
        Line { slot: key.slot(), key: Arc::from(&*key.name()), wanted }
    }

    /// Returns the range of all places in the line.
    fn places(&self) -> RangeInclusive<Place> {
        let place = |number| Place { line: self.clone(), number: WaitNumber(number) };
        place(0)..=place(u64::MAX)
    }
}

/// Returns the range of all places in the lines of a slot: from its first possible one to that of the next slot.
fn places_of(slot: Slot) -> (Bound<Place>, Bound<Place>) {
    let first = |slot: Slot| {
        let line = Line { slot, key: Arc::default(), wanted: Wanted::List };
        Place { line, number: WaitNumber(0) }
    };
    let next = Slot::new(slot.number() + 1);
    let end = next.map_or(Bound::Unbounded, |next| Bound::Excluded(first(next)));
    (Bound::Included(first(slot)), end)
}

#[cfg(test)]
mod tests {
    use store::Seed;

    use super::*;

    fn key(text: &str) -> Key<'_> {
        Seed::new(1).key(text.as_bytes())
    }

    fn waiter(client: u64) -> Waiter {
        Waiter { client, worker: 0, index: 0 }
    }

    /// Puts a connection in line; its number is its id.
    fn enter(waiters: &mut KeyWaiters, text: &str, wanted: Wanted, client: u64) {
        let place = (WaitNumber(client), waiter(client));
        waiters.enter(key(text).slot(), &Arc::from(text.as_bytes()), wanted, place);
    }

    fn leave(waiters: &mut KeyWaiters, text: &str, client: u64) {
        let bytes = Arc::from(text.as_bytes());
        waiters.leave(key(text).slot(), &bytes, Wanted::List, WaitNumber(client));
    }

    /// Puts connections in line for a list, in this order.
    fn in_line(text: &str, clients: &[u64]) -> KeyWaiters {
        let mut waiters = KeyWaiters::default();
        clients.iter().for_each(|client| enter(&mut waiters, text, Wanted::List, *client));
        waiters
    }

    fn note(waiters: &mut KeyWaiters, text: &str, wanted: Wanted) -> bool {
        waiters.note_value(&key(text), wanted)
    }

    /// Returns the connections woken for keys of the slot of `text`.
    fn woken(waiters: &mut KeyWaiters, text: &str) -> Vec<u64> {
        let woken = waiters.take_woken(key(text).slot());
        woken.into_iter().map(|waiter| waiter.client).collect()
    }

    const NOBODY: [u64; 0] = [];

    #[test]
    fn the_first_in_line_is_woken_once_until_its_command_has_run() {
        let mut waiters = in_line("k", &[1, 2]);
        assert!(note(&mut waiters, "k", Wanted::List));
        assert!(note(&mut waiters, "k", Wanted::List));
        assert_eq!(woken(&mut waiters, "k"), [1]);
        assert!(note(&mut waiters, "k", Wanted::List));
        assert_eq!(woken(&mut waiters, "k"), NOBODY, "it is on its way");
        // It has found nothing: somebody else was faster. It waits on, and keeps its place.
        enter(&mut waiters, "k", Wanted::List, 1);
        assert!(note(&mut waiters, "k", Wanted::List));
        assert_eq!(woken(&mut waiters, "k"), [1]);
        leave(&mut waiters, "k", 1);
        assert!(note(&mut waiters, "k", Wanted::List));
        assert_eq!(woken(&mut waiters, "k"), [2]);
    }

    #[test]
    fn only_a_value_of_the_wanted_type_of_that_key_wakes() {
        let mut waiters = in_line("{k}", &[2]);
        enter(&mut waiters, "{k}", Wanted::SortedSet, 1);
        enter(&mut waiters, "{k}k", Wanted::List, 3);
        enter(&mut waiters, "j", Wanted::List, 4);
        assert!(!note(&mut waiters, "other", Wanted::List));
        assert!(!note(&mut waiters, "{k}k", Wanted::SortedSet));
        assert_eq!(woken(&mut waiters, "{k}"), NOBODY);
        assert!(note(&mut waiters, "j", Wanted::List));
        assert!(note(&mut waiters, "{k}", Wanted::List));
        assert_eq!(woken(&mut waiters, "{k}"), [2]);
        assert!(note(&mut waiters, "{k}", Wanted::SortedSet));
        assert!(note(&mut waiters, "{k}k", Wanted::List));
        assert_eq!(woken(&mut waiters, "{k}"), [1, 3]);
        assert_eq!(woken(&mut waiters, "j"), [4], "that is another slot");
    }

    #[test]
    fn a_stream_wakes_all_readers_and_the_first_of_each_group() {
        let mut waiters = KeyWaiters::default();
        let groups = [Wanted::StreamGroup(7), Wanted::StreamGroup(u64::MAX)];
        for client in [1, 2, 3, 4, 5, 6] {
            let wanted = if client < 3 { Wanted::Stream } else { groups[client as usize % 2] };
            enter(&mut waiters, "{k}", wanted, client);
        }
        enter(&mut waiters, "l{k}", groups[0], 7);
        enter(&mut waiters, "elsewhere", groups[0], 8);
        assert!(note(&mut waiters, "{k}", Wanted::Stream));
        assert_eq!(woken(&mut waiters, "{k}"), [1, 2, 4, 3]);
        let slot = key("{k}").slot();
        waiters.leave(slot, &Arc::from(&b"{k}"[..]), groups[0], WaitNumber(4));
        assert!(note(&mut waiters, "{k}", groups[0]));
        assert_eq!(woken(&mut waiters, "{k}"), [6]);
        // Another type took the place of the stream.
        enter(&mut waiters, "{k}", groups[1], 3);
        assert!(note(&mut waiters, "{k}", Wanted::List));
        assert_eq!(woken(&mut waiters, "{k}"), [3]);
        assert!(waiters.note_emptied(slot));
        assert_eq!(woken(&mut waiters, "{k}"), [7]);
        assert_eq!(woken(&mut waiters, "elsewhere"), NOBODY, "that slot was not emptied");
    }

    #[test]
    fn only_what_may_serve_somebody_wakes_readers_of_a_stream() {
        let seed = store::Seed::new(1);
        let key = seed.key(b"k");
        let wakes = |record: StreamRecord<'_>| {
            let mut records = Vec::new();
            record.write(&mut records);
            Wanted::brought_by(&Effect::ChangeStream { key, records: &records }).is_some()
        };
        let id = store::StreamId::MIN;
        assert!(wakes(StreamRecord::Entry { id, pairs: &[] }));
        assert!(wakes(StreamRecord::Group { name: b"g", last_id: id, entries_read: None }));
        assert!(wakes(StreamRecord::RemoveGroup));
        assert!(!wakes(StreamRecord::RemovePending { id }));
        assert!(!wakes(StreamRecord::Trim { id }));
    }

    #[test]
    fn all_lines_of_a_slot_may_be_ready_at_once() {
        let mut waiters = in_line("{k}", &[1, 2]);
        enter(&mut waiters, "j{k}", Wanted::SortedSet, 3);
        enter(&mut waiters, "another", Wanted::List, 4);
        assert!(waiters.note_all(key("{k}").slot()));
        assert_eq!(woken(&mut waiters, "{k}"), [3, 1], "the first of each line");
        assert_eq!(woken(&mut waiters, "another"), NOBODY);
        assert!(!waiters.note_all(key("nobody").slot()));
    }

    #[test]
    fn a_connection_is_behind_those_that_came_earlier() {
        let waiters = in_line("k", &[3, 5]);
        let is_behind = |number| waiters.is_behind(&key("k"), Wanted::List, number);
        assert!(is_behind(None), "a new one is behind all");
        assert!(is_behind(Some(WaitNumber(5))));
        assert!(!is_behind(Some(WaitNumber(3))));
        assert!(!waiters.is_behind(&key("k"), Wanted::SortedSet, None));
        assert!(!waiters.is_behind(&key("j"), Wanted::List, None));
    }

    #[test]
    fn all_are_woken_when_the_slot_moves_away() {
        let mut waiters = in_line("{k}", &[1, 2]);
        enter(&mut waiters, "j{k}", Wanted::SortedSet, 3);
        enter(&mut waiters, "another", Wanted::List, 4);
        assert!(note(&mut waiters, "{k}", Wanted::List));
        assert_eq!(woken(&mut waiters, "{k}"), [1]);
        let all = waiters.take_all(key("{k}").slot());
        let all: Vec<u64> = all.iter().map(|waiter| waiter.client).collect();
        assert_eq!(all, [3, 2]);
        assert_eq!(waiters.take_all(key("{k}").slot()), []);
    }

    #[test]
    fn nothing_is_left_of_those_who_have_left() {
        let mut waiters = in_line("k", &[1, 2]);
        let is_empty = |waiters: &KeyWaiters| waiters.is_empty(key("k").slot());
        note(&mut waiters, "k", Wanted::List);
        leave(&mut waiters, "k", 1);
        leave(&mut waiters, "k", 1);
        assert!(!is_empty(&waiters));
        leave(&mut waiters, "k", 2);
        assert!(is_empty(&waiters));
        assert_eq!(woken(&mut waiters, "k"), NOBODY);
        assert!(waiters.places.is_empty() && waiters.ready.is_empty());
    }

    #[test]
    fn the_last_slot_has_an_end_too() {
        let last = Slot::new(Slot::COUNT - 1).expect("a slot");
        let mut waiters = KeyWaiters::default();
        let key = Arc::from(&b"any"[..]);
        waiters.enter(last, &key, Wanted::SortedSet, (WaitNumber(1), waiter(1)));
        assert!(!waiters.is_empty(last));
        assert_eq!(waiters.take_all(last), [waiter(1)]);
    }

    /// 50,000 connections, each with two keys of its own, take 100,000 places.
    #[test]
    fn a_place_takes_few_bytes() {
        // A node of the tree is at least half full: at most twice the bytes of its entries, besides the key itself.
        let bytes = 2 * (size_of::<Place>() + size_of::<Entry>());
        assert!(bytes <= 160, "{bytes} bytes");
    }
}

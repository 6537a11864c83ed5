//! The side that yields: it goes over the slots it holds, and hands over what it changed in each since the
//! sides parted. Nobody is served here any more, so nothing changes meanwhile but what ends by itself.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use placement::{Hashmask, Slot};
use store::{Found, Parting, ScanPosition, Seed, SlotTable, Value, Version};

use super::change::{put_emptied, put_gone, put_item, put_piece, put_whole};
use super::ledger::Tally;
use super::message::{Question, Reply, SLOTS_MAX};
use super::taker::{made_at, parted_at};
use crate::data::Plane;
use crate::fill::CHUNK_BYTES;
use crate::map::{Bucket, Endpoints, Map, NodeId};

/// Items looked at between two looks at how much has come together.
const STRIDE: usize = 16;

/// What a node holds.
pub trait Holdings {
    fn seed(&self) -> &Seed;
    /// Lets `look` see a slot, which nobody changes meanwhile.
    fn with_table<R>(&self, slot: Slot, look: impl FnOnce(&SlotTable) -> R) -> R;
}

impl<P: Plane> Holdings for P {
    fn seed(&self) -> &Seed {
        crate::serving::ServingPlane::seed(self)
    }

    fn with_table<R>(&self, slot: Slot, look: impl FnOnce(&SlotTable) -> R) -> R {
        self.with_slot(slot, |state| look(&state.table))
    }
}

pub struct Giver {
    /// It hands over within its own history, where every bucket it brings began again.
    brings: bool,
    /// Slots that are not handed over; the first is the one at hand.
    runs: VecDeque<Range<u16>>,
    /// From where on the other side knows nothing of the first of them, as far as it has said.
    since: VecDeque<Version>,
    place: Place,
    /// Large values of the slot at hand.
    large: VecDeque<Large>,
    /// What has changed once the question that was asked last is answered.
    then: Option<Then>,
    tally: Tally,
}

/// How far the slot at hand is handed over.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Place {
    Items(ScanPosition),
    /// Keys that are gone, from behind this one on.
    Gone(Option<Box<[u8]>>),
    /// That all before was taken away. It comes last: what was written since is there by then, and later.
    Emptied,
    End,
}

const BEGIN: Place = Place::Items(ScanPosition::START);

struct Large {
    key: Vec<u8>,
    version: Version,
    value: Arc<Vec<u8>>,
    sent: usize,
}

enum Then {
    At(Place),
    /// So much of the first large value is sent.
    Sent(usize),
    /// The first large value is there.
    Whole,
}

/// How to go on after an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Course {
    /// With the next question.
    On,
    /// With the same question there.
    Elsewhere(Endpoints),
    /// With the same question in a moment.
    Later,
}

impl Giver {
    /// Everything this node holds by the map, or may have kept: first what it serves.
    pub fn new(map: &Map, me: NodeId) -> Giver {
        let is_mine = |it: &&Bucket| it.is_held_by(me) || map.awaits(me, it.hashmask);
        let mine = map.buckets().filter(is_mine);
        let (first, second): (Vec<_>, Vec<_>) = mine.partition(|it| it.primary() == Some(me));
        Giver::over(first.into_iter().chain(second).map(|bucket| bucket.hashmask))
    }

    /// What there is of these buckets, which those who serve them must know to have begun again.
    pub fn of(buckets: impl IntoIterator<Item = Hashmask>) -> Giver {
        Giver { brings: true, ..Giver::over(buckets) }
    }

    fn over(buckets: impl IntoIterator<Item = Hashmask>) -> Giver {
        Giver {
            brings: false,
            runs: buckets.into_iter().map(Hashmask::slots).collect(),
            since: VecDeque::new(),
            place: BEGIN,
            large: VecDeque::new(),
            then: None,
            tally: Tally::default(),
        }
    }

    /// How many slots are still to be handed over.
    pub fn slots_left(&self) -> usize {
        self.runs.iter().map(ExactSizeIterator::len).sum()
    }

    /// What became of what was handed over.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// The next question; the same as before if that was not answered. `None` when all is done.
    pub fn question(&mut self, here: &impl Holdings) -> Option<Question> {
        self.then = None;
        while let Some(slot) = self.slot() {
            let question = match self.since.front().copied() {
                None => self.ask_since(slot, here),
                Some(since) => self.give(slot, since, here),
            };
            if question.is_some() {
                return question;
            }
            self.leave_slot();
        }
        None
    }

    pub fn answered(&mut self, reply: Reply) -> Course {
        match reply {
            // In a moment it has a parting to tell of.
            Reply::Since(since) if self.brings && since.contains(&u64::MAX) => Course::Later,
            Reply::Since(since) => {
                self.since = since.into_iter().map(Version).collect();
                if self.since.is_empty() { Course::Later } else { Course::On }
            }
            Reply::Merged(tally) => {
                self.tally += tally;
                self.advance();
                Course::On
            }
            Reply::Elsewhere(at) => {
                self.interrupted();
                Course::Elsewhere(at)
            }
            Reply::NotNow => Course::Later,
        }
    }

    /// Another node is asked from here on, or the same one anew.
    pub fn interrupted(&mut self) {
        self.since.clear();
        self.large.iter_mut().for_each(|large| large.sent = 0);
    }

    fn slot(&self) -> Option<Slot> {
        self.runs.front().and_then(|run| run.clone().next()).and_then(Slot::new)
    }

    fn leave_slot(&mut self) {
        (self.place, self.since) = (BEGIN, self.since.split_off(self.since.len().min(1)));
        self.large.clear();
        if let Some(run) = self.runs.front_mut() {
            run.start += 1;
        }
        self.runs.pop_front_if(|run| run.start >= run.end);
    }

    /// Slots without anything to tell of are passed by.
    fn ask_since(&self, slot: Slot, here: &impl Holdings) -> Option<Question> {
        let is_blank = here.with_table(slot, |table| {
            let is_silent = |it: &Parting| it.tomb_count() == 0 && it.emptied_at() == Version::ZERO;
            table.is_empty() && table.parting().is_none_or(is_silent)
        });
        let run = self.runs.front().filter(|_| !is_blank)?;
        let count = u16::try_from(run.len()).unwrap_or(SLOTS_MAX).min(SLOTS_MAX);
        Some(Question::Since { first: slot.number(), count })
    }

    /// The next piece of the slot at hand, if there is one.
    fn give(&mut self, slot: Slot, since: Version, here: &impl Holdings) -> Option<Question> {
        let mut changes = Vec::new();
        let parted = here.with_table(slot, |table| {
            let parted = parted_at(table);
            let since = since.min(parted);
            while changes.is_empty() && (self.place != Place::End || !self.large.is_empty()) {
                self.gather(table, here.seed(), since, &mut changes);
                if changes.is_empty() {
                    self.advance();
                }
            }
            parted
        });
        let (slot, parted) = (slot.number(), parted.0);
        (!changes.is_empty()).then_some(Question::Changes { slot, parted, changes })
    }

    /// Appends what comes next, and notes where that leads.
    fn gather(&mut self, table: &SlotTable, seed: &Seed, since: Version, out: &mut Vec<u8>) {
        if let Some(large) = self.large.front() {
            self.then = Some(gather_large(large, table, seed, out));
            return;
        }
        let next = match &self.place {
            Place::Gone(after) => gather_gone(table, since, after.as_deref(), out),
            Place::Items(from) => {
                let from = *from;
                self.gather_items(table, since, from, out)
            }
            Place::Emptied => {
                let emptied_at = table.parting().map_or(Version::ZERO, Parting::emptied_at);
                if emptied_at > since {
                    put_emptied(emptied_at, out);
                }
                Place::End
            }
            Place::End => Place::End,
        };
        self.then = Some(Then::At(next));
    }

    fn gather_items(
        &mut self,
        table: &SlotTable,
        since: Version,
        from: ScanPosition,
        out: &mut Vec<u8>,
    ) -> Place {
        let mut next = Some(from);
        while let Some(from) = next.filter(|_| out.len() < CHUNK_BYTES && self.large.is_empty()) {
            next = table.scan(from, STRIDE, |found| {
                let made = made_at(table, &found);
                if made > since {
                    match large(&found) {
                        Some(large) => self.large.push_back(large),
                        None => put_item(&found, made, out),
                    }
                }
            });
        }
        next.map_or(Place::Gone(None), Place::Items)
    }

    /// What was asked last is done.
    fn advance(&mut self) {
        match self.then.take() {
            Some(Then::At(place)) => self.place = place,
            Some(Then::Sent(sent)) => {
                self.large.iter_mut().take(1).for_each(|large| large.sent = sent);
            }
            Some(Then::Whole) => drop(self.large.pop_front()),
            None => {}
        }
    }
}

fn gather_gone(
    table: &SlotTable,
    since: Version,
    after: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> Place {
    let Some(parting) = table.parting() else { return Place::End };
    for (key, tomb) in parting.tombs(after) {
        if tomb.version > since && !tomb.by_itself {
            put_gone(key, tomb.version, out);
        }
        if out.len() >= CHUNK_BYTES {
            return Place::Gone(Some(key.into()));
        }
    }
    Place::Emptied
}

/// A large value is not copied under the lock, and goes in pieces.
fn large(found: &Found<'_>) -> Option<Large> {
    let Value::Shared(shared) = found.value() else { return None };
    let (key, version) = (found.item.key().to_vec(), found.item.version());
    let is_large = shared.bytes().len() > CHUNK_BYTES;
    is_large.then(|| Large { key, version, value: shared.to_arc(), sent: 0 })
}

fn gather_large(large: &Large, table: &SlotTable, seed: &Seed, out: &mut Vec<u8>) -> Then {
    if large.sent < large.value.len() {
        let end = large.value.len().min(large.sent + CHUNK_BYTES);
        put_piece(&large.value[large.sent..end], out);
        return Then::Sent(end);
    }
    let found = table.peek(&seed.key(&large.key));
    if let Some(found) = found.filter(|found| found.item.version() == large.version) {
        put_whole(&found, out);
    }
    Then::Whole
}

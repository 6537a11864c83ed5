//! The giver: a node of the losing side that goes over the slots it holds and hands over its changes since the
//! split. It no longer serves clients, so nothing changes meanwhile except by expiry and eviction.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use placement::{Hashmask, Slot};
use store::{
    DivergenceLog, Found, ScanPosition, Seed, SlotTable, StoredValue, StringValue, Version,
};

use super::change::{put_emptied, put_gone, put_item, put_piece, put_whole};
use super::ledger::Tally;
use super::message::{MergeReply, MergeRequest, SLOTS_MAX};
use super::taker::{diverged_at, made_at};
use crate::data::Plane;
use crate::fill::CHUNK_BYTES;
use crate::map::{Bucket, Endpoints, Map, NodeId};

/// Number of items scanned between two checks of the chunk's size.
const STRIDE: usize = 16;

/// The data a node holds.
pub trait Holdings {
    fn seed(&self) -> &Seed;
    /// Runs `look` on a slot's table, which nobody changes meanwhile.
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
    /// True if it hands over within its own history: every bucket it brings has begun anew there.
    brings: bool,
    /// Slots that are not handed over yet; the first is the current one.
    runs: VecDeque<Range<u16>>,
    /// Versions from which on the other side lacks our changes, for the first of these slots, as far as it has
    /// answered.
    since: VecDeque<Version>,
    place: SlotProgress,
    /// Large values of the current slot.
    large: VecDeque<LargeMergedItem>,
    /// The step to take once the last question is answered.
    then: Option<Advance>,
    tally: Tally,
}

/// Progress of handing over the current slot.
#[derive(Clone, PartialEq, Eq, Debug)]
enum SlotProgress {
    Items(ScanPosition),
    /// Removed keys, after this one.
    Gone(Option<Box<[u8]>>),
    /// The emptying of the slot. It comes last: items written since are there by then, with later versions.
    Emptied,
    End,
}

const BEGIN: SlotProgress = SlotProgress::Items(ScanPosition::START);

struct LargeMergedItem {
    key: Vec<u8>,
    version: Version,
    value: Arc<Vec<u8>>,
    sent: usize,
}

enum Advance {
    At(SlotProgress),
    /// This many bytes of the first large value are sent.
    Sent(usize),
    /// The first large value is complete.
    Whole,
}

/// The way to continue after an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Course {
    /// Send the next question.
    On,
    /// Send the same question to that node.
    Elsewhere(Endpoints),
    /// Repeat the same question shortly.
    Later,
}

impl Giver {
    /// Creates a giver of everything this node holds by the map or may have kept, beginning with the buckets it
    /// serves.
    pub fn new(map: &Map, me: NodeId) -> Giver {
        let is_mine = |it: &&Bucket| it.is_held_by(me) || map.may_bring(me, it.hashmask);
        let mine = map.buckets().filter(is_mine);
        let (first, second): (Vec<_>, Vec<_>) = mine.partition(|it| it.primary() == Some(me));
        Giver::over(first.into_iter().chain(second).map(|bucket| bucket.hashmask))
    }

    /// Creates a giver of these buckets. Their primaries must know that the buckets have begun anew.
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

    /// Returns the number of slots that are still to be handed over.
    pub fn slots_left(&self) -> usize {
        self.runs.iter().map(ExactSizeIterator::len).sum()
    }

    /// Returns the outcome of the changes handed over so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Returns the next question, or the previous one again if it was not answered. `None` when all is done.
    pub fn question(&mut self, here: &impl Holdings) -> Option<MergeRequest> {
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

    pub fn answered(&mut self, reply: MergeReply) -> Course {
        match reply {
            // The primary has not recorded the divergence yet, but will shortly.
            MergeReply::Since(since) if self.brings && since.contains(&u64::MAX) => Course::Later,
            MergeReply::Since(since) => {
                self.since = since.into_iter().map(Version).collect();
                if self.since.is_empty() { Course::Later } else { Course::On }
            }
            MergeReply::Merged(tally) => {
                self.tally += tally;
                self.advance();
                Course::On
            }
            MergeReply::Elsewhere(at) => {
                self.interrupted();
                Course::Elsewhere(at)
            }
            MergeReply::NotNow => Course::Later,
        }
    }

    /// Restarts the current slot's dialogue, with another node or anew with the same one.
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

    /// Asks for the versions of the next slots. Returns `None` for a slot without items and tombstones, which
    /// is skipped.
    fn ask_since(&self, slot: Slot, here: &impl Holdings) -> Option<MergeRequest> {
        let is_blank = here.with_table(slot, |table| {
            let is_silent =
                |it: &DivergenceLog| it.tombstone_count() == 0 && it.emptied_at() == Version::ZERO;
            table.is_empty() && table.divergence().is_none_or(is_silent)
        });
        let run = self.runs.front().filter(|_| !is_blank)?;
        let count = u16::try_from(run.len()).unwrap_or(SLOTS_MAX).min(SLOTS_MAX);
        Some(MergeRequest::Since { first: slot.number(), count })
    }

    /// Returns the next piece of the current slot, if there is one.
    fn give(&mut self, slot: Slot, since: Version, here: &impl Holdings) -> Option<MergeRequest> {
        let mut changes = Vec::new();
        let parted = here.with_table(slot, |table| {
            let parted = diverged_at(table);
            let since = since.min(parted);
            while changes.is_empty() && (self.place != SlotProgress::End || !self.large.is_empty())
            {
                self.gather(table, here.seed(), since, &mut changes);
                if changes.is_empty() {
                    self.advance();
                }
            }
            parted
        });
        let (slot, parted) = (slot.number(), parted.0);
        (!changes.is_empty()).then_some(MergeRequest::Changes { slot, parted, changes })
    }

    /// Appends the next changes, and records the step that follows them.
    fn gather(&mut self, table: &SlotTable, seed: &Seed, since: Version, out: &mut Vec<u8>) {
        if let Some(large) = self.large.front() {
            self.then = Some(gather_large(large, table, seed, out));
            return;
        }
        let next = match &self.place {
            SlotProgress::Gone(after) => gather_gone(table, since, after.as_deref(), out),
            SlotProgress::Items(from) => {
                let from = *from;
                self.gather_items(table, since, from, out)
            }
            SlotProgress::Emptied => {
                let emptied_at =
                    table.divergence().map_or(Version::ZERO, DivergenceLog::emptied_at);
                if emptied_at > since {
                    put_emptied(emptied_at, out);
                }
                SlotProgress::End
            }
            SlotProgress::End => SlotProgress::End,
        };
        self.then = Some(Advance::At(next));
    }

    fn gather_items(
        &mut self,
        table: &SlotTable,
        since: Version,
        from: ScanPosition,
        out: &mut Vec<u8>,
    ) -> SlotProgress {
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
        next.map_or(SlotProgress::Gone(None), SlotProgress::Items)
    }

    /// Moves on, when the last question is done.
    fn advance(&mut self) {
        match self.then.take() {
            Some(Advance::At(place)) => self.place = place,
            Some(Advance::Sent(sent)) => {
                self.large.iter_mut().take(1).for_each(|large| large.sent = sent);
            }
            Some(Advance::Whole) => drop(self.large.pop_front()),
            None => {}
        }
    }
}

fn gather_gone(
    table: &SlotTable,
    since: Version,
    after: Option<&[u8]>,
    out: &mut Vec<u8>,
) -> SlotProgress {
    let Some(divergence) = table.divergence() else { return SlotProgress::End };
    for (key, tombstone) in divergence.tombstones(after) {
        if tombstone.version > since && !tombstone.by_itself {
            put_gone(key, tombstone.version, out);
        }
        if out.len() >= CHUNK_BYTES {
            return SlotProgress::Gone(Some(key.into()));
        }
    }
    SlotProgress::Emptied
}

/// Returns the value if it is large: it goes in pieces. A large container goes as its row; nobody changes it meanwhile.
fn large(found: &Found<'_>) -> Option<LargeMergedItem> {
    let value = match found.value() {
        StoredValue::String(StringValue::Shared(shared)) if shared.bytes().len() > CHUNK_BYTES => {
            shared.to_arc()
        }
        StoredValue::Hash(hash) if found.goes_in_parts() => Arc::new(hash.to_row()),
        StoredValue::List(list) if found.goes_in_parts() => Arc::new(list.to_row()),
        StoredValue::SortedSet(set) if found.goes_in_parts() => Arc::new(set.to_row()),
        StoredValue::Set(set) if found.goes_in_parts() => Arc::new(set.to_row()),
        StoredValue::Stream(stream) if found.goes_in_parts() => Arc::new(stream.to_records()),
        StoredValue::String(_)
        | StoredValue::Hash(_)
        | StoredValue::List(_)
        | StoredValue::SortedSet(_)
        | StoredValue::Set(_)
        | StoredValue::Stream(_) => return None,
    };
    let (key, version) = (found.name().into_owned(), found.item.version());
    Some(LargeMergedItem { key, version, value, sent: 0 })
}

fn gather_large(
    large: &LargeMergedItem,
    table: &SlotTable,
    seed: &Seed,
    out: &mut Vec<u8>,
) -> Advance {
    if large.sent < large.value.len() {
        let end = large.value.len().min(large.sent + CHUNK_BYTES);
        put_piece(&large.value[large.sent..end], out);
        return Advance::Sent(end);
    }
    let found = table.peek(&seed.named(&large.key));
    if let Some(found) = found.filter(|found| found.item.version() == large.version) {
        put_whole(&found, out);
    }
    Advance::Whole
}

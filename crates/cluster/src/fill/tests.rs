//! Fills a bucket under random writes: both ends must hold the same data in the end, whatever was written in
//! between, and effects that do not fit must be refused.

mod lists; // Lists, whose indices move while they are copied.
mod sorted; // Sorted sets.
mod sets; // Fills with large sets.
mod streams; // Streams and their groups.

use placement::{Hashmask, Mask, Slot};
use store::{
    Cause, Database, Effect, Element, Key, NewValue, Recorded, Seed, SlotTable, Touch, UnixMillis,
    digest_of,
};

use super::*;
use crate::balance::MoveId;
use crate::map::{Epoch, LogIndex, NodeId};
use crate::replication::{
    FillSize, Frame, FrameParts, Inbox, LinkId, Outbox, Received, ReceivingSlot, RecordedUnit,
    Role, SlotReplica, SyncState, receive_effects, receive_images, slot_of_unit,
};
use crate::serving::ship;
use crate::spread::SpreadKeys as _;

const LINK: LinkId = LinkId(0);
const REIGN: LogIndex = LogIndex(4);
const FILL: MoveId = MoveId { giver: NodeId(1), number: 1 };

/// One slot of one node.
struct Held {
    table: SlotTable,
    replica: SlotReplica,
}

/// A primary, a taker, and the link between them. All keys are of one slot.
struct Pair {
    seed: Seed,
    now: u64,
    chance: u64,
    primary: Held,
    taker: Held,
    outbox: Outbox,
    inbox: Inbox,
    wire: Vec<u8>,
    parts: FrameParts,
    /// Length of the longest frame that came in parts.
    largest: usize,
    fill: Option<FillTaker>,
}

impl Pair {
    fn new(chance: u64) -> Pair {
        let replica = SlotReplica::for_tests(Role::Serving, REIGN);
        let absent = SlotReplica::for_tests(Role::Absent, REIGN);
        Pair {
            seed: Seed::new(7),
            now: 1_000,
            chance,
            primary: Held { table: SlotTable::default(), replica },
            taker: Held { table: SlotTable::default(), replica: absent },
            outbox: Outbox::default(),
            inbox: Inbox::default(),
            wire: Vec::new(),
            parts: FrameParts::default(),
            largest: 0,
            fill: None,
        }
    }

    fn roll(&mut self, below: u64) -> u64 {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.chance >> 33) % below
    }

    /// Makes a random write to the slot, as a command would.
    fn write(&mut self) {
        if self.roll(6) == 0 {
            return self.write_set();
        }
        if self.roll(4) == 0 {
            return self.write_hash();
        }
        if self.roll(8) == 0 {
            return self.write_list();
        }
        let name = format!("{{tag}}{}", self.roll(40));
        let (what, size) = (self.roll(8), self.roll(3));
        let seed = self.seed.clone();
        // The same names are in several databases.
        let (here, there) = (database(self.roll(3)), database(self.roll(3)));
        let key = seed.key(name.as_bytes()).in_database(here);
        let long = vec![b'v'; if size == 0 { 200_000 } else { 30 }];
        let value = NewValue::Raw(&long);
        if here != there && self.roll(5) == 0 {
            let moved = Effect::Put { key: key.in_database(there), value, expires_at: None };
            let gone = Effect::Remove { key, cause: Cause::Deleted };
            return self.apply_all(key.slot(), &[moved, gone]);
        }
        let effect = match what {
            0..4 => Effect::Put { key, value, expires_at: None },
            4 | 5 => Effect::Append { key, tail: b"tail" },
            6 => Effect::Expire { key, at: Some(UnixMillis(9_000_000 + self.now)) },
            _ => Effect::Remove { key, cause: Cause::Deleted },
        };
        self.apply(&key, &effect);
    }

    /// Makes a random write to a hash. Three of them become large.
    fn write_hash(&mut self) {
        let name = match self.roll(8) {
            0 => format!("{{tag}}{}", self.roll(40)),
            _ => format!("{{tag}}h{}", self.roll(3)),
        };
        let (first, what) = (self.roll(3_000), self.roll(16));
        let fields =
            (first..first + 300).map(|number| format!("field {number}")).collect::<Vec<_>>();
        let value = format!("a value written at {}", self.now);
        let seed = self.seed.clone();
        let key = seed.spread(&name);
        let pairs = fields.iter().flat_map(|field| [field.as_str(), &value]);
        let (pairs, one) = (row(pairs), row([fields[0].as_str(), "one"]));
        let gone = row(fields.iter().map(String::as_str));
        let at = if what == 7 { 9_000_000 + self.now } else { 0 }.to_string();
        let deadlines = row(fields.iter().flat_map(|field| [field.as_str(), &at]));
        let effect = match what {
            0 => Effect::Remove { key, cause: Cause::Deleted },
            1 => Effect::Put { key, value: NewValue::Hash(&pairs), expires_at: None },
            2 => Effect::Expire { key, at: Some(UnixMillis(9_000_000 + self.now)) },
            3 | 4 => Effect::RemoveFields { key, fields: &gone },
            5 | 6 => Effect::SetFields { key, pairs: &one },
            7 | 8 => Effect::ExpireFields { key, deadlines: &deadlines },
            _ => Effect::SetFields { key, pairs: &pairs },
        };
        self.apply(&key, &effect);
    }

    fn apply(&mut self, key: &Key<'_>, effect: &Effect<'_>) {
        self.apply_all(key.slot(), core::slice::from_ref(effect));
    }

    /// Applies the effects as one unit, as a transaction would.
    fn apply_all(&mut self, slot: Slot, effects: &[Effect<'_>]) {
        self.now += 1;
        let Held { table, replica } = &mut self.primary;
        let mut unit = Vec::new();
        for effect in effects {
            let version = table.next_version(UnixMillis(self.now));
            Recorded::write(slot, (table.version(), version), effect, &mut unit);
            let _ = table.apply(effect, version, Touch::Nothing, &self.seed);
        }
        ship(table, replica, &unit, &self.seed, |_, frame| self.outbox.push(frame));
    }

    /// Delivers all frames, and returns the taker's result for the last one that changes the slot.
    fn deliver(&mut self) -> Option<Received> {
        while let Some(bytes) = self.outbox.unsent() {
            self.wire.extend_from_slice(bytes);
            let count = bytes.len();
            self.outbox.sent(count);
        }
        let mut last = None;
        let wire = core::mem::take(&mut self.wire);
        let mut at = 0;
        while let Some((_, frame, length)) = self.inbox.peek(&wire[at..]).unwrap() {
            let Held { table, replica } = &mut self.taker;
            let mut to = ReceivingSlot { table, replica, seed: &self.seed, touch: Touch::Nothing };
            self.inbox.done();
            at += length;
            if let Frame::Part { bytes } = frame {
                self.parts.add(bytes).unwrap();
                continue;
            }
            let whole = if let Frame::LastPart { bytes } = frame {
                Some(self.parts.finish(bytes).unwrap())
            } else {
                None
            };
            self.largest = self.largest.max(whole.as_ref().map_or(0, Vec::len));
            let frame = whole.as_ref().map_or(frame, |whole| Frame::read(whole).unwrap());
            if let Some(received) = receive(&mut self.fill, &mut to, &frame) {
                last = Some(received);
            }
        }
        last
    }

    fn same(&self) -> bool {
        self.primary.table.version() == self.taker.table.version()
            && digest_of(&self.primary.table) == digest_of(&self.taker.table)
    }
}

fn database(number: u64) -> Database {
    u16::try_from(number).ok().and_then(Database::new).expect("a small number")
}

/// Returns texts as elements in a row.
fn row<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut row = Vec::new();
    texts.into_iter().for_each(|text| Element::of(text.as_bytes()).write(&mut row));
    row
}

fn receive(
    fill: &mut Option<FillTaker>,
    to: &mut ReceivingSlot<'_>,
    frame: &Frame<'_>,
) -> Option<Received> {
    let nothing = |_| {};
    let taker = fill.as_mut();
    match *frame {
        Frame::Effects { reign, written_in, unit } => {
            assert!(slot_of_unit(unit).is_some());
            return Some(receive_effects(
                to,
                RecordedUnit { reign, written_in, effects: unit },
                nothing,
            ));
        }
        Frame::Images { reign, from, to: version, images, .. } => {
            return Some(receive_images(to, reign, from, version, images, nothing));
        }
        Frame::FillStart { fill: id, bucket, reign, size } => {
            *fill = Some(FillTaker::new(id, bucket, reign, size));
        }
        Frame::FillSlot { position, .. } => drop(taker.unwrap().begin_slot(to, position)),
        Frame::FillTombstones { piece, .. } => drop(to.table.take_divergence(piece).unwrap()),
        Frame::FillNewer { from, position, .. } => {
            assert!(taker.unwrap().begin_newer(to, from, position));
        }
        Frame::FillGone { keys, .. } => taker.unwrap().take_gone(to, keys, nothing).unwrap(),
        Frame::FillItems { items, .. } => taker.unwrap().take_items(to, items, nothing).unwrap(),
        Frame::FillPart { bytes, .. } => taker.unwrap().take_piece(bytes),
        Frame::FillWhole { item, .. } => drop(taker.unwrap().take_whole(to, item).unwrap()),
        Frame::FillEnd { epoch, .. } => taker.unwrap().end(epoch),
        Frame::FillSlotEnd { .. }
        | Frame::FillCancel { .. }
        | Frame::Compare { .. }
        | Frame::Replace { .. }
        | Frame::ReplaceItems { .. }
        | Frame::ReplaceEnd { .. }
        | Frame::AnnouncePromotion { .. }
        | Frame::Pubsub { .. } => {}
        Frame::Part { .. } | Frame::LastPart { .. } => panic!("`Pair::deliver` puts them together"),
    }
    None
}

/// Returns the bucket that has only this slot.
fn bucket() -> Hashmask {
    Hashmask::of_slot(Mask::M3FFF, Slot::of(b"{tag}"))
}

fn fill(pair: &mut Pair, writes_between: u64) -> Sent {
    pair.primary.replica.add_downstream(LINK, pair.outbox.last());
    let mut source = FillSource::new(FILL, bucket(), LINK, pair.primary.replica.reign());
    source.start(FillSize::default(), &mut pair.outbox);
    if pair.taker.replica.role() == Role::Stale {
        let position = pair.taker.replica.position(&pair.taker.table);
        source.note_kept(Slot::of(b"{tag}"), position);
    }
    while source.slot().is_some() {
        for _ in 0..pair.roll(writes_between + 1) {
            pair.write();
        }
        if source.send_piece(&mut pair.outbox) {
            continue;
        }
        let Held { table, replica } = &mut pair.primary;
        source.send_chunk(table, replica, &pair.seed, &mut pair.outbox);
        if pair.roll(3) == 0 {
            let received = pair.deliver();
            assert!(matches!(received, None | Some(Received::Applied)), "{received:?}");
        }
    }
    pair.primary.replica.downstream_mut(LINK).unwrap().join_wait_set(pair.outbox.last());
    source.end(Epoch(9), &mut pair.outbox);
    source.sent()
}

/// Fills the copy, then detaches it while `writes` writes are made, changes the reign, and makes as many writes
/// again.
fn part(pair: &mut Pair, writes: u64) {
    fill(pair, 0);
    pair.deliver();
    assert!(pair.same());
    pair.primary.replica.remember_removals(Some(pair.primary.table.version()));
    pair.primary.replica.remove_downstream(LINK);
    pair.taker.replica.become_for_tests(Role::Stale, pair.taker.replica.reign());
    for _ in 0..writes {
        pair.write();
    }
    let later = LogIndex(pair.primary.replica.reign().0 + 5);
    pair.primary.replica.become_for_tests(Role::Serving, later);
    pair.taker.replica.become_for_tests(Role::Stale, later);
    for _ in 0..writes {
        pair.write();
    }
}

#[test]
fn a_copy_that_was_away_is_the_same_again_by_what_has_changed() {
    let mut newer = 0;
    for chance in 0..300 {
        let mut pair = Pair::new(chance);
        for _ in 0..pair.roll(120) {
            pair.write();
        }
        let writes = pair.roll(12);
        part(&mut pair, writes);
        let sent = fill(&mut pair, chance % 5);
        pair.write();
        let received = pair.deliver();
        assert!(matches!(received, None | Some(Received::Applied)), "{received:?}");
        assert!(pair.same(), "with chance {chance}");
        assert!(sent.items + sent.gone <= 2 * writes + 40, "{sent:?} of {writes} writes");
        newer += sent.newer_slots;
    }
    assert!(newer > 290, "only {newer} by the difference");
}

#[test]
fn of_a_copy_that_has_missed_nothing_nothing_is_sent() {
    let mut pair = Pair::new(3);
    (0..50).for_each(|_| pair.write());
    part(&mut pair, 0);
    let sent = fill(&mut pair, 0);
    pair.deliver();
    assert!(pair.same());
    assert_eq!(sent, Sent { newer_slots: 1, ..Sent::default() });
}

#[test]
fn a_copy_with_a_write_that_nobody_else_has_comes_whole() {
    let mut pair = Pair::new(5);
    (0..50).for_each(|_| pair.write());
    part(&mut pair, 0);
    // The taker was primary, and made one more write before it was deposed.
    let seed = pair.seed.clone();
    let ghost = Effect::Put {
        key: seed.spread("{tag}ghost"),
        value: NewValue::Raw(b"1"),
        expires_at: None,
    };
    let version = pair.taker.table.next_version(UnixMillis(pair.now));
    let _ = pair.taker.table.apply(&ghost, version, Touch::Nothing, &seed);
    (0..5).for_each(|_| pair.write());
    let sent = fill(&mut pair, 2);
    pair.deliver();
    assert_eq!((sent.whole_slots, sent.newer_slots), (1, 0));
    assert!(pair.same(), "the ghost is gone");
}

#[test]
fn a_filled_slot_is_the_same_whatever_was_written_meanwhile() {
    for chance in 0..300 {
        let mut pair = Pair::new(chance);
        for _ in 0..pair.roll(120) {
            pair.write();
        }
        fill(&mut pair, chance % 5);
        pair.write();
        let received = pair.deliver();
        assert!(matches!(received, None | Some(Received::Applied)), "{received:?}");
        assert!(pair.same(), "with chance {chance}");
        assert!(pair.fill.as_ref().unwrap().has_ended());
        assert!(matches!(pair.primary.replica.sync_state(LINK), Some(SyncState::Awaited { .. })));
    }
}

#[test]
fn a_transaction_on_large_values_of_a_half_sent_slot_goes_in_frames_of_bounded_size() {
    let mut pair = Pair::new(1);
    let seed = pair.seed.clone();
    let names: Vec<String> = (0..40).map(|number| format!("{{tag}}{number}")).collect();
    let keys: Vec<Key<'_>> = names.iter().map(|name| seed.spread(name)).collect();
    let long = vec![b'v'; 600_000];
    for key in &keys {
        let value = NewValue::Raw(&long);
        pair.apply(key, &Effect::Put { key: *key, value, expires_at: None });
    }
    // The fill has begun the slot, and is at its first large value.
    pair.primary.replica.add_downstream(LINK, pair.outbox.last());
    let mut source = FillSource::new(FILL, bucket(), LINK, REIGN);
    source.start(FillSize::default(), &mut pair.outbox);
    let Held { table, replica } = &mut pair.primary;
    source.send_chunk(table, replica, &pair.seed, &mut pair.outbox);
    assert!(matches!(pair.primary.replica.sync_state(LINK), Some(SyncState::Partly { .. })));
    // Touch each key many times, and remove some in the end.
    let mut effects = Vec::new();
    for (key, number) in keys.iter().zip(0..).chain(keys.iter().zip(0..)) {
        effects.push(Effect::Append { key: *key, tail: b"tail" });
        if number % 5 == 0 {
            effects.push(Effect::Remove { key: *key, cause: Cause::Deleted });
        }
    }
    pair.apply_all(Slot::of(b"{tag}"), &effects);
    assert_eq!(pair.deliver(), Some(Received::Applied));
    assert!(pair.largest < 2_000_000, "{} bytes in one frame", pair.largest);
    assert!(pair.outbox.unacknowledged_bytes() < 32 * 700_000, "each value goes once");
    while source.slot().is_some() {
        if !source.send_piece(&mut pair.outbox) {
            let Held { table, replica } = &mut pair.primary;
            source.send_chunk(table, replica, &pair.seed, &mut pair.outbox);
        }
    }
    pair.primary.replica.downstream_mut(LINK).unwrap().join_wait_set(pair.outbox.last());
    source.end(Epoch(9), &mut pair.outbox);
    pair.write();
    pair.deliver();
    assert!(pair.same());
}

/// Creates large hashes, and fills the copy while `write` writes to the hashes at each step. Returns the number of
/// steps, and of bytes sent.
fn fill_hashes(pair: &mut Pair, write: impl FnMut(&mut Pair, u64)) -> (u64, usize) {
    let seed = pair.seed.clone();
    for number in 0..3 {
        let name = format!("{{tag}}large{number}");
        let key = seed.spread(&name);
        let fields: Vec<String> = (0..20_000).map(|number| format!("field {number}")).collect();
        let pairs = row(fields.iter().flat_map(|field| [field.as_str(), "some value"]));
        pair.apply(&key, &Effect::SetFields { key, pairs: &pairs });
    }
    fill_while(pair, write)
}

/// Fills the copy while `write` writes at each step. Returns the number of steps, and of bytes sent.
fn fill_while(pair: &mut Pair, mut write: impl FnMut(&mut Pair, u64)) -> (u64, usize) {
    pair.primary.replica.add_downstream(LINK, pair.outbox.last());
    let mut source = FillSource::new(FILL, bucket(), LINK, REIGN);
    source.start(FillSize::default(), &mut pair.outbox);
    let mut steps = 0;
    while source.slot().is_some() {
        let Held { table, replica } = &mut pair.primary;
        source.send_chunk(table, replica, &pair.seed, &mut pair.outbox);
        write(pair, steps);
        steps += 1;
    }
    let bytes = pair.outbox.unacknowledged_bytes();
    pair.primary.replica.downstream_mut(LINK).unwrap().join_wait_set(pair.outbox.last());
    source.end(Epoch(9), &mut pair.outbox);
    assert_eq!(pair.deliver(), if steps > 0 { Some(Received::Applied) } else { None });
    (steps, bytes)
}

#[test]
fn a_large_hash_goes_in_parts_and_a_write_to_it_costs_what_it_changes() {
    let mut pair = Pair::new(1);
    let (steps, bytes) = fill_hashes(&mut pair, |pair, step| {
        let seed = pair.seed.clone();
        for number in 0..3 {
            let name = format!("{{tag}}large{number}");
            let key = seed.spread(&name);
            let (old, new) = (format!("field {}", step * 37), format!("new field {step}"));
            let pairs = row([old.as_str(), "changed", new.as_str(), "new"]);
            pair.apply(&key, &Effect::SetFields { key, pairs: &pairs });
            let fields = row([format!("field {}", step * 37 + 1).as_str()]);
            pair.apply(&key, &Effect::RemoveFields { key, fields: &fields });
        }
    });
    assert!(pair.same());
    assert!(steps >= 3 * 20_000 * 20 / CHUNK_BYTES as u64, "only {steps} chunks");
    // Three hashes of some 500 KB, and 6 small writes at each step.
    assert!(bytes < 3 * 600_000 + steps as usize * 6 * 200, "{bytes} bytes in {steps} steps");
}

#[test]
fn a_large_hash_that_shrinks_goes_or_comes_back_during_its_copy_arrives() {
    let fields: Vec<String> = (0..19_900).map(|number| format!("field {number}")).collect();
    let gone = row(fields.iter().map(String::as_str));
    let pairs = row(fields.iter().take(5_000).flat_map(|field| [field.as_str(), "again"]));
    for removed_at in 0..24 {
        let mut pair = Pair::new(1);
        fill_hashes(&mut pair, |pair, step| {
            let seed = pair.seed.clone();
            let name = format!("{{tag}}large{}", removed_at % 3);
            let key = seed.spread(&name);
            match (step == removed_at, removed_at % 4) {
                (true, 0) => pair.apply(&key, &Effect::RemoveFields { key, fields: &gone }),
                (true, 1) => pair.apply(&key, &Effect::Remove { key, cause: Cause::Deleted }),
                (true, 2) => {
                    let put = Effect::Put { key, value: NewValue::Hash(&pairs), expires_at: None };
                    let remove = Effect::Remove { key, cause: Cause::Deleted };
                    pair.apply_all(key.slot(), &[remove, put]);
                }
                (true, _) => {
                    pair.apply(&key, &Effect::Remove { key, cause: Cause::Deleted });
                    pair.apply(&key, &Effect::SetFields { key, pairs: &pairs });
                }
                (false, _) => {
                    let one = row(["again and again", "1"]);
                    pair.apply(&key, &Effect::SetFields { key, pairs: &one });
                }
            }
        });
        assert!(pair.same(), "removed at step {removed_at}");
    }
}

#[test]
fn a_missing_effect_is_noticed_and_a_repeated_one_is_known() {
    let mut pair = Pair::new(1);
    fill(&mut pair, 0);
    pair.deliver();
    let before = pair.primary.replica.clone();
    pair.primary.replica.remove_downstream(LINK);
    let seed = pair.seed.clone();
    let key = seed.spread("{tag}x");
    let put = Effect::Put { key, value: NewValue::Plain(b"1"), expires_at: None };
    pair.apply(&key, &put); // This frame goes nowhere.
    assert_ne!(pair.primary.replica, before);
    pair.primary.replica = before;
    pair.apply(&key, &put);
    assert_eq!(pair.deliver(), Some(Received::Refused(REIGN)));
}

#[test]
fn another_reign_is_refused_or_waited_for() {
    let mut pair = Pair::new(1);
    fill(&mut pair, 0);
    pair.deliver();
    pair.taker.replica.become_for_tests(Role::Backup, REIGN);
    pair.primary.replica.become_for_tests(Role::Serving, LogIndex(3));
    pair.write();
    assert_eq!(pair.deliver(), Some(Received::Refused(REIGN)), "from a deposed primary");
    pair.primary.replica.become_for_tests(Role::Serving, LogIndex(5));
    pair.write();
    assert_eq!(pair.deliver(), Some(Received::Early), "the map here is behind");
}

#[test]
fn a_taker_knows_how_much_of_the_bucket_it_lacks() {
    let bucket = Hashmask::of_slot(Mask::M0FFF, Slot::new(0).unwrap());
    assert_eq!(bucket.slots().len(), 4);
    let size = FillSize { items: 1_000, bytes: 50_000 };
    let mut taker = FillTaker::new(FILL, bucket, REIGN, size);
    let behind = |taker: &FillTaker| {
        let FillReceived { percent, items_behind, bytes_behind, .. } = taker.progress();
        (percent, items_behind, bytes_behind)
    };
    assert_eq!(behind(&taker), (0, 1_000, 50_000));
    taker.end_slot(400);
    assert_eq!(behind(&taker), (25, 600, 30_000));
    taker.end_slot(900); // Items were written since the fill began.
    assert_eq!(behind(&taker), (50, 0, 0));
    taker.end_slot(0);
    taker.end_slot(0);
    assert_eq!(behind(&taker), (100, 0, 0));
    let empty = FillTaker::new(FILL, bucket, REIGN, FillSize::default());
    assert_eq!(behind(&empty), (0, 0, 0));
}

//! Merges two sides with random histories of one slot. A key that only one side has changed must stay as that
//! side left it; of a key that both have changed, the later version must win.

mod sets; // Sets on both sides.

use std::collections::BTreeMap;

use placement::{Mask, Slot};
use store::{Cause, Effect, Key, NewValue, Seed, SlotTable, Touch, UnixMillis, Version};

use super::*;
use crate::map::{Boot, ClusterSettings, Endpoints, Map, Member, NodeId, Zone};
use crate::spread::SpreadKeys as _;

struct Shore {
    table: SlotTable,
    seed: Seed,
    now: u64,
    conflicts: Vec<Conflict>,
    effects: u64,
}

impl Holdings for Shore {
    fn seed(&self) -> &Seed {
        &self.seed
    }

    fn with_table<R>(&self, slot: Slot, look: impl FnOnce(&SlotTable) -> R) -> R {
        if slot == Slot::of(b"{t}") { look(&self.table) } else { look(&SlotTable::default()) }
    }
}

impl Ground for Shore {
    fn table(&mut self) -> &SlotTable {
        &self.table
    }

    fn apply(&mut self, effect: &Effect<'_>) {
        self.effects += 1;
        self.now += 1;
        let version = self.table.next_version(UnixMillis(self.now));
        let _ = self.table.apply(effect, version, Touch::Nothing, &self.seed);
    }

    fn brought(&mut self, key: &Key<'_>, made: Version) {
        self.table.note_brought(key, made);
    }

    fn conflict(&mut self, conflict: Conflict) {
        self.conflicts.push(conflict);
    }
}

impl Shore {
    fn new(now: u64) -> Shore {
        let (table, seed) = (SlotTable::default(), Seed::new(now));
        Shore { table, seed, now, conflicts: Vec::new(), effects: 0 }
    }

    fn key<'a>(&self, name: &'a str) -> Key<'a> {
        self.seed.spread(name)
    }

    fn put(&mut self, name: &str, value: &str) {
        let (key, value) = (self.key(name), NewValue::Raw(value.as_bytes()));
        self.apply(&Effect::Put { key, value, expires_at: None });
    }

    fn remove(&mut self, name: &str, cause: Cause) {
        let key = self.key(name);
        self.apply(&Effect::Remove { key, cause });
    }

    fn part(&mut self) {
        self.table.begin_divergence(self.table.version());
    }

    fn get(&self, name: &str) -> Option<String> {
        let found = self.table.peek(&self.key(name))?;
        Some(String::from_utf8(found.string().expect("a string").to_bytes().into_owned()).unwrap())
    }
}

/// Returns the fields and values of a hash in a row.
fn pairs(fields: u64, value: &str) -> Vec<u8> {
    let mut row = Vec::new();
    for number in 0..fields {
        store::Element::of(format!("field {number}").as_bytes()).write(&mut row);
        store::Element::of(value.as_bytes()).write(&mut row);
    }
    row
}

#[test]
fn hashes_small_and_large_are_merged_like_other_values() {
    let (mut one, mut two) = parted(&["kept"]);
    let seed = one.seed.clone();
    for (name, fields) in [("small", 3), ("large", 20_000)] {
        let row = pairs(fields, "theirs");
        one.apply(&Effect::SetFields { key: seed.spread(name), pairs: &row });
    }
    // Both sides have made the same hash, in different orders, and a different one.
    let (same, reversed) = (pairs(2, "v"), [&pairs(2, "v")[10..], &pairs(2, "v")[..10]].concat());
    assert_eq!(same.len(), 20, "ten bytes for each pair");
    one.apply(&Effect::SetFields { key: seed.spread("same"), pairs: &same });
    two.apply(&Effect::SetFields { key: seed.spread("same"), pairs: &reversed });
    two.apply(&Effect::SetFields { key: seed.spread("kept"), pairs: &same });
    let tally = hand_over(&one, &mut two);
    assert_eq!((tally.taken, tally.same), (2, 1));
    for name in ["small", "large", "same"] {
        let here = two.table.peek(&two.key(name)).unwrap();
        let there = one.table.peek(&one.key(name)).unwrap();
        assert_eq!(store::Digest::of_item(&here), store::Digest::of_item(&there), "{name}");
    }
}

#[test]
fn sorted_sets_small_and_large_are_merged_like_other_values() {
    let (mut one, mut two) = parted(&["kept"]);
    let seed = one.seed.clone();
    let scores = |members: u64, score: f64| {
        let mut row = Vec::new();
        for number in 0..members {
            let name = format!("member {number}");
            let score = store::Score::new(score).expect("a number");
            let member = store::Element::of(name.as_bytes());
            store::ScoredMember { score, member }.write(&mut row);
        }
        row
    };
    for (name, members) in [("small", 3), ("large", 20_000)] {
        let row = scores(members, 1.5);
        one.apply(&Effect::SetScores { key: seed.spread(name), pairs: &row });
    }
    // Both sides have made the same set, and sets with different scores.
    for (name, score) in [("same", 1.0), ("different", 2.0)] {
        let key = seed.spread(name);
        one.apply(&Effect::SetScores { key, pairs: &scores(2, 1.0) });
        two.apply(&Effect::SetScores { key, pairs: &scores(2, score) });
    }
    two.apply(&Effect::SetScores { key: seed.spread("kept"), pairs: &scores(2, 1.0) });
    let tally = hand_over(&one, &mut two);
    assert_eq!((tally.taken, tally.same), (2, 1));
    for name in ["small", "large", "same"] {
        let here = two.table.peek(&two.key(name)).unwrap();
        let there = one.table.peek(&one.key(name)).unwrap();
        assert_eq!(store::Digest::of_item(&here), store::Digest::of_item(&there), "{name}");
    }
}

/// Returns two sides with the same items, just split.
fn parted(names: &[&str]) -> (Shore, Shore) {
    let (mut one, mut two) = (Shore::new(1_000), Shore::new(1_000));
    for name in names {
        one.put(name, "old");
        two.put(name, "old");
    }
    one.part();
    two.part();
    (one, two)
}

fn map_of_one() -> Map {
    let (zone, at) = (Zone::default(), Endpoints::default());
    let me = Member { id: NodeId(1), boot: Boot(1), name: "n".into(), weight: 1, zone, at };
    Map::found(me, Mask::M000F, ClusterSettings::default())
}

/// Hands over everything of the first side to the second, and returns the outcome.
fn hand_over(from: &Shore, to: &mut Shore) -> Tally {
    hand_over_with(from, to, |_| Course::On)
}

/// Hands over as above; `disturb` may fail each question.
fn hand_over_with(from: &Shore, to: &mut Shore, mut disturb: impl FnMut(u64) -> Course) -> Tally {
    let mut giver = Giver::new(&map_of_one(), NodeId(1));
    let (mut taker, mut count) = (MergeTaker::default(), 0);
    while let Some(question) = giver.question(from) {
        count += 1;
        assert!(count < 10_000, "it goes on for ever");
        if disturb(count) != Course::On {
            taker = MergeTaker::default();
            giver.interrupted();
            continue;
        }
        let reply = match question {
            MergeRequest::Since { count, .. } => {
                let at = diverged_at(&to.table).0;
                MergeReply::Since(vec![at; usize::from(count)])
            }
            MergeRequest::Changes { parted, changes, .. } => {
                assert!(changes.len() < 3 * crate::fill::CHUNK_BYTES, "pieces are small");
                let batch = ChangeBatch::read(&changes).unwrap();
                to.now = to.now.max(batch.latest().time().0 + 1);
                let seed = to.seed.clone();
                MergeReply::Merged(taker.take(Version(parted), batch, &seed, to))
            }
        };
        assert_eq!(giver.answered(reply), Course::On);
    }
    assert_eq!(giver.slots_left(), 0);
    giver.tally()
}

#[test]
fn what_only_the_yielding_side_has_changed_is_taken() {
    let (mut from, mut to) = parted(&["{t}kept", "{t}changed", "{t}deleted"]);
    from.put("{t}changed", "new");
    from.put("{t}made", "new");
    from.remove("{t}deleted", Cause::Deleted);
    let tally = hand_over(&from, &mut to);
    assert_eq!(tally, Tally { taken: 3, ..Tally::default() });
    assert_eq!(to.get("{t}kept").as_deref(), Some("old"));
    assert_eq!(to.get("{t}changed").as_deref(), Some("new"));
    assert_eq!(to.get("{t}made").as_deref(), Some("new"));
    assert_eq!(to.get("{t}deleted"), None);
}

#[test]
fn what_only_the_other_side_has_changed_stays() {
    let (from, mut to) = parted(&["{t}changed", "{t}deleted"]);
    to.put("{t}changed", "new");
    to.remove("{t}deleted", Cause::Deleted);
    assert_eq!(hand_over(&from, &mut to), Tally::default());
    assert_eq!((to.get("{t}changed").as_deref(), to.get("{t}deleted")), (Some("new"), None));
}

#[test]
fn of_what_both_have_changed_the_later_stands_and_is_reported() {
    let (mut from, mut to) = parted(&["{t}a", "{t}b", "{t}c", "{t}d"]);
    to.put("{t}a", "standing, earlier");
    to.remove("{t}d", Cause::Deleted);
    from.put("{t}b", "yielding, earlier");
    from.put("{t}c", "yielding, earlier");
    (from.now, to.now) = (2_000, 2_000);
    from.put("{t}a", "yielding");
    from.put("{t}d", "yielding");
    to.put("{t}b", "standing");
    to.remove("{t}c", Cause::Deleted);
    let tally = hand_over(&from, &mut to);
    assert_eq!(tally, Tally { lost_here: 2, lost_there: 2, ..Tally::default() });
    assert_eq!(to.get("{t}a").as_deref(), Some("yielding"));
    assert_eq!(to.get("{t}b").as_deref(), Some("standing"));
    assert_eq!(to.get("{t}c"), None, "what was taken away does not come back");
    assert_eq!(to.get("{t}d").as_deref(), Some("yielding"));
    let of = |key: &str| to.conflicts.iter().find(|it| it.key == key.as_bytes()).unwrap();
    assert_eq!((of("{t}a").winner, of("{t}c").winner), (Winner::Theirs, Winner::Ours));
    assert_eq!((of("{t}a").ours.bytes, of("{t}a").theirs.bytes), (Some(17), Some(8)));
    assert_eq!(of("{t}c").ours.bytes, None);
    assert!(of("{t}c").ours.version > of("{t}c").theirs.version);
}

#[test]
fn what_ends_by_itself_is_nobodys_change() {
    let (mut from, mut to) = parted(&["{t}a", "{t}b"]);
    from.remove("{t}a", Cause::Expired);
    to.remove("{t}b", Cause::Evicted);
    from.put("{t}b", "new");
    let tally = hand_over(&from, &mut to);
    assert_eq!(tally, Tally { taken: 1, ..Tally::default() });
    assert_eq!((to.get("{t}a").as_deref(), to.get("{t}b").as_deref()), (Some("old"), Some("new")));
}

#[test]
fn a_slot_that_was_emptied_there_is_emptied_here_but_for_what_is_later() {
    let (mut from, mut to) = parted(&["{t}a", "{t}b"]);
    to.put("{t}early", "standing");
    (from.now, to.now) = (2_000, 3_000);
    from.apply(&Effect::Clear);
    from.put("{t}new", "yielding");
    from.put("{t}b", "again");
    to.put("{t}late", "standing");
    let tally = hand_over(&from, &mut to);
    assert_eq!((tally.taken, tally.lost_here, tally.lost_there), (3, 1, 0));
    let left = ["{t}a", "{t}b", "{t}early", "{t}late", "{t}new"].map(|key| to.get(key).is_some());
    assert_eq!(left, [false, true, false, true, true]);
    assert_eq!(to.get("{t}b").as_deref(), Some("again"));
}

#[test]
fn without_memory_a_missing_key_is_reported_and_not_brought_back() {
    let (mut from, mut to) = parted(&["{t}a"]);
    to.remove("{t}a", Cause::Deleted);
    let _ = to.table.forget_tombstones();
    from.put("{t}a", "new");
    let tally = hand_over(&from, &mut to);
    assert_eq!((tally.unsure, to.get("{t}a")), (1, None));
    assert_eq!(to.conflicts[0].winner, Winner::Unsure);
}

#[test]
fn a_side_that_never_held_the_slot_takes_all_of_it() {
    let (from, _) = parted(&["{t}a", "{t}b"]);
    let mut to = Shore::new(5_000);
    to.part();
    to.put("{t}b", "begun anew");
    let tally = hand_over(&from, &mut to);
    assert_eq!((tally.taken, tally.same), (1, 1), "what they have only kept is no conflict");
    assert_eq!(to.get("{t}b").as_deref(), Some("begun anew"));
    assert_eq!(to.get("{t}a").as_deref(), Some("old"));
}

#[test]
fn large_values_go_in_pieces_and_breaks_only_cost_time() {
    let (mut from, mut to) = parted(&["{t}a"]);
    let large = "x".repeat(700_000);
    for number in 0..4 {
        from.put(&format!("{{t}}large{number}"), &format!("{number}{large}"));
    }
    for number in 0..2_000 {
        from.put(&format!("{{t}}small{number}"), &"y".repeat(300));
    }
    let mut broken = 0;
    let tally = hand_over_with(&from, &mut to, |count| {
        let breaks = count % 7 == 3 && broken < 12;
        broken += u64::from(breaks);
        if breaks { Course::Later } else { Course::On }
    });
    assert_eq!((broken, tally.taken, tally.conflicts()), (12, 2_004, 0));
    let digests = (store::digest_of(&from.table), store::digest_of(&to.table));
    assert_eq!(digests.0, digests.1);
}

#[test]
fn handing_over_twice_changes_nothing() {
    let (mut from, mut to) = parted(&["{t}a", "{t}b", "{t}c"]);
    from.now = 9_000;
    from.put("{t}a", "yielding, by a clock that is ahead");
    from.remove("{t}b", Cause::Deleted);
    to.put("{t}a", "standing");
    hand_over(&from, &mut to);
    let (effects, digest) = (to.effects, store::digest_of(&to.table));
    let again = hand_over(&from, &mut to);
    assert_eq!(again, Tally { same: 2, ..Tally::default() });
    assert_eq!((effects, digest), (to.effects, store::digest_of(&to.table)));
    // It does not undo later writes of clients either, even if their clock is behind.
    to.put("{t}a", "since");
    hand_over(&from, &mut to);
    assert_eq!(to.get("{t}a").as_deref(), Some("since"));
}

#[test]
fn whatever_both_did_what_one_side_alone_has_touched_is_as_it_left_it() {
    for seed in 0..200_u64 {
        let mut chance = seed;
        let mut roll = |below: u64| {
            chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (chance >> 33) % below
        };
        let names: Vec<String> = (0..12).map(|number| format!("{{t}}{number}")).collect();
        let before: Vec<&str> = names.iter().take(8).map(String::as_str).collect();
        let (mut from, mut to) = parted(&before);
        let mut touched: BTreeMap<&str, [bool; 2]> = BTreeMap::new();
        for step in 0..roll(30) {
            let name = names[roll(12) as usize].as_str();
            let side = roll(2) as usize;
            let shore = if side == 0 { &mut from } else { &mut to };
            shore.now += roll(5);
            if roll(3) > 0 {
                shore.put(name, &format!("{step}"));
                touched.entry(name).or_default()[side] = true;
            } else if shore.get(name).is_some() {
                shore.remove(name, Cause::Deleted);
                touched.entry(name).or_default()[side] = true;
            }
        }
        let both: BTreeMap<&str, _> =
            names.iter().map(|it| (it.as_str(), [from.get(it), to.get(it)])).collect();
        hand_over(&from, &mut to);
        for (name, [there, here]) in both {
            let now = to.get(name);
            match touched.get(name).copied().unwrap_or_default() {
                [false, _] => assert_eq!(now, here, "{name} with seed {seed}"),
                [true, false] => assert_eq!(now, there, "{name} with seed {seed}"),
                [true, true] => {
                    assert!(now == here || now == there, "{name} with seed {seed}");
                    let reported = to.conflicts.iter().any(|it| it.key == name.as_bytes());
                    assert!(reported || here == there, "{name} with seed {seed}");
                }
            }
        }
    }
}

#[test]
fn what_is_no_batch_is_refused_as_a_whole() {
    let (mut from, to) = parted(&[]);
    from.put("{t}a", "1");
    let mut giver = Giver::new(&map_of_one(), NodeId(1));
    giver.question(&from);
    giver.answered(MergeReply::Since(vec![diverged_at(&to.table).0; 128]));
    let Some(MergeRequest::Changes { changes, .. }) = giver.question(&from) else { panic!() };
    assert!(ChangeBatch::read(&changes).is_ok());
    for length in 1..changes.len() {
        assert!(ChangeBatch::read(&changes[..length]).is_err());
    }
    assert!(ChangeBatch::read(&[99]).is_err());
}

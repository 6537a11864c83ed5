//! Tests of `divergence.rs`: a slot's record since a split, change by change.

use super::*;
use crate::{Effect, NewValue, Seed, Touch, UnixMillis};

struct Slot {
    table: SlotTable,
    seed: Seed,
    now: u64,
}

impl Slot {
    fn new() -> Slot {
        Slot { table: SlotTable::default(), seed: Seed::new(3), now: 100 }
    }

    fn apply(&mut self, effect: &Effect<'_>) -> Version {
        self.now += 1;
        let version = self.table.next_version(UnixMillis(self.now));
        let _ = self.table.apply(effect, version, Touch::Nothing, &self.seed);
        version
    }

    fn put(&mut self, key: &str) -> Version {
        let key = self.seed.clone().key(key.as_bytes());
        self.apply(&Effect::Put { key, value: NewValue::Plain(b"x"), expires_at: None })
    }

    fn remove(&mut self, key: &str, cause: Cause) -> Version {
        let key = self.seed.clone().key(key.as_bytes());
        self.apply(&Effect::Remove { key, cause })
    }

    fn tombstone(&self, key: &str) -> Option<Tombstone> {
        self.table.divergence().unwrap().tombstone(key.as_bytes())
    }
}

#[test]
fn what_is_taken_away_is_remembered_until_it_is_back() {
    let mut slot = Slot::new();
    slot.put("a");
    slot.put("b");
    slot.remove("b", Cause::Deleted);
    assert!(slot.table.divergence().is_none(), "nobody has parted");
    slot.table.begin_divergence(slot.table.version());
    let version = slot.remove("a", Cause::Deleted);
    assert_eq!(slot.tombstone("a"), Some(Tombstone { version, by_itself: false }));
    assert_eq!(slot.tombstone("b"), None, "that was before");
    slot.put("a");
    assert_eq!(slot.tombstone("a"), None);
    assert_eq!(slot.table.divergence_bytes(), 0);
}

#[test]
fn a_key_that_ends_by_itself_is_no_change_unless_somebody_had_changed_it() {
    let mut slot = Slot::new();
    slot.put("old");
    let at = slot.table.version();
    slot.table.begin_divergence(at);
    slot.put("new");
    slot.table.begin_divergence(slot.table.version());
    assert_eq!(slot.table.divergence().unwrap().at(), at, "the first parting counts");
    slot.remove("old", Cause::Expired);
    slot.remove("new", Cause::Evicted);
    assert!(slot.tombstone("old").unwrap().by_itself && !slot.tombstone("new").unwrap().by_itself);
}

#[test]
fn a_slot_that_was_emptied_needs_no_tombs() {
    let mut slot = Slot::new();
    slot.table.begin_divergence(slot.table.version());
    slot.put("a");
    slot.put("b");
    slot.remove("a", Cause::Deleted);
    let version = slot.apply(&Effect::Clear);
    let divergence = slot.table.divergence().unwrap();
    assert_eq!(
        (divergence.emptied_at(), divergence.tombstone_count(), divergence.bytes),
        (version, 0, 0)
    );
}

#[test]
fn what_is_remembered_travels_in_pieces() {
    let mut slot = Slot::new();
    slot.put("before");
    slot.table.begin_divergence(slot.table.version());
    for number in 0..100 {
        slot.put(&format!("k{number}"));
        slot.remove(&format!("k{number}"), Cause::Deleted);
    }
    let mut other = SlotTable::default();
    let (mut after, mut pieces) = (None, 0);
    loop {
        let mut piece = Vec::new();
        after = slot.table.divergence().unwrap().encode(after.as_deref(), 200, &mut piece);
        let _ = other.take_divergence(&piece).unwrap();
        pieces += 1;
        if after.is_none() {
            break;
        }
        assert!(piece.len() < 300);
        assert!(other.take_divergence(&piece[..piece.len() - 1]).is_err());
    }
    assert!(pieces > 5);
    let (here, there) = (slot.table.divergence().unwrap(), other.divergence().unwrap());
    assert_eq!((here.at(), here.bytes), (there.at(), there.bytes));
    assert!(here.tombstones(None).eq(there.tombstones(None)));
}

#[test]
fn memory_counts_tombs_and_forgetting_gives_it_back() {
    let mut slot = Slot::new();
    slot.put("a");
    slot.table.begin_divergence(slot.table.version());
    let key = slot.seed.clone().key(b"a");
    let effect = Effect::Remove { key, cause: Cause::Deleted };
    let before = slot.table.bytes() as i64;
    let applied = slot.table.apply(&effect, Version(u64::MAX), Touch::Nothing, &slot.seed);
    assert_eq!(slot.table.bytes() as i64 - before, applied.grown_bytes);
    let before = slot.table.bytes() as i64;
    let applied = slot.table.forget_tombstones();
    assert_eq!(slot.table.bytes() as i64 - before, applied.grown_bytes);
    assert!(applied.grown_bytes < 0);
    assert!(!slot.table.divergence().unwrap().is_complete());
    let _ = slot.table.end_divergence();
    assert!(slot.table.divergence().is_none());
}

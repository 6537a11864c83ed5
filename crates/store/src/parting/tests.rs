//! Tests of `parting.rs`: a slot's record since a split, change by change.

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

    fn tomb(&self, key: &str) -> Option<Tombstone> {
        self.table.parting().unwrap().tomb(key.as_bytes())
    }
}

#[test]
fn what_is_taken_away_is_remembered_until_it_is_back() {
    let mut slot = Slot::new();
    slot.put("a");
    slot.put("b");
    slot.remove("b", Cause::Deleted);
    assert!(slot.table.parting().is_none(), "nobody has parted");
    slot.table.part(slot.table.version());
    let version = slot.remove("a", Cause::Deleted);
    assert_eq!(slot.tomb("a"), Some(Tombstone { version, by_itself: false }));
    assert_eq!(slot.tomb("b"), None, "that was before");
    slot.put("a");
    assert_eq!(slot.tomb("a"), None);
    assert_eq!(slot.table.parting_bytes(), 0);
}

#[test]
fn a_key_that_ends_by_itself_is_no_change_unless_somebody_had_changed_it() {
    let mut slot = Slot::new();
    slot.put("old");
    let at = slot.table.version();
    slot.table.part(at);
    slot.put("new");
    slot.table.part(slot.table.version());
    assert_eq!(slot.table.parting().unwrap().at(), at, "the first parting counts");
    slot.remove("old", Cause::Expired);
    slot.remove("new", Cause::Evicted);
    assert!(slot.tomb("old").unwrap().by_itself && !slot.tomb("new").unwrap().by_itself);
}

#[test]
fn a_slot_that_was_emptied_needs_no_tombs() {
    let mut slot = Slot::new();
    slot.table.part(slot.table.version());
    slot.put("a");
    slot.put("b");
    slot.remove("a", Cause::Deleted);
    let version = slot.apply(&Effect::Clear);
    let parting = slot.table.parting().unwrap();
    assert_eq!((parting.emptied_at(), parting.tomb_count(), parting.bytes), (version, 0, 0));
}

#[test]
fn what_is_remembered_travels_in_pieces() {
    let mut slot = Slot::new();
    slot.put("before");
    slot.table.part(slot.table.version());
    for number in 0..100 {
        slot.put(&format!("k{number}"));
        slot.remove(&format!("k{number}"), Cause::Deleted);
    }
    let mut other = SlotTable::default();
    let (mut after, mut pieces) = (None, 0);
    loop {
        let mut piece = Vec::new();
        after = slot.table.parting().unwrap().encode(after.as_deref(), 200, &mut piece);
        let _ = other.take_parting(&piece).unwrap();
        pieces += 1;
        if after.is_none() {
            break;
        }
        assert!(piece.len() < 300);
        assert!(other.take_parting(&piece[..piece.len() - 1]).is_err());
    }
    assert!(pieces > 5);
    let (here, there) = (slot.table.parting().unwrap(), other.parting().unwrap());
    assert_eq!((here.at(), here.bytes), (there.at(), there.bytes));
    assert!(here.tombs(None).eq(there.tombs(None)));
}

#[test]
fn memory_counts_tombs_and_forgetting_gives_it_back() {
    let mut slot = Slot::new();
    slot.put("a");
    slot.table.part(slot.table.version());
    let key = slot.seed.clone().key(b"a");
    let effect = Effect::Remove { key, cause: Cause::Deleted };
    let before = slot.table.bytes() as i64;
    let applied = slot.table.apply(&effect, Version(u64::MAX), Touch::Nothing, &slot.seed);
    assert_eq!(slot.table.bytes() as i64 - before, applied.grown_bytes);
    let before = slot.table.bytes() as i64;
    let applied = slot.table.forget_tombs();
    assert_eq!(slot.table.bytes() as i64 - before, applied.grown_bytes);
    assert!(applied.grown_bytes < 0);
    assert!(!slot.table.parting().unwrap().is_complete());
    let _ = slot.table.reunite();
    assert!(slot.table.parting().is_none());
}

//! Tests of lists in a slot: against deques, replayed, and copied in parts.

use std::collections::{BTreeMap, VecDeque};

use super::*;
use crate::ListRanges;

type Items = VecDeque<Vec<u8>>;

impl RecordedSlot {
    fn insert(&mut self, key: &[u8], index: usize, items: &[&[u8]]) {
        let (seed, elements) = (self.seed.clone(), row(items));
        let key = seed.key(key);
        self.apply(&Effect::InsertElements { key, index, elements: &elements });
    }

    fn set_item(&mut self, key: &[u8], index: usize, item: &[u8]) {
        let (seed, element) = (self.seed.clone(), row(&[item]));
        self.apply(&Effect::SetElement { key: seed.key(key), index, element: &element });
    }

    fn remove_items(&mut self, key: &[u8], ranges: &[core::ops::Range<usize>]) {
        let seed = self.seed.clone();
        let mut row = ListRanges::default();
        ranges.iter().for_each(|range| row.push(range.clone()));
        self.apply(&Effect::RemoveElements { key: seed.key(key), ranges: row.row() });
    }

    fn items(&self, key: &[u8]) -> Option<Items> {
        let found = self.table.peek(&self.seed.key(key))?;
        let StoredValue::List(list) = found.value() else { panic!("not a list") };
        Some(list.iter_from(0).map(|element| element.to_text().into_owned()).collect())
    }

    fn encoding(&self, key: &[u8]) -> Option<Encoding> {
        self.table.peek(&self.seed.key(key)).map(|found| found.item.encoding())
    }
}

/// Makes one random change of a list and of its model.
fn step(rng: &mut SplitMix64, slot: &mut RecordedSlot, key: &[u8], items: &mut Items) {
    let index = (rng.draw() % (items.len() as u64 + 1)) as usize;
    match rng.draw() % 20 {
        0..5 => {
            let added = [value(rng), value(rng)];
            slot.insert(key, items.len(), &[&added[0], &added[1]]);
            items.extend(added);
        }
        5..10 => {
            let added = value(rng);
            slot.insert(key, 0, &[&added]);
            items.push_front(added);
        }
        10..12 => {
            let added = value(rng);
            slot.insert(key, index, &[&added]);
            items.insert(index, added);
        }
        12..14 if index < items.len() => {
            let item = value(rng);
            slot.set_item(key, index, &item);
            items[index] = item;
        }
        14..18 => {
            let end = (index + 2).min(items.len());
            slot.remove_items(key, core::slice::from_ref(&(index.min(end)..end)));
            items.drain(index.min(end)..end);
        }
        18 if rng.draw().is_multiple_of(10) => {
            // Every third item goes, and a large part of the end.
            let end = items.len() / 4;
            let mut ranges: Vec<_> = (0..end).step_by(3).map(|at| at..at + 1).collect();
            ranges.push(end.max(1)..items.len().max(1));
            slot.remove_items(key, &ranges);
            let is_kept = |at: usize| !ranges.iter().any(|range| range.contains(&at));
            let kept = items.iter().enumerate().filter(|(at, _)| is_kept(*at));
            *items = kept.map(|(_, item)| item.clone()).collect();
        }
        _ => {}
    }
}

#[test]
fn lists_behave_like_deques_and_their_effects_and_copies_agree() {
    for seed in 0..6 {
        let mut rng = SplitMix64::new(seed);
        let mut slot = RecordedSlot::new();
        let mut model: BTreeMap<Vec<u8>, Items> = BTreeMap::new();
        let mut forms = BTreeMap::new();
        for _ in 0..6_000 {
            let key = [b"{t}", &[b'a' + (rng.draw() % 3) as u8][..]].concat();
            let mut items = model.remove(&key).unwrap_or_default();
            step(&mut rng, &mut slot, &key, &mut items);
            if !items.is_empty() {
                model.insert(key.clone(), items);
            }
            assert_eq!(slot.table.len(), model.len());
            *forms.entry(slot.encoding(&key).map(Encoding::name)).or_insert(0) += 1;
        }
        for (key, items) in &model {
            assert_eq!(slot.items(key).as_ref(), Some(items));
        }
        assert!(forms[&Some("listpack")] > 100 && forms[&Some("quicklist")] > 100, "{forms:?}");
        assert_eq!(digest_of(&slot.table), digest_of(&slot.replayed()));
        assert_eq!(digest_of(&slot.table), digest_of(&slot.copied()));
    }
}

#[test]
fn a_list_changes_its_form_where_redis_changes_it() {
    let mut slot = RecordedSlot::new();
    // 7 bytes of an empty listpack, 62 and 64 more for each item.
    let item = [b'v'; 60];
    for _ in 0..131 {
        slot.insert(b"l", usize::MAX, &[&item]);
    }
    assert_eq!(slot.encoding(b"l"), Some(Encoding::Listpack));
    // 7 + 131 * 62 = 8,129 bytes: 63 more fit, 64 do not.
    slot.insert(b"l", 0, &[&[b'v'; 63]]);
    assert_eq!(slot.encoding(b"l"), Some(Encoding::Listpack));
    slot.remove_items(b"l", core::slice::from_ref(&(0..1)));
    slot.insert(b"l", 0, &[&[b'v'; 64]]);
    assert_eq!(slot.encoding(b"l"), Some(Encoding::Quicklist));
    // 4,096 bytes are 65 items, and 59 bytes.
    slot.remove_items(b"l", core::slice::from_ref(&(66..132)));
    assert_eq!(slot.encoding(b"l"), Some(Encoding::Quicklist));
    slot.remove_items(b"l", core::slice::from_ref(&(0..1)));
    assert_eq!(slot.encoding(b"l"), Some(Encoding::Listpack));
    slot.set_item(b"l", 0, &[b'v'; 9_000]);
    assert_eq!(slot.encoding(b"l"), Some(Encoding::Quicklist));
    slot.set_item(b"l", 0, b"v");
    assert_eq!(slot.encoding(b"l"), Some(Encoding::Listpack));
    assert_eq!(digest_of(&slot.table), digest_of(&slot.replayed()));
}

#[test]
fn effects_that_do_not_fit_the_content_do_no_harm() {
    let mut slot = RecordedSlot::new();
    slot.set_item(b"missing", 0, b"x");
    slot.remove_items(b"missing", std::slice::from_ref(&(0..1)));
    slot.insert(b"missing", 3, &[]);
    assert!(slot.table.is_empty());
    slot.insert(b"l", 70, &[b"a", b"b"]);
    slot.set_item(b"l", 2, b"x");
    slot.remove_items(b"l", std::slice::from_ref(&(2..5)));
    assert_eq!(slot.items(b"l"), Some(Items::from([b"a".to_vec(), b"b".to_vec()])));
    slot.set(b"h", b"f", b"v");
    slot.set_item(b"h", 0, b"x");
    slot.remove_items(b"h", std::slice::from_ref(&(0..1)));
    assert_eq!(slot.fields(b"h").map(|fields| fields.len()), Some(1));
    slot.insert(b"h", 0, &[b"a"]);
    assert_eq!(slot.items(b"h"), Some(Items::from([b"a".to_vec()])));
}

#[test]
fn a_large_list_is_garbage_when_it_goes() {
    let mut slot = RecordedSlot::new();
    for number in 0..5_000 {
        slot.insert(b"l", usize::MAX, &[format!("some item {number}").as_bytes()]);
    }
    let seed = slot.seed.clone();
    let key = seed.key(b"l");
    let version = slot.table.next_version(NOW);
    let put = Effect::Put { key, value: NewValue::Plain(b"text"), expires_at: None };
    let applied = slot.table.apply(&put, version, Touch::Nothing, &seed);
    assert!(matches!(applied.garbage, Some(crate::Garbage::List(list)) if list.len() == 5_000));
}

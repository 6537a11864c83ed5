//! Tests of `id_map.rs` against an ordered map.

use std::collections::BTreeMap;

use placement::SplitMix64;

use super::*;

type Map = IdMap<256, 16>;
type Model = BTreeMap<StreamId, (Vec<u8>, Vec<u8>)>;

impl<const BYTES: usize, const ENTRIES: usize> IdMap<BYTES, ENTRIES> {
    /// Checks the counts, the memory and the order by going over everything.
    pub(crate) fn check(&self) {
        let (mut bytes, mut len, mut last) = (0, 0, None);
        for group in &self.groups {
            assert!(!group.is_empty() && group.len() <= GROUP_BLOCKS_MAX);
            bytes += array_bytes::<Block>(group.capacity());
            for block in group {
                assert!(block.len > 0 && block.len as usize <= ENTRIES);
                assert_eq!(block.entries().count(), block.len as usize);
                assert!(block.len == 1 || block.byte_len() <= BYTES + 64, "{}", block.byte_len());
                assert!(Some(block.base) > last);
                for (_, entry) in block.entries() {
                    assert!(Some(entry.id) > last && entry.id >= block.base);
                    last = Some(entry.id);
                }
                bytes += block.bytes();
                len += block.len as usize;
            }
        }
        assert_eq!((self.bytes, self.len), (bytes, len));
    }
}

fn id(rng: &mut SplitMix64) -> StreamId {
    StreamId::new(rng.draw() % 300, rng.draw() % 5)
}

fn insert(map: &mut Map, id: StreamId, head: &[u8], payload: &[u8], is_last: bool) -> bool {
    let full = [head, b"="].concat();
    let new = NewEntry { id, head, payload: [payload, &[]], full_payload: [&full, payload] };
    map.insert(&new, is_last)
}

/// Returns the head and the payload that an entry was given.
fn content(entry: IdEntry<'_>) -> (StreamId, Vec<u8>, Vec<u8>) {
    match entry.payload.iter().position(|byte| *byte == b'=') {
        Some(at) => (entry.id, entry.payload[..at].to_vec(), entry.payload[at + 1..].to_vec()),
        None => (entry.id, entry.head.to_vec(), entry.payload.to_vec()),
    }
}

fn agree(map: &Map, model: &Model, from: StreamId) {
    map.check();
    let flat = |(id, (head, payload)): (&StreamId, &(Vec<u8>, Vec<u8>))| {
        (*id, head.clone(), payload.clone())
    };
    let expected: Vec<_> = model.range(from..).map(flat).collect();
    assert_eq!(map.iter_from(from).map(content).collect::<Vec<_>>(), expected);
    let expected: Vec<_> = model.range(..=from).rev().map(flat).collect();
    assert_eq!(map.iter_back_from(from).map(content).collect::<Vec<_>>(), expected);
    assert_eq!(map.first().map(|it| it.id), model.keys().next().copied());
    assert_eq!(map.last().map(|it| it.id), model.keys().next_back().copied());
    assert_eq!(map.blocks().map(|(len, _)| len).sum::<usize>(), model.len());
    let middle = model.len() / 2;
    assert_eq!(map.nth_id(middle), model.keys().nth(middle).copied());
}

#[test]
fn a_map_behaves_like_an_ordered_map() {
    for seed in 0..6 {
        let mut rng = SplitMix64::new(seed);
        let (mut map, mut model) = (Map::default(), Model::new());
        for round in 0..400 {
            for _ in 0..20 {
                let id = id(&mut rng);
                let head: &[u8] = if rng.draw().is_multiple_of(5) { b"other" } else { b"names" };
                let payload = vec![b'x'; (rng.draw() % if seed == 5 { 400 } else { 24 }) as usize];
                if rng.draw() % 5 < 3 {
                    let is_new = insert(&mut map, id, head, &payload, false);
                    assert_eq!(is_new, model.insert(id, (head.to_vec(), payload)).is_none());
                } else {
                    assert_eq!(map.remove(id), model.remove(&id).is_some());
                }
                assert_eq!(map.get(id).map(content).is_some(), model.contains_key(&id));
            }
            let from = id(&mut rng);
            if round % 100 == 99 {
                let removed = map.remove_before(from);
                removed.check();
                model = model.split_off(&from);
            }
            agree(&map, &model, from);
        }
    }
}

#[test]
fn entries_at_the_end_fill_the_blocks() {
    let (mut map, mut model) = (Map::default(), Model::new());
    for number in 0..20_000 {
        let id = StreamId::new(number / 3, number % 3);
        assert!(insert(&mut map, id, b"n", b"v", true));
        model.insert(id, (b"n".to_vec(), b"v".to_vec()));
    }
    agree(&map, &model, StreamId::new(3_000, 1));
    assert_eq!(map.block_count(), 20_000 / 16);
    let removed = map.remove_before(StreamId::new(6_000, 1));
    removed.check();
    assert!(removed.len() > 10_000, "whole groups are handed out to be freed");
    model = model.split_off(&StreamId::new(6_000, 1));
    agree(&map, &model, StreamId::new(6_100, 0));
}

#[test]
fn a_map_is_freed_in_portions() {
    let mut map = Map::default();
    for number in 0..20_000 {
        insert(&mut map, StreamId::new(number, 0), b"", b"v", true);
    }
    let mut portions = 1;
    while map.free_some(16) {
        portions += 1;
    }
    assert!(portions > 70, "only {portions} portions");
}

#[test]
fn ids_at_both_ends_are_kept() {
    let (mut map, mut model) = (Map::default(), Model::new());
    let ids = [
        StreamId::MAX,
        StreamId::MIN,
        StreamId::new(0, u64::MAX),
        StreamId::new(u64::MAX, 0),
        StreamId::new(7, u64::MAX),
    ];
    for id in ids {
        insert(&mut map, id, b"", b"v", false);
        model.insert(id, (Vec::new(), b"v".to_vec()));
        agree(&map, &model, StreamId::new(7, 0));
    }
    drop(map.remove_before(StreamId::MAX));
    assert_eq!(map.len(), 1);
}

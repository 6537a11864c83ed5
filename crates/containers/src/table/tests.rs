//! Tests of `table.rs`: random operations beside an ordered map, walks during growth, memory counted twice.

use std::collections::{BTreeMap, BTreeSet};

use placement::SplitMix64;

use super::*;
use crate::testing::Fold;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Counts the memory again, from nothing.
fn recounted(table: &Table) -> usize {
    let arrays: usize =
        table.chunks.iter().map(|chunk| array_bytes::<Bucket>(chunk.buckets.capacity())).sum();
    let buckets: usize =
        table.chunks.iter().flat_map(|chunk| &chunk.buckets).map(Bucket::bytes).sum();
    let outer = array_bytes::<Chunk>(table.chunks.capacity());
    block_bytes(size_of::<Table>()) + arrays + buckets + outer
}

fn check(table: &Table, model: &Model) {
    assert_eq!(table.len(), model.len());
    assert_eq!(table.bytes(), recounted(table));
    let content: Model = table
        .pairs()
        .map(|(field, value)| (field.to_text().into_owned(), value.to_text().into_owned()))
        .collect();
    assert_eq!(&content, model);
}

fn field(number: u64) -> Vec<u8> {
    if number.is_multiple_of(3) {
        number.to_string().into_bytes()
    } else {
        format!("field:{number}").into_bytes()
    }
}

/// Returns a value: most are short, some need a block of their own.
fn value(rng: &mut SplitMix64) -> Vec<u8> {
    match rng.draw() % 20 {
        0 => vec![b'v'; (rng.draw() % 5_000) as usize],
        1..5 => (rng.draw() % 1_000).to_string().into_bytes(),
        _ => vec![b'v'; (rng.draw() % 40) as usize],
    }
}

#[test]
fn a_table_behaves_like_a_map() {
    for seed in 0..4 {
        let mut rng = SplitMix64::new(seed);
        let (mut table, mut model) = (Table::new(2), Model::new());
        for step in 0..30_000u64 {
            // It grows first, and shrinks to nothing at the end.
            let removes = rng.draw() % 30_000 < step;
            let name = field(rng.draw() % 4_000);
            if removes {
                let is_removed = table.remove(&Fold(seed), Element::of(&name));
                assert_eq!(is_removed, model.remove(&name).is_some());
            } else {
                let value = value(&mut rng);
                let is_new = table.set(&Fold(seed), Element::of(&name), Element::of(&value));
                assert_eq!(is_new, model.insert(name, value).is_none());
            }
            let probe = field(rng.draw() % 4_000);
            let found = table.get(&Fold(seed), Element::of(&probe));
            assert_eq!(found.map(|it| it.to_text().into_owned()).as_ref(), model.get(&probe));
            if step % 1_000 == 0 {
                check(&table, &model);
            }
        }
        check(&table, &model);
        for name in model.keys() {
            assert!(table.remove(&Fold(seed), Element::of(name)));
        }
        check(&table, &Model::new());
        assert!(table.bucket_count <= 2, "{} buckets of nothing", table.bucket_count);
    }
}

#[test]
fn a_set_takes_a_member_once() {
    let mut table = Table::new(1);
    assert!(table.add(&Fold(1), Element::of(b"a")));
    assert!(!table.add(&Fold(1), Element::of(b"a")));
    assert!(table.contains(&Fold(1), Element::of(b"a")));
    assert!(table.remove(&Fold(1), Element::of(b"a")));
    assert!(!table.contains(&Fold(1), Element::of(b"a")));
}

/// Takes `count` entries from `from` on; returns their first elements.
fn page(table: &Table, from: TablePosition, count: usize) -> (Vec<Vec<u8>>, Option<TablePosition>) {
    let mut names = Vec::new();
    let next = table.scan(&Fold(1), from, |entry| {
        names.push(element::read(entry).0.to_text().into_owned());
        names.len() < count
    });
    (names, next)
}

#[test]
fn a_walk_visits_all_that_stays_while_the_table_grows_and_shrinks() {
    for (first, churn) in [(500u64, 20_000u64), (20_000, 500)] {
        let mut rng = SplitMix64::new(first);
        let mut table = Table::new(2);
        let stays: BTreeSet<Vec<u8>> = (0..first.min(2_000)).map(field).collect();
        for number in 0..first {
            table.set(&Fold(1), Element::of(&field(number)), Element::of(b"v"));
        }
        let (mut seen, mut from) = (BTreeSet::new(), Some(TablePosition::START));
        let mut pages = 0;
        while let Some(position) = from {
            let (names, next) = page(&table, position, 10);
            assert!(next.is_none_or(|next| next > position));
            seen.extend(names);
            from = next;
            pages += 1;
            for _ in 0..churn / 50 {
                let number = 2_000 + rng.draw() % 30_000;
                if first < churn {
                    table.set(&Fold(1), Element::of(&field(number)), Element::of(b"v"));
                } else {
                    table.remove(&Fold(1), Element::of(&field(number)));
                }
            }
        }
        assert!(pages > 20, "only {pages} pages");
        assert!(seen.is_superset(&stays));
    }
}

#[test]
fn a_walk_visits_each_entry_once_and_in_order_if_nothing_changes() {
    let mut table = Table::new(2);
    for number in 0..5_000 {
        table.set(&Fold(1), Element::of(&field(number)), Element::of(b"v"));
    }
    let (whole, end) = page(&table, TablePosition::START, usize::MAX);
    assert_eq!((whole.len(), end), (5_000, None));
    let mut pieces = Vec::new();
    let mut from = Some(TablePosition::START);
    while let Some(position) = from {
        let (names, next) = page(&table, position, 7);
        pieces.extend(names);
        from = next;
    }
    assert_eq!(whole, pieces);
}

#[test]
fn no_write_moves_many_entries() {
    let mut table = Table::new(2);
    let mut most = 0;
    for number in 0..50_000 {
        let before = table.bucket_count;
        table.set(&Fold(1), Element::of(&field(number)), Element::of(b"0123456789abcdef"));
        most = most.max(table.bucket_count - before);
    }
    assert!(most <= 2, "{most} buckets were split by one write");
    let longest =
        table.chunks.iter().flat_map(|chunk| &chunk.buckets).map(Bucket::packed_len).max();
    assert!(longest < Some(4 * BUCKET_BYTES), "{longest:?} bytes in one bucket");
}

#[test]
fn every_entry_is_drawn_about_as_often() {
    let mut table = Table::new(2);
    for number in 0..1_000 {
        table.set(&Fold(1), Element::of(&field(number)), Element::of(b"v"));
    }
    let mut rng = SplitMix64::new(3);
    let mut counts: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    for _ in 0..200_000 {
        let entry = table.random(|| rng.draw()).expect("it is not empty");
        *counts.entry(entry.to_vec()).or_default() += 1;
    }
    assert_eq!(counts.len(), 1_000);
    let (least, most) = (counts.values().min(), counts.values().max());
    // 200 draws of each are expected; seven standard deviations are 100.
    assert!(least > Some(&100) && most < Some(&300), "between {least:?} and {most:?} draws");
    assert_eq!(Table::new(2).random(|| rng.draw()), None);
}

#[test]
fn a_table_is_freed_in_portions() {
    let mut table = Table::new(2);
    for number in 0..20_000 {
        table.set(&Fold(1), Element::of(&field(number)), Element::of(b"v"));
    }
    let mut portions = 1;
    while table.free_some(16) {
        portions += 1;
    }
    assert!(portions > 20, "only {portions} portions");
}

#[test]
fn a_table_finds_the_entries_that_are_due() {
    use crate::deadline::write_field;
    let mut rng = SplitMix64::new(7);
    let mut table = Table::new(2);
    let mut model: BTreeMap<Vec<u8>, Option<u64>> = BTreeMap::new();
    for step in 0..40_000u64 {
        let name = field(rng.draw() % 9_000);
        let deadline = rng.draw().is_multiple_of(2).then(|| step + rng.draw() % 30_000);
        // It grows, and shrinks again.
        if rng.draw() % 40_000 < step {
            table.remove(&Fold(7), Element::of(&name));
            model.remove(&name);
        } else {
            let mut entry = Vec::new();
            write_field(Element::of(&name), deadline, Element::Integer(1), &mut entry);
            table.put_entry(&Fold(7), &entry);
            model.insert(name, deadline);
        }
        if step % 1_000 == 0 {
            let mut due = BTreeSet::new();
            table.due(step, |entry| due.insert(pair(entry).0.to_text().into_owned()));
            let is_due = |at: &Option<u64>| at.is_some_and(|at| at <= step);
            let expected = model.iter().filter(|(_, at)| is_due(at)).map(|(name, _)| name.clone());
            assert_eq!(due, expected.collect());
            for name in due {
                table.remove(&Fold(7), Element::of(&name));
                model.remove(&name);
            }
            table.settle_deadlines(step);
            let next = model.values().filter_map(|at| *at).min();
            assert!(table.due_from().is_none_or(|from| from > step), "nothing is due any more");
            assert!(next.is_none() || table.due_from().is_some_and(|from| Some(from) <= next));
        }
    }
}

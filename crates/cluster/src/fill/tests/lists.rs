//! Lists under a fill: their indices move while they are copied.

use store::{ListRanges, StoredValue, Version};

use super::*;

impl Pair {
    /// Makes a random write to a list. Three of them become large.
    pub(super) fn write_list(&mut self) {
        let name = format!("{{tag}}l{}", self.roll(3));
        let seed = self.seed.clone();
        self.write_list_at(&seed.spread(&name));
    }

    fn write_list_at(&mut self, key: &Key<'_>) {
        let key = *key;
        let len = self.list_len(&key);
        let (index, what) = (self.roll(len + 1) as usize, self.roll(24));
        let many: Vec<String> = (0..400).map(|item| format!("{item} of {}", self.now)).collect();
        let (many, one) = (row(many.iter().map(String::as_str)), row(["a single item"]));
        let ranges = self.ranges(len);
        let end = len as usize;
        let insert = |index, elements| Effect::InsertElements { key, index, elements };
        let remove = Effect::Remove { key, cause: Cause::Deleted };
        match what {
            0 => self.apply(&key, &remove),
            1 => {
                let put = Effect::Put { key, value: NewValue::List(&many), expires_at: None };
                self.apply_all(key.slot(), &[insert(0, &one), put, insert(0, &many)]);
            }
            2 => self.apply_all(key.slot(), &[remove, insert(0, &many), insert(3, &one)]),
            3 => self.apply(&key, &Effect::Expire { key, at: Some(UnixMillis(9_000_000)) }),
            4..8 => self.apply(&key, &insert(0, &many)),
            8 | 9 => self.apply(&key, &insert(end, &many)),
            10..13 => self.apply(&key, &insert(index, &many)),
            13 | 14 => {
                self.apply_all(
                    key.slot(),
                    &[insert(index, &one), insert(0, &one), insert(1, &one)],
                );
            }
            15..18 if index < end => {
                self.apply(&key, &Effect::SetElement { key, index, element: &one });
            }
            // Not all of them.
            18.. if len > 0 => {
                self.apply_all(
                    key.slot(),
                    &[insert(0, &one), Effect::RemoveElements { key, ranges: ranges.row() }],
                );
            }
            _ => {}
        }
    }

    /// Returns some ranges after the first element of a list that has one more element by then.
    fn ranges(&mut self, len: u64) -> ListRanges {
        let mut ranges = ListRanges::default();
        let mut start = 1 + self.roll(len + 1);
        for _ in 0..1 + self.roll(3) {
            let longest = if self.roll(6) == 0 { len + 1 } else { 300 };
            let end = (start + self.roll(longest)).min(len + 1);
            ranges.push(start as usize..end as usize);
            start = end.max(start) + self.roll(len + 1);
        }
        if ranges.is_empty() {
            ranges.push(1..2);
        }
        ranges
    }

    fn list_len(&self, key: &Key<'_>) -> u64 {
        let found = self.primary.table.peek(key);
        let Some(StoredValue::List(list)) = found.map(|found| found.value()) else { return 0 };
        list.len() as u64
    }
}

/// Returns the version of each item.
fn versions(held: &Held) -> Vec<(Vec<u8>, Version)> {
    let mut versions = Vec::new();
    held.table.for_each(|found| versions.push((found.item.key().to_vec(), found.item.version())));
    versions.sort();
    versions
}

/// Fills the copy of a slot with three large lists, while `write` writes at each step. Returns the number of steps, and
/// of bytes sent.
fn fill_lists(pair: &mut Pair, mut write: impl FnMut(&mut Pair, u64)) -> (u64, usize) {
    let seed = pair.seed.clone();
    for number in 0..3 {
        let name = format!("{{tag}}l{number}");
        let key = seed.spread(&name);
        let items: Vec<String> = (0..20_000).map(|number| format!("first item {number}")).collect();
        let elements = row(items.iter().map(String::as_str));
        pair.apply(&key, &Effect::InsertElements { key, index: 0, elements: &elements });
    }
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
    let received = pair.deliver();
    assert!(matches!(received, None | Some(Received::Applied)), "{received:?}");
    (steps, bytes)
}

#[test]
fn lists_that_are_written_to_at_random_during_their_copy_arrive() {
    let mut steps = 0;
    for chance in 0..150 {
        let mut pair = Pair::new(chance);
        let (taken, _) = fill_lists(&mut pair, |pair, _| {
            for _ in 0..pair.roll(5) {
                pair.write_list();
            }
            if pair.roll(100) == 0 {
                let seed = pair.seed.clone();
                let (key, elements) = (seed.spread("{tag}l0"), row(["after the flush"]));
                let insert = Effect::InsertElements { key, index: 0, elements: &elements };
                pair.apply_all(key.slot(), &[Effect::Clear, insert]);
            }
        });
        steps += taken;
        assert!(pair.same(), "with chance {chance}");
        assert_eq!(versions(&pair.primary), versions(&pair.taker), "with chance {chance}");
    }
    assert!(steps > 150 * 10, "only {steps} chunks");
}

#[test]
fn a_write_to_a_list_during_its_copy_costs_what_it_changes() {
    let mut pair = Pair::new(1);
    let (steps, bytes) = fill_lists(&mut pair, |pair, step| {
        let seed = pair.seed.clone();
        for number in 0..3 {
            let name = format!("{{tag}}l{number}");
            let key = seed.spread(&name);
            let (one, mut ranges) = (row(["one"]), ListRanges::default());
            pair.apply(&key, &Effect::InsertElements { key, index: 0, elements: &one });
            let index = pair.list_len(&key) as usize;
            pair.apply(&key, &Effect::InsertElements { key, index, elements: &one });
            let index = step as usize * 700;
            pair.apply(&key, &Effect::SetElement { key, index, element: &one });
            ranges.push(0..1);
            ranges.push(index + 1..index + 2);
            pair.apply(&key, &Effect::RemoveElements { key, ranges: ranges.row() });
        }
    });
    assert!(pair.same());
    assert_eq!(versions(&pair.primary), versions(&pair.taker));
    assert!(steps >= 3 * 20_000 * 17 / CHUNK_BYTES as u64, "only {steps} chunks");
    // Three lists of some 350 KB, and 12 small writes at each step.
    assert!(bytes < 3 * 400_000 + steps as usize * 12 * 100, "{bytes} bytes in {steps} steps");
}

#[test]
fn a_list_that_turns_into_something_else_during_its_copy_arrives() {
    for chance in 0..48 {
        let mut pair = Pair::new(chance);
        fill_lists(&mut pair, |pair, step| {
            let seed = pair.seed.clone();
            let name = format!("{{tag}}l{}", chance % 3);
            let key = seed.spread(&name);
            let fields: Vec<String> = (0..6_000).map(|number| format!("field {number}")).collect();
            let pairs = row(fields.iter().flat_map(|field| [field.as_str(), "value"]));
            let one = row(["one"]);
            let remove = Effect::Remove { key, cause: Cause::Deleted };
            match (step == chance / 3, chance % 4) {
                (true, 0) => {
                    pair.apply_all(key.slot(), &[remove, Effect::SetFields { key, pairs: &pairs }]);
                }
                (true, 1) => pair.apply(
                    &key,
                    &Effect::Put { key, value: NewValue::Raw(b"text"), expires_at: None },
                ),
                (true, 2) => {
                    // It becomes small, and large again.
                    let mut ranges = ListRanges::default();
                    ranges.push(2..pair.list_len(&key) as usize);
                    pair.apply(&key, &Effect::RemoveElements { key, ranges: ranges.row() });
                    pair.apply(&key, &Effect::InsertElements { key, index: 1, elements: &pairs });
                }
                (true, _) => pair.apply(&key, &remove),
                (false, _) if pair.list_len(&key) > 0 => {
                    pair.apply(&key, &Effect::InsertElements { key, index: 1, elements: &one });
                }
                (false, _) => {}
            }
        });
        assert!(pair.same(), "with chance {chance}");
        assert_eq!(versions(&pair.primary), versions(&pair.taker), "with chance {chance}");
    }
}

//! Tests of streams in a slot: replayed, copied in parts, and removed.

use containers::{Element, StreamId, StreamRecord};
use placement::SplitMix64;

use crate::change::tests::RecordedSlot;
use crate::slot_table::Garbage;
use crate::{
    Cause, DecodeError, Effect, Encoding, Found, NewValue, Seed, SlotTable, StoredValue, Stream,
    Touch, UnixMillis, decode_effect, decode_item, digest_of, encode_effect, encode_item,
    encode_item_in_parts,
};

fn written(records: &[StreamRecord<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    records.iter().for_each(|record| record.write(&mut out));
    out
}

fn entry(number: u64, value: &str) -> Vec<u8> {
    let mut pairs = Vec::new();
    Element::of(b"field").write(&mut pairs);
    Element::of(value.as_bytes()).write(&mut pairs);
    let id = StreamId::new(number, 0);
    let max_deleted = StreamId::MIN;
    written(&[
        StreamRecord::Entry { id, pairs: &pairs },
        StreamRecord::Head { last_id: id, entries_added: number, max_deleted },
    ])
}

fn pending(number: u64, consumer: &str) -> Vec<u8> {
    let id = StreamId::new(number, 0);
    written(&[
        StreamRecord::InGroup { name: b"group" },
        StreamRecord::OfConsumer { name: consumer.as_bytes() },
        StreamRecord::Pending { id, delivered_at: 5, deliveries: 1 },
    ])
}

fn change(slot: &mut RecordedSlot, key: &[u8], records: &[u8]) {
    let seed = slot.seed.clone();
    slot.apply(&Effect::ChangeStream { key: seed.key(key), records });
}

/// Changes two streams at random; sometimes a string takes the place of one, or nothing does.
fn run(slot: &mut RecordedSlot, seed: u64) {
    let mut rng = SplitMix64::new(seed);
    for number in 1..3_000 {
        let key: &[u8] = if rng.draw().is_multiple_of(4) { b"other" } else { b"stream" };
        let earlier = number - rng.draw() % 50.min(number);
        let id = StreamId::new(earlier, 0);
        let records = match rng.draw() % 12 {
            0..5 => entry(number, &"v".repeat((rng.draw() % 300) as usize)),
            5..7 => pending(earlier, "one"),
            7 => pending(earlier, "two"),
            8 => written(&[StreamRecord::RemoveEntry { id }]),
            9 => {
                let of = StreamRecord::InGroup { name: b"group" };
                written(&[of, StreamRecord::RemovePending { id }])
            }
            10 if rng.draw().is_multiple_of(40) => written(&[StreamRecord::Trim { id }]),
            _ if rng.draw().is_multiple_of(100) => {
                let key = slot.seed.clone();
                let key = key.key(key_of(&mut rng));
                slot.apply(&Effect::Put { key, value: NewValue::Plain(b"text"), expires_at: None });
                continue;
            }
            _ if rng.draw().is_multiple_of(100) => {
                let seed = slot.seed.clone();
                slot.apply(&Effect::Remove { key: seed.key(key), cause: Cause::Deleted });
                continue;
            }
            _ => written(&[]),
        };
        change(slot, key, &records);
    }
    for number in 3_000..3_600 {
        change(slot, b"stream", &entry(number, &"v".repeat(300)));
    }
}

fn key_of(rng: &mut SplitMix64) -> &'static [u8] {
    if rng.draw().is_multiple_of(2) { b"other" } else { b"stream" }
}

fn found<'a>(slot: &'a RecordedSlot, key: &[u8]) -> Found<'a> {
    slot.table.peek(&slot.seed.key(key)).expect("it exists")
}

fn stream<'a>(slot: &'a RecordedSlot, key: &[u8]) -> &'a Stream {
    let StoredValue::Stream(stream) = found(slot, key).value() else { panic!("not a stream") };
    stream
}

#[test]
fn effects_and_copies_of_streams_agree() {
    for seed in 0..4 {
        let mut slot = RecordedSlot::new();
        run(&mut slot, seed);
        let mut replayed = SlotTable::default();
        let other = Seed::new(7);
        let mut rest = slot.log.as_slice();
        while !rest.is_empty() {
            let (effect, behind) = decode_effect(rest, &other).expect("as it was recorded");
            let version = replayed.next_version(UnixMillis(1));
            let _ = replayed.apply(&effect, version, Touch::Nothing, &other);
            rest = behind;
        }
        assert_eq!(digest_of(&replayed), digest_of(&slot.table));

        let mut parts = 0;
        let mut copy = SlotTable::default();
        slot.table.for_each(|found| {
            let mut out = Vec::new();
            encode_item_in_parts(&found, &mut out, |_| parts += 1);
            let mut rest = out.as_slice();
            while !rest.is_empty() {
                let (item, behind) = decode_item(rest).expect("as it was encoded");
                let _ = copy.copy_item(&item, &other);
                rest = behind;
            }
        });
        assert!(parts > 2, "{parts} parts");
        assert_eq!(digest_of(&copy), digest_of(&slot.table));
    }
}

#[test]
fn a_stream_may_be_empty_and_stays() {
    let mut slot = RecordedSlot::new();
    change(&mut slot, b"stream", &entry(5, "v"));
    let id = StreamId::new(5, 0);
    change(&mut slot, b"stream", &written(&[StreamRecord::RemoveEntry { id }]));
    assert_eq!((stream(&slot, b"stream").len(), stream(&slot, b"stream").last_id()), (0, id));
    assert_eq!(found(&slot, b"stream").item.encoding(), Encoding::Stream);
    let mut item = Vec::new();
    encode_item(&found(&slot, b"stream"), &mut item);
    let (item, _) = decode_item(&item).expect("as it was encoded");
    let mut copy = SlotTable::default();
    let _ = copy.copy_item(&item, &slot.seed);
    assert_eq!(digest_of(&copy), digest_of(&slot.table));
}

#[test]
fn large_parts_are_freed_outside_of_the_lock() {
    let mut slot = RecordedSlot::new();
    for number in 1..40_000 {
        change(&mut slot, b"stream", &entry(number, "a value of some length"));
    }
    let seed = slot.seed.clone();
    let mut garbage = |effect: &Effect<'_>| {
        let version = slot.table.next_version(UnixMillis(1));
        slot.table.apply(effect, version, Touch::Nothing, &seed).garbage
    };
    let trim = written(&[StreamRecord::Trim { id: StreamId::new(30_000, 0) }]);
    let key = seed.key(b"stream");
    let removed = garbage(&Effect::ChangeStream { key, records: &trim });
    assert!(matches!(removed, Some(Garbage::Stream(stream)) if stream.len() > 20_000));
    let removed = garbage(&Effect::Remove { key, cause: Cause::Deleted });
    assert!(matches!(removed, Some(Garbage::Stream(stream)) if stream.len() == 10_000));
}

#[test]
fn malformed_records_are_refused() {
    let seed = Seed::new(1);
    let records = [0xFF];
    let mut out = Vec::new();
    encode_effect(&Effect::ChangeStream { key: seed.key(b"k"), records: &records }, &mut out);
    assert_eq!(decode_effect(&out, &seed).err(), Some(DecodeError::BadNumber));
    // A removal is a change, but no part of a stream.
    let records = written(&[StreamRecord::Trim { id: StreamId::MAX }]);
    let mut out = Vec::new();
    let value = NewValue::Stream(&records);
    encode_effect(&Effect::Put { key: seed.key(b"k"), value, expires_at: None }, &mut out);
    assert_eq!(decode_effect(&out, &seed).err(), Some(DecodeError::BadNumber));
}

//! Tests of streams in Redis's format, with payloads of redis-server 7.0.15, and broken ones.

use store::{
    Cause, Effect, Key, NewValue, Seed, SlotTable, StoredValue, Stream, StreamId, StreamRecord,
    StreamRecords, Touch, UnixMillis,
};

use crate::rdb::tests::{NO_LIMIT, bytes_of, sealed};
use crate::rdb::{FOOTER_BYTES, PayloadError, RestoredValue, dump, restore};

/// A stream of three entries, and a deleted one, with two groups and three consumers.
const WITH_GROUPS: &str = "130110000001636ea1f5c700000000000000004055550000001f00030101010201816102816202000102010001000101\
    0102010501020100010701030184746578740505010001c3b10200010101856f7468657206833030370406010301c799\
    020001040105010501ff0381000001636ea1fd600081000001636ea1f5c70081000001636ea1fd6000040205656d7074\
    79050581ffffffffffffffff0000016700000003000001636ea1f5c700000000000000000068e5cf8b01000001000001\
    636ea1f5c70000000000000007f469e5cf8b01000000000001636ea1f9780000000000000000f469e5cf8b0100000903\
    02633102cdf8f3a101000002000001636ea1f5c70000000000000000000001636ea1f978000000000000000002633205\
    cdf8f3a101000001000001636ea1f5c700000000000000070469646c65fcccf8f3a1010000000a0009155c010efd3b84";

/// A stream of two listpacks, nothing of which was deleted.
const TWO_LISTPACKS: &str = include_str!("two_listpacks.hex");

fn records_of(payload: &[u8]) -> Vec<u8> {
    let restored = restore(payload, NO_LIMIT);
    let Ok(RestoredValue::Stream(records)) = restored else { panic!("no stream: {restored:?}") };
    records
}

/// Returns the payload of these records as a slot keeps them.
fn dumped(records: &[u8]) -> Vec<u8> {
    let (seed, mut table) = (Seed::new(1), SlotTable::default());
    let key: Key<'_> = seed.key(b"s");
    let put = Effect::Put { key, value: NewValue::Stream(records), expires_at: None };
    let version = table.next_version(UnixMillis(1));
    let _ = table.apply(&put, version, Touch::Nothing, &seed);
    let payload = dump(table.peek(&key).expect("it was put").value(), store::UnixMillis(1));
    assert!(matches!(table.peek(&key).map(|it| it.value()), Some(StoredValue::Stream(_))));
    let _ =
        table.apply(&Effect::Remove { key, cause: Cause::Deleted }, version, Touch::Nothing, &seed);
    payload
}

fn pairs_of(stream: &Stream, ms: u64, seq: u64) -> String {
    let entry = stream.get(StreamId::new(ms, seq)).expect("it is there");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pair = |(field, value): (store::Element<'_>, store::Element<'_>)| {
        format!("{}={}", text(&field.to_text()), text(&value.to_text()))
    };
    entry.fields().map(pair).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_stream_of_redis_arrives_with_its_groups() {
    let records = records_of(&bytes_of(WITH_GROUPS));
    let stream = Stream::of(StreamRecords::new(&records));
    let last = StreamId::new(1_526_569_500_000, 0);
    assert_eq!((stream.len(), stream.entries_added()), (3, 4));
    assert_eq!((stream.last_id(), stream.max_deleted()), (last, last));
    assert_eq!(pairs_of(&stream, 1_526_569_498_055, 7), "a=3 b=text");
    assert_eq!(pairs_of(&stream, 1_526_569_499_000, 0), "other=007");
    let group = stream.group(b"g").expect("it is there");
    assert_eq!(
        (group.entries_read(), group.pending_len(), group.consumer_count()),
        (Some(0), 3, 3)
    );
    let pending: Vec<String> = group
        .pending_from(StreamId::MIN)
        .map(|it| {
            let consumer = String::from_utf8_lossy(it.consumer);
            format!("{} {consumer} {} {}", it.id, it.delivered_at, it.deliveries)
        })
        .collect();
    let expected = [
        "1526569498055-0 c1 1700000000000 1",
        "1526569498055-7 c2 1700000000500 0",
        "1526569499000-0 c1 1700000000500 9",
    ];
    assert_eq!(pending, expected);
    let empty = stream.group(b"empty").expect("it is there");
    assert_eq!((empty.last_id(), empty.entries_read()), (StreamId::new(5, 5), None));
    // Our own payload of it has no deleted entry, and means the same.
    assert_eq!(records_of(&dumped(&records)), records_of(&dumped(&records_of(&dumped(&records)))));
    let again = records_of(&dumped(&records));
    assert_eq!(Stream::of(StreamRecords::new(&again)).to_records(), stream.to_records());
}

#[test]
fn a_payload_without_deleted_entries_is_that_of_redis() {
    let payload = bytes_of(TWO_LISTPACKS.trim());
    assert_eq!(dumped(&records_of(&payload)), payload);
}

#[test]
fn earlier_and_later_forms_are_read() {
    // One entry, 1-1 with a = 1, last id 2-2; a group at 1-1 with one pending entry of one consumer.
    let id = "00000000000000010000000000000001";
    let mut node = Vec::new();
    let elements = [1, 0, 1].map(store::Element::Integer);
    let entry = [2, 0, 0, 1, 4].map(store::Element::Integer);
    let all = elements.into_iter().chain([store::Element::Bytes(b"a"), store::Element::Integer(0)]);
    super::put_string(&mut node, &super::listpack::write(all.chain(entry)));
    let head = [&[1u8, 16][..], &bytes_of(id), &node, &[1, 2, 2]].concat();
    let pending = [&bytes_of(id)[..], &5i64.to_le_bytes(), &[3]].concat();
    let name = b"\x01c";
    let seen = 9i64.to_le_bytes();
    let active = 7i64.to_le_bytes();
    let ids = [&[1u8][..], &bytes_of(id)].concat();
    let first =
        [&[15u8][..], &head, b"\x01\x01g\x01\x01\x01", &pending, b"\x01", name, &seen, &ids];
    let third = [
        &[21u8][..],
        &head,
        &[1, 1, 0, 0, 1],
        b"\x01\x01g\x01\x01\x01\x01",
        &pending,
        b"\x01",
        name,
        &seen,
        &active,
        &ids,
    ];
    for (body, expected_active) in [(first.concat(), 9), (third.concat(), 7)] {
        let records = records_of(&sealed(&body));
        let stream = Stream::of(StreamRecords::new(&records));
        assert_eq!((stream.len(), stream.entries_added()), (1, 1));
        let group = stream.group(b"g").expect("it is there");
        assert_eq!((group.entries_read(), group.pending_len()), (Some(1), 1));
        let consumer = group.consumer(b"c").expect("it is there");
        assert_eq!((consumer.seen_at(), consumer.active_at()), (9, expected_active));
    }
}

#[test]
fn a_broken_stream_is_refused_or_another_stream() {
    for hex in [WITH_GROUPS, TWO_LISTPACKS.trim()] {
        let payload = bytes_of(hex);
        let body = &payload[..payload.len() - FOOTER_BYTES];
        let whole = records_of(&payload);
        let mut refused = 0;
        for index in 1..body.len() {
            assert_eq!(restore(&sealed(&body[..index]), NO_LIMIT), Err(PayloadError::BadFormat));
            for mask in [0x01, 0x40, 0x80, 0xFF] {
                let mut bad = body.to_vec();
                bad[index] ^= mask;
                let sealed = sealed(&bad);
                let restored = restore(&sealed, NO_LIMIT);
                if let Ok(RestoredValue::Stream(records)) = restored {
                    assert!(StreamRecords::check_parts(&records).is_ok());
                    let stream = Stream::of(StreamRecords::new(&records));
                    assert!(stream.last().is_none_or(|last| last.id() <= stream.last_id()));
                } else {
                    assert_eq!(restored, Err(PayloadError::BadFormat));
                    refused += 1;
                }
            }
        }
        assert!(refused > body.len(), "{refused} of {} refused", body.len() * 4);
        assert_eq!(restore(&payload, whole.len() - 1), Err(PayloadError::BadFormat));
    }
}

#[test]
fn the_last_ids_survive_a_round() {
    let mut records = Vec::new();
    let head = StreamRecord::Head {
        last_id: StreamId::MAX,
        entries_added: u64::MAX,
        max_deleted: StreamId::MAX,
    };
    head.write(&mut records);
    for id in [StreamId::new(0, 1), StreamId::new(5, u64::MAX), StreamId::MAX] {
        let mut pairs = Vec::new();
        store::Element::Bytes(b"field").write(&mut pairs);
        store::Element::Integer(i64::MIN).write(&mut pairs);
        StreamRecord::Entry { id, pairs: &pairs }.write(&mut records);
    }
    assert_eq!(records_of(&dumped(&records)), records);
}

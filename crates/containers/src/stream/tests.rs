//! Tests of `stream.rs`: against a model, copied while it changes, and its memory.

use std::collections::BTreeMap;

use placement::SplitMix64;

use super::*;
use crate::row::MalformedRow;

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

#[derive(Default, Clone, PartialEq, Debug)]
struct Model {
    head: (StreamId, u64, StreamId),
    entries: BTreeMap<StreamId, Fields>,
    groups: BTreeMap<Vec<u8>, GroupModel>,
}

#[derive(Default, Clone, PartialEq, Debug)]
struct GroupModel {
    last_id: StreamId,
    entries_read: Option<u64>,
    consumers: BTreeMap<Vec<u8>, (i64, i64)>,
    pending: BTreeMap<StreamId, (Vec<u8>, i64, u64)>,
}

/// Returns the content of a stream as a model has it.
fn content(stream: &Stream) -> Model {
    let text = |element: Element<'_>| element.to_text().into_owned();
    let entry = |entry: StreamEntry<'_>| {
        (entry.id(), entry.fields().map(|(field, value)| (text(field), text(value))).collect())
    };
    let group = |group: &Group| {
        let consumer = |it: &Consumer| (it.name().to_vec(), (it.seen_at(), it.active_at()));
        let pending =
            |it: PendingEntry<'_>| (it.id, (it.consumer.to_vec(), it.delivered_at, it.deliveries));
        let model = GroupModel {
            last_id: group.last_id(),
            entries_read: group.entries_read(),
            consumers: group.consumers().map(consumer).collect(),
            pending: group.pending_from(StreamId::MIN).map(pending).collect(),
        };
        (group.name().to_vec(), model)
    };
    Model {
        head: (stream.last_id(), stream.entries_added(), stream.max_deleted()),
        entries: stream.iter_from(StreamId::MIN).map(entry).collect(),
        groups: stream.groups().map(group).collect(),
    }
}

fn check(stream: &Stream) {
    stream.entries.check();
    stream.groups().for_each(Group::check);
    let bytes: usize = stream.groups().map(Group::bytes).sum();
    assert_eq!(stream.groups.as_ref().map_or(0, |groups| groups.bytes), bytes);
}

fn written(records: &[StreamRecord<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    records.iter().for_each(|record| record.write(&mut out));
    assert!(StreamRecords::check_changes(&out).is_ok());
    assert!(StreamRecords::new(&out).iter().eq(records.iter().copied()));
    out
}

fn pairs(fields: &Fields) -> Vec<u8> {
    let mut row = Vec::new();
    for (field, value) in fields {
        Element::of(field).write(&mut row);
        Element::of(value).write(&mut row);
    }
    row
}

fn fields(rng: &mut SplitMix64) -> Fields {
    let names: &[&[u8]] = match rng.draw() % 8 {
        0 => &[b"other"],
        1 => &[b"field", b"7"],
        _ => &[b"field", b"second"],
    };
    let value = |rng: &mut SplitMix64| match rng.draw() % 20 {
        0 => vec![b'v'; (rng.draw() % 6_000) as usize],
        1..8 => (rng.draw() % 100_000).to_string().into_bytes(),
        _ => format!("value {}", rng.draw() % 1_000).into_bytes(),
    };
    names.iter().map(|name| (name.to_vec(), value(rng))).collect()
}

/// Makes a random change of a model; returns it as records.
fn change(rng: &mut SplitMix64, model: &mut Model) -> Vec<u8> {
    let any = |rng: &mut SplitMix64, model: &Model| {
        let index = rng.draw() as usize % model.entries.len().max(1);
        model.entries.keys().nth(index).copied().unwrap_or(StreamId::new(3, 3))
    };
    let id = any(rng, model);
    match rng.draw() % 40 {
        0..14 => {
            let last = model.head.0;
            let id = StreamId::new(last.ms + rng.draw() % 3, last.seq + 1);
            let fields = fields(rng);
            model.head = (id, model.head.1 + 1, model.head.2);
            model.entries.insert(id, fields.clone());
            let (entries_added, max_deleted) = (model.head.1, model.head.2);
            written(&[
                StreamRecord::Entry { id, pairs: &pairs(&fields) },
                StreamRecord::Head { last_id: id, entries_added, max_deleted },
            ])
        }
        14..18 => {
            model.entries.remove(&id);
            written(&[StreamRecord::RemoveEntry { id }])
        }
        18 => {
            let index = rng.draw() as usize % (model.entries.len() / 8).max(1);
            let id = model.entries.keys().nth(index).copied().unwrap_or(StreamId::MIN);
            model.entries = model.entries.split_off(&id);
            written(&[StreamRecord::Trim { id }])
        }
        kind => change_group(rng, model, kind, id),
    }
}

fn change_group(rng: &mut SplitMix64, model: &mut Model, kind: u64, id: StreamId) -> Vec<u8> {
    let group = format!("group{}", rng.draw() % 3).into_bytes();
    let consumer = format!("consumer{}", rng.draw() % 5).into_bytes();
    let at = (rng.draw() % 1_000_000) as i64;
    match kind {
        19..21 => {
            let it = model.groups.entry(group.clone()).or_default();
            (it.last_id, it.entries_read) = (id, Some(rng.draw() % 100).filter(|it| *it > 9));
            let entries_read = it.entries_read;
            written(&[StreamRecord::Group { name: &group, last_id: id, entries_read }])
        }
        21 if rng.draw().is_multiple_of(8) => {
            model.groups.remove(&group);
            written(&[StreamRecord::InGroup { name: &group }, StreamRecord::RemoveGroup])
        }
        22..24 => {
            let it = model.groups.entry(group.clone()).or_default();
            it.consumers.insert(consumer.clone(), (at, at - 5));
            let record = StreamRecord::Consumer { name: &consumer, seen_at: at, active_at: at - 5 };
            written(&[StreamRecord::InGroup { name: &group }, record])
        }
        24 => {
            if let Some(it) = model.groups.get_mut(&group) {
                it.consumers.remove(&consumer);
                it.pending.retain(|_, (of, _, _)| *of != consumer);
            }
            let of = StreamRecord::OfConsumer { name: &consumer };
            written(&[StreamRecord::InGroup { name: &group }, of, StreamRecord::RemoveConsumer])
        }
        25..30 => {
            if let Some(it) = model.groups.get_mut(&group) {
                it.pending.remove(&id);
            }
            written(&[StreamRecord::InGroup { name: &group }, StreamRecord::RemovePending { id }])
        }
        _ => {
            let it = model.groups.entry(group.clone()).or_default();
            it.consumers.entry(consumer.clone()).or_insert((at, -1));
            let deliveries = rng.draw() % 3;
            it.pending.insert(id, (consumer.clone(), at, deliveries));
            written(&[
                StreamRecord::InGroup { name: &group },
                StreamRecord::OfConsumer { name: &consumer },
                StreamRecord::Pending { id, delivered_at: at, deliveries },
            ])
        }
    }
}

#[test]
fn a_stream_behaves_like_ordered_maps() {
    for seed in 0..4 {
        let mut rng = SplitMix64::new(seed);
        let (mut stream, mut model) = (Stream::default(), Model::default());
        for step in 0..6_000 {
            let records = change(&mut rng, &mut model);
            drop(stream.change(StreamRecords::new(&records)));
            if step % 200 == 0 {
                // A second time changes nothing.
                drop(stream.change(StreamRecords::new(&records)));
                assert_eq!(content(&stream), model);
                check(&stream);
            }
        }
        let mut records = Vec::new();
        stream.write_records(&mut records);
        let records = StreamRecords::check_parts(&records).expect("a stream");
        assert_eq!(content(&Stream::of(records)), model);
        assert!(stream.records_len() >= records.bytes().len());
        let last = model.entries.keys().nth(model.entries.len() / 2).copied();
        let last = last.expect("there are entries");
        let back: Vec<_> = stream.iter_back_from(last).map(|entry| entry.id()).collect();
        assert!(back.iter().eq(model.entries.range(..=last).rev().map(|(id, _)| id)));
    }
}

#[test]
fn a_copy_in_portions_is_equal_whatever_changes_meanwhile() {
    for seed in 10..16 {
        let mut rng = SplitMix64::new(seed);
        let (mut stream, mut model) = (Stream::default(), Model::default());
        for _ in 0..3_000 {
            drop(stream.change(StreamRecords::new(&change(&mut rng, &mut model))));
        }
        let mut copy = Stream::default();
        let mut position = Some(StreamPosition::Start);
        let mut portions = 0;
        while let Some(from) = position {
            let mut portion = Vec::new();
            position = stream.copy_some(&from, 1 + rng.draw() as usize % 600, &mut portion);
            drop(copy.change(StreamRecords::check_parts(&portion).expect("parts")));
            portions += 1;
            for _ in 0..rng.draw() % 8 {
                let records = change(&mut rng, &mut model);
                drop(stream.change(StreamRecords::new(&records)));
                drop(copy.change(StreamRecords::new(&records)));
            }
        }
        assert!(portions > 30, "only {portions} portions");
        check(&copy);
        assert_eq!(content(&copy), model);
    }
}

#[test]
fn malformed_records_are_refused() {
    let pairs = [1, b'a', 1, b'b'];
    let name = b"name";
    let all = written(&[
        StreamRecord::Head { last_id: StreamId::MAX, entries_added: 1, max_deleted: StreamId::MIN },
        StreamRecord::Entry { id: StreamId::MAX, pairs: &pairs },
        StreamRecord::Group { name, last_id: StreamId::MIN, entries_read: Some(1) },
        StreamRecord::Consumer { name, seen_at: 1, active_at: -1 },
        StreamRecord::Pending { id: StreamId::MAX, delivered_at: i64::MIN, deliveries: u64::MAX },
    ]);
    assert!(StreamRecords::check_parts(&all).is_ok());
    let whole: Vec<usize> = {
        let mut rest = all.as_slice();
        let ends = core::iter::from_fn(|| {
            let (_, behind) = StreamRecord::read(rest)?;
            rest = behind;
            Some(all.len() - behind.len())
        });
        ends.collect()
    };
    for cut in 1..all.len() {
        let is_whole = whole.contains(&cut);
        assert_eq!(StreamRecords::check_changes(&all[..cut]).is_ok(), is_whole, "cut at {cut}");
    }
    let malformed: [&[u8]; 5] = [
        &[0],
        &[13],
        &[2, 1, 1, 2, 1, b'a'],          // A field without its value.
        &[2, 1, 1, 4, 1, b'7', 1, b'a'], // A number as a string.
        &[3, 1, 1, 0, 2],                // Neither a count nor none.
    ];
    for bytes in malformed {
        assert_eq!(StreamRecords::check_changes(bytes).err(), Some(MalformedRow), "{bytes:?}");
    }
    let removal = written(&[StreamRecord::Trim { id: StreamId::MIN }]);
    assert!(StreamRecords::check_parts(&removal).is_err());
    // Records of no group and no consumer change nothing.
    let pending = StreamRecord::Pending { id: StreamId::MAX, delivered_at: 1, deliveries: 1 };
    let lost = written(&[pending, StreamRecord::RemoveGroup, StreamRecord::RemoveConsumer]);
    let mut stream = Stream::default();
    drop(stream.change(StreamRecords::new(&lost)));
    assert_eq!(content(&stream), Model::default());
}

fn filled(entries: u64, fields: &[(&str, usize)]) -> Stream {
    let mut stream = Stream::default();
    for number in 0..entries {
        let fields: Fields = fields
            .iter()
            .map(|(name, length)| {
                (
                    name.as_bytes().to_vec(),
                    format!("v:{number:0>width$}", width = length - 2).into_bytes(),
                )
            })
            .collect();
        let id = StreamId::new(1_700_000_000_000 + number / 2, number % 2);
        let pairs = pairs(&fields);
        drop(
            stream
                .change(StreamRecords::new(&written(&[StreamRecord::Entry { id, pairs: &pairs }]))),
        );
    }
    stream
}

#[test]
fn streams_take_as_little_memory_as_promised() {
    let small = filled(10, &[("field", 16)]);
    // With the block of its item, and its place in the index.
    assert!(small.bytes() + 48 + 12 <= 500, "{} bytes", small.bytes());
    let large = filled(50_000, &[("field:01", 16), ("field:02", 16)]);
    let per_entry = large.bytes() as f64 / 50_000.0;
    assert!(per_entry <= 46.0, "{per_entry} bytes for each entry");
}

#[test]
fn a_pending_entry_takes_at_most_48_bytes() {
    let mut stream = filled(50_000, &[("field", 16)]);
    let before = stream.bytes();
    let ids: Vec<StreamId> = stream.iter_from(StreamId::MIN).map(|entry| entry.id()).collect();
    for (index, id) in ids.into_iter().enumerate() {
        let name = format!("consumer{}", index % 20);
        let delivered_at = id.ms.cast_signed() + 100_000 + index as i64 / 10;
        drop(stream.change(StreamRecords::new(&written(&[
            StreamRecord::InGroup { name: b"group" },
            StreamRecord::OfConsumer { name: name.as_bytes() },
            StreamRecord::Pending { id, delivered_at, deliveries: 1 },
        ]))));
    }
    let per_entry = (stream.bytes() - before) as f64 / 50_000.0;
    assert!(per_entry <= 48.0, "{per_entry} bytes for each pending entry");
}

#[test]
fn what_a_change_removes_is_handed_out() {
    let mut stream = filled(50_000, &[("field", 16)]);
    let group = written(&[
        StreamRecord::InGroup { name: b"group" },
        StreamRecord::OfConsumer { name: b"consumer" },
        StreamRecord::Pending { id: StreamId::new(5, 5), delivered_at: 1, deliveries: 1 },
    ]);
    drop(stream.change(StreamRecords::new(&group)));
    let removal = [StreamRecord::InGroup { name: b"group" }, StreamRecord::RemoveGroup];
    let mut removed = stream.change(StreamRecords::new(&written(&removal)));
    assert_eq!((stream.groups().len(), removed.groups().len()), (0, 1));
    while removed.free_some(1) {}
    let mut removed =
        stream.change(StreamRecords::new(&written(&[StreamRecord::Trim { id: StreamId::MAX }])));
    assert!(stream.is_empty() && removed.len() > 10_000);
    let mut portions = 1;
    while removed.free_some(10) {
        portions += 1;
    }
    assert!(portions > 30, "only {portions} portions");
}

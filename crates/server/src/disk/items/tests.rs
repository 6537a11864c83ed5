//! The items read are the items written, and an incomplete file is never taken for a complete one.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use cluster::map::{Boot, ClusterSettings, Endpoints, Member, NodeId, Zone};
use placement::Mask;
use store::{
    Cause, Effect, Element, NewValue, Score, ScoredMember, Seed, StreamId, StreamRecord, Touch,
    UnixMillis, digest_of,
};

use super::super::memory::Memory;
use super::*;

static SEED: LazyLock<Seed> = LazyLock::new(|| Seed::new(5));

#[derive(Default)]
struct Tables(BTreeMap<Slot, (Position, SlotTable)>);

impl TakeItems for Tables {
    fn slot(&mut self, slot: Slot, at: Position) {
        let mut table = SlotTable::default();
        let _ = table.begin_copy(at.version, &SEED);
        self.0.insert(slot, (at, table));
    }

    fn divergence(&mut self, slot: Slot, piece: &[u8]) -> Result<(), DecodeError> {
        let (_, table) = self.0.get_mut(&slot).expect("a slot begins before what it remembers");
        table.take_divergence(piece).map(drop)
    }

    fn item(&mut self, slot: Slot, item: &DecodedItem<'_>) {
        let (_, table) = self.0.get_mut(&slot).expect("a slot begins before its items");
        let _ = table.copy_item(item, &SEED);
    }
}

fn head() -> ItemsHead {
    let founder = Member {
        id: NodeId(1),
        boot: Boot(1),
        name: "founder".to_owned(),
        weight: 1,
        zone: Zone::default(),
        at: Endpoints::default(),
    };
    let map = Map::found(founder, Mask::M00FF, ClusterSettings::default());
    ItemsHead { cluster: ClusterId(9), map, held: Vec::new() }
}

/// Returns a few thousand keys, some with an expiry, one value larger than a record, small and large containers.
fn filled() -> Tables {
    let mut tables = Tables::default();
    for number in 0..3_000_u64 {
        let name = format!("key-{number}");
        let key = SEED.key(name.as_bytes());
        let length = if number == 77 { 3 * RECORD_BYTES } else { 20 };
        let text = vec![number as u8; length];
        let fields = if matches!(number, 78 | 81) { 10_000 } else { 3 };
        let pairs = pairs(fields);
        let scores = if number == 80 { scores() } else { Vec::new() };
        let stream = if number == 83 { stream() } else { Vec::new() };
        let value = match number {
            78 | 79 => NewValue::Hash(&pairs),
            80 => NewValue::SortedSet(&scores),
            81 | 82 => NewValue::Set(&pairs),
            83 => NewValue::Stream(&stream),
            _ if number % 3 == 0 => NewValue::Integer(number as i64),
            _ => NewValue::Raw(&text),
        };
        let expires_at = (number % 5 == 0).then_some(UnixMillis(number + 1));
        let at = Position { reign: LogIndex(number % 4), version: Version(0) };
        let (at, table) = tables.0.entry(key.slot()).or_insert((at, SlotTable::default()));
        at.version = table.next_version(UnixMillis(number));
        let put = Effect::Put { key, value, expires_at };
        let _ = table.apply(&put, at.version, Touch::Nothing, &SEED);
    }
    tables
}

/// Returns the fields and values of a hash in a row.
fn pairs(fields: u64) -> Vec<u8> {
    let mut row = Vec::new();
    for number in 0..fields {
        Element::of(format!("field {number}").as_bytes()).write(&mut row);
        Element::of(b"some value").write(&mut row);
    }
    row
}

/// Returns the scores and members of a large sorted set in a row.
fn scores() -> Vec<u8> {
    let mut row = Vec::new();
    for number in 0..10_000_i32 {
        let name = format!("member {number}");
        let score = Score::new(f64::from(number) / 4.0).expect("a number");
        ScoredMember { score, member: Element::of(name.as_bytes()) }.write(&mut row);
    }
    row
}

/// Returns the records of a large stream with a group.
fn stream() -> Vec<u8> {
    let mut records = Vec::new();
    let pairs = pairs(2);
    for ms in 1..5_000 {
        StreamRecord::Entry { id: StreamId::new(ms, 0), pairs: &pairs }.write(&mut records);
    }
    StreamRecord::InGroup { name: b"group" }.write(&mut records);
    StreamRecord::OfConsumer { name: b"consumer" }.write(&mut records);
    for ms in 1..5_000 {
        let id = StreamId::new(ms, 0);
        StreamRecord::Pending { id, delivered_at: 1, deliveries: 1 }.write(&mut records);
    }
    records
}

fn written() -> (Memory, Tables) {
    let (files, tables) = (Memory::default(), filled());
    let mut writer = ItemsWriter::begin(&files, &head()).unwrap();
    for (slot, (at, table)) in &tables.0 {
        writer.slot(*slot, *at, table).unwrap();
    }
    assert!(files.content(FILE).is_none(), "nothing is in place before the end");
    assert_eq!(writer.finish().unwrap(), 3_000);
    (files, tables)
}

fn read(files: &Memory) -> Result<(Tables, u64), DiskError> {
    let mut tables = Tables::default();
    let reader = ItemsReader::open(files)?.expect("there is a file");
    assert_eq!(*reader.head(), head());
    let count = reader.read(&mut tables)?;
    Ok((tables, count))
}

#[test]
fn what_is_read_is_what_was_written() {
    let (files, before) = written();
    let (after, count) = read(&files).unwrap();
    assert_eq!(count, 3_000);
    assert_eq!(after.0.len(), before.0.len());
    for (slot, (at, table)) in &before.0 {
        let (at_after, table_after) = &after.0[slot];
        assert_eq!(at_after, at);
        assert_eq!(table_after.version(), at.version);
        assert_eq!(digest_of(table_after), digest_of(table), "slot {slot}");
    }
}

#[test]
fn what_a_slot_remembers_since_a_parting_is_read_too() {
    let mut table = SlotTable::default();
    let slot = Slot::of(b"{t}");
    let names: Vec<String> = (0..4_000).map(|number| format!("{{t}}{number:0>30}")).collect();
    let go_on = |table: &mut SlotTable, effect: &Effect<'_>| {
        let version = table.next_version(UnixMillis(5));
        let _ = table.apply(effect, version, Touch::Nothing, &SEED);
    };
    for name in &names {
        let (key, value) = (SEED.key(name.as_bytes()), NewValue::Raw(b"x"));
        go_on(&mut table, &Effect::Put { key, value, expires_at: None });
    }
    table.begin_divergence(table.version());
    for name in &names[10..] {
        let key = SEED.key(name.as_bytes());
        go_on(&mut table, &Effect::Remove { key, cause: Cause::Deleted });
    }
    let files = Memory::default();
    let mut writer = ItemsWriter::begin(&files, &head()).unwrap();
    let at = Position { reign: LogIndex(3), version: table.version() };
    writer.slot(slot, at, &table).unwrap();
    assert_eq!(writer.finish().unwrap(), 10);
    let (after, _) = read(&files).unwrap();
    let (before, after) = (table.divergence().unwrap(), after.0[&slot].1.divergence().unwrap());
    assert_eq!((after.at(), after.is_complete()), (before.at(), true));
    let tombstones: Vec<_> = before.tombstones(None).collect();
    assert_eq!(tombstones.len(), 3_990, "more than one record has");
    assert!(after.tombstones(None).eq(tombstones));
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let (files, _) = written();
    let whole = files.content(FILE).unwrap();
    for end in (0..whole.len()).step_by(997).chain([whole.len() - 1]) {
        files.set_content(FILE, whole[..end].to_vec());
        assert!(read(&files).is_err(), "cut off at {end}");
    }
}

#[test]
fn a_changed_byte_is_found() {
    let (files, _) = written();
    let whole = files.content(FILE).unwrap();
    for place in (0..whole.len()).step_by(1_499) {
        let mut content = whole.clone();
        content[place] ^= 4;
        files.set_content(FILE, content);
        assert!(read(&files).is_err(), "byte {place}");
    }
}

#[test]
fn a_full_disk_leaves_the_file_before_as_it_was() {
    let (files, _) = written();
    files.leave_room(10_000);
    let (at, table) = filled().0.into_values().next().unwrap();
    let begun = ItemsWriter::begin(&files, &head());
    let failed = begun.and_then(|mut writer| {
        (0..Slot::COUNT).try_for_each(|number| writer.slot(Slot::new(number).unwrap(), at, &table))
    });
    assert!(failed.is_err());
    assert_eq!(read(&files).unwrap().1, 3_000);
}

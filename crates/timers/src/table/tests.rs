//! Tests the content and order of the table, and that removed entries leave nothing behind.

use super::*;
use crate::spec::{Callback, Retry};

fn id(number: u64) -> TimerId {
    TimerId { number, factor: ReplicationFactor::DEFAULT }
}

fn record(number: u64, due_in: u64) -> Record {
    let spec = TimerSpec {
        tags: Vec::new(),
        interval: TimeSpan(1000),
        repeat_for: TimeSpan(3000),
        callback: Callback::Command(vec!["PING".into()]),
        retry: Retry::NONE,
    };
    let (due_in, quiet_for) = (TimeSpan(due_in), TimeSpan::ZERO);
    let life = TimerLife::Pending { spec, left: 3, due_in, quiet_for };
    Record { id: id(number), version: TimerVersion::default(), sequence: Sequence(0), life }
}

struct Desk {
    table: TimerTable,
    stats: Stats,
}

impl Desk {
    fn new() -> Desk {
        Desk { table: TimerTable::new(MonotonicMillis(0)), stats: Stats::default() }
    }

    fn put(&mut self, record: &Record, place: ReplicaRank) {
        let mut clock = UpdateContext { now: MonotonicMillis(0), stats: &mut self.stats };
        self.table.put(record, place, Era::default(), &mut clock);
    }

    fn change(&mut self, number: u64, change: impl FnOnce(&mut TimerEntry)) {
        let mut clock = UpdateContext { now: MonotonicMillis(0), stats: &mut self.stats };
        self.table.change(id(number), &mut clock, change);
    }
}

#[test]
fn each_place_has_its_turn() {
    let mut desk = Desk::new();
    desk.put(&record(1, 500), ReplicaRank::Replica(0));
    desk.put(&record(2, 500), ReplicaRank::Replica(2));
    desk.put(&record(3, 500), ReplicaRank::Former(1));
    let turns: Vec<u64> =
        (1..=3).map(|number| desk.table.moment_of(id(number)).unwrap().0).collect();
    assert_eq!(turns, [500, 4500, 2500]);
}

#[test]
fn a_record_comes_out_as_it_went_in() {
    let mut desk = Desk::new();
    desk.put(&record(7, 500), ReplicaRank::Replica(0));
    assert_eq!(desk.table.get(id(7)).unwrap().record(MonotonicMillis(0)), record(7, 500));
    assert_eq!(desk.table.get(id(7)).unwrap().record(MonotonicMillis(200)), record(7, 300));
}

#[test]
fn entries_are_walked_in_the_order_of_their_ids_from_anywhere() {
    let mut desk = Desk::new();
    for number in [5, 1, 300, 2] {
        desk.put(&record(number, 500), ReplicaRank::Replica(0));
    }
    let after = |from: Option<u64>| -> Vec<u64> {
        desk.table.after(from.map(id)).map(|entry| entry.id().number).collect()
    };
    assert_eq!(after(None), [1, 2, 5, 300]);
    assert_eq!(after(Some(2)), [5, 300]);
    assert_eq!(after(Some(3)), [5, 300]);
}

#[test]
fn what_has_popped_for_the_last_time_is_a_tombstone() {
    let mut desk = Desk::new();
    desk.put(&record(1, 500), ReplicaRank::Replica(0));
    assert_eq!((desk.table.pending(), desk.stats.primary), (1, 1));
    desk.change(1, |entry| entry.advance(MonotonicMillis(500)));
    assert_eq!(desk.table.get(id(1)).unwrap().left, 2);
    // Two more were due by then: one call covers both.
    desk.change(1, |entry| entry.advance(MonotonicMillis(9999)));
    let entry = desk.table.get(id(1)).unwrap();
    assert!(!entry.is_pending() && entry.bytes() == 0);
    assert_eq!(entry.due, MonotonicMillis(60_000));
    assert_eq!((desk.table.pending(), desk.table.tombstones(), desk.stats.primary), (0, 1, 0));
}

#[test]
fn a_place_that_is_free_is_used_again() {
    let mut desk = Desk::new();
    for round in 0..3 {
        for number in 0..3000 {
            desk.put(&record(round * 3000 + number, 500), ReplicaRank::Replica(0));
        }
        assert_eq!(desk.table.blocks.len(), 3);
        for number in 0..3000 {
            desk.table.remove(id(round * 3000 + number), &mut desk.stats);
        }
    }
    assert_eq!((desk.table.len(), desk.stats.primary), (0, 0));
    assert_eq!(desk.table.next_moment(), None);
}

#[test]
fn the_bytes_of_entries_come_and_go_with_them() {
    let mut desk = Desk::new();
    desk.put(&record(1, 500), ReplicaRank::Replica(0));
    let one = desk.table.bytes();
    assert!(one > ENTRY_BYTES);
    desk.put(&record(1, 700), ReplicaRank::Replica(1));
    assert_eq!(desk.table.bytes(), one);
    desk.put(&record(2, 500), ReplicaRank::Replica(0));
    assert_eq!(desk.table.bytes(), 2 * one);
    desk.change(1, |entry| entry.left = 0);
    assert_eq!(desk.table.bytes(), one + ENTRY_BYTES, "a tombstone has no description");
    for number in [1, 2] {
        desk.table.remove(id(number), &mut desk.stats);
    }
    assert_eq!(desk.table.bytes(), 0);
}

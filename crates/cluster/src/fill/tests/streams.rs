//! Streams under a fill: a large one goes in parts while it is added to, trimmed, read by groups and acknowledged.

use store::{StreamId, StreamRecord};

use super::*;

fn written(records: &[StreamRecord<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    records.iter().for_each(|record| record.write(&mut out));
    out
}

fn added(number: u64) -> Vec<u8> {
    let pairs = row(["field", "a value of some length"]);
    let id = StreamId::new(number, 0);
    let max_deleted = StreamId::MIN;
    written(&[
        StreamRecord::Entry { id, pairs: &pairs },
        StreamRecord::Head { last_id: id, entries_added: number, max_deleted },
    ])
}

fn pending(number: u64, group: &[u8], consumer: &[u8]) -> Vec<u8> {
    written(&[
        StreamRecord::InGroup { name: group },
        StreamRecord::OfConsumer { name: consumer },
        StreamRecord::Pending { id: StreamId::new(number, 0), delivered_at: 1, deliveries: 1 },
    ])
}

const NAMES: [&str; 3] = ["{tag}large0", "{tag}large1", "{tag}large2"];

fn change(pair: &mut Pair, name: &str, records: &[u8]) {
    let seed = pair.seed.clone();
    let key = seed.key(name.as_bytes());
    pair.apply(&key, &Effect::ChangeStream { key, records });
}

fn add_large(pair: &mut Pair) {
    for name in NAMES {
        for first in (1..10_000).step_by(500) {
            let mut records: Vec<u8> = (first..first + 500).flat_map(added).collect();
            for number in first..first + 500 {
                let group: &[u8] = if number % 2 == 0 { b"even" } else { b"odd" };
                records.extend(pending(number, group, format!("c{}", number % 7).as_bytes()));
            }
            change(pair, name, &records);
        }
    }
}

#[test]
fn a_large_stream_goes_in_parts_and_a_write_to_it_costs_what_it_changes() {
    let mut pair = Pair::new(1);
    add_large(&mut pair);
    let (steps, bytes) = fill_while(&mut pair, |pair, step| {
        for name in NAMES {
            let number = 10_001 + step;
            change(pair, name, &added(number));
            change(pair, name, &pending(number, b"even", b"new"));
            // Claimed from ahead of the copy and from behind it, acknowledged, deleted.
            change(pair, name, &pending(step * 61 % 10_000, b"odd", b"claimer"));
            let id = StreamId::new(step * 97 % 10_000, 0);
            let acknowledged = [
                StreamRecord::InGroup { name: b"even" },
                StreamRecord::RemovePending { id },
                StreamRecord::RemoveEntry { id },
            ];
            change(pair, name, &written(&acknowledged));
        }
    });
    assert!(pair.same());
    assert!(steps >= 3 * 10_000 * 45 / CHUNK_BYTES as u64, "only {steps} chunks");
    assert!(bytes < 3 * 900_000 + steps as usize * 12 * 200, "{bytes} bytes in {steps} steps");
}

#[test]
fn a_large_stream_that_is_trimmed_goes_or_comes_back_during_its_copy_arrives() {
    for changed_at in 0..36 {
        let mut pair = Pair::new(1);
        add_large(&mut pair);
        let name = NAMES[changed_at as usize % 3];
        fill_while(&mut pair, |pair, step| {
            let seed = pair.seed.clone();
            let key = seed.key(name.as_bytes());
            let again: Vec<u8> = (1..9_000).flat_map(added).collect();
            match (step == changed_at, changed_at % 6) {
                (true, 0) => {
                    let id = StreamId::new(9_990, 0);
                    change(pair, name, &written(&[StreamRecord::Trim { id }]));
                }
                (true, 1) => pair.apply(&key, &Effect::Remove { key, cause: Cause::Deleted }),
                (true, 2) => {
                    let value = NewValue::Stream(&again);
                    pair.apply(&key, &Effect::Put { key, value, expires_at: None });
                }
                (true, 3) => {
                    pair.apply(&key, &Effect::Remove { key, cause: Cause::Deleted });
                    change(pair, name, &again);
                }
                (true, 4) => {
                    let of = StreamRecord::InGroup { name: b"even" };
                    change(pair, name, &written(&[of, StreamRecord::RemoveGroup]));
                }
                (true, _) => {
                    let members: Vec<String> = (0..9_000).map(|it| format!("m {it}")).collect();
                    let members = row(members.iter().map(String::as_str));
                    let value = NewValue::Set(&members);
                    pair.apply(&key, &Effect::Put { key, value, expires_at: None });
                }
                (false, _) if step < changed_at => {
                    change(pair, name, &pending(step, b"zeta", b"again and again"));
                }
                (false, _) => {}
            }
        });
        assert!(pair.same(), "changed at step {changed_at}");
    }
}

//! Keys expire when they are due, however many others expire later.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use e2e::{Client, Effort, Server};
use resp::Value;

const DUE_KEYS: u64 = 50;
const DUE_AFTER: Duration = Duration::from_millis(300);

/// Tolerance, far more than is promised: a slow machine must not fail the test.
const LATE_AT_MOST: Duration = Duration::from_secs(2);

#[test]
fn a_key_that_is_due_goes_on_time_among_a_million_that_are_not() {
    let keys = Effort::of_this_run().of_normally(1_000_000);
    let node = Server::node();
    let mut client = node.client();
    client.run("CONFIG SET notify-keyspace-events Ex");
    fill(&mut client, keys);
    let mut listener = node.client();
    listener.run("SUBSCRIBE __keyevent@0__:expired");

    let begun = Instant::now();
    let mut due = BTreeMap::new();
    for number in 0..DUE_KEYS {
        let millis = DUE_AFTER.as_millis() as u64 + number * 10;
        // The node reads its clock somewhere between these two, and counts whole milliseconds.
        let earliest = begun.elapsed() + Duration::from_millis(millis - 1);
        client.run(&format!("SET due:{number} x PX {millis}"));
        let latest = begun.elapsed() + Duration::from_millis(millis);
        due.insert(format!("due:{number}").into_bytes(), earliest..latest);
    }
    let mut latest = Duration::ZERO;
    while !due.is_empty() {
        let key = expired_key(&mut listener);
        let now = begun.elapsed();
        let due = due.remove(&key).expect("each goes once, and no other does");
        assert!(now >= due.start, "{:?} early", due.start - now);
        latest = latest.max(now.saturating_sub(due.end));
    }
    println!("{keys} keys to expire later; the latest event came {latest:?} after it was due");
    assert!(latest < LATE_AT_MOST, "{latest:?} late");
    assert_eq!(client.run("EXISTS due:0"), Value::Integer(0));
    assert_eq!(client.run("DBSIZE"), Value::Integer(keys as i64));
}

#[test]
fn fields_that_are_due_go_on_time_and_leave_the_others() {
    let node = Server::node();
    let mut client = node.client();
    client.run("CONFIG SET notify-keyspace-events Eh");
    for field in 0..2_000 {
        client.run(&format!("HSETEX large EX 9000 FIELDS 1 field:{field} some-value"));
    }
    let mut listener = node.client();
    listener.run("SUBSCRIBE __keyevent@0__:hexpired");
    let begun = Instant::now();
    let mut due = BTreeMap::new();
    for number in 0..DUE_KEYS {
        let millis = DUE_AFTER.as_millis() as u64 + number * 10;
        let name = format!("due:{number}");
        client.run(&format!("HSET {name} stays 1"));
        let earliest = begun.elapsed() + Duration::from_millis(millis - 1);
        client.run(&format!("HSETEX {name} PX {millis} FIELDS 1 goes 1"));
        due.insert(name.into_bytes(), earliest);
    }
    // The fields go without anybody asking for them.
    while !due.is_empty() {
        let key = expired_key(&mut listener);
        let earliest = due.remove(&key).expect("each goes once, and no other does");
        let now = begun.elapsed();
        assert!(now >= earliest, "{:?} early", earliest - now);
        assert!(now < earliest + DUE_AFTER + LATE_AT_MOST, "{:?} late", now - earliest);
    }
    assert_eq!(client.run("HKEYS due:0"), Value::Array(vec![Value::Bulk(b"stays".to_vec())]));
    assert_eq!(client.run("HLEN large"), Value::Integer(2_000));
}

/// Returns the key in the next event.
fn expired_key(listener: &mut Client) -> Vec<u8> {
    let answer = listener.receive().expect("an event comes");
    let Value::Array(parts) = &answer.value else { panic!("an event: {answer:?}") };
    parts.last().and_then(Value::text).expect("its last part is the key").to_vec()
}

/// Writes keys that expire in hours, each at its own time.
fn fill(client: &mut Client, count: usize) {
    const BATCH: usize = 5_000;
    for start in (0..count).step_by(BATCH) {
        let mut bytes = Vec::new();
        let batch = start..(start + BATCH).min(count);
        for number in batch.clone() {
            let (key, millis) = (format!("later:{number}"), (3_600_000 + number).to_string());
            let args = ["SET", &key, "x", "PX", &millis].map(str::as_bytes);
            resp::encode_command(&mut bytes, &args);
        }
        client.send_raw(&bytes).expect("the node reads");
        for _ in batch {
            assert!(client.receive().expect("an answer").value.is_ok());
        }
    }
}

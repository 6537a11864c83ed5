//! Keys of all types, some with an expiry, written before a migration and checked after it.
use std::time::Instant;

use e2e::Client;
use resp::Value;

/// Number of commands sent before their answers are read.
const AT_ONCE: usize = 500;
/// Minimum time to live of keys that expire, so that none expires before a test ends.
const SECONDS_MIN: usize = 2_000;

pub(crate) struct Keys {
    count: usize,
    written: Instant,
}

impl Keys {
    pub(crate) fn write(client: &mut Client, count: usize) -> Keys {
        let written = Instant::now();
        let commands: Vec<Vec<String>> = (0..count).flat_map(commands).collect();
        for answer in pipelined(client, &commands) {
            assert!(!matches!(answer, Value::Error(_)), "{answer}");
        }
        Keys { count, written }
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Checks that every key has its value and its expiry.
    pub(crate) fn check(&self, client: &mut Client) {
        let reads: Vec<Vec<String>> = (0..self.count).map(read).collect();
        for (number, answer) in pipelined(client, &reads).into_iter().enumerate() {
            assert_eq!(sorted(answer), expected(number), "{}", name(number));
        }
        let ttls: Vec<Vec<String>> =
            (0..self.count).map(|number| words(&["PTTL", &name(number)])).collect();
        let asked = Instant::now();
        for (number, answer) in pipelined(client, &ttls).into_iter().enumerate() {
            let Value::Integer(left) = answer else { panic!("PTTL: {answer}") };
            match seconds(number) {
                None => assert_eq!(left, -1, "{}", name(number)),
                Some(seconds) => {
                    let passed = (asked - self.written).as_millis();
                    let due = i64::try_from(seconds as u128 * 1000 - passed).expect("it fits");
                    // Keys are written and read one after the other: each may be late by as much.
                    let late = i64::try_from(asked.elapsed().as_millis()).expect("it fits");
                    assert!(left <= due + 6_000 && left >= due - late - 1_000, "{left} {due}");
                }
            }
        }
    }
}

fn name(number: usize) -> String {
    format!("key:{number}")
}

fn seconds(number: usize) -> Option<usize> {
    (number.is_multiple_of(2)).then_some(SECONDS_MIN + number % 1_000)
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn commands(number: usize) -> Vec<Vec<String>> {
    let (key, value) = (name(number), format!("value {number}"));
    let write = match number % 6 {
        0 => words(&["SET", &key, &value]),
        1 => words(&["RPUSH", &key, "a", &value, "a"]),
        2 => words(&["SADD", &key, "a", &value]),
        3 => words(&["HSET", &key, "f", &value, "g", "2"]),
        4 => words(&["ZADD", &key, "1.5", "a", "2", &value]),
        _ => words(&["XADD", &key, "1-1", "f", &value]),
    };
    let expire = seconds(number).map(|seconds| words(&["EXPIRE", &key, &seconds.to_string()]));
    std::iter::once(write).chain(expire).collect()
}

fn read(number: usize) -> Vec<String> {
    let key = name(number);
    match number % 6 {
        0 => words(&["GET", &key]),
        1 => words(&["LRANGE", &key, "0", "-1"]),
        2 => words(&["SMEMBERS", &key]),
        3 => words(&["HGETALL", &key]),
        4 => words(&["ZRANGE", &key, "0", "-1", "WITHSCORES"]),
        _ => words(&["XRANGE", &key, "-", "+"]),
    }
}

fn expected(number: usize) -> Value {
    let value = format!("value {number}");
    let list = |items: &[&str]| Value::Array(items.iter().map(|item| text(item)).collect());
    sorted(match number % 6 {
        0 => text(&value),
        1 => list(&["a", &value, "a"]),
        2 => list(&["a", &value]),
        3 => list(&["f", &value, "g", "2"]),
        4 => list(&["a", "1.5", &value, "2"]),
        _ => Value::Array(vec![Value::Array(vec![text("1-1"), list(&["f", &value])])]),
    })
}

fn text(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

/// Sorts an array: sets have no order.
fn sorted(value: Value) -> Value {
    let Value::Array(mut items) = value else { return value };
    items.sort_by_key(ToString::to_string);
    Value::Array(items)
}

pub(crate) fn pipelined(client: &mut Client, commands: &[Vec<String>]) -> Vec<Value> {
    let mut answers = Vec::with_capacity(commands.len());
    for some in commands.chunks(AT_ONCE) {
        let mut bytes = Vec::new();
        for command in some {
            let args: Vec<&[u8]> = command.iter().map(String::as_bytes).collect();
            resp::encode_command(&mut bytes, &args);
        }
        client.send_raw(&bytes).expect("it takes commands");
        answers.extend(some.iter().map(|_| client.receive().expect("it answers").value));
    }
    answers
}

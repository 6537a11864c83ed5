//! The bytes to send, encoded once and patched in place. Pure.
//!
//! Every key is `key:` and 12 digits, so requests for different keys differ in those digits only.
//! One `Batch` serves all connections of a thread: the kernel copies it at each write, and it stays
//! in the nearest cache.
use crate::keys::{KeyDraw, KeySpace, Rng};

const KEY_PREFIX: &[u8] = b"key:";
const KEY_DIGITS: usize = 12;
/// Times to live of expiring SETs, in seconds: from about a day to about eleven, by key. Always six
/// digits, so that they are patched like a key, and late enough that nothing expires during a run.
const TTL_FIRST_SECONDS: u64 = 100_000;
const TTL_SPREAD_SECONDS: u64 = 900_000;
const TTL_DIGITS: usize = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Get,
    Set,
    /// SET with EX, with a different time to live for each key.
    SetExpiring,
    /// Each request is a GET with this probability, otherwise a SET.
    Mix {
        get_percent: u8,
    },
}

/// One request, and the positions that change.
#[derive(Clone, Debug)]
struct Template {
    bytes: Vec<u8>,
    key_digits_at: usize,
    ttl_digits_at: Option<usize>,
}

impl Template {
    fn get() -> Template {
        Template::encode(&[b"GET", &key_of(0)])
    }

    fn set(value_bytes: usize) -> Template {
        Template::encode(&[b"SET", &key_of(0), &value(value_bytes)])
    }

    fn set_expiring(value_bytes: usize) -> Template {
        let mut template = Template::encode(&[
            b"SET",
            &key_of(0),
            &value(value_bytes),
            b"EX",
            &[b'0'; TTL_DIGITS],
        ]);
        template.ttl_digits_at = Some(template.bytes.len() - b"\r\n".len() - TTL_DIGITS);
        template
    }

    /// Encodes a request. The key must be the second word.
    fn encode(words: &[&[u8]]) -> Template {
        let bytes = encode(words);
        let before = encode(&words[..1]).len() + b"$16\r\n".len() + KEY_PREFIX.len();
        Template { bytes, key_digits_at: before, ttl_digits_at: None }
    }

    #[inline]
    fn patch(&self, request: &mut [u8], key: u64) {
        write_digits(&mut request[self.key_digits_at..][..KEY_DIGITS], key);
        if let Some(at) = self.ttl_digits_at {
            let seconds = TTL_FIRST_SECONDS + key % TTL_SPREAD_SECONDS;
            write_digits(&mut request[at..][..TTL_DIGITS], seconds);
        }
    }
}

/// Encodes a command as the protocol's array of bulk strings.
pub fn encode(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

pub fn key_of(number: u64) -> Vec<u8> {
    let mut key = KEY_PREFIX.to_vec();
    key.resize(KEY_PREFIX.len() + KEY_DIGITS, b'0');
    write_digits(&mut key[KEY_PREFIX.len()..], number);
    key
}

/// Returns a value of letters only: one that looks like a number would be stored as a number.
fn value(bytes: usize) -> Vec<u8> {
    (b'a'..=b'z').cycle().take(bytes).collect()
}

/// Writes `number` into `to`, an even number of digits, two at a time: half the divisions.
#[inline]
fn write_digits(to: &mut [u8], mut number: u64) {
    for pair in to.rchunks_exact_mut(2) {
        let two = (number % 100) as u8;
        pair.copy_from_slice(&[b'0' + two / 10, b'0' + two % 10]);
        number /= 100;
    }
}

const _: () = assert!(KEY_DIGITS.is_multiple_of(2) && TTL_DIGITS.is_multiple_of(2));

/// Builds the next requests, as many as asked for, in one byte string.
#[derive(Clone, Debug)]
pub struct Batch {
    keys: KeyDraw,
    contents: Contents,
}

#[derive(Clone, Debug)]
enum Contents {
    /// `bytes` is the template repeated: only keys are overwritten.
    Same { template: Template, bytes: Vec<u8> },
    /// Requests of two lengths: `bytes` is rebuilt each time.
    Mixed { get: Template, set: Template, get_percent: u64, chance: Rng, bytes: Vec<u8> },
}

/// The requests to send, apart from their rate and pipelining.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Requests {
    pub operation: Operation,
    pub keys: KeySpace,
    pub value_bytes: usize,
}

impl Batch {
    /// Creates a batch; `longest` is the maximum number of requests that `next` will be asked for.
    pub fn new(requests: Requests, longest: usize, seed: u64) -> Batch {
        let set = || Template::set(requests.value_bytes);
        let contents = match requests.operation {
            Operation::Get => Contents::same(Template::get(), longest),
            Operation::Set => Contents::same(set(), longest),
            Operation::SetExpiring => {
                Contents::same(Template::set_expiring(requests.value_bytes), longest)
            }
            Operation::Mix { get_percent } => Contents::Mixed {
                get: Template::get(),
                set: set(),
                get_percent: u64::from(get_percent),
                chance: Rng::new(!seed),
                bytes: Vec::new(),
            },
        };
        Batch { keys: KeyDraw::new(requests.keys, seed), contents }
    }

    #[inline]
    pub fn next(&mut self, count: usize) -> &[u8] {
        match &mut self.contents {
            Contents::Same { template, bytes } => {
                let used = &mut bytes[..count * template.bytes.len()];
                for request in used.chunks_exact_mut(template.bytes.len()) {
                    template.patch(request, self.keys.draw());
                }
                used
            }
            Contents::Mixed { get, set, get_percent, chance, bytes } => {
                bytes.clear();
                for _ in 0..count {
                    let template = if chance.below(100) < *get_percent { &*get } else { &*set };
                    let start = bytes.len();
                    bytes.extend_from_slice(&template.bytes);
                    template.patch(&mut bytes[start..], self.keys.draw());
                }
                bytes
            }
        }
    }
}

impl Contents {
    fn same(template: Template, longest: usize) -> Contents {
        let bytes = template.bytes.repeat(longest);
        Contents::Same { template, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::Popularity;

    fn batch(operation: Operation) -> Batch {
        let keys = KeySpace { keys: 1_000_000, popularity: Popularity::Sequence };
        let mut batch = Batch::new(Requests { operation, keys, value_bytes: 3 }, 2, 1);
        for _ in 0..41 {
            batch.next(1);
        }
        batch
    }

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).replace("\r\n", " ")
    }

    #[test]
    fn a_patched_get_names_the_next_keys() {
        assert_eq!(
            text(batch(Operation::Get).next(2)),
            "*2 $3 GET $16 key:000000000041 *2 $3 GET $16 key:000000000042 "
        );
    }

    #[test]
    fn a_patched_set_keeps_its_value() {
        assert_eq!(text(batch(Operation::Set).next(1)), "*3 $3 SET $16 key:000000000041 $3 abc ");
    }

    #[test]
    fn an_expiring_set_has_a_time_to_live_of_its_own() {
        assert_eq!(
            text(batch(Operation::SetExpiring).next(2)),
            "*5 $3 SET $16 key:000000000041 $3 abc $2 EX $6 100041 \
             *5 $3 SET $16 key:000000000042 $3 abc $2 EX $6 100042 "
        );
    }

    #[test]
    fn a_mix_has_its_share_of_gets() {
        let mut batch = batch(Operation::Mix { get_percent: 80 });
        let bytes = batch.next(10_000).to_vec();
        let gets = text(&bytes).matches("GET").count();
        assert!((7_800..8_200).contains(&gets), "{gets} of 10,000");
        assert_eq!(text(&bytes).matches("SET").count(), 10_000 - gets);
    }

    #[test]
    fn a_shorter_batch_after_a_longer_one_is_cut_at_a_request() {
        let mut batch = batch(Operation::Get);
        let long = batch.next(2).len();
        assert_eq!(batch.next(1).len() * 2, long);
    }
}

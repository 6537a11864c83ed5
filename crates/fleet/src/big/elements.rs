//! Reads the elements of each type at the old server, chunk by chunk, adds them at the new one, and compares
//! afterwards. The chunk's number of elements adapts to their size.

use std::collections::BTreeMap;

use resp::Value;

use super::stream::{self, Facts};
use crate::job::{Batch, items};

/// Approximate size of a chunk: some milliseconds of a server's time.
const CHUNK_BYTES: usize = 512 * 1024;
const COUNT_FIRST: usize = 256;
const COUNT_MAX: usize = 16 * 1024;

/// Elements that were read at once.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Chunk {
    /// The elements as the new server takes them, except that a score comes behind its member.
    texts: Vec<Vec<u8>>,
    /// Offset of the first element, if the type has offsets.
    offset: usize,
    /// Fields of a hash that expire by themselves, with the time in milliseconds.
    expiries: BTreeMap<Vec<u8>, u64>,
}

impl Chunk {
    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.texts.iter().map(Vec::len).sum()
    }

    pub(super) fn has_expiries(&self) -> bool {
        !self.expiries.is_empty()
    }

    fn fields(&self) -> impl Iterator<Item = &[u8]> {
        self.texts.iter().step_by(2).map(Vec::as_slice)
    }

    /// Pushes the question when the fields of this chunk of a hash expire.
    pub(super) fn ask_expiries(&self, key: &[u8], batch: &mut Batch) {
        let count = (self.texts.len() / 2).to_string();
        let mut args: Vec<&[u8]> = vec![b"HPEXPIRETIME", key, b"FIELDS", count.as_bytes()];
        args.extend(self.fields());
        batch.push(&args);
    }

    /// Takes the answer. Fields that have expired since are dropped. `None` if it does not fit the question.
    pub(super) fn take_expiries(self, answer: &Value) -> Option<Chunk> {
        const GONE: i64 = -2;
        let times = items(Some(answer))?;
        if times.len() != self.texts.len() / 2 {
            return None;
        }
        let mut chunk = Chunk { offset: self.offset, ..Chunk::default() };
        for (pair, time) in self.texts.chunks(2).zip(times) {
            let Value::Integer(time) = time else { return None };
            if *time == GONE {
                continue;
            }
            if let Ok(at) = u64::try_from(*time) {
                chunk.expiries.insert(pair[0].clone(), at);
            }
            chunk.texts.extend_from_slice(pair);
        }
        Some(chunk)
    }
}

/// Progress of reading a key.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Elements {
    kind: Kind,
    at: At,
    /// Number of elements to ask for next.
    count: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Kind {
    String,
    List,
    Set,
    Hash,
    Sorted,
    Stream(Box<Facts>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum At {
    /// Offset in the bytes of a string, or in the elements of a list.
    Index(usize),
    Cursor(Vec<u8>),
    /// The first ID of a stream that is not read yet.
    Id(Vec<u8>),
    End,
}

impl Elements {
    /// Starts reading a key of this type; `None` for a type that cannot be split into elements.
    pub(super) fn of_type(name: &[u8]) -> Option<Elements> {
        let (kind, at) = match name {
            b"string" => (Kind::String, At::Index(0)),
            b"list" => (Kind::List, At::Index(0)),
            b"set" => (Kind::Set, At::Cursor(b"0".to_vec())),
            b"hash" => (Kind::Hash, At::Cursor(b"0".to_vec())),
            b"zset" => (Kind::Sorted, At::Cursor(b"0".to_vec())),
            _ => return None,
        };
        Some(Elements { kind, at, count: COUNT_FIRST })
    }

    /// Starts reading a stream with these properties; `None` if it must move whole.
    pub(super) fn of_stream(facts: Facts) -> Option<Elements> {
        let at = At::Id(b"-".to_vec());
        facts.is_plain().then_some(Elements {
            kind: Kind::Stream(Box::new(facts)),
            at,
            count: COUNT_FIRST,
        })
    }

    pub(super) fn at_end(&self) -> bool {
        self.at == At::End
    }

    /// Returns to the first element.
    pub(super) fn restart(&mut self) {
        self.at = match self.kind {
            Kind::String | Kind::List => At::Index(0),
            Kind::Set | Kind::Hash | Kind::Sorted => At::Cursor(b"0".to_vec()),
            Kind::Stream(_) => At::Id(b"-".to_vec()),
        };
    }

    pub(super) fn is_hash(&self) -> bool {
        self.kind == Kind::Hash
    }

    /// Pushes the command that counts the elements at `key`; for a string its bytes.
    pub(super) fn count(&self, key: &[u8], batch: &mut Batch) {
        let name: &[u8] = match self.kind {
            Kind::String => b"STRLEN",
            Kind::List => b"LLEN",
            Kind::Set => b"SCARD",
            Kind::Hash => b"HLEN",
            Kind::Sorted => b"ZCARD",
            Kind::Stream(_) => b"XLEN",
        };
        batch.push(&[name, key]);
    }

    /// Pushes the command that reads the next chunk.
    pub(super) fn read(&self, key: &[u8], batch: &mut Batch) {
        let mut digits = (itoa::Buffer::new(), itoa::Buffer::new());
        let mut range = |name: &[u8], index: usize, count: usize| {
            let first = digits.0.format(index).as_bytes();
            let last = digits.1.format(index + count - 1).as_bytes();
            batch.push(&[name, key, first, last]);
        };
        match (&self.at, &self.kind) {
            (At::Index(index), Kind::String) => range(b"GETRANGE", *index, CHUNK_BYTES),
            (At::Index(index), _) => range(b"LRANGE", *index, self.count),
            (At::Cursor(cursor), kind) => {
                let name: &[u8] = match kind {
                    Kind::Set => b"SSCAN",
                    Kind::Hash => b"HSCAN",
                    Kind::Sorted | Kind::String | Kind::List | Kind::Stream(_) => b"ZSCAN",
                };
                let count = digits.0.format(self.count).as_bytes();
                batch.push(&[name, key, cursor, b"COUNT", count]);
            }
            (At::Id(from), _) => {
                let count = digits.0.format(self.count).as_bytes();
                batch.push(&[b"XRANGE", key, from, b"+", b"COUNT", count]);
            }
            // Nothing is left; read an empty range to say so once more.
            (At::End, _) => batch.push(&[b"LRANGE", b"", b"1", b"0"]),
        }
    }

    /// Takes the answer: returns the elements and advances the position. A chunk may be empty before the end:
    /// Redis returns empty pages of a table with many empty buckets, and of expired fields. `None` if the answer
    /// does not fit the command.
    pub(super) fn take(&mut self, answer: &Value) -> Option<Chunk> {
        let mut offset = 0;
        let texts = match &self.at {
            At::End => Vec::new(),
            At::Index(index) => {
                offset = *index;
                let (texts, taken) = self.indexed(answer)?;
                self.at = if taken == 0 { At::End } else { At::Index(offset + taken) };
                texts
            }
            At::Cursor(_) => {
                let [cursor, elements] = items(Some(answer))? else { return None };
                let cursor = cursor.text()?;
                let texts = texts(elements)?;
                if self.kind != Kind::Set && texts.len() % 2 != 0 {
                    return None;
                }
                self.at = if cursor == b"0" { At::End } else { At::Cursor(cursor.to_vec()) };
                texts
            }
            At::Id(_) => {
                let entries = items(Some(answer))?;
                let next = entries.last().map(stream::next_id);
                let texts = stream::flat(entries)?;
                self.at = match next {
                    Some(id) => At::Id(id?),
                    None => At::End,
                };
                texts
            }
        };
        let chunk = Chunk { texts, offset, expiries: BTreeMap::new() };
        self.adapt(chunk.bytes());
        Some(chunk)
    }

    fn indexed(&self, answer: &Value) -> Option<(Vec<Vec<u8>>, usize)> {
        if self.kind == Kind::String {
            let bytes = answer.text()?.to_vec();
            let taken = bytes.len();
            return Some((if taken == 0 { Vec::new() } else { vec![bytes] }, taken));
        }
        let chunk = texts(answer)?;
        let taken = chunk.len();
        Some((chunk, taken))
    }

    fn adapt(&mut self, bytes: usize) {
        let wanted = match bytes {
            0..CHUNK_BYTES => self.count * 2,
            _ => self.count * CHUNK_BYTES / bytes,
        };
        self.count = wanted.clamp(1, COUNT_MAX);
    }

    /// Pushes the commands that add a chunk to the elements collected at `data`.
    pub(super) fn add(&self, data: &[u8], chunk: &Chunk, batch: &mut Batch) {
        let name: &[u8] = match self.kind {
            Kind::String => b"APPEND",
            Kind::List => b"RPUSH",
            Kind::Set => b"SADD",
            Kind::Hash => b"HSET",
            Kind::Sorted => b"ZADD",
            Kind::Stream(_) => return stream::add(data, &chunk.texts, batch),
        };
        let mut args: Vec<&[u8]> = vec![name, data];
        match self.kind {
            // ZSCAN returns member and score, ZADD takes score and member.
            Kind::Sorted => {
                for pair in chunk.texts.chunks(2) {
                    args.extend(pair.iter().rev().map(Vec::as_slice));
                }
            }
            Kind::String | Kind::List | Kind::Set | Kind::Hash | Kind::Stream(_) => {
                args.extend(chunk.texts.iter().map(Vec::as_slice));
            }
        }
        batch.push(&args);
        for (field, at) in &chunk.expiries {
            let at = at.to_string();
            batch.push(&[b"HPEXPIREAT", data, at.as_bytes(), b"FIELDS", b"1", field]);
        }
    }

    /// Pushes the commands that read at `data` what should be the same elements as those of `chunk`.
    pub(super) fn read_copy(&self, data: &[u8], chunk: &Chunk, batch: &mut Batch) {
        let texts = chunk.texts.iter().map(Vec::as_slice);
        let range = |length: usize| {
            [chunk.offset, chunk.offset + length - 1].map(|index| index.to_string().into_bytes())
        };
        match self.kind {
            Kind::String => {
                let [first, last] = range(chunk.bytes());
                batch.push(&[b"GETRANGE", data, &first, &last]);
            }
            Kind::List => {
                let [first, last] = range(chunk.texts.len());
                batch.push(&[b"LRANGE", data, &first, &last]);
            }
            Kind::Set => texts.for_each(|member| batch.push(&[b"SISMEMBER", data, member])),
            Kind::Hash => {
                let name = [b"HMGET".as_slice(), data].into_iter();
                batch.push(&name.chain(chunk.fields()).collect::<Vec<_>>());
                if chunk.has_expiries() {
                    chunk.ask_expiries(data, batch);
                }
            }
            Kind::Sorted => {
                chunk.fields().for_each(|member| batch.push(&[b"ZSCORE", data, member]));
            }
            Kind::Stream(_) => {
                if let Some([first, last]) = stream::ends(&chunk.texts) {
                    batch.push(&[b"XRANGE", data, first, last]);
                }
            }
        }
    }

    /// Returns whether the answers to `read_copy` show the elements of `chunk`.
    pub(super) fn is_copied(&self, chunk: &Chunk, answers: &[Value]) -> bool {
        let first = answers.first();
        match self.kind {
            Kind::String => first.and_then(Value::text) == chunk.texts.first().map(Vec::as_slice),
            Kind::List => first.and_then(texts).as_ref() == Some(&chunk.texts),
            Kind::Set => answers.iter().all(|answer| *answer == Value::Integer(1)),
            Kind::Hash => are_fields_copied(chunk, answers),
            Kind::Sorted => {
                let scores = chunk.texts.iter().skip(1).step_by(2);
                answers.len() == chunk.texts.len() / 2
                    && scores.zip(answers).all(|(score, answer)| is_score(score, answer))
            }
            Kind::Stream(_) => items(first).and_then(stream::flat).as_ref() == Some(&chunk.texts),
        }
    }

    /// Returns whether something remains to be set on the whole key when all elements are there.
    pub(super) fn has_facts(&self) -> bool {
        matches!(self.kind, Kind::Stream(_))
    }

    /// Pushes what remains to be set on the whole key.
    pub(super) fn set_facts(&self, data: &[u8], batch: &mut Batch) {
        if let Kind::Stream(facts) = &self.kind {
            facts.set(data, batch);
        }
    }
}

/// Compares the fields of a hash. A field with an expiry may have expired at the new server, whose clock may be
/// ahead.
fn are_fields_copied(chunk: &Chunk, answers: &[Value]) -> bool {
    let Some(values) = items(answers.first()) else { return false };
    let times = answers.get(1).map(|times| items(Some(times)).unwrap_or_default());
    if values.len() != chunk.texts.len() / 2 || times.is_some_and(|it| it.len() != values.len()) {
        return false;
    }
    chunk.texts.chunks(2).zip(values).enumerate().all(|(index, (pair, value))| {
        let expected = chunk.expiries.get(&pair[0]);
        if *value == Value::Null {
            return expected.is_some();
        }
        let time = times.map(|times| &times[index]);
        let is_time_right = match (expected, time) {
            (Some(at), Some(Value::Integer(time))) => u64::try_from(*time) == Ok(*at),
            (None, Some(Value::Integer(time))) => *time < 0,
            (expected, _) => expected.is_none(),
        };
        value.text() == Some(pair[1].as_slice()) && is_time_right
    })
}

/// Compares scores by value: servers of different versions write them differently.
fn is_score(score: &[u8], answer: &Value) -> bool {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<f64>().ok();
    let copied = if let Value::Double(score) = answer {
        Some(*score)
    } else {
        answer.text().and_then(number)
    };
    number(score).is_some() && number(score) == copied
}

fn texts(list: &Value) -> Option<Vec<Vec<u8>>> {
    items(Some(list))?.iter().map(|item| item.text().map(<[u8]>::to_vec)).collect()
}

//! How the elements of each type are read at the old place, chunk by chunk, and added at the new one.
//! Chunks adapt to how large the elements are.

use resp::Value;

use super::stream::{self, Facts};
use crate::job::{Batch, items};

/// A chunk is about this large: some milliseconds of a server's time.
const CHUNK_BYTES: usize = 512 * 1024;
const COUNT_FIRST: usize = 256;
const COUNT_MAX: usize = 16 * 1024;

/// How far the reading of a key has come.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Elements {
    kind: Kind,
    at: At,
    /// How many elements to ask for next.
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
    /// Bytes of a string, or elements of a list.
    Index(usize),
    Cursor(Vec<u8>),
    /// The first id of a stream that was not read yet.
    Id(Vec<u8>),
    End,
}

impl Elements {
    /// `None` for a type that cannot be taken apart.
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

    /// A stream of which this is known; `None` if it has to travel whole.
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

    /// The command that reads the next chunk.
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
            // Nothing is left; an empty range says so once more.
            (At::End, _) => batch.push(&[b"LRANGE", b"", b"1", b"0"]),
        }
    }

    /// Takes the answer: the elements, and where to go on. Empty only at the end. `None` if it is not
    /// what such a command answers.
    pub(super) fn take(&mut self, answer: &Value) -> Option<Vec<Vec<u8>>> {
        let chunk = match &self.at {
            At::End => return Some(Vec::new()),
            At::Index(index) => {
                let (chunk, taken) = self.indexed(answer)?;
                self.at = if taken == 0 { At::End } else { At::Index(index + taken) };
                chunk
            }
            At::Cursor(_) => {
                let [cursor, elements] = items(Some(answer))? else { return None };
                let cursor = cursor.text()?;
                self.at = if cursor == b"0" { At::End } else { At::Cursor(cursor.to_vec()) };
                texts(elements)?
            }
            At::Id(_) => {
                let entries = items(Some(answer))?;
                let next = entries.last().map(stream::next_id);
                let chunk = stream::flat(entries)?;
                self.at = match next {
                    Some(id) => At::Id(id?),
                    None => At::End,
                };
                chunk
            }
        };
        self.adapt(&chunk);
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

    fn adapt(&mut self, chunk: &[Vec<u8>]) {
        let bytes: usize = chunk.iter().map(Vec::len).sum();
        let wanted = match bytes {
            0..CHUNK_BYTES => self.count * 2,
            _ => self.count * CHUNK_BYTES / bytes,
        };
        self.count = wanted.clamp(1, COUNT_MAX);
    }

    /// The command that adds a chunk to what is gathered at `data`.
    pub(super) fn add(&self, data: &[u8], chunk: &[Vec<u8>], batch: &mut Batch) {
        let name: &[u8] = match self.kind {
            Kind::String => b"APPEND",
            Kind::List => b"RPUSH",
            Kind::Set => b"SADD",
            Kind::Hash => b"HSET",
            Kind::Sorted => b"ZADD",
            Kind::Stream(_) => return stream::add(data, chunk, batch),
        };
        let mut args: Vec<&[u8]> = vec![name, data];
        match self.kind {
            // ZSCAN says member and score, ZADD takes score and member.
            Kind::Sorted => {
                for pair in chunk.chunks(2) {
                    args.extend(pair.iter().rev().map(Vec::as_slice));
                }
            }
            Kind::String | Kind::List | Kind::Set | Kind::Hash | Kind::Stream(_) => {
                args.extend(chunk.iter().map(Vec::as_slice));
            }
        }
        batch.push(&args);
    }

    /// What is to be said of the whole when all elements are there.
    pub(super) fn finish(&self, data: &[u8], batch: &mut Batch) {
        if let Kind::Stream(facts) = &self.kind {
            facts.set(data, batch);
        }
    }
}

fn texts(list: &Value) -> Option<Vec<Vec<u8>>> {
    items(Some(list))?.iter().map(|item| item.text().map(<[u8]>::to_vec)).collect()
}

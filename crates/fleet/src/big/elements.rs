//! Reads the elements of each type at the old server, chunk by chunk, and adds them at the new one. The
//! chunk's number of elements adapts to their size.

use resp::Value;

use super::stream::{self, Facts};
use crate::job::{Batch, items};

/// Approximate size of a chunk: some milliseconds of a server's time.
const CHUNK_BYTES: usize = 512 * 1024;
const COUNT_FIRST: usize = 256;
const COUNT_MAX: usize = 16 * 1024;

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

    /// Takes the answer: returns the elements and advances the position. Empty only at the end. `None` if the
    /// answer does not fit the command.
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

    /// Pushes the command that adds a chunk to the elements collected at `data`.
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
            // ZSCAN returns member and score, ZADD takes score and member.
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

    /// Pushes what remains to be set on the whole key when all elements are there.
    pub(super) fn finish(&self, data: &[u8], batch: &mut Batch) {
        if let Kind::Stream(facts) = &self.kind {
            facts.set(data, batch);
        }
    }
}

fn texts(list: &Value) -> Option<Vec<Vec<u8>>> {
    items(Some(list))?.iter().map(|item| item.text().map(<[u8]>::to_vec)).collect()
}

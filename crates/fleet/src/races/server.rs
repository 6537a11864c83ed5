//! An in-memory Redis server: the commands that the jobs use, WATCH and MULTI as Redis does them, and
//! connection names. It is as unkind as Redis may be: every other page of a scan is empty, also the first and
//! the last, and elements come twice (`scan.rs`).

mod elements;
mod scan;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use resp::Value;

pub(super) type Args = Vec<Vec<u8>>;

#[derive(Clone, Default, PartialEq)]
pub(super) struct FakeServer {
    keys: BTreeMap<Vec<u8>, Entry>,
    connections: BTreeMap<usize, Connection>,
    /// True if the server supports strings only.
    pub(super) texts_only: bool,
    /// True if the fields of a hash may have expiries of their own.
    pub(super) has_field_expiry: bool,
}

#[derive(Clone, PartialEq)]
struct Entry {
    content: Content,
    expires_ms: Option<u64>,
}

#[derive(Clone, PartialEq)]
enum Content {
    Text(Vec<u8>),
    List(Vec<Vec<u8>>),
    Set(BTreeSet<Vec<u8>>),
    Hash(BTreeMap<Vec<u8>, Field>),
    /// Members and their scores.
    Sorted(BTreeMap<Vec<u8>, Vec<u8>>),
}

#[derive(Clone, PartialEq)]
struct Field {
    value: Vec<u8>,
    expires_ms: Option<u64>,
}

#[derive(Clone, Default, PartialEq)]
struct Connection {
    name: String,
    watched: Vec<Vec<u8>>,
    dirty: bool,
    queued: Option<Vec<Args>>,
    /// True if a queued command has an error.
    refused: bool,
    killed: bool,
}

/// Prints texts: states are compared by how they print, and printing bytes one by one takes long.
impl fmt::Debug for FakeServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (key, entry) in &self.keys {
            f.write_str(&text(key))?;
            write!(f, "|{:?}|", entry.expires_ms)?;
            write!(f, "{}", entry.content)?;
            f.write_str(";")?;
        }
        for (id, state) in &self.connections {
            write!(f, "{id}/{}/{}/{}", state.name, state.dirty, state.killed)?;
            state.watched.iter().try_for_each(|key| write!(f, "/{}", text(key)))?;
            write!(f, "/{};", state.queued.as_ref().map_or(0, Vec::len))?;
        }
        Ok(())
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Text(bytes) => f.write_str(&text(bytes)),
            Content::List(items) => items.iter().try_for_each(|item| write!(f, "{},", text(item))),
            Content::Set(items) => items.iter().try_for_each(|item| write!(f, "{},", text(item))),
            Content::Hash(fields) => fields.iter().try_for_each(|(name, field)| {
                write!(f, "{}:{}|{:?},", text(name), text(&field.value), field.expires_ms)
            }),
            Content::Sorted(members) => members
                .iter()
                .try_for_each(|(member, score)| write!(f, "{}={},", text(member), text(score))),
        }
    }
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn ok() -> Value {
    Value::Simple(b"OK".to_vec())
}

fn wrong(text: &str) -> Value {
    Value::Error(text.as_bytes().to_vec())
}

fn number(arg: &[u8]) -> i64 {
    resp::parse_integer(arg).expect("jobs write numbers where numbers belong")
}

fn integer(count: usize) -> Value {
    Value::Integer(i64::try_from(count).unwrap())
}

impl FakeServer {
    /// Lets time pass: removes expired keys and invalidates the WATCHes on them.
    pub(super) fn expire(&mut self, now_ms: u64) {
        self.expire_fields(now_ms);
        let gone = |entry: &Entry| entry.expires_ms.is_some_and(|at| at <= now_ms);
        let keys: Vec<_> =
            self.keys.iter().filter(|(_, entry)| gone(entry)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.keys.remove(&key);
            self.touch(&key);
        }
    }

    fn touch(&mut self, key: &[u8]) {
        for connection in self.connections.values_mut() {
            connection.dirty |= connection.watched.iter().any(|watched| watched == key);
        }
    }

    /// Returns the content and the expiry of a key, in words.
    pub(super) fn shown(&self, key: &[u8]) -> Option<String> {
        let entry = self.keys.get(key)?;
        Some(format!("{} {} {:?}", self.kind(key), entry.content, entry.expires_ms))
    }

    pub(super) fn has(&self, key: &[u8]) -> bool {
        self.keys.contains_key(key)
    }

    pub(super) fn name(&mut self, connection: usize, name: String) {
        self.connections.entry(connection).or_default().name = name;
    }

    /// Runs a command; `None` if the connection was killed.
    pub(super) fn run(&mut self, connection: usize, args: &Args, now_ms: u64) -> Option<Value> {
        let state = self.connections.entry(connection).or_default();
        if state.killed {
            return None;
        }
        let name = String::from_utf8_lossy(&args[0]).to_uppercase();
        Some(match name.as_str() {
            "EXEC" => self.exec(connection, now_ms),
            "MULTI" => {
                state.queued = Some(Vec::new());
                ok()
            }
            "RPUSH" | "LRANGE" | "HSET" | "HSCAN" | "SADD" | "ZADD" if self.texts_only => {
                state.refused = state.queued.is_some();
                wrong(&format!("ERR unknown command '{name}'"))
            }
            "HPEXPIRETIME" | "HPEXPIREAT" if !self.has_field_expiry => {
                state.refused = state.queued.is_some();
                wrong(&format!("ERR unknown command '{name}'"))
            }
            _ if state.queued.is_some() => {
                state.queued.as_mut().unwrap().push(args.clone());
                Value::Simple(b"QUEUED".to_vec())
            }
            "WATCH" => {
                state.watched.extend_from_slice(&args[1..]);
                ok()
            }
            "UNWATCH" => {
                (state.watched, state.dirty) = (Vec::new(), false);
                ok()
            }
            "CLIENT" => self.client(connection, args),
            _ => self.keyed(&name, args, now_ms),
        })
    }

    fn exec(&mut self, connection: usize, now_ms: u64) -> Value {
        let state = self.connections.get_mut(&connection).unwrap();
        let queued = state.queued.take().expect("EXEC comes behind MULTI");
        let dirty = std::mem::take(&mut state.dirty);
        state.watched.clear();
        if std::mem::take(&mut state.refused) {
            return wrong("EXECABORT Transaction discarded because of previous errors.");
        }
        if dirty {
            return Value::Null;
        }
        let run = |args: &Args| {
            let name = String::from_utf8_lossy(&args[0]).to_uppercase();
            self.keyed(&name, args, now_ms)
        };
        Value::Array(queued.iter().map(run).collect())
    }

    fn client(&mut self, connection: usize, args: &Args) -> Value {
        match args[1].as_slice() {
            b"SETNAME" => {
                self.name(connection, String::from_utf8(args[2].clone()).unwrap());
                ok()
            }
            b"LIST" => {
                let alive = self.connections.iter().filter(|(_, state)| !state.killed);
                let lines = alive.map(|(id, state)| format!("id={id} name={}\n", state.name));
                Value::Bulk(lines.collect::<String>().into_bytes())
            }
            b"KILL" => {
                let id = usize::try_from(number(&args[3])).unwrap();
                self.connections.get_mut(&id).unwrap().killed = true;
                Value::Integer(1)
            }
            other => panic!("CLIENT {}", other.escape_ascii()),
        }
    }

    fn keyed(&mut self, name: &str, args: &Args, now_ms: u64) -> Value {
        let key = args.get(1).cloned().unwrap_or_default();
        match name {
            "TIME" => time(now_ms),
            "GET" => self.get(&key),
            "MGET" => Value::Array(args[1..].iter().map(|key| self.get(key)).collect()),
            "EXISTS" => integer(usize::from(self.has(&key))),
            "DEL" | "UNLINK" => integer(args[1..].iter().filter(|key| self.remove(key)).count()),
            "SET" => self.set(args, now_ms),
            "INCR" => self.incr(&key),
            "MEMORY" => match self.keys.get(&args[2]) {
                Some(_) => Value::Integer(50),
                None => Value::Null,
            },
            "TYPE" => Value::Simple(self.kind(&key).as_bytes().to_vec()),
            "PTTL" => self.pttl(&key, now_ms),
            "PEXPIRE" => self.expire_at(&key, Some(now_ms + number(&args[2]).unsigned_abs())),
            "PEXPIREAT" => {
                let answer = self.expire_at(&key, Some(number(&args[2]).unsigned_abs()));
                self.expire(now_ms);
                answer
            }
            "PERSIST" => self.expire_at(&key, None),
            "DUMP" => self.dump(&key),
            "RESTORE" => self.restore(args, now_ms),
            "RENAMENX" => self.rename(&key, &args[2]),
            _ => self.elements(name, &key, args, now_ms),
        }
    }

    fn get(&self, key: &[u8]) -> Value {
        match self.keys.get(key).map(|entry| &entry.content) {
            Some(Content::Text(text)) => Value::Bulk(text.clone()),
            Some(_) => wrong("WRONGTYPE"),
            None => Value::Null,
        }
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        self.touch(key);
        self.keys.remove(key).is_some()
    }

    fn set(&mut self, args: &Args, now_ms: u64) -> Value {
        let (key, options) = (&args[1], &args[3..]);
        if options.iter().any(|option| option == b"NX") && self.has(key) {
            return Value::Null;
        }
        let px = options.iter().position(|option| option == b"PX");
        let expires_ms = px.map(|at| now_ms + number(&options[at + 1]).unsigned_abs());
        let content = Content::Text(args[2].clone());
        self.keys.insert(key.clone(), Entry { content, expires_ms });
        self.touch(key);
        ok()
    }

    fn incr(&mut self, key: &[u8]) -> Value {
        let old = self.get(key);
        let new = number(old.text().unwrap_or(b"0")) + 1;
        let expires_ms = self.keys.get(key).and_then(|entry| entry.expires_ms);
        let content = Content::Text(new.to_string().into_bytes());
        self.keys.insert(key.to_vec(), Entry { content, expires_ms });
        self.touch(key);
        Value::Integer(new)
    }

    fn kind(&self, key: &[u8]) -> &'static str {
        match self.keys.get(key).map(|entry| &entry.content) {
            Some(Content::Text(_)) => "string",
            Some(Content::List(_)) => "list",
            Some(Content::Hash(_)) => "hash",
            Some(Content::Set(_)) => "set",
            Some(Content::Sorted(_)) => "zset",
            None => "none",
        }
    }

    fn pttl(&self, key: &[u8], now_ms: u64) -> Value {
        match self.keys.get(key) {
            None => Value::Integer(-2),
            Some(Entry { expires_ms: None, .. }) => Value::Integer(-1),
            Some(Entry { expires_ms: Some(at), .. }) => Value::Integer((at - now_ms).cast_signed()),
        }
    }

    fn expire_at(&mut self, key: &[u8], at: Option<u64>) -> Value {
        match self.keys.get_mut(key) {
            None => Value::Integer(0),
            Some(entry) => {
                entry.expires_ms = at;
                self.touch(key);
                Value::Integer(1)
            }
        }
    }

    /// Dumps only the content, as Redis does; here in words.
    fn dump(&self, key: &[u8]) -> Value {
        match self.keys.get(key).map(|entry| &entry.content) {
            Some(Content::Text(text)) => Value::Bulk([b"text:", text.as_slice()].concat()),
            Some(Content::List(items)) => {
                Value::Bulk([b"list:", items.concat().as_slice()].concat())
            }
            Some(Content::Hash(_) | Content::Set(_) | Content::Sorted(_)) => {
                wrong("ERR this server dumps texts and lists only")
            }
            None => Value::Null,
        }
    }

    fn restore(&mut self, args: &Args, now_ms: u64) -> Value {
        if self.has(&args[1]) {
            return wrong("BUSYKEY Target key name already exists.");
        }
        if self.texts_only && args[3].starts_with(b"list:") {
            return wrong("ERR Bad data format");
        }
        let text = args[3].strip_prefix(b"text:").expect("a text that was dumped here").to_vec();
        let at = number(&args[2]).unsigned_abs();
        let expires_ms = (at > 0).then_some(at);
        assert_eq!(expires_ms.is_some(), args.get(4).is_some_and(|word| word == b"ABSTTL"));
        if expires_ms.is_some_and(|at| at <= now_ms) {
            return ok();
        }
        self.keys.insert(args[1].clone(), Entry { content: Content::Text(text), expires_ms });
        self.touch(&args[1]);
        ok()
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) -> Value {
        if self.has(to) {
            return Value::Integer(0);
        }
        let Some(entry) = self.keys.remove(from) else { return wrong("ERR no such key") };
        self.keys.insert(to.to_vec(), entry);
        self.touch(from);
        self.touch(to);
        Value::Integer(1)
    }
}

fn time(now_ms: u64) -> Value {
    let text = |number: u64| Value::Bulk(number.to_string().into_bytes());
    Value::Array(vec![text(now_ms / 1000), text(now_ms % 1000 * 1000)])
}

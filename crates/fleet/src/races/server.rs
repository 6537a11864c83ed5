//! An in-memory Redis server: the commands that the jobs use, WATCH and MULTI as Redis does them, and
//! connection names.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use resp::Value;

pub(super) type Args = Vec<Vec<u8>>;

#[derive(Clone, Default, PartialEq)]
pub(super) struct FakeServer {
    keys: BTreeMap<Vec<u8>, Entry>,
    connections: BTreeMap<usize, Connection>,
    /// True if the server supports strings only.
    pub(super) texts_only: bool,
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
    Hash(BTreeMap<Vec<u8>, Vec<u8>>),
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
            match &entry.content {
                Content::Text(bytes) => f.write_str(&text(bytes))?,
                Content::List(items) => {
                    items.iter().try_for_each(|item| write!(f, "{},", text(item)))?;
                }
                Content::Hash(fields) => {
                    let mut fields = fields.iter();
                    fields.try_for_each(|(name, value)| {
                        write!(f, "{}:{},", text(name), text(value))
                    })?;
                }
            }
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
            "RPUSH" | "LRANGE" | "HSET" | "HSCAN" if self.texts_only => {
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
            _ => self.elements(name, &key, args),
        }
    }

    fn elements(&mut self, name: &str, key: &[u8], args: &Args) -> Value {
        let empty = match name {
            "RPUSH" | "LRANGE" => Content::List(Vec::new()),
            "HSET" | "HSCAN" => Content::Hash(BTreeMap::new()),
            "APPEND" | "GETRANGE" => Content::Text(Vec::new()),
            other => panic!("this server does not know {other}"),
        };
        let entry = self.keys.get(key).cloned();
        let mut entry = entry.unwrap_or(Entry { content: empty, expires_ms: None });
        let range = |len: usize| {
            let (first, last) = (number(&args[2]), number(&args[3]));
            let end = usize::try_from(last + 1).unwrap().min(len);
            usize::try_from(first).unwrap().min(end)..end
        };
        let answer = match (name, &mut entry.content) {
            ("RPUSH", Content::List(items)) => {
                items.extend_from_slice(&args[2..]);
                integer(items.len())
            }
            ("HSET", Content::Hash(fields)) => {
                let pairs = args[2..].chunks(2).map(|pair| (pair[0].clone(), pair[1].clone()));
                fields.extend(pairs);
                integer(fields.len())
            }
            ("APPEND", Content::Text(text)) => {
                text.extend_from_slice(&args[2]);
                integer(text.len())
            }
            ("LRANGE", Content::List(items)) => {
                let some = &items[range(items.len())];
                return Value::Array(some.iter().cloned().map(Value::Bulk).collect());
            }
            ("GETRANGE", Content::Text(text)) => {
                return Value::Bulk(text[range(text.len())].to_vec());
            }
            ("HSCAN", Content::Hash(fields)) => return scan(fields, &args[2]),
            _ => return wrong("WRONGTYPE"),
        };
        self.keys.insert(key.to_vec(), entry);
        self.touch(key);
        answer
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
            Some(Content::Hash(_)) => wrong("ERR this server dumps no hashes"),
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

/// Returns one field at a time.
fn scan(fields: &BTreeMap<Vec<u8>, Vec<u8>>, cursor: &[u8]) -> Value {
    let at = usize::try_from(number(cursor)).unwrap();
    let field = fields.iter().nth(at);
    let next = if at + 1 < fields.len() { at + 1 } else { 0 };
    let pair = field.into_iter().flat_map(|(field, value)| [field.clone(), value.clone()]);
    let items = Value::Array(pair.map(Value::Bulk).collect());
    Value::Array(vec![Value::Bulk(next.to_string().into_bytes()), items])
}

fn time(now_ms: u64) -> Value {
    let text = |number: u64| Value::Bulk(number.to_string().into_bytes());
    Value::Array(vec![text(now_ms / 1000), text(now_ms % 1000 * 1000)])
}

//! Clients that know what they must see. Each has keys of its own, writes them through one proxy
//! and reads them through another, so that every answer is known exactly: a stale, lost or
//! resurrected value is detected at once.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use e2e::{Client, Rng};
use resp::Value;

/// Number of keys of each kind per client.
const KEYS: usize = 40;

pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts clients, spread over the proxies at these ports.
    pub(crate) fn start(clients: usize, ports: &[u16]) -> Load {
        Load::of(Types::All, clients, ports)
    }

    /// Like `start`, with keys of these types.
    pub(crate) fn of(types: Types, clients: usize, ports: &[u16]) -> Load {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let spawn = |number: usize| {
            let (stop, done, ports) = (Arc::clone(&stop), Arc::clone(&done), ports.to_vec());
            std::thread::spawn(move || {
                let mut owner = Owner::new(number, ports, types);
                while !stop.load(Ordering::Relaxed) {
                    owner.act();
                    done.fetch_add(1, Ordering::Relaxed);
                }
                owner.check_all();
            })
        };
        let threads = (0..clients).map(spawn).collect();
        Load { stop, done, threads }
    }

    /// Returns the number of operations done so far.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Ends the load. If a client saw a wrong value, the test fails here.
    pub(crate) fn stop(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("every client saw what it had to see");
        }
        self.done.load(Ordering::Relaxed)
    }
}

/// Returns whether the error means that a node was away. A cluster declares a node dead that had no
/// processor for a second, as happens on a busy machine; the request's outcome is then unknown.
fn is_away(value: &Value) -> bool {
    let words = ["ERR server ", "CLUSTERDOWN ", "TRYAGAIN "];
    let Value::Error(text) = value else { return false };
    words.iter().any(|word| text.starts_with(word.as_bytes()))
}

/// The types of the clients' keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Types {
    All,
    Strings,
}

struct Owner {
    number: usize,
    types: Types,
    rng: Rng,
    ports: Vec<u16>,
    /// A connection to each proxy; `None` if it was lost.
    clients: Vec<Option<Client>>,
    texts: Vec<Option<u64>>,
    counters: Vec<i64>,
    lists: Vec<i64>,
    written: u64,
}

/// The proxy closed the connection before it answered: the command's outcome is unknown.
struct Lost;

impl Owner {
    fn new(number: usize, ports: Vec<u16>, types: Types) -> Owner {
        Owner {
            number,
            types,
            rng: Rng::new(number as u64),
            clients: ports.iter().map(|_| None).collect(),
            ports,
            texts: vec![None; KEYS],
            counters: vec![0; KEYS],
            lists: vec![0; KEYS],
            written: 0,
        }
    }

    fn key(&self, kind: &str, index: usize) -> String {
        format!("{kind}:{}:{index}", self.number)
    }

    /// Sends a command through any live proxy.
    fn call(&mut self, args: &[&str]) -> Result<Value, Lost> {
        let first = self.rng.index(self.ports.len());
        for turn in 0..self.ports.len() {
            let at = (first + turn) % self.ports.len();
            let Some(client) = self.connected(at) else { continue };
            let answer = client.send(args).and_then(|()| client.receive());
            let Ok(answer) = answer else {
                self.clients[at] = None;
                return Err(Lost);
            };
            if self.types == Types::Strings && is_away(&answer.value) {
                return Err(Lost);
            }
            assert!(!matches!(answer.value, Value::Error(_)), "{args:?}: {}", answer.value);
            return Ok(answer.value);
        }
        panic!("no proxy takes connections");
    }

    fn connected(&mut self, at: usize) -> Option<&mut Client> {
        if self.clients[at].is_none() {
            self.clients[at] = Client::try_connect(self.ports[at]).ok();
        }
        self.clients[at].as_mut()
    }

    /// Sends a read, and retries it until it is answered.
    fn read(&mut self, args: &[&str]) -> Value {
        loop {
            match self.call(args) {
                Ok(value) => return value,
                Err(Lost) => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    fn act(&mut self) {
        let index = self.rng.index(KEYS);
        match self.rng.below(6) {
            0 => self.set(index),
            1 => self.delete(index),
            2 => self.count(index),
            3 if self.types == Types::All => self.push(index),
            3 => self.count(index),
            4 => self.set_many(index),
            _ => self.check(index),
        }
        if self.rng.one_in(4) {
            self.check(index);
        }
    }

    fn set(&mut self, index: usize) {
        self.written += 1;
        let (key, value) = (self.key("text", index), self.written);
        let sent = self.call(&["SET", &key, &value.to_string()]);
        self.settle_text(index, Some(value), sent.is_err());
    }

    fn delete(&mut self, index: usize) {
        let key = self.key("text", index);
        let sent = self.call(&["DEL", &key]);
        if let Ok(value) = &sent {
            let existed = Value::Integer(i64::from(self.texts[index].is_some()));
            assert_eq!(*value, existed, "DEL {key}");
        }
        self.settle_text(index, None, sent.is_err());
    }

    /// Writes two keys at once, possibly on two servers.
    fn set_many(&mut self, index: usize) {
        self.written += 1;
        let other = (index + 1) % KEYS;
        let (one, two) = (self.key("text", index), self.key("text", other));
        let value = self.written;
        let text = value.to_string();
        let sent = self.call(&["MSET", &one, &text, &two, &text]);
        self.settle_text(index, Some(value), sent.is_err());
        self.settle_text(other, Some(value), sent.is_err());
        let seen = self.read(&["MGET", &two, &one]);
        let expected = [other, index].map(|index| bulk(self.texts[index]));
        assert_eq!(seen, Value::Array(expected.to_vec()), "MGET {two} {one}");
    }

    /// Records a write. If its outcome is unknown, the key must now hold either the old or the new value.
    fn settle_text(&mut self, index: usize, new: Option<u64>, lost: bool) {
        if lost {
            let key = self.key("text", index);
            let seen = self.read_after_loss(&["GET", &key]);
            let old = self.texts[index];
            assert!(seen == bulk(new) || seen == bulk(old), "{key}: {seen} {new:?} {old:?}");
            self.texts[index] = if seen == bulk(new) { new } else { old };
            return;
        }
        self.texts[index] = new;
    }

    fn count(&mut self, index: usize) {
        let key = self.key("counter", index);
        let sent = self.call(&["INCR", &key]);
        let old = self.counters[index];
        match sent {
            Ok(value) => {
                assert_eq!(value, Value::Integer(old + 1), "INCR {key}");
                self.counters[index] += 1;
            }
            Err(Lost) => {
                let seen = self.read_after_loss(&["GET", &key]);
                let seen = seen.text().map_or(Some(0), resp::parse_integer).expect("a number");
                assert!(seen == old || seen == old + 1, "{key}: {seen} after {old}");
                self.counters[index] = seen;
            }
        }
    }

    fn push(&mut self, index: usize) {
        let key = self.key("list", index);
        let old = self.lists[index];
        let (seen, lost) = match self.call(&["LPUSH", &key, "x"]) {
            Ok(value) => (value, false),
            Err(Lost) => (self.read_after_loss(&["LLEN", &key]), true),
        };
        let Value::Integer(seen) = seen else { panic!("{seen}") };
        assert!(seen == old + 1 || (lost && seen == old), "{key}: {seen} after {old}");
        self.lists[index] = seen;
    }

    /// Reads after a pause: requests that a dead proxy had sent may still be in flight to a server.
    fn read_after_loss(&mut self, args: &[&str]) -> Value {
        std::thread::sleep(Duration::from_millis(300));
        self.read(args)
    }

    fn check(&mut self, index: usize) {
        let (text, counter) = (self.key("text", index), self.key("counter", index));
        assert_eq!(self.read(&["GET", &text]), bulk(self.texts[index]), "GET {text}");
        let counted = self.counters[index];
        let expected = (counted > 0).then_some(counted.unsigned_abs());
        assert_eq!(self.read(&["GET", &counter]), bulk(expected), "GET {counter}");
        if self.types == Types::Strings {
            return;
        }
        let list = self.key("list", index);
        assert_eq!(self.read(&["LLEN", &list]), Value::Integer(self.lists[index]), "LLEN {list}");
    }

    fn check_all(&mut self) {
        (0..KEYS).for_each(|index| self.check(index));
    }
}

fn bulk(value: Option<u64>) -> Value {
    value.map_or(Value::Null, |value| Value::Bulk(value.to_string().into_bytes()))
}

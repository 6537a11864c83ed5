//! Simulated nodes: a key-value store of which each node serves some slots, with MULTI, WATCH, ASKING and a
//! name for each connection. The test injects the faults.

use std::collections::BTreeMap;

use commands::{Args, OwnedArgs};
use placement::Slot;
use resp::{Limits, Parsed, RequestParser, encode_command};

use crate::any_port::routes::{NodeAddress, Routes};

pub(super) type Words = Vec<Vec<u8>>;

pub(super) fn words(line: &str) -> Words {
    line.split_whitespace().map(|word| word.as_bytes().to_vec()).collect()
}

pub(super) fn owned(words: &Words) -> OwnedArgs {
    OwnedArgs::new(words.iter().map(Vec::as_slice))
}

pub(super) fn encoded(words: &Words) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_command(&mut bytes, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
    bytes
}

pub(super) fn slot(key: &str) -> Slot {
    Slot::of(key.as_bytes())
}

/// Takes the first complete request from the bytes.
pub(super) fn take_request(bytes: &mut Vec<u8>) -> Option<Words> {
    let mut spans = Vec::new();
    let parsed = RequestParser::default().next(bytes, 0, &Limits::FULL, &mut spans);
    let Parsed::Request { end, .. } = parsed.expect("the any-port writes requests") else {
        return None;
    };
    let words = Args::new(bytes, &spans).iter().map(<[u8]>::to_vec).collect();
    bytes.drain(..end);
    Some(words)
}

/// A command that ran on a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Ran {
    pub node: usize,
    pub words: Words,
    /// The name of the connection it came on.
    pub name: Vec<u8>,
}

/// One connection, as its node sees it.
#[derive(Clone, Default)]
pub(super) struct Connection {
    queue: Option<Vec<Words>>,
    is_broken: bool,
    is_asking: bool,
    watched: Vec<(Vec<u8>, u64)>,
    pub name: Vec<u8>,
}

impl Connection {
    /// Refuses a command, which breaks an open transaction.
    pub(super) fn refuse(&mut self, error: &[u8]) -> Vec<u8> {
        (self.is_broken, self.is_asking) = (self.queue.is_some(), false);
        error.to_vec()
    }
}

/// All nodes. The data is one store, since only one node at a time serves a slot.
#[derive(Default)]
pub(super) struct Nodes {
    pub count: usize,
    pub store: BTreeMap<Vec<u8>, Vec<u8>>,
    versions: BTreeMap<Vec<u8>, u64>,
    /// The nodes of slots; all other slots belong to node 0.
    pub owners: BTreeMap<Slot, usize>,
    /// The same as the any-port's node believes it.
    pub believed: BTreeMap<Slot, usize>,
    pub log: Vec<Ran>,
}

pub(super) fn address(node: usize) -> NodeAddress {
    NodeAddress { host: format!("node{node}"), port: u16::try_from(node).unwrap() }
}

pub(super) fn node_at(address: &NodeAddress) -> usize {
    usize::from(address.port)
}

impl Routes for Nodes {
    fn here(&self) -> NodeAddress {
        address(0)
    }

    fn node_of(&self, slot: Slot) -> NodeAddress {
        address(self.believed.get(&slot).copied().unwrap_or(0))
    }
}

const KEYLESS: [&[u8]; 10] = [
    b"PING",
    b"CLUSTER",
    b"CLIENT",
    b"MULTI",
    b"EXEC",
    b"DISCARD",
    b"ASKING",
    b"RESET",
    b"UNWATCH",
    b"SUBSCRIBE",
];

/// Returns the keys of a command.
pub(super) fn keys(words: &Words) -> Vec<&Vec<u8>> {
    if KEYLESS.contains(&words[0].as_slice()) {
        return Vec::new();
    }
    match words[0].as_slice() {
        b"MSET" => words[1..].iter().step_by(2).collect(),
        b"DEL" | b"EXISTS" | b"MGET" | b"WATCH" | b"RENAME" => words[1..].iter().collect(),
        _ => words[1..2].iter().collect(),
    }
}

impl Nodes {
    pub(super) fn new(count: usize) -> Nodes {
        Nodes { count, ..Nodes::default() }
    }

    /// Gives a slot to a node, with or without the any-port's knowledge.
    pub(super) fn give(&mut self, slot: Slot, node: usize, is_known: bool) {
        self.owners.insert(slot, node);
        if is_known {
            self.believed.insert(slot, node);
        }
    }

    pub(super) fn owner(&self, slot: Slot) -> usize {
        self.owners.get(&slot).copied().unwrap_or(0)
    }

    /// Returns the redirect if a key of the command is not served there.
    fn moved(&self, node: usize, words: &Words) -> Option<Vec<u8>> {
        let elsewhere = keys(words).into_iter().map(|key| Slot::of(key));
        let mut elsewhere = elsewhere.filter(|slot| self.owner(*slot) != node);
        elsewhere.next().map(|slot| {
            let NodeAddress { host, port } = address(self.owner(slot));
            format!("-MOVED {slot} {host}:{port}\r\n").into_bytes()
        })
    }

    /// Runs a command on a node and returns its reply.
    pub(super) fn serve(&mut self, node: usize, at: &mut Connection, words: &Words) -> Vec<u8> {
        let asking = core::mem::take(&mut at.is_asking);
        if words[0] == b"RENAME" && Slot::of(&words[1]) != Slot::of(&words[2]) {
            return at.refuse(b"-CROSSSLOT Keys in request don't hash to the same slot\r\n");
        }
        if !asking && let Some(moved) = self.moved(node, words) {
            at.is_broken |= at.queue.is_some();
            return moved;
        }
        match (words[0].as_slice(), &mut at.queue) {
            (b"MULTI", Some(_)) => b"-ERR MULTI calls can not be nested\r\n".to_vec(),
            (b"MULTI", None) => {
                (at.queue, at.is_broken) = (Some(Vec::new()), false);
                b"+OK\r\n".to_vec()
            }
            (b"EXEC", _) => self.exec(node, at),
            (b"DISCARD", None) => b"-ERR DISCARD without MULTI\r\n".to_vec(),
            (b"DISCARD", Some(_)) => {
                (at.queue, at.watched) = (None, Vec::new());
                b"+OK\r\n".to_vec()
            }
            (b"RESET", _) => {
                *at = Connection::default();
                b"+RESET\r\n".to_vec()
            }
            (b"WATCH", Some(_)) => b"-ERR WATCH inside MULTI is not allowed\r\n".to_vec(),
            (_, Some(queue)) => {
                queue.push(words.clone());
                b"+QUEUED\r\n".to_vec()
            }
            (_, None) => self.run(node, at, words),
        }
    }

    fn exec(&mut self, node: usize, at: &mut Connection) -> Vec<u8> {
        let Some(queue) = at.queue.take() else { return b"-ERR EXEC without MULTI\r\n".to_vec() };
        let watched = core::mem::take(&mut at.watched);
        if at.is_broken {
            return b"-EXECABORT Transaction discarded because of previous errors.\r\n".to_vec();
        }
        if let Some(moved) = queue.iter().find_map(|words| self.moved(node, words)) {
            return moved;
        }
        if watched.iter().any(|(key, version)| self.version(key) != *version) {
            return b"*-1\r\n".to_vec();
        }
        let mut reply = format!("*{}\r\n", queue.len()).into_bytes();
        for words in queue {
            reply.extend_from_slice(&self.run(node, at, &words));
        }
        reply
    }

    fn version(&self, key: &[u8]) -> u64 {
        self.versions.get(key).copied().unwrap_or(0)
    }

    fn set(&mut self, key: &[u8], value: Vec<u8>) {
        *self.versions.entry(key.to_vec()).or_default() += 1;
        self.store.insert(key.to_vec(), value);
    }

    /// Runs a command that is neither refused nor queued.
    fn run(&mut self, node: usize, at: &mut Connection, words: &Words) -> Vec<u8> {
        if !keys(words).is_empty() {
            self.log.push(Ran { node, words: words.clone(), name: at.name.clone() });
        }
        let get = |store: &BTreeMap<Vec<u8>, Vec<u8>>, key: &Vec<u8>| match store.get(key) {
            Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
            None => b"$-1\r\n".to_vec(),
        };
        match words[0].as_slice() {
            b"GET" => get(&self.store, &words[1]),
            b"MGET" => {
                let values: Vec<Vec<u8>> =
                    words[1..].iter().map(|key| get(&self.store, key)).collect();
                [format!("*{}\r\n", values.len()).into_bytes(), values.concat()].concat()
            }
            b"SET" => {
                self.set(&words[1], words[2].clone());
                b"+OK\r\n".to_vec()
            }
            b"APPEND" => {
                let old = self.store.get(&words[1]).cloned().unwrap_or_default();
                let new = [old, words[2].clone()].concat();
                let len = new.len();
                self.set(&words[1], new);
                format!(":{len}\r\n").into_bytes()
            }
            b"MSET" => {
                for pair in words[1..].chunks(2) {
                    self.set(&pair[0], pair[1].clone());
                }
                b"+OK\r\n".to_vec()
            }
            b"DEL" => {
                let gone = |key: &&Vec<u8>| self.store.remove(*key).is_some();
                let count = words[1..].iter().filter(gone).count();
                format!(":{count}\r\n").into_bytes()
            }
            b"RENAME" => match self.store.remove(&words[1]) {
                Some(value) => {
                    self.set(&words[2], value);
                    b"+OK\r\n".to_vec()
                }
                None => b"-ERR no such key\r\n".to_vec(),
            },
            b"EXISTS" => {
                let count = words[1..].iter().filter(|key| self.store.contains_key(*key)).count();
                format!(":{count}\r\n").into_bytes()
            }
            b"WATCH" | b"UNWATCH" | b"ASKING" | b"CLIENT" => self.run_for_connection(at, words),
            b"SUBSCRIBE" => b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n".to_vec(),
            _ => b"+PONG\r\n".to_vec(),
        }
    }

    /// Runs a command about the connection itself.
    fn run_for_connection(&self, at: &mut Connection, words: &Words) -> Vec<u8> {
        match words[0].as_slice() {
            b"WATCH" => {
                for key in &words[1..] {
                    if at.watched.iter().all(|(watched, _)| watched != key) {
                        at.watched.push((key.clone(), self.version(key)));
                    }
                }
                b"+OK\r\n".to_vec()
            }
            b"UNWATCH" => {
                at.watched.clear();
                b"+OK\r\n".to_vec()
            }
            b"ASKING" => {
                at.is_asking = true;
                b"+OK\r\n".to_vec()
            }
            b"CLIENT" if words[1] == b"GETNAME" => {
                [format!("${}\r\n", at.name.len()).as_bytes(), &at.name, b"\r\n"].concat()
            }
            b"CLIENT" => {
                at.name.clone_from(&words[2]);
                b"+OK\r\n".to_vec()
            }
            _ => b"+PONG\r\n".to_vec(),
        }
    }
}

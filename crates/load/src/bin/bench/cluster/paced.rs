//! A client of clusters that sends at a fixed rate, whatever the answers do, and follows MOVED. Latency
//! counts from when a request was due.
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use load::keys::Rng;
use placement::Slot;
use resp::{ReplyParser, Value};

/// Connections to each node; one alone could not keep the rate if an answer took a millisecond.
const THREADS: u64 = 16;
const PER_SECOND: u64 = 5_000;
const MOVES_MAX: usize = 20;

/// Requests with when they were due and how long they took.
pub(super) type Samples = Vec<(Instant, Duration)>;

pub(super) struct Paced {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<io::Result<Samples>>>,
}

impl Paced {
    pub(super) fn start(seed: SocketAddr, keys: u64, value_bytes: usize) -> Paced {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |number| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || work(number, seed, &stop, (keys, value_bytes)))
        };
        Paced { threads: (0..THREADS).map(start).collect(), stop }
    }

    pub(super) fn end(self) -> io::Result<Samples> {
        self.stop.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for thread in self.threads {
            let samples = thread.join().map_err(|_| io::Error::other("a client panicked"))?;
            all.extend(samples?);
        }
        Ok(all)
    }
}

fn work(
    number: u64,
    seed: SocketAddr,
    stop: &AtomicBool,
    (keys, value_bytes): (u64, usize),
) -> io::Result<Samples> {
    let mut client = ClusterClient::new(seed);
    let every = Duration::from_secs(1) * u32::try_from(THREADS).unwrap_or(1)
        / u32::try_from(PER_SECOND).unwrap_or(1);
    let value = "v".repeat(value_bytes);
    let mut due = Instant::now();
    let mut samples = Vec::new();
    let mut chance = Rng::new(number);
    while !stop.load(Ordering::Relaxed) {
        due += every;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let key = format!("key:{}", chance.below(keys));
        let reads = chance.below(2) == 0;
        let words: &[&str] = if reads { &["GET", &key] } else { &["SET", &key, &value] };
        client.call(&key, words)?;
        samples.push((due, due.elapsed()));
    }
    Ok(samples)
}

/// Fills a cluster through pipelines.
pub(super) fn fill(seed: SocketAddr, keys: u64, value_bytes: usize) -> io::Result<()> {
    const PIPELINE: u64 = 512;
    let mut client = ClusterClient::new(seed);
    let value = "v".repeat(value_bytes);
    for from in (0..keys).step_by(PIPELINE as usize) {
        let names: Vec<String> =
            (from..keys.min(from + PIPELINE)).map(|number| format!("key:{number}")).collect();
        client.set_all(&names, &value)?;
    }
    Ok(())
}

struct ClusterClient {
    seed: SocketAddr,
    /// Where each slot was last found.
    places: Vec<Option<SocketAddr>>,
    nodes: BTreeMap<SocketAddr, Node>,
}

struct Node {
    stream: TcpStream,
    unread: Vec<u8>,
    parser: ReplyParser,
}

impl ClusterClient {
    fn new(seed: SocketAddr) -> ClusterClient {
        ClusterClient { seed, places: vec![None; usize::from(Slot::COUNT)], nodes: BTreeMap::new() }
    }

    fn node(&mut self, at: SocketAddr) -> io::Result<&mut Node> {
        match self.nodes.entry(at) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(new) => {
                let stream = TcpStream::connect(at)?;
                stream.set_nodelay(true)?;
                let (unread, parser) = (Vec::new(), ReplyParser::default());
                Ok(new.insert(Node { stream, unread, parser }))
            }
        }
    }

    fn call(&mut self, key: &str, words: &[&str]) -> io::Result<()> {
        let slot = Slot::of(key.as_bytes()).index();
        for _ in 0..MOVES_MAX {
            let at = self.places[slot].unwrap_or(self.seed);
            let node = self.node(at)?;
            node.send(words)?;
            let answer = node.receive()?;
            let Value::Error(text) = answer else { return Ok(()) };
            self.follow(slot, &text)?;
        }
        Err(io::Error::other(format!("{key} was sent round and round")))
    }

    /// `MOVED slot address` and `ASK slot address` lead on; any other error is one.
    fn follow(&mut self, slot: usize, error: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(error).into_owned();
        let mut words = text.split_whitespace();
        match (words.next(), words.next(), words.next().and_then(|at| at.parse().ok())) {
            (Some("MOVED"), Some(_), Some(at)) => {
                self.places[slot] = Some(at);
                Ok(())
            }
            (Some("ASK"), Some(_), Some(at)) => {
                self.node(at)?.send(&["ASKING"])?;
                self.node(at)?.receive()?;
                self.places[slot] = Some(at);
                Ok(())
            }
            (Some("TRYAGAIN"), _, _) => Ok(()),
            _ => Err(io::Error::other(text)),
        }
    }

    fn set_all(&mut self, keys: &[String], value: &str) -> io::Result<()> {
        let mut by_place: BTreeMap<SocketAddr, Vec<&String>> = BTreeMap::new();
        for key in keys {
            let at = self.places[Slot::of(key.as_bytes()).index()].unwrap_or(self.seed);
            by_place.entry(at).or_default().push(key);
        }
        for (at, keys) in by_place {
            let mut bytes = Vec::new();
            for key in &keys {
                resp::encode_command(&mut bytes, &[b"SET", key.as_bytes(), value.as_bytes()]);
            }
            self.node(at)?.stream.write_all(&bytes)?;
            let mut again = Vec::new();
            for key in keys {
                if let Value::Error(text) = self.node(at)?.receive()? {
                    self.follow(Slot::of(key.as_bytes()).index(), &text)?;
                    again.push(key);
                }
            }
            for key in again {
                self.call(key, &["SET", key, value])?;
            }
        }
        Ok(())
    }
}

impl Node {
    fn send(&mut self, words: &[&str]) -> io::Result<()> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let mut bytes = Vec::new();
        resp::encode_command(&mut bytes, &words);
        self.stream.write_all(&bytes)
    }

    fn receive(&mut self) -> io::Result<Value> {
        let mut chunk = [0; 16 * 1024];
        loop {
            let parsed = self.parser.next(&self.unread, 0);
            let parsed = parsed.map_err(|error| io::Error::other(format!("{error:?}")))?;
            if let Some((value, end)) = parsed {
                self.unread.drain(..end);
                return Ok(value);
            }
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.unread.extend_from_slice(&chunk[..count]),
            }
        }
    }
}

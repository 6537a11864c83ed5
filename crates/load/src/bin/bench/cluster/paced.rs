//! A cluster client that sends at a fixed rate, independent of the answers, and follows MOVED.
//! Latency counts from when a request was due. As in common clients, all connections share one slot
//! map, and after a MOVED the client reads the whole map again, not too often.
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use load::keys::Rng;
use load::slots::ranges;
use placement::Slot;
use resp::{ReplyParser, Value};

/// Number of connections to each node; one alone could not keep the rate if an answer took a millisecond.
const THREADS: u64 = 16;
const MOVES_MAX: usize = 20;
const REFRESH_EVERY: Duration = Duration::from_millis(100);

/// Requests, each with the time it was due and its latency.
pub(super) type Samples = Vec<(Instant, Duration)>;

/// The requests of a load, and the times at which its clients read the whole map.
pub(super) struct Load {
    pub(super) samples: Samples,
    pub(super) refreshes: Vec<Instant>,
}

/// The requests to send.
#[derive(Clone)]
pub(super) struct Work {
    pub(super) keys: Keys,
    pub(super) value_bytes: usize,
    /// Number of requests or pipelines per second, of all threads together.
    pub(super) per_second: u64,
}

#[derive(Clone)]
pub(super) enum Keys {
    /// One of this many keys, read as often as written.
    Each(u64),
    /// This many of these keys in one pipeline, all written.
    Piped(Arc<[String]>, usize),
}

pub(super) struct Paced {
    stop: Arc<AtomicBool>,
    places: Arc<Places>,
    threads: Vec<JoinHandle<io::Result<Samples>>>,
}

impl Paced {
    pub(super) fn start(seed: SocketAddr, work: &Work) -> Paced {
        let (stop, places) = (Arc::new(AtomicBool::new(false)), Arc::new(Places::new(seed)));
        let start = |number| {
            let (stop, work) = (Arc::clone(&stop), work.clone());
            let client = ClusterClient::new(Arc::clone(&places));
            thread::spawn(move || work.go_on(number, client, &stop))
        };
        Paced { threads: (0..THREADS).map(start).collect(), stop, places }
    }

    pub(super) fn end(self) -> io::Result<Load> {
        self.stop.store(true, Ordering::Relaxed);
        let mut samples = Vec::new();
        for thread in self.threads {
            let more = thread.join().map_err(|_| io::Error::other("a client panicked"))?;
            samples.extend(more?);
        }
        let refreshes = self.places.with(|known| std::mem::take(&mut known.refreshes));
        Ok(Load { samples, refreshes })
    }
}

impl Work {
    fn go_on(
        &self,
        number: u64,
        mut client: ClusterClient,
        stop: &AtomicBool,
    ) -> io::Result<Samples> {
        client.refresh()?;
        let every = Duration::from_secs_f64(THREADS as f64 / self.per_second as f64);
        let value = "v".repeat(self.value_bytes);
        let mut due = Instant::now();
        let mut samples = Vec::new();
        let mut chance = Rng::new(number);
        while !stop.load(Ordering::Relaxed) {
            due += every;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            self.ask(&mut client, &mut chance, &value)?;
            samples.push((due, due.elapsed()));
            if client.places.is_due() {
                client.refresh()?;
            }
        }
        Ok(samples)
    }

    fn ask(&self, client: &mut ClusterClient, chance: &mut Rng, value: &str) -> io::Result<()> {
        match &self.keys {
            Keys::Each(keys) => {
                let key = format!("key:{}", chance.below(*keys));
                let reads = chance.below(2) == 0;
                let words: &[&str] = if reads { &["GET", &key] } else { &["SET", &key, value] };
                client.call(&key, words)
            }
            Keys::Piped(keys, count) => {
                let from = chance.below((keys.len() - count) as u64) as usize;
                client.set_all(&keys[from..from + count], value)
            }
        }
    }
}

/// Fills a cluster through pipelines.
pub(super) fn fill(seed: SocketAddr, keys: u64, value_bytes: usize) -> io::Result<()> {
    const PIPELINE: u64 = 512;
    let mut client = ClusterClient::new(Arc::new(Places::new(seed)));
    client.refresh()?;
    let value = "v".repeat(value_bytes);
    for from in (0..keys).step_by(PIPELINE as usize) {
        let names: Vec<String> =
            (from..keys.min(from + PIPELINE)).map(|number| format!("key:{number}")).collect();
        client.set_all(&names, &value)?;
    }
    Ok(())
}

/// The node that last served each slot; all connections share it.
struct Places {
    seed: SocketAddr,
    known: Mutex<Known>,
}

struct Known {
    at: Vec<SocketAddr>,
    asked: Instant,
    /// True if a client got `MOVED` since.
    is_old: bool,
    refreshes: Vec<Instant>,
}

impl Places {
    fn new(seed: SocketAddr) -> Places {
        let at = vec![seed; usize::from(Slot::COUNT)];
        let (asked, is_old, refreshes) = (Instant::now(), false, Vec::new());
        Places { seed, known: Mutex::new(Known { at, asked, is_old, refreshes }) }
    }

    fn with<R>(&self, work: impl FnOnce(&mut Known) -> R) -> R {
        work(&mut self.known.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn of(&self, slot: usize) -> SocketAddr {
        self.with(|known| known.at[slot])
    }

    fn moved(&self, slot: usize, at: SocketAddr) {
        self.with(|known| (known.at[slot], known.is_old) = (at, true));
    }

    /// Returns whether it is time to read the map again; if so, the caller must do it.
    fn is_due(&self) -> bool {
        self.with(|known| {
            let is_due = known.is_old && known.asked.elapsed() > REFRESH_EVERY;
            if is_due {
                (known.asked, known.is_old) = (Instant::now(), false);
                known.refreshes.push(known.asked);
            }
            is_due
        })
    }
}

struct ClusterClient {
    places: Arc<Places>,
    nodes: BTreeMap<SocketAddr, Node>,
}

struct Node {
    stream: TcpStream,
    unread: Vec<u8>,
    parser: ReplyParser,
}

impl ClusterClient {
    fn new(places: Arc<Places>) -> ClusterClient {
        ClusterClient { places, nodes: BTreeMap::new() }
    }

    fn refresh(&mut self) -> io::Result<()> {
        let seed = self.places.seed;
        let node = self.node(seed)?;
        node.send(&["CLUSTER", "SLOTS"])?;
        let rows = ranges(&node.receive()?);
        self.places.with(|known| {
            rows.into_iter().for_each(|(first, last, at)| known.at[first..=last].fill(at));
        });
        Ok(())
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
            let at = self.places.of(slot);
            let node = self.node(at)?;
            node.send(words)?;
            let answer = node.receive()?;
            let Value::Error(text) = answer else { return Ok(()) };
            self.follow(slot, &text)?;
        }
        Err(io::Error::other(format!("{key}: too many redirects")))
    }

    /// Follows `MOVED slot address` and `ASK slot address`; returns any other error.
    fn follow(&mut self, slot: usize, error: &[u8]) -> io::Result<()> {
        let text = String::from_utf8_lossy(error).into_owned();
        let mut words = text.split_whitespace();
        match (words.next(), words.next(), words.next().and_then(|at| at.parse().ok())) {
            (Some("MOVED"), Some(_), Some(at)) => {
                self.places.moved(slot, at);
                Ok(())
            }
            (Some("ASK"), Some(_), Some(at)) => {
                self.node(at)?.send(&["ASKING"])?;
                self.node(at)?.receive()?;
                self.places.moved(slot, at);
                Ok(())
            }
            (Some("TRYAGAIN"), _, _) => Ok(()),
            _ => Err(io::Error::other(text)),
        }
    }

    fn set_all(&mut self, keys: &[String], value: &str) -> io::Result<()> {
        let mut by_place: BTreeMap<SocketAddr, Vec<&String>> = BTreeMap::new();
        for key in keys {
            let at = self.places.of(Slot::of(key.as_bytes()).index());
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

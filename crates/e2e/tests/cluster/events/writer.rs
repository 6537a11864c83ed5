//! A writer that knows which of its writes were acknowledged: every write has a key of its own, and is sent again only
//! if a node says that it was not done.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use e2e::Client;
use placement::Slot;
use resp::Value;

/// Pause between two writes, so that a test of some seconds has thousands of them, and not more.
const PAUSE: Duration = Duration::from_micros(500);

pub(super) struct Writer {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    /// Held while the writer writes.
    turn: Arc<Mutex<()>>,
    thread: JoinHandle<Written>,
}

/// The keys that a writer has written.
#[derive(Default, Debug)]
pub(super) struct Written {
    pub acknowledged: Vec<String>,
    /// The connection broke before the reply.
    pub unknown: Vec<String>,
}

impl Writer {
    /// Begins to write. The nodes at these ports redirect it to the others, and must not leave.
    pub(super) fn start(ports: Vec<u16>) -> Writer {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let turn = Arc::new(Mutex::new(()));
        let mut work = Work { ports, ..Work::default() };
        let (stopping, counted, turns) = (Arc::clone(&stop), Arc::clone(&count), Arc::clone(&turn));
        let thread = thread::spawn(move || {
            let mut written = Written::default();
            while !stopping.load(Ordering::Relaxed) {
                let turn = turns.lock().expect("nobody panics with it");
                let number = counted.fetch_add(1, Ordering::Relaxed);
                let key = format!("key:{number}");
                match work.write(&key) {
                    Ok(()) => written.acknowledged.push(key),
                    Err(BrokenConnection) => written.unknown.push(key),
                }
                drop(turn);
                thread::sleep(PAUSE);
            }
            written
        });
        Writer { stop, count, turn, thread }
    }

    /// Runs `work` while nothing is written.
    pub(super) fn without_writes<R>(&self, work: impl FnOnce() -> R) -> R {
        let _turn = self.turn.lock().expect("the writer does not panic with it");
        work()
    }

    /// Waits until this many more writes are done.
    pub(super) fn go_on_for(&self, writes: u64) {
        let until = self.count.load(Ordering::Relaxed) + writes;
        e2e::wait_until("writes go on", Duration::from_secs(60), || {
            assert!(!self.thread.is_finished(), "the writer gave up");
            self.count.load(Ordering::Relaxed) >= until
        });
    }

    pub(super) fn end(self) -> Written {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("the writer does not panic")
    }
}

/// The reply did not come: the write may have been done or not.
struct BrokenConnection;

#[derive(Default)]
struct Work {
    ports: Vec<u16>,
    clients: BTreeMap<u16, Client>,
    /// The node of each slot, as far as it is known.
    owners: BTreeMap<Slot, u16>,
    /// The port to try if the owner is unknown.
    next: usize,
}

impl Work {
    fn write(&mut self, key: &str) -> Result<(), BrokenConnection> {
        let slot = Slot::of(key.as_bytes());
        loop {
            let port = self.owners.get(&slot).copied().unwrap_or(self.ports[self.next]);
            let Some(client) = self.client(port).filter(|client| client.is_open()) else {
                self.lose(port); // Nothing was sent.
                continue;
            };
            let answer = client.send(&["SET", key, "x"]).and_then(|()| client.receive());
            match answer.map(|answer| answer.value) {
                Ok(Value::Simple(_)) => return Ok(()),
                Ok(Value::Error(text)) => self.follow(slot, port, &String::from_utf8_lossy(&text)),
                Ok(other) => panic!("SET {key}: {other:?}"),
                Err(_) => {
                    self.lose(port);
                    return Err(BrokenConnection);
                }
            }
        }
    }

    /// Acts on an error of a node, which says that the command was not done.
    fn follow(&mut self, slot: Slot, asked: u16, error: &str) {
        if error.starts_with("MOVED ") {
            let port = error.rsplit(':').next().and_then(|port| port.parse().ok());
            // The node may be about to leave: as other clients do, ask anew for all its slots.
            self.owners.retain(|_, owner| *owner != asked);
            self.owners.insert(slot, port.expect("the port of another node"));
        } else {
            let is_passing = error.starts_with("TRYAGAIN") || error.starts_with("CLUSTERDOWN");
            assert!(is_passing, "{error}");
            self.owners.remove(&slot);
            self.next = (self.next + 1) % self.ports.len();
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn client(&mut self, port: u16) -> Option<&mut Client> {
        if let std::collections::btree_map::Entry::Vacant(entry) = self.clients.entry(port) {
            entry.insert(Client::try_connect(port).ok()?);
        }
        self.clients.get_mut(&port)
    }

    fn lose(&mut self, port: u16) {
        self.clients.remove(&port);
        self.owners.retain(|_, owner| *owner != port);
        self.next = (self.next + 1) % self.ports.len();
        thread::sleep(Duration::from_millis(5));
    }
}

//! State shared by the threads of a proxy: its options, the fleet as the watcher last read it, and the means
//! to wake each other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

use arc_swap::ArcSwap;
use fleet::{Address, Config, View};
use net::{Guesses, Mailbox, Stream};
use parking_lot::Mutex;

use crate::options::Options;

pub(crate) struct Shared {
    pub options: Options,
    /// Unique ID of this proxy: part of the names of our connections, and of the tokens of our moves.
    pub id: String,
    /// The fleet as the watcher last read it.
    pub fleet: ArcSwap<Fleet>,
    /// Mailboxes through which workers get clients and are woken.
    pub mailboxes: Vec<Mailbox<Newcomer>>,
    pub stopping: AtomicBool,
    pub clients: AtomicUsize,
    /// Number of clients of each worker.
    pub loads: Vec<AtomicUsize>,
    pub next_client: AtomicU64,
    pub commands: Vec<AtomicU64>,
    pub next_token: AtomicU64,
    pub counts: Counts,
    /// Wrong passwords, by address.
    pub guesses: Guesses,
    /// The watcher's thread. A worker unparks it when it has met something newer than the watcher knows.
    pub look_again: Mutex<Option<std::thread::Thread>>,
}

/// Counters for `/metrics` besides requests. All these events are rare.
#[derive(Default)]
pub(crate) struct Counts {
    /// Requests on keys that were moving.
    pub moving_reads: AtomicU64,
    pub moving_writes: AtomicU64,
    /// Connections to servers that broke.
    pub links_lost: AtomicU64,
}

/// The fleet as the first server describes it.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub view: View,
    /// The configuration from which the view was built.
    pub config: Config,
    pub servers: Vec<Known>,
    /// Reason why nothing can be served: the servers' configuration is gone or makes no sense.
    pub trouble: Option<String>,
}

/// A server, and the address its name resolves to now.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub address: Address,
    pub socket: Option<SocketAddr>,
}

impl Shared {
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    /// Returns a token for a move that no other move of any proxy has.
    pub(crate) fn token(&self) -> fleet::Token {
        let number = self.next_token.fetch_add(1, Relaxed);
        fleet::Token::new(format!("{}:{number}", self.id))
    }

    /// Makes the watcher read the servers' configuration now rather than at the next interval.
    pub(crate) fn look_again(&self) {
        if let Some(thread) = &*self.look_again.lock() {
            thread.unpark();
        }
    }

    pub(crate) fn publish(&self, fleet: Fleet) {
        self.fleet.store(Arc::new(fleet));
        self.mailboxes.iter().for_each(Mailbox::wake);
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Relaxed);
        self.mailboxes.iter().for_each(Mailbox::wake);
        self.look_again();
    }
}

/// A client that its worker has yet to adopt.
pub(crate) struct Newcomer {
    pub id: u64,
    pub stream: Stream,
}

//! The client connections of the node, as other threads see them. Each worker owns its connections and
//! publishes their state on a [`ClientInfo`], which any thread may read. CLIENT LIST and KILL begin here.

use core::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use cluster::serving::WaitNumber;
use commands::{ClientFacts, CommandId, Session, SubscriptionKind, Table};
use parking_lot::Mutex;
use store::{Database, UnixMillis};

/// A connection's state as visible outside its worker. The worker updates it at the end of a turn with plain
/// stores; a reader may see slightly outdated values.
pub(crate) struct ClientInfo {
    pub id: u64,
    pub address: SocketAddr,
    pub local_address: SocketAddr,
    pub descriptor: i64,
    pub since: UnixMillis,
    pub place: ConnectionRef,
    last_active: AtomicU64,
    last_command: AtomicU16,
    marks: AtomicU8,
    database: AtomicU16,
    channels: AtomicU32,
    patterns: AtomicU32,
    shard_channels: AtomicU32,
    /// One more than the number of queued commands; 0 outside MULTI.
    queued: AtomicU32,
    /// The number of its wait for keys; 0 if it does not wait.
    key_wait: AtomicU64,
    /// True if that wait has a timeout.
    has_timeout: AtomicBool,
    input_bytes: AtomicU64,
    output_bytes: AtomicU64,
    texts: Mutex<Texts>,
}

/// A worker, and the index of one of its connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ConnectionRef {
    pub worker: usize,
    pub index: usize,
}

/// Texts that a client sets about itself; they seldom change.
#[derive(Default)]
struct Texts {
    name: Vec<u8>,
    library_name: Vec<u8>,
    library_version: Vec<u8>,
}

/// State of a connection at the end of a turn. The client counts as having read all replies until
/// [`ClientInfo::left_unread`] says otherwise.
pub(crate) struct TurnEnd {
    pub now: UnixMillis,
    pub last_command: CommandId,
    pub input_bytes: usize,
}

/// One bit for each flag of a session.
const MONITOR: u8 = 1 << 0;
const CLOSING: u8 = 1 << 1;
const NO_EVICT: u8 = 1 << 2;
const NO_TOUCH: u8 = 1 << 3;
const RESP3: u8 = 1 << 4;

impl ClientInfo {
    pub(crate) fn new(
        id: u64,
        place: ConnectionRef,
        address: SocketAddr,
        now: UnixMillis,
    ) -> ClientInfo {
        ClientInfo {
            id,
            address,
            local_address: address,
            descriptor: -1,
            since: now,
            place,
            last_active: AtomicU64::new(now.0),
            last_command: AtomicU16::new(CommandId::NONE.number()),
            marks: AtomicU8::new(0),
            database: AtomicU16::new(0),
            channels: AtomicU32::new(0),
            patterns: AtomicU32::new(0),
            shard_channels: AtomicU32::new(0),
            queued: AtomicU32::new(0),
            key_wait: AtomicU64::new(0),
            has_timeout: AtomicBool::new(false),
            input_bytes: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            texts: Mutex::default(),
        }
    }

    /// Records the state of a connection after its turn.
    pub(crate) fn update(&self, session: &mut Session, turn: &TurnEnd) {
        self.last_active.store(turn.now.0, Relaxed);
        if turn.last_command != CommandId::NONE {
            self.last_command.store(turn.last_command.number(), Relaxed);
        }
        self.input_bytes.store(turn.input_bytes as u64, Relaxed);
        self.output_bytes.store(0, Relaxed);
        self.marks.store(marks(session), Relaxed);
        self.database.store(session.database.number(), Relaxed);
        for (count, kind) in self.subscriptions() {
            count.store(narrow(session.subscriptions.count(kind)), Relaxed);
        }
        let queued = session.queue.as_ref().map_or(0, |queue| 1 + queue.commands.len());
        self.queued.store(narrow(queued), Relaxed);
        if session.texts_changed {
            session.texts_changed = false;
            *self.texts.lock() = Texts {
                name: session.name.clone(),
                library_name: session.library_name.clone(),
                library_version: session.library_version.clone(),
            };
        }
    }

    /// Records the number of reply bytes that the client has not read.
    pub(crate) fn left_unread(&self, bytes: usize) {
        self.output_bytes.store(bytes as u64, Relaxed);
    }

    /// Records that the connection waits for keys.
    pub(crate) fn begin_key_wait(&self, number: WaitNumber, has_timeout: bool) {
        self.has_timeout.store(has_timeout, Relaxed);
        self.key_wait.store(number.0, Relaxed);
    }

    /// Records that the connection does not wait for keys any longer. Returns the number of the wait, if it has not
    /// been taken before: it is ended by one thread only.
    pub(crate) fn take_key_wait(&self) -> Option<WaitNumber> {
        let number = self.key_wait.swap(0, Relaxed);
        (number != 0).then_some(WaitNumber(number))
    }

    /// Returns whether the connection waits for keys, and whether it does so with a timeout.
    pub(crate) fn is_blocked(&self) -> (bool, bool) {
        let is_blocked = self.key_wait.load(Relaxed) != 0;
        (is_blocked, is_blocked && self.has_timeout.load(Relaxed))
    }

    /// Returns the connection's state, for CLIENT LIST and INFO.
    pub(crate) fn facts(&self, now: UnixMillis, table: &Table) -> ClientFacts {
        let marks = self.marks.load(Relaxed);
        let last_command = CommandId::from_number(self.last_command.load(Relaxed));
        let texts = self.texts.lock();
        let queued = self.queued.load(Relaxed) as usize;
        ClientFacts {
            name: texts.name.clone(),
            library_name: texts.library_name.clone(),
            library_version: texts.library_version.clone(),
            database: Database::new(self.database.load(Relaxed)).unwrap_or_default(),
            is_monitor: marks & MONITOR != 0,
            is_closing: marks & CLOSING != 0,
            is_blocked: self.is_blocked().0,
            no_evict: marks & NO_EVICT != 0,
            no_touch: marks & NO_TOUCH != 0,
            is_resp3: marks & RESP3 != 0,
            channels: self.channels.load(Relaxed) as usize,
            patterns: self.patterns.load(Relaxed) as usize,
            sharded_channels: self.shard_channels.load(Relaxed) as usize,
            queued: queued.checked_sub(1),
            last_command: table.spec(last_command).map(|spec| spec.full_name),
            ..self.outer_facts(now)
        }
    }

    fn subscriptions(&self) -> [(&AtomicU32, SubscriptionKind); 3] {
        [
            (&self.channels, SubscriptionKind::Channel),
            (&self.patterns, SubscriptionKind::Pattern),
            (&self.shard_channels, SubscriptionKind::ShardChannel),
        ]
    }

    /// Returns the facts that a session does not know about itself.
    pub(crate) fn outer_facts(&self, now: UnixMillis) -> ClientFacts {
        let seconds_since = |then: u64| now.0.saturating_sub(then) / 1_000;
        let (input, output) = (self.input_bytes.load(Relaxed), self.output_bytes.load(Relaxed));
        ClientFacts {
            id: self.id,
            address: self.address.to_string(),
            local_address: self.local_address.to_string(),
            descriptor: self.descriptor,
            age_seconds: seconds_since(self.since.0),
            idle_seconds: seconds_since(self.last_active.load(Relaxed)),
            input_bytes: bytes(input),
            output_bytes: bytes(output),
            output_capacity: bytes(output),
            total_bytes: bytes(input + output) + size_of::<ClientInfo>() + size_of::<Session>(),
            ..ClientFacts::default()
        }
    }
}

fn marks(session: &Session) -> u8 {
    let mark = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
    mark(session.is_monitor, MONITOR)
        | mark(session.closing, CLOSING)
        | mark(session.no_evict, NO_EVICT)
        | mark(session.no_touch, NO_TOUCH)
        | mark(session.protocol == resp::Protocol::Resp3, RESP3)
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn bytes(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// The clients of all connections, by id.
#[derive(Default)]
pub(crate) struct Clients(Mutex<BTreeMap<u64, Arc<ClientInfo>>>);

impl Clients {
    pub(crate) fn enter(&self, client: Arc<ClientInfo>) {
        self.0.lock().insert(client.id, client);
    }

    pub(crate) fn leave(&self, id: u64) {
        self.0.lock().remove(&id);
    }

    pub(crate) fn find(&self, id: u64) -> Option<Arc<ClientInfo>> {
        self.0.lock().get(&id).cloned()
    }

    /// Returns all clients, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<ClientInfo>> {
        self.0.lock().values().cloned().collect()
    }
}

//! A connection's state, as far as commands need it: authentication, protocol, transaction, watched keys.

use cluster::map::LogIndex;
use cluster::serving::WalkedCopies;
use placement::Slot;
use resp::{Mark, Output, Protocol};
use store::{Database, Version};

use crate::scripts::ScriptRun;
use crate::{Acknowledged, CommandEnv, KeyWait, OwnedArgs, Spec, Subscriptions};

#[derive(Default)]
pub struct Session {
    /// Unique during the node's lifetime.
    pub id: u64,
    pub port: ClientPort,
    pub protocol: Protocol,
    pub authenticated: bool,
    /// The database that SELECT has chosen.
    pub database: Database,
    pub name: Vec<u8>,
    /// The name that the client's library reports (`CLIENT SETINFO`).
    pub library_name: Vec<u8>,
    pub library_version: Vec<u8>,
    /// True if one of the three above has changed since the server last read them.
    pub texts_changed: bool,
    pub replies: ReplyMode,
    /// True if the command's reply is a push message: it is sent even under CLIENT REPLY OFF.
    pub(crate) told: bool,
    /// True if this command's reply is the last one: the connection is then closed.
    pub closing: bool,
    /// `CLIENT NO-TOUCH`: reads do not update access marks.
    pub no_touch: bool,
    /// `CLIENT NO-EVICT`: stored and shown only; no connection is ever closed because of its memory use.
    pub no_evict: bool,
    /// `READONLY`: the connection may read from backups.
    pub reads_backups: bool,
    /// `CLUSTER EVENTS ALL`: its subscriptions hear events of all keys, whatever `notify-scope` is. Does not change
    /// while there are subscriptions, and stays until the connection ends: RESET of a client of the any-port goes to
    /// the node as it is.
    pub hears_all: bool,
    /// True if the connection receives every command that runs.
    pub is_monitor: bool,
    /// Its subscriptions; with any subscription, a RESP2 connection accepts only a few commands.
    pub subscriptions: Subscriptions,
    /// The commands queued since MULTI.
    pub queue: Option<Queue>,
    pub watched: Vec<Watched>,
    /// The slot at which FLUSHALL had to stop; it continues there when it runs again.
    pub flush_from: Option<Slot>,
    /// True while EXEC or a script runs its commands: none of them may block.
    pub in_exec: bool,
    /// The backups that had all of this connection's writes when EXEC began, if it runs WAIT.
    pub acknowledged: Option<Acknowledged>,
    /// The wait for keys that its present command has behind it. The owner of the connection takes it out when the
    /// command is answered.
    pub key_wait: Option<Box<KeyWait>>,
    /// True while SCRIPT LOAD waits for the cluster's answer.
    pub(crate) awaits_documents: bool,
    /// Needs of the script that this connection runs besides its keys.
    pub(crate) script: ScriptRun,
}

/// The port on which a client has connected.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ClientPort {
    #[default]
    Ordinary,
    /// `replica-port`: the node appears as a replica. Its backup copies are read, nothing is written.
    Replica,
}

/// The reply mode of a connection (`CLIENT REPLY`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ReplyMode {
    #[default]
    Sent,
    Off,
    /// The next command gets no reply.
    SkipNext,
    /// This command gets no reply; then replies are on again.
    SkipThis,
}

/// The commands that MULTI queues.
#[derive(Default)]
pub struct Queue {
    pub commands: Vec<Queued>,
    /// True if a command was refused while queueing: EXEC will refuse the whole transaction.
    pub broken: bool,
    pub bytes: usize,
    /// True if one of the commands may record many times the bytes it was given.
    pub multiplies: bool,
}

pub struct Queued {
    pub spec: &'static Spec,
    pub args: OwnedArgs,
}

/// A key in the state in which WATCH saw it.
pub struct Watched {
    /// Its name, which includes the database ([`store::Key::name`]).
    pub key: Vec<u8>,
    pub slot: Slot,
    /// The item's version; `None` if the key was missing.
    pub version: Option<Version>,
    /// The slot's last removal at that time: a missing key may have been created and removed since.
    pub last_removal: Version,
    /// The reign at that time: changes that another primary made to the key are unknown here.
    pub reign: LogIndex,
}

impl Watched {
    /// Returns whether the slot still has the primary it had when WATCH saw the key.
    pub(crate) fn is_under_its_reign(&self, env: &CommandEnv) -> bool {
        env.cluster.reign(self.slot) == self.reign
    }
}

impl Session {
    pub fn new(id: u64) -> Session {
        Session::on(ClientPort::Ordinary, id)
    }

    /// Returns the session of a new connection. On the replica port it begins as if READONLY had been sent.
    pub fn on(port: ClientPort, id: u64) -> Session {
        let reads_backups = port == ClientPort::Replica;
        Session { id, port, reads_backups, ..Session::default() }
    }

    /// Returns the copies that a command on the whole keyspace covers.
    #[inline]
    pub(crate) fn walked_copies(&self) -> WalkedCopies {
        match self.port {
            ClientPort::Ordinary => WalkedCopies::Primaries,
            ClientPort::Replica => WalkedCopies::Backups,
        }
    }

    #[inline]
    pub fn is_on_replica_port(&self) -> bool {
        self.port == ClientPort::Replica
    }

    /// Returns whether the connection is in RESP2's subscribed mode: it receives messages between replies, and
    /// accepts only a few commands.
    #[inline]
    pub fn hears_only(&self) -> bool {
        !self.subscriptions.is_empty() && self.protocol == Protocol::Resp2
    }

    /// Records that a command was refused. An open transaction is then broken, because it is incomplete.
    pub fn refused(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.broken = true;
        }
    }

    /// Drops the open transaction and all watched keys: for DISCARD, RESET, a refused EXEC.
    pub fn discard(&mut self) {
        self.queue = None;
        self.watched.clear();
    }

    /// Resets the state, as RESET does: only the connection itself stays.
    pub fn reset(&mut self) {
        let hears_all = self.hears_all;
        *self = Session { texts_changed: true, hears_all, ..Session::on(self.port, self.id) };
    }

    /// Called before a command: returns the start of its reply, if the connection wants no reply.
    #[inline]
    pub fn begin_muted(&mut self, output: &Output) -> Option<Mark> {
        if self.replies == ReplyMode::Sent {
            return None;
        }
        self.told = false;
        if self.replies == ReplyMode::SkipNext {
            self.replies = ReplyMode::SkipThis;
        }
        Some(output.mark())
    }

    /// Called after a command: removes its reply, unless it is that of CLIENT REPLY ON or one that is always sent.
    pub fn end_muted(&mut self, output: &mut Output, start: Mark) {
        self.replies = match self.replies {
            ReplyMode::Sent => return,
            ReplyMode::SkipThis => ReplyMode::Sent,
            ReplyMode::Off => ReplyMode::Off,
            ReplyMode::SkipNext => ReplyMode::SkipNext,
        };
        if !self.told {
            output.truncate(start);
        }
    }
}

//! A connection's state, as far as commands care: who is there, in which protocol, inside MULTI or
//! not, what it watches.

use cluster::map::LogIndex;
use placement::Slot;
use resp::{Mark, Output, Protocol};
use store::Version;

use crate::{OwnedArgs, Spec, Subscriptions, Surroundings};

#[derive(Default)]
pub struct Session {
    /// Unique in the node's life.
    pub id: u64,
    pub protocol: Protocol,
    pub authenticated: bool,
    pub name: Vec<u8>,
    /// What the client's library says of itself (`CLIENT SETINFO`).
    pub library_name: Vec<u8>,
    pub library_version: Vec<u8>,
    /// One of the three above has changed since the server took note of them.
    pub texts_changed: bool,
    pub replies: Replies,
    /// Its command's reply is a message like those it listens to, sent even to who wants no replies.
    pub(crate) told: bool,
    /// Set once the reply of this command is the last one.
    pub closing: bool,
    /// `CLIENT NO-TOUCH`: reads leave no trace for eviction.
    pub no_touch: bool,
    /// `CLIENT NO-EVICT`: kept and shown; no connection is closed for the memory it takes.
    pub no_evict: bool,
    /// `READONLY`: it may read where its keys have a copy that is not the primary's.
    pub reads_backups: bool,
    /// It is shown every command that runs.
    pub is_monitor: bool,
    /// What it listens to; if to anything, a RESP2 connection takes few commands.
    pub subscriptions: Subscriptions,
    /// The commands since MULTI.
    pub queue: Option<Queue>,
    pub watched: Vec<Watched>,
    /// The slot at which FLUSHALL had to stop; it goes on from there when it is run again.
    pub flush_from: Option<Slot>,
    /// EXEC runs its commands: none of them waits.
    pub in_exec: bool,
}

/// Whether a connection is told anything (`CLIENT REPLY`).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Replies {
    #[default]
    Sent,
    Off,
    /// The command after this one gets no reply.
    SkipNext,
    /// This one gets none; then all is as before.
    SkipThis,
}

/// What MULTI collects.
#[derive(Default)]
pub struct Queue {
    pub commands: Vec<Queued>,
    /// A command was refused while queueing: EXEC will refuse the whole.
    pub broken: bool,
    pub bytes: usize,
    /// One of them may record many times the bytes it was given.
    pub multiplies: bool,
}

pub struct Queued {
    pub spec: &'static Spec,
    pub args: OwnedArgs,
}

/// A key as it was when WATCH saw it.
pub struct Watched {
    pub key: Vec<u8>,
    pub slot: Slot,
    /// The item's version; `None` if the key was missing.
    pub version: Option<Version>,
    /// The slot's last removal at that time: a missing key may have come and gone since.
    pub last_removal: Version,
    /// Whoever was primary then: what another has done to the key meanwhile is not known here.
    pub reign: LogIndex,
}

impl Watched {
    /// Whether the slot still has the primary it had when WATCH saw the key.
    pub(crate) fn is_under_its_reign(&self, around: &Surroundings) -> bool {
        around.cluster.reign(self.slot) == self.reign
    }
}

impl Session {
    pub fn new(id: u64) -> Session {
        Session { id, ..Session::default() }
    }

    /// It is in RESP2's subscribed mode: messages come between replies, and few commands are taken.
    #[inline]
    pub fn hears_only(&self) -> bool {
        !self.subscriptions.is_empty() && self.protocol == Protocol::Resp2
    }

    /// A command was refused. If it was on its way into a transaction, that cannot be whole any more.
    pub fn refused(&mut self) {
        if let Some(queue) = &mut self.queue {
            queue.broken = true;
        }
    }

    /// Forgets the transaction under way and all that is watched: DISCARD, RESET, a refused EXEC.
    pub fn discard(&mut self) {
        self.queue = None;
        self.watched.clear();
    }

    /// Begins anew, as RESET wants it: only the connection itself stays.
    pub fn reset(&mut self) {
        *self = Session { texts_changed: true, ..Session::new(self.id) };
    }

    /// Before a command: where its reply begins, if the connection wants none.
    #[inline]
    pub fn begin_muted(&mut self, output: &Output) -> Option<Mark> {
        if self.replies == Replies::Sent {
            return None;
        }
        self.told = false;
        if self.replies == Replies::SkipNext {
            self.replies = Replies::SkipThis;
        }
        Some(output.mark())
    }

    /// After it: takes the reply back, unless it was that of CLIENT REPLY ON or one that is sent in
    /// any case.
    pub fn end_muted(&mut self, output: &mut Output, start: Mark) {
        self.replies = match self.replies {
            Replies::Sent => return,
            Replies::SkipThis => Replies::Sent,
            Replies::Off => Replies::Off,
            Replies::SkipNext => Replies::SkipNext,
        };
        if !self.told {
            output.truncate(start);
        }
    }
}

//! A connection's state, as far as commands care: who is there, in which protocol, inside MULTI or
//! not, what it watches.

use placement::Slot;
use resp::Protocol;
use store::Version;

use crate::{OwnedArgs, Spec};

#[derive(Default)]
pub struct Session {
    /// Unique in the node's life.
    pub id: u64,
    pub protocol: Protocol,
    pub authenticated: bool,
    pub name: Vec<u8>,
    /// Set once the reply of this command is the last one.
    pub closing: bool,
    /// `CLIENT NO-TOUCH`: reads leave no trace for eviction.
    pub no_touch: bool,
    /// Channels and patterns it listens to; above zero a RESP2 connection takes few commands.
    pub subscriptions: usize,
    /// The commands since MULTI.
    pub queue: Option<Queue>,
    pub watched: Vec<Watched>,
}

/// What MULTI collects.
#[derive(Default)]
pub struct Queue {
    pub commands: Vec<Queued>,
    /// A command was refused while queueing: EXEC will refuse the whole.
    pub broken: bool,
    pub bytes: usize,
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
}

impl Session {
    pub fn new(id: u64) -> Session {
        Session { id, ..Session::default() }
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
}

//! Connections that wait until a key has elements (BLPOP and others), in the order in which they began to wait.
//!
//! A connection enters under the locks of its keys' slots, so it misses no change. A change wakes the first connection in
//! line, whose worker runs the command again; when it leaves the line, for whatever reason, the next one is woken. So
//! everybody is served in turn, and nobody is forgotten. Those who wait cost nothing but memory.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::collections::{BTreeMap, BTreeSet};

use commands::{Unblock, Wanted};
use parking_lot::Mutex;

use crate::mailbox::{Mail, Mailboxes};

#[derive(Default)]
pub(crate) struct KeyWaiters {
    /// The number of waiting connections. Relaxed, because a slot's lock orders it: who enters holds it, and who changes
    /// the key has it later.
    count: AtomicUsize,
    lines: Mutex<Lines>,
}

/// A place in line: lower numbers came earlier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct WaitNumber(u64);

/// A connection that waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingClient {
    pub id: u64,
    pub worker: usize,
    /// The index of the connection at its worker.
    pub index: usize,
}

#[derive(Default)]
struct Lines {
    last: u64,
    waiters: BTreeMap<WaitNumber, KeyWaiter>,
    /// The waiters for each key, and what they want.
    by_key: BTreeMap<Vec<u8>, BTreeMap<WaitNumber, Wanted>>,
}

struct KeyWaiter {
    client: WaitingClient,
    keys: Vec<Vec<u8>>,
    wanted: Wanted,
    /// Set by CLIENT UNBLOCK.
    ended: Option<Unblock>,
}

impl KeyWaiters {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Puts a connection at the end of the lines of these keys.
    pub(crate) fn enter(
        &self,
        client: WaitingClient,
        wanted: Wanted,
        keys: &[&[u8]],
    ) -> WaitNumber {
        let mut lines = self.lines.lock();
        lines.last += 1;
        let number = WaitNumber(lines.last);
        for key in keys {
            lines.by_key.entry(key.to_vec()).or_default().insert(number, wanted);
        }
        let keys = keys.iter().map(|key| key.to_vec()).collect();
        lines.waiters.insert(number, KeyWaiter { client, keys, wanted, ended: None });
        self.count.store(lines.waiters.len(), Relaxed);
        number
    }

    /// Takes a connection out of its lines, and wakes those that come first now.
    pub(crate) fn leave(&self, number: WaitNumber, mailboxes: &Mailboxes) {
        let mut lines = self.lines.lock();
        let Some(waiter) = lines.waiters.remove(&number) else { return };
        self.count.store(lines.waiters.len(), Relaxed);
        for key in waiter.keys {
            let Some(line) = lines.by_key.get_mut(&key) else { continue };
            line.remove(&number);
            let next = first(line, waiter.wanted).filter(|next| *next > number);
            if line.is_empty() {
                lines.by_key.remove(&key);
            }
            // Only if this one was the first.
            if let Some(next) = next {
                lines.wake(next, mailboxes);
            }
        }
    }

    /// Wakes the connections that are first in line for a key: it may have what they want.
    pub(crate) fn wake_first(&self, key: &[u8], mailboxes: &Mailboxes) {
        let lines = self.lines.lock();
        let Some(line) = lines.by_key.get(key) else { return };
        for wanted in line.values().copied().collect::<BTreeSet<_>>() {
            if let Some(number) = first(line, wanted) {
                lines.wake(number, mailboxes);
            }
        }
    }

    /// Returns whether somebody waits for this key who came earlier than `number`, or at all.
    pub(crate) fn is_behind(&self, number: Option<WaitNumber>, wanted: Wanted, key: &[u8]) -> bool {
        let lines = self.lines.lock();
        let first = lines.by_key.get(key).and_then(|line| first(line, wanted));
        first.is_some_and(|first| number.is_none_or(|number| first < number))
    }

    /// Ends the wait of a connection. Returns false if it does not wait.
    pub(crate) fn end(&self, client: u64, how: Unblock, mailboxes: &Mailboxes) -> bool {
        let mut lines = self.lines.lock();
        let found = lines.waiters.iter_mut().find(|(_, waiter)| waiter.client.id == client);
        let Some((number, waiter)) = found else { return false };
        let number = *number;
        waiter.ended = Some(how);
        lines.wake(number, mailboxes);
        true
    }

    /// Returns how CLIENT UNBLOCK has ended this wait.
    pub(crate) fn ended(&self, number: WaitNumber) -> Option<Unblock> {
        self.lines.lock().waiters.get(&number)?.ended
    }

    /// Returns the ids of all waiting connections.
    pub(crate) fn clients(&self) -> BTreeSet<u64> {
        self.lines.lock().waiters.values().map(|waiter| waiter.client.id).collect()
    }
}

impl Lines {
    fn wake(&self, number: WaitNumber, mailboxes: &Mailboxes) {
        if let Some(KeyWaiter { client, .. }) = self.waiters.get(&number) {
            let WaitingClient { id, worker, index } = *client;
            mailboxes[worker].send(Mail::Resume { id, index });
        }
    }
}

/// Returns the first in line who wants this.
fn first(line: &BTreeMap<WaitNumber, Wanted>, wanted: Wanted) -> Option<WaitNumber> {
    line.iter().find(|(_, other)| **other == wanted).map(|(number, _)| *number)
}

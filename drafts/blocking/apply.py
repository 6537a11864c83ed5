import shutil
R='/work/h-lists/crates/'
shutil.copy('/tmp/h-lists-block/blocking.rs',R+'commands/src/lists/blocking.rs')
shutil.copy('/tmp/h-lists-block/key_waiters.rs',R+'server/src/key_waiters.rs')
def sub(p, pairs):
    p=R+p
    s=open(p).read()
    for a,b in pairs:
        assert s.count(a)>=1, (p,a,s.count(a))
        s=s.replace(a,b,1)
    open(p,'w').write(s)
# --- commands
sub('commands/src/lists/mod.rs',[
("mod moves; //    LMOVE, RPOPLPUSH.\n","mod moves; //    LMOVE, RPOPLPUSH.\nmod blocking; // BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP.\n"),
("pub(crate) const SPECS: &[Spec] = &[\n",'''/// The common part of commands that wait for a list.
const BLOCKING: Spec = Spec {
    syntax: "key [key ...] timeout",
    since: "2.0.0",
    complexity: "O(N) where N is the number of keys",
    arity: -3,
    flags: Flags::of(&[Flag::Write, Flag::NoScript, Flag::Blocking]),
    keys: KeySpec { first: 1, last: -2, step: 1 },
    ..READ
};

/// The common part of commands that wait for a list, and move an element of it.
const BLOCKING_MOVE: Spec = Spec {
    complexity: "O(1)",
    flags: Flags::of(&[Flag::Write, Flag::DenyOom, Flag::NoScript, Flag::Blocking]),
    keys: KeySpec::FIRST_TWO,
    ..BLOCKING
};

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "blmove",
        full_name: "blmove",
        syntax: "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout",
        summary: "Moves an element from one list to another as LMOVE does; waits until there is one.",
        since: "6.2.0",
        arity: 6,
        run: Some(blocking::blmove),
        ..BLOCKING_MOVE
    },
    Spec {
        name: "blmpop",
        full_name: "blmpop",
        syntax: "timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]",
        summary: "Removes and returns elements of the first list that exists; waits until there is one.",
        since: "7.0.0",
        complexity: "O(N+M) where N is the number of keys and M is the number of returned elements",
        arity: -5,
        flags: Flags::of(&[Flag::Write, Flag::Blocking, Flag::MovableKeys]),
        keys: KeySpec::counted(2),
        run: Some(blocking::blmpop),
        ..BLOCKING
    },
    Spec {
        name: "blpop",
        full_name: "blpop",
        summary: "Removes and returns the first element of the first list that exists; waits until there is one.",
        run: Some(blocking::blpop),
        ..BLOCKING
    },
    Spec {
        name: "brpop",
        full_name: "brpop",
        summary: "Removes and returns the last element of the first list that exists; waits until there is one.",
        run: Some(blocking::brpop),
        ..BLOCKING
    },
    Spec {
        name: "brpoplpush",
        full_name: "brpoplpush",
        syntax: "source destination timeout",
        summary: "Moves the last element of a list to the start of another one; waits until there is one.",
        since: "2.2.0",
        arity: 4,
        run: Some(blocking::brpoplpush),
        ..BLOCKING_MOVE
    },
'''),
])
sub('commands/src/lists/pop.rs',[
("    fn reply(&self, list","    pub(super) fn reply(&self, list"),
("    if !request.run(context)? {\n","    if !request.run_on(context, request.keys())? {\n"),
("    /// Pops from the first key that has a list, and replies with it. Returns false if there is none.\n    pub(super) fn run(&self, context: &mut Context<'_>) -> Result<bool, Error> {\n        for index in self.keys.clone() {","    /// Returns the indices of the keys.\n    pub(super) fn keys(&self) -> Range<usize> {\n        self.keys.clone()\n    }\n\n    /// Pops from the first of these keys that has a list, and replies with it. Returns false if there is none.\n    pub(super) fn run_on(\n        &self,\n        context: &mut Context<'_>,\n        keys: Range<usize>,\n    ) -> Result<bool, Error> {\n        for index in keys {"),
])
sub('commands/src/command/facts.rs',[
('        ("getdel" | "lpop" | "rpop" | "lmpop", _)\n','        ("getdel" | "lpop" | "rpop" | "lmpop" | "blpop" | "brpop" | "blmpop", _)\n'),
('"renamenx" | "lmove" | "rpoplpush", 0) => TAKES','"renamenx" | "lmove" | "rpoplpush" | "blmove" | "brpoplpush", 0) => TAKES'),
('        | ("lmove" | "rpoplpush", 1) => EXTENDS','        | ("lmove" | "rpoplpush" | "blmove" | "brpoplpush", 1) => EXTENDS'),
])
sub('commands/src/transactions/size.rs',[
('"lrem" | "lmove" | "rpoplpush"','"lrem" | "lmove" | "rpoplpush" | "blmove" | "brpoplpush"'),
('            "lmove" | "rpoplpush" => {','            "lmove" | "rpoplpush" | "blmove" | "brpoplpush" => {'),
])
sub('commands/src/host.rs',[
("    /// Makes this connection a monitor,","""    // Waiting for keys: BLPOP and others.

    /// Returns whether another connection waits for such a value of this key, and has waited for longer than this one.
    fn is_behind_others(&mut self, _wanted: Wanted, _key: &[u8]) -> bool {
        false
    }

    /// Returns whether this command has waited for keys, and runs again.
    fn has_waited(&self) -> bool {
        false
    }

    /// Lets this connection wait until one of these keys may have such a value, unless its time is over. The keys'
    /// slots are locked, so no change is missed.
    fn wait_for_keys(&mut self, _wanted: Wanted, _keys: &[&[u8]], _block: Block) -> KeyWait {
        KeyWait::TimedOut
    }

    /// Makes this connection a monitor,"""),
])
sub('commands/src/host/facts.rs',[
("/// A message to be published on a channel.","""/// The type of value that a blocked command waits for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Wanted {
    List,
}

/// The result of [`Host::wait_for_keys`](super::Host::wait_for_keys).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyWait {
    /// Nothing is replied; the command runs again.
    Waiting,
    TimedOut,
    /// CLIENT UNBLOCK has ended the wait with an error.
    Unblocked,
}

/// A message to be published on a channel."""),
("    pub is_closing: bool,\n","    pub is_closing: bool,\n    /// True if it waits for keys.\n    pub is_blocked: bool,\n"),
])
sub('commands/src/client/list.rs',[("        (client.queued.is_some(), 'x'),\n","        (client.queued.is_some(), 'x'),\n        (client.is_blocked, 'b'),\n")])
# --- cluster
sub('cluster/src/serving/slots.rs',[
("    fn awaits_promotion(&self, slot: Slot) -> bool;\n}","""    fn awaits_promotion(&self, slot: Slot) -> bool;

    /// Wakes the connections that wait for this key, which may have what they wait for. Called under the slot's lock.
    fn wake_waiters(&self, _key: &Key<'_>) {}
}

/// Wakes the connections that wait for the key of an effect, if it may end their wait.
#[inline]
pub(super) fn wake_waiters(plane: &impl ServingPlane, effect: &Effect<'_>) {
    if let Effect::InsertElements { key, .. } | Effect::Put { key, value: NewValue::List(_), .. } =
        effect
    {
        plane.wake_waiters(key);
    }
}"""),
("        self.reshaped |= applied.reshaped;\n        applied\n","        self.reshaped |= applied.reshaped;\n        wake_waiters(self.plane, effect);\n        applied\n"),
])
sub('cluster/src/serving/one.rs',[
("        self.reshaped |= applied.reshaped;\n        applied\n","        self.reshaped |= applied.reshaped;\n        wake_waiters(self.plane, effect);\n        applied\n"),
])
# --- server
sub('server/src/data/serving.rs',[
("    #[inline]\n    fn has_congestion(&self) -> bool {","    #[inline]\n    fn wake_waiters(&self, key: &Key<'_>) {\n        if !self.key_waiters.is_empty() {\n            self.key_waiters.wake_first(key.bytes(), &self.mailboxes);\n        }\n    }\n\n    #[inline]\n    fn has_congestion(&self) -> bool {"),
("use store::Seed;","use store::{Key, Seed};"),
])
sub('server/src/data/mod.rs',[
("    /// One for each worker: true if it holds replies back,","    /// Connections that wait for keys.\n    pub key_waiters: KeyWaiters,\n    /// One for each worker: true if it holds replies back,"),
("            awaiting_acks: mailboxes","            key_waiters: KeyWaiters::default(),\n            awaiting_acks: mailboxes"),
("use crate::keyspace::Keyspace;","use crate::key_waiters::KeyWaiters;\nuse crate::keyspace::Keyspace;"),
])
sub('server/src/wait_until.rs',[
("//! The deadline of a WAIT.","//! The deadline of a command that waits."),
])
s=open(R+'server/src/wait_until.rs').read()
s+='''
/// A connection's wait for keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeyWaitState {
    /// The place in line.
    pub number: WaitNumber,
    pub until: WaitUntil,
    /// True if the command that has just run has to wait.
    pub goes_on: bool,
}
'''
s=s.replace("use std::time::Instant;","use std::time::Instant;\n\nuse crate::key_waiters::WaitNumber;",1)
open(R+'server/src/wait_until.rs','w').write(s)
sub('server/src/worker/connection.rs',[
("    pub wait_until: Option<WaitUntil>,\n","    pub wait_until: Option<WaitUntil>,\n    /// Its place in line for keys, and its deadline.\n    pub key_wait: Option<KeyWaitState>,\n"),
("            wait_until: None,\n","            wait_until: None,\n            key_wait: None,\n"),
("use crate::wait_until::WaitUntil;","use crate::wait_until::{KeyWaitState, WaitUntil};"),
])
sub('server/src/worker/execute.rs',[
("        let Connection { session, card, question, written, wait_until, .. } =","        let Connection { session, card, question, written, wait_until, key_wait, .. } ="),
("                wait_until,\n                has_lease,","                wait_until,\n                key_wait,\n                has_lease,"),
("        let session = &mut self.connections[index].session;\n        if let Some(start) = muted {","        if self.connections[index].key_wait.is_some() {\n            self.park_or_leave_line(index, request);\n        }\n        let session = &mut self.connections[index].session;\n        if let Some(start) = muted {"),
])
sub('server/src/worker/mod.rs',[
("        self.end_subscriptions(index, &connection.session);\n","        self.end_subscriptions(index, &connection.session);\n        if let Some(wait) = connection.key_wait {\n            self.shared.data.leave_line(wait.number);\n        }\n"),
])
s=open(R+'server/src/data/mod.rs').read()
i=s.index("impl Data {")+len("impl Data {")
s=s[:i]+'''
    /// Ends a connection's wait for keys.
    pub(crate) fn leave_line(&self, number: WaitNumber) {
        self.key_waiters.leave(number, &self.mailboxes);
    }

    /// Ends another connection's wait for keys, as CLIENT UNBLOCK does. Returns false if it does not wait.
    pub(crate) fn unblock(&self, client: u64, how: Unblock) -> bool {
        self.key_waiters.end(client, how, &self.mailboxes)
    }
'''+s[i:]
s=s.replace("use crate::key_waiters::KeyWaiters;","use crate::key_waiters::{KeyWaiters, WaitNumber};",1)
s=s.replace("use commands::cluster::View;","use commands::Unblock;\nuse commands::cluster::View;",1)
open(R+'server/src/data/mod.rs','w').write(s)
sub('server/src/worker/waiting.rs',[
("//! for CLIENT PAUSE to end, for backups (WAIT).","//! for CLIENT PAUSE to end, for backups (WAIT), for keys (BLPOP)."),
("use std::collections::VecDeque;","use std::collections::{BTreeSet, VecDeque};"),
("    /// WAIT: not enough backups have acknowledged.\n    Backups,\n","    /// WAIT: not enough backups have acknowledged.\n    Backups,\n    /// BLPOP and others: no key of this slot has what the command waits for.\n    Keys(Slot),\n"),
("    places: Vec<usize>,","    places: BTreeSet<usize>,"),
("        self.waits.places.push(index);\n        connection.waiting","        self.waits.places.insert(index);\n        connection.waiting"),
("                self.waits.places.push(index);\n            }\n        }\n    }","                self.waits.places.insert(index);\n            }\n        }\n    }"),
("        if !is_late && !disturbed && !unpaused && self.waits.answered.is_empty() {\n            return;\n        }\n","        if !is_late && !disturbed && !unpaused {\n            return self.resume_answered();\n        }\n"),
("    /// Retries the requests that wait for acknowledgements,","""    /// Retries the requests whose answer has come, or whose keys may be ready: not all waiting ones are looked at.
    fn resume_answered(&mut self) {
        for index in core::mem::take(&mut self.waits.answered) {
            let waiting = self.connections.get(index).and_then(|it| it.waiting.as_ref());
            if waiting.is_some_and(|waiting| waiting.reason.ends_with_an_answer()) {
                self.waits.places.remove(&index);
                self.resume(index);
            }
        }
    }

    /// Parks a connection whose command has to wait for keys; takes it out of the line if its command is done.
    #[cold]
    pub(super) fn park_or_leave_line(&mut self, index: usize, request: &Request<'_>) {
        let connection = &mut self.connections[index];
        let Some(wait) = &mut connection.key_wait else { return };
        let goes_on = core::mem::replace(&mut wait.goes_on, false);
        let deadline = wait.until.at();
        if connection.waiting.is_some() {
            return; // It waits for something else first, and keeps its place in line.
        }
        match &request.key {
            Some(key) if goes_on => {
                self.park(index, request, ParkReason::Keys(key.slot()), deadline);
            }
            Some(_) | None => self.leave_line(index),
        }
    }

    fn leave_line(&mut self, index: usize) {
        if let Some(wait) = self.connections[index].key_wait.take() {
            self.shared.data.leave_line(wait.number);
        }
    }

    /// Retries the requests that wait for acknowledgements,"""),
("            Some(ParkReason::Slot(..) | ParkReason::Answer | ParkReason::Pause) | None => false,","            Some(\n                ParkReason::Slot(..)\n                | ParkReason::Answer\n                | ParkReason::Pause\n                | ParkReason::Keys(_),\n            )\n            | None => false,"),
("            let has_answer = reason == ParkReason::Answer && answered.contains(&index);","            let has_answer = reason.ends_with_an_answer() && answered.contains(&index);"),
("                ParkReason::Answer | ParkReason::Backups => false,","                ParkReason::Answer | ParkReason::Backups => false,\n                // The slot has moved away, or is about to.\n                ParkReason::Keys(slot) => !self.serves(slot),"),
("    /// Returns whether a slot's obstacle is gone.","""    /// Returns whether this node serves the slot. False for a slot that is locked: it is worth a try.
    fn serves(&self, slot: Slot) -> bool {
        self.env.cluster.is_mine(slot)
            && self.shared.data.keyspace.try_lock(slot).is_some_and(|it| it.replica().is_serving())
    }

    /// Returns whether a slot's obstacle is gone."""),
("    fn ends_with_acks(self) -> bool {","    fn ends_with_an_answer(self) -> bool {\n        matches!(self, ParkReason::Answer | ParkReason::Keys(_))\n    }\n\n    /// Returns whether acknowledgements may end the wait.\n    fn ends_with_acks(self) -> bool {"),
("    /// Returns whether acknowledgements may end the wait.\n    fn ends_with_an_answer","    /// Returns whether a message to the connection's worker ends the wait.\n    fn ends_with_an_answer"),
("                self.give_up(index, requests.pop_front(), obstacle);\n","                self.give_up(index, requests.pop_front(), obstacle);\n                self.leave_line(index);\n"),
])
sub('server/src/worker/round.rs',[
("        if connection.waiting.is_some() {\n            return false; // An event of its own resumes it.\n        }\n","        if connection.waiting.is_some() {\n            if connection.key_wait.is_some() && connection.readiness.hung_up {\n                self.close(index); // It must not take an element that nobody will read.\n            }\n            return false; // An event of its own resumes it.\n        }\n"),
])
sub('server/src/host.rs',[
("    pub wait_until: &'a mut Option<WaitUntil>,\n","    pub wait_until: &'a mut Option<WaitUntil>,\n    /// This connection's wait for keys.\n    pub key_wait: &'a mut Option<KeyWaitState>,\n"),
("use crate::wait_until::WaitUntil;","use crate::wait_until::{KeyWaitState, WaitUntil};"),
("    fn unblock_client(&mut self, _id: u64, _how: Unblock) -> bool {\n        false // No command of ours blocks.\n    }\n","""    fn unblock_client(&mut self, id: u64, how: Unblock) -> bool {
        self.shared.data.unblock(id, how)
    }

    fn is_behind_others(&mut self, wanted: Wanted, key: &[u8]) -> bool {
        let waiters = &self.shared.data.key_waiters;
        let number = self.key_wait.as_ref().map(|wait| wait.number);
        !waiters.is_empty() && waiters.is_behind(number, wanted, key)
    }

    fn has_waited(&self) -> bool {
        self.key_wait.is_some()
    }

    fn wait_for_keys(&mut self, wanted: Wanted, keys: &[&[u8]], block: Block) -> KeyWait {
        let waiters = &self.shared.data.key_waiters;
        if let Some(wait) = self.key_wait {
            match waiters.ended(wait.number) {
                Some(Unblock::AsTimeout) => return KeyWait::TimedOut,
                Some(Unblock::WithError) => return KeyWait::Unblocked,
                None => wait.goes_on = !wait.until.is_over(),
            }
            return if wait.goes_on { KeyWait::Waiting } else { KeyWait::TimedOut };
        }
        let until = match block {
            Block::Not => return KeyWait::TimedOut,
            // A time that the clock cannot name never comes.
            Block::For(long) => {
                Instant::now().checked_add(long).map_or(WaitUntil::ForEver, WaitUntil::At)
            }
            Block::ForEver => WaitUntil::ForEver,
        };
        let place = self.card.place;
        let client =
            WaitingClient { id: self.card.id, worker: place.worker, index: place.index };
        let number = waiters.enter(client, wanted, keys);
        *self.key_wait = Some(KeyWaitState { number, until, goes_on: true });
        KeyWait::Waiting
    }
"""),
("        let cards = self.shared.clients.all();\n        let facts = cards.iter().map(|card| {\n            if card.id == session.id {\n                self.this_client(session)\n            } else {\n                card.facts(self.now, &self.shared.table)\n            }\n        });","        let cards = self.shared.clients.all();\n        let blocked = self.shared.data.key_waiters.clients();\n        let facts = cards.iter().map(|card| {\n            if card.id == session.id {\n                self.this_client(session)\n            } else {\n                let is_blocked = blocked.contains(&card.id);\n                ClientFacts { is_blocked, ..card.facts(self.now, &self.shared.table) }\n            }\n        });"),
])

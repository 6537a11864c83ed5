//! Replies that wait for backups, and commands that wait for a handover. A reply leaves when all who
//! count have what it tells of; a command that finds its bucket between two primaries is kept and
//! tried again.

use core::sync::atomic::Ordering::{Acquire, Release};
use std::time::Instant;

use cluster::data::SlotState;
use cluster::replication::{LinkId, Role, Stage, Subject, Ticket, Wait};
use commands::{Error, Flag, Request, Session, Spec};
use placement::Slot;
use resp::{Mark, Output, Reply, encode_command};
use smallvec::SmallVec;

use super::Worker;
use super::connection::Behind;
use super::held_back::may_write;
use crate::data;
use crate::keyspace::LockedSlots;
use crate::shared::Shared;

/// Whether a command may run on the slots it has locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    Run,
    /// The bucket is being handed over: in a moment it is clear to whom.
    Wait,
    /// This slot is not served here.
    Elsewhere(Slot),
    /// A backup of the slot is so far behind that nobody adds to what it has to acknowledge.
    Congested(LinkId),
}

/// What a command needs of a slot.
#[derive(Clone, Copy)]
struct Need {
    /// Any copy will do.
    reads_copy: bool,
    /// So many nodes must have a copy.
    copies: usize,
}

/// What this node's duty to a slot lets a command do.
#[inline]
fn fate(slot: Slot, state: &SlotState, need: Need) -> Fate {
    match state.duty.role {
        Role::Serving if need.copies > 1 && 1 + state.duty.wait_set().count() < need.copies => {
            Fate::Wait
        }
        Role::Serving => Fate::Run,
        Role::Paused | Role::Settling | Role::Heir => Fate::Wait,
        Role::Backup if need.reads_copy => Fate::Run,
        Role::Backup | Role::Absent | Role::Taking | Role::Kept => Fate::Elsewhere(slot),
    }
}

/// Whether a command may run on these slots: of several, all must be served here.
#[inline]
pub(super) fn fate_of(
    shared: &Shared,
    slots: &mut LockedSlots<'_>,
    (spec, session): (&Spec, &Session),
    min_copies: usize,
) -> Fate {
    if let Some(link) = congested_feed(shared, slots, (spec, session)) {
        return Fate::Congested(link);
    }
    let reads_copy = session.reads_backups && spec.has(Flag::ReadOnly);
    if reads_copy && let Some(slot) = pending_slot(shared, slots) {
        return Fate::Elsewhere(slot);
    }
    let need = Need { reads_copy, copies: if spec.has(Flag::Write) { min_copies } else { 1 } };
    if let Some((slot, state)) = slots.one() {
        return fate(slot, state, need);
    }
    if slots.is_all_but_still() {
        return Fate::Wait;
    }
    let fates = slots.named().map(|(slot, state)| fate(slot, state, need));
    fates.fold(Fate::Run, |worst, next| match (worst, next) {
        (Fate::Run, next) => next,
        (worst @ (Fate::Wait | Fate::Elsewhere(_) | Fate::Congested(_)), _) => worst,
    })
}

/// A congested link that the command would add to.
#[inline]
fn congested_feed(
    shared: &Shared,
    slots: &mut LockedSlots<'_>,
    (spec, session): (&Spec, &Session),
) -> Option<LinkId> {
    let links = &shared.data.links;
    if !links.has_congestion() || !may_write(spec, session) {
        return None;
    }
    slots.named().find_map(|(_, state)| {
        let fed = state.duty.feeds.iter().filter(|feed| feed.stage != Stage::NotBegun);
        fed.map(|feed| feed.link).find(|link| links.is_congested(*link))
    })
}

/// A slot whose copy here may be old, because its primary has fallen silent.
fn pending_slot(shared: &Shared, slots: &mut LockedSlots<'_>) -> Option<Slot> {
    let pending = shared.data.pending.load();
    if pending.is_empty() {
        return None;
    }
    let map = shared.map();
    let is_old = |slot: Slot, state: &SlotState| {
        let primary = map.bucket_of(slot).primary();
        state.duty.role == Role::Backup && primary.is_some_and(|it| pending.contains(&it))
    };
    slots.named().find(|(slot, state)| is_old(*slot, state)).map(|(slot, _)| slot)
}

impl Worker<'_> {
    /// Sends on what the command has done to its slots, and makes its reply wait for whatever it
    /// depends on that is not safe yet. The slots are still locked.
    #[inline]
    pub(super) fn ship(&mut self, slots: &mut LockedSlots<'_>, spec: &Spec) -> Option<Ticket> {
        data::ship(self.shared, slots, &mut self.outcome);
        if slots.is_free() {
            return if spec.name == "wait" { self.ticket_of_all() } else { None };
        }
        if !self.waits_for_backups {
            return None;
        }
        if slots.is_walk() { self.ticket_of_all() } else { data::ticket_of(self.shared, slots) }
    }

    /// A walk over all slots depends on whatever is not acknowledged yet.
    fn ticket_of_all(&self) -> Option<Ticket> {
        let links = self.shared.data.links.living();
        let wait =
            |link: &std::sync::Arc<crate::data::Link>| Wait { link: link.id, number: link.last() };
        let behind = links.iter().filter(|link| link.acked() < link.last());
        let waits: SmallVec<[_; 1]> = behind.map(wait).collect();
        (!waits.is_empty()).then_some(Ticket { of: Subject::Everything, waits })
    }

    /// Holds a connection's output from `from` on.
    pub(super) fn hold(&mut self, index: usize, from: Mark, ticket: Ticket) {
        let connection = &mut self.connections[index];
        if connection.gate.is_open() {
            self.holding.push(index);
        }
        connection.gate.hold(from, ticket);
    }

    /// Sends the replies that need wait no longer.
    pub(super) fn release(&mut self) {
        self.tell_of_the_safe();
        if self.holding.is_empty() {
            return;
        }
        let map_number = self.shared.data.map_number();
        let map_changed = core::mem::replace(&mut self.released_at, map_number) != map_number;
        let mut waiting = core::mem::take(&mut self.holding);
        waiting.retain(|index| {
            let Some(connection) = self.connections.get_mut(*index) else { return false };
            if connection.gate.is_open() {
                return false; // Another connection has taken the place.
            }
            let shared = self.shared;
            let before = connection.gate.limit(connection.output.mark());
            let passed = connection.gate.pass(|ticket| data::judge(shared, ticket, map_changed));
            if passed.is_err() {
                self.close(*index);
                return false;
            }
            let open = connection.gate.is_open();
            if open || connection.gate.limit(connection.output.mark()) != before {
                self.answered.push(*index);
            }
            !open
        });
        self.holding = waiting;
        self.answer();
        let holds = !self.holding.is_empty() || !self.later.is_empty();
        self.shared.data.holding[self.number].store(holds, Release);
    }

    /// Says to the others that this worker wants to hear of acknowledgements. To be called before what
    /// is waited for is sent.
    pub(super) fn announce_holding(&self) {
        let flag = &self.shared.data.holding[self.number];
        if !self.holding.is_empty() && !flag.load(Acquire) {
            flag.store(true, Release);
        }
    }

    /// Tells the client who serves the slot. A new map changes what this node is to its slots first, and is
    /// seen then: until then it is not known who serves.
    #[cold]
    pub(super) fn send_elsewhere(
        &mut self,
        index: usize,
        request: &Request<'_>,
        slot: Slot,
        output: &mut Output,
    ) {
        self.look_around(); // The map is newer than the one this round began with.
        if self.around.cluster.is_mine(slot) {
            return self.park(index, request);
        }
        let error = self.around.cluster.redirection(slot);
        let session = &mut self.connections[index].session;
        Reply::new(output, session.protocol).error(error.text());
        session.refused();
        self.note_refusal(index, request, error);
    }

    /// The client was told why its command does not run.
    pub(super) fn note_refusal(&mut self, index: usize, request: &Request<'_>, error: Error) {
        self.shared.watching.commands[self.number].rejected(request.command);
        self.outcome.errors.push(error);
        self.note_stall(index);
    }

    /// Keeps a request that cannot run now, to be tried again.
    pub(super) fn park(&mut self, index: usize, request: &Request<'_>) {
        let args: SmallVec<[&[u8]; 8]> = request.args.iter().collect();
        let connection = &mut self.connections[index];
        if connection.parked.is_empty() {
            connection.parked_since = Some(connection.parked_since.unwrap_or_else(Instant::now));
            self.parked.push(index);
        }
        encode_command(&mut connection.parked, &args);
    }

    /// Keeps a request that waits for the timers of other nodes: no handover holds it up.
    #[cold]
    pub(super) fn park_for_answer(&mut self, index: usize, request: &Request<'_>) {
        self.park(index, request);
        self.connections[index].parked_since = None;
    }

    /// Keeps a request that would add to a backlog which is too long already. It is tried again when the
    /// backlog has shrunk, or a new map may say that the backup is none any more.
    #[cold]
    pub(super) fn park_behind(&mut self, index: usize, request: &Request<'_>, link: LinkId) {
        self.park(index, request);
        let map_number = self.shared.data.map_number();
        let connection = &mut self.connections[index];
        connection.parked_since = None;
        connection.behind = Some(Behind { link, map_number });
    }

    /// Connections with parked requests, to be tried again now.
    pub(super) fn unpark(&mut self) -> Vec<usize> {
        if self.parked.is_empty() {
            return Vec::new();
        }
        let parked = core::mem::take(&mut self.parked);
        let data = &self.shared.data;
        let awaits = |index: &usize| {
            let connection = self.connections.get_mut(*index);
            connection.is_some_and(|it| it.awaits_answer() || it.waits_for_backlog(data))
        };
        let (waiting, parked): (Vec<usize>, Vec<usize>) = parked.into_iter().partition(awaits);
        self.parked = waiting;
        for index in &parked {
            let Some(connection) = self.connections.get_mut(*index) else { continue };
            let mut input = core::mem::take(&mut connection.parked);
            input.append(&mut connection.input);
            connection.input = input;
            // What was begun behind them is read from its beginning.
            connection.parser = resp::RequestParser::default();
        }
        parked
    }

    /// A request of this connection has its answer, be it that it is another's to give: it waits no longer.
    #[inline]
    pub(super) fn note_stall(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if let Some(since) = connection.parked_since {
            connection.parked_since = None;
            self.shared.data.parked.note(since.elapsed());
        }
    }
}

//! Whether what waits with a ticket may leave, by what was acknowledged and what the map says.

use cluster::replication::{Passage, Standing, Subject, Ticket};

use smallvec::SmallVec;

use crate::keyspace::LockedSlots;
use crate::shared::Shared;

/// Whether a reply may leave. What the map says is looked at only when it has changed: until then only
/// an acknowledgement can help.
pub(crate) fn judge(shared: &Shared, ticket: &Ticket, map_changed: bool) -> Passage {
    let links = &shared.data.links;
    let acked = |link, slot| links.acked(link, slot);
    if ticket.is_acked(acked) {
        return Passage::Free;
    }
    if !map_changed {
        return Passage::Waiting;
    }
    let standing = match ticket.of {
        Subject::Slot(slot, _) => {
            let state = shared.keyspace.lock_one(slot);
            let duty = &state.duty;
            let reign = duty.is_primary().then_some(duty.reign);
            Standing { reign, wait_set: duty.wait_set().collect() }
        }
        Subject::Everything => {
            let wait_set = links.living().iter().map(|link| link.id).collect();
            Standing { reign: None, wait_set }
        }
    };
    ticket.passage(&standing, acked)
}

/// What a reply that depends on these slots has to wait for, if for anything. They are locked.
#[inline]
pub(crate) fn ticket_of(shared: &Shared, slots: &mut LockedSlots<'_>) -> Option<Ticket> {
    if slots.one().is_some_and(|(_, state)| state.duty.feeds.is_empty()) {
        return None; // As always on a node alone.
    }
    let links = &shared.data.links;
    let mut ticket: Option<Ticket> = None;
    for (slot, state) in slots.states() {
        let waits = state.duty.unsettled(|link| links.acked(link, Some(slot)));
        if !waits.is_empty() {
            let of = Subject::Slot(slot, state.duty.reign);
            ticket.get_or_insert(Ticket { of, waits: SmallVec::new() }).waits.extend(waits);
        }
    }
    ticket
}

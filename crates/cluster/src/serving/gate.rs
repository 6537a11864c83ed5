//! The gate of one connection: replies leave in order, each when all its tickets allow it and while this node
//! holds a lease. A node without a cluster holds nothing back.

use std::collections::VecDeque;

use super::ticket::{ReplyVerdict, Ticket};
use crate::rules::{Rule, is_enforced};

/// Holds the replies of a connection. `P` is a mark in the connection's output.
pub struct ReplyGate<P> {
    /// Tickets, sorted by mark. A reply that depends on several slots has several at one mark.
    withheld: VecDeque<(P, Ticket)>,
    /// True if there are replies that are valid only if this node holds a lease when they leave.
    relies_on_lease: bool,
}

/// The verdict that a reply must never be sent: the connection is closed without an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Aborted;

/// Capacity kept for tickets when there are none.
const CAPACITY_KEPT: usize = 1_024;

impl<P> Default for ReplyGate<P> {
    fn default() -> ReplyGate<P> {
        ReplyGate { withheld: VecDeque::new(), relies_on_lease: false }
    }
}

impl<P: Copy> ReplyGate<P> {
    /// Records that a command ran on slots of this node: its reply is valid only under a lease.
    #[inline]
    pub fn rely_on_lease(&mut self) {
        self.relies_on_lease = true;
    }

    /// Holds the output from `from` on until all tickets allow it to leave.
    pub fn withhold(&mut self, from: P, tickets: impl IntoIterator<Item = Ticket>) {
        let first_only = !is_enforced(Rule::TicketPerSlot);
        let count = if first_only { 1 } else { usize::MAX };
        self.withheld.extend(tickets.into_iter().take(count).map(|ticket| (from, ticket)));
    }

    /// Releases the replies that may leave by now.
    pub fn release(
        &mut self,
        mut judge: impl FnMut(&mut Ticket) -> ReplyVerdict,
    ) -> Result<(), Aborted> {
        while let Some((_, ticket)) = self.withheld.front_mut() {
            match judge(ticket) {
                ReplyVerdict::Release => drop(self.withheld.pop_front()),
                ReplyVerdict::Wait => return Ok(()),
                ReplyVerdict::Abort => return Err(Aborted),
            }
        }
        if self.withheld.capacity() > CAPACITY_KEPT {
            self.withheld = VecDeque::new();
        }
        Ok(())
    }

    /// Checks the lease, right before anything is sent. Replies that are still withheld are checked again when they
    /// leave.
    #[inline]
    pub fn check_lease(&mut self, has_lease: bool) -> Result<(), Aborted> {
        if self.relies_on_lease && !has_lease && is_enforced(Rule::LeaseCheck) {
            return Err(Aborted);
        }
        self.relies_on_lease = !self.withheld.is_empty();
        Ok(())
    }

    #[inline]
    pub fn is_open(&self) -> bool {
        self.withheld.is_empty()
    }

    /// Returns the position up to which an output that ends at `end` may be sent now.
    #[inline]
    pub fn limit(&self, end: P) -> P {
        self.withheld.front().map_or(end, |(place, _)| *place)
    }
}

//! Up to where a connection's output may be sent. A reply that must wait (for a backup to have the
//! write it acknowledges) holds itself and everything behind it; replies never overtake each other.
//! A node alone holds nothing.

use std::collections::VecDeque;

use resp::Mark;

/// What a held reply waits for; tickets are let through in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Ticket(pub u64);

#[derive(Default)]
pub(crate) struct Gate {
    /// From which place of the output on, until which ticket. In the order of places.
    held: VecDeque<(Mark, Ticket)>,
}

impl Gate {
    /// Holds the output from `from` on until `ticket` has passed.
    #[cfg_attr(not(test), expect(dead_code, reason = "the first backup will need it"))]
    pub(crate) fn hold(&mut self, from: Mark, ticket: Ticket) {
        self.held.push_back((from, ticket));
    }

    /// All tickets up to this one have passed.
    #[cfg_attr(not(test), expect(dead_code, reason = "the first backup will need it"))]
    pub(crate) fn pass(&mut self, passed: Ticket) {
        while self.held.front().is_some_and(|(_, ticket)| *ticket <= passed) {
            self.held.pop_front();
        }
    }

    /// Where sending stops for now, of an output that ends at `end`.
    pub(crate) fn limit(&self, end: Mark) -> Mark {
        self.held.front().map_or(end, |(mark, _)| *mark)
    }
}

#[cfg(test)]
mod tests {
    use resp::Output;

    use super::*;

    #[test]
    fn output_is_held_until_its_ticket_has_passed_and_never_out_of_order() {
        let mut output = Output::default();
        let mut gate = Gate::default();
        output.extend_from_slice(b"free");
        let first = output.mark();
        gate.hold(first, Ticket(7));
        output.extend_from_slice(b"first");
        let second = output.mark();
        gate.hold(second, Ticket(9));
        output.extend_from_slice(b"second");
        let end = output.mark();

        assert_eq!(gate.limit(end), first);
        gate.pass(Ticket(6));
        assert_eq!(gate.limit(end), first);
        gate.pass(Ticket(7));
        assert_eq!(gate.limit(end), second);
        gate.pass(Ticket(9));
        assert_eq!(gate.limit(end), end);
    }
}

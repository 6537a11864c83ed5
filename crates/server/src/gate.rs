//! Up to where a connection's output may be sent. A reply that must wait (for a backup to have the
//! write it acknowledges) holds itself and everything behind it; replies never overtake each other.
//! A node alone holds nothing.

use std::collections::VecDeque;

use cluster::replication::{Passage, Ticket};
use resp::Mark;

#[derive(Default)]
pub(crate) struct Gate {
    /// From which place of the output on, and what for. In the order of places.
    held: VecDeque<(Mark, Ticket)>,
}

/// The reply that is next must never be sent: the connection is to be closed.
pub(crate) struct Barred;

impl Gate {
    /// Holds the output from `from` on until `ticket` lets it pass.
    pub(crate) fn hold(&mut self, from: Mark, ticket: Ticket) {
        self.held.push_back((from, ticket));
    }

    /// Lets through what may pass.
    pub(crate) fn pass(&mut self, judge: impl Fn(&Ticket) -> Passage) -> Result<(), Barred> {
        while let Some((_, ticket)) = self.held.front() {
            match judge(ticket) {
                Passage::Free => self.held.pop_front(),
                Passage::Waiting => return Ok(()),
                Passage::Barred => return Err(Barred),
            };
        }
        if self.held.capacity() > KEPT_MAX {
            self.held = VecDeque::new();
        }
        Ok(())
    }

    pub(crate) fn is_open(&self) -> bool {
        self.held.is_empty()
    }

    /// Where sending stops for now, of an output that ends at `end`.
    pub(crate) fn limit(&self, end: Mark) -> Mark {
        self.held.front().map_or(end, |(mark, _)| *mark)
    }
}

/// Places kept for tickets when there are none.
const KEPT_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use cluster::map::LogIndex;
    use cluster::replication::{FrameNumber, LinkId, Subject, Wait};
    use placement::Slot;
    use resp::Output;
    use smallvec::smallvec;

    use super::*;

    fn ticket(number: u64) -> Ticket {
        let waits = smallvec![Wait { link: LinkId(0), number: FrameNumber(number) }];
        Ticket { of: Subject::Slot(Slot::of(b"k"), LogIndex(1)), waits }
    }

    fn acked(number: u64) -> impl Fn(&Ticket) -> Passage {
        move |ticket| {
            let free = ticket.is_acked(|_, _| FrameNumber(number));
            if free { Passage::Free } else { Passage::Waiting }
        }
    }

    #[test]
    fn output_is_held_until_its_ticket_has_passed_and_never_out_of_order() {
        let mut output = Output::default();
        let mut gate = Gate::default();
        output.extend_from_slice(b"free");
        let first = output.mark();
        gate.hold(first, ticket(7));
        output.extend_from_slice(b"first");
        let second = output.mark();
        gate.hold(second, ticket(9));
        output.extend_from_slice(b"second");
        let end = output.mark();

        assert_eq!(gate.limit(end), first);
        assert!(gate.pass(acked(6)).is_ok());
        assert_eq!(gate.limit(end), first);
        assert!(gate.pass(acked(7)).is_ok());
        assert_eq!(gate.limit(end), second);
        assert!(gate.pass(acked(9)).is_ok());
        assert_eq!(gate.limit(end), end);
    }

    #[test]
    fn what_is_barred_is_told() {
        let mut gate = Gate::default();
        gate.hold(Output::default().mark(), ticket(7));
        assert!(gate.pass(|_| Passage::Barred).is_err());
    }
}

//! Results of requests that this node has answered as primary, for as long as their coordinator may repeat them.
//!
//! A waiting coordinator repeats its proposal. A repetition can arrive after the answer was sent, and after
//! another client's change in between; if it were carried out then, it would undo that change. So `change.rs`
//! checks here first, and repeats the same answer. Each proposal names the first request of its coordinator
//! that is still open; links keep their order, so no earlier request is repeated.

use std::collections::BTreeMap;

use crate::ids::TimerPeer;
use crate::message::{ChangeResult, RequestId};

/// Maximum number of results kept. The first ones are dropped beyond it: their coordinators have given them up
/// long ago, or nearly.
const FINISHED_MAX: usize = 200_000;

#[derive(Default)]
pub(crate) struct FinishedRequests {
    results: BTreeMap<(TimerPeer, RequestId), ChangeResult>,
}

impl FinishedRequests {
    pub(crate) fn add(&mut self, coordinator: TimerPeer, request: RequestId, result: ChangeResult) {
        if self.results.len() >= FINISHED_MAX {
            self.results.pop_first();
        }
        self.results.insert((coordinator, request), result);
    }

    pub(crate) fn result(
        &self,
        coordinator: TimerPeer,
        request: RequestId,
    ) -> Option<ChangeResult> {
        self.results.get(&(coordinator, request)).copied()
    }

    /// Forgets the coordinator's requests before this one, which it no longer waits for.
    pub(crate) fn forget(&mut self, coordinator: TimerPeer, before: RequestId) {
        let first = (coordinator, RequestId(0));
        let closed = self.results.extract_if(first..(coordinator, before), |_, _| true);
        closed.for_each(drop);
    }

    /// Forgets all results: after a new list of members all open requests are proposed again.
    pub(crate) fn clear(&mut self) {
        self.results.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_coordinator_no_longer_waits_for_is_forgotten_and_nothing_else() {
        let node = |id| TimerPeer { id, boot: 1 };
        let mut finished = FinishedRequests::default();
        for (id, request) in [(1, 9), (2, 1), (2, 2), (2, 3), (3, 1)] {
            finished.add(node(id), RequestId(request), ChangeResult::Kept);
        }
        finished.forget(node(2), RequestId(3));
        let known = |id, request| finished.result(node(id), RequestId(request)).is_some();
        assert!(known(1, 9) && known(2, 3) && known(3, 1));
        assert!(!known(2, 1) && !known(2, 2));
    }
}

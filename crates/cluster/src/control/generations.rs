//! Two generations meet: the greater stands, the lesser yields.
//!
//! A side that can still decide commits `Yield`, never serves again, hands over what it wrote since
//! they parted (the data plane does, and says `Input::Merged`), and comes back as a new process. A
//! node that could not decide anything alone has acknowledged nothing that the other side lacks: it
//! just goes, and comes back.

use super::lease::patience;
use super::{Control, Gone, Message, Rule};
use crate::consensus::RaftMessage;
use crate::map::{Change, Generation, Map, NodeId};

impl Control {
    /// The generation this node belongs to, if it belongs to one.
    pub fn generation(&self) -> Option<Generation> {
        let by_map = self.consensus.map().map(Map::generation);
        by_map.or(self.welcome.as_ref().map(|welcome| welcome.generation))
    }

    pub(super) fn send_raft(&mut self, to: NodeId, message: RaftMessage) {
        if let Some(generation) = self.generation() {
            self.send(to, Message::Raft { generation, message });
        }
    }

    pub(super) fn on_raft(&mut self, from: NodeId, theirs: Generation, message: &RaftMessage) {
        if self.generation().is_some_and(|mine| mine.is_one_with(theirs)) {
            self.consensus.step(from, message);
        } else {
            self.on_met(theirs);
        }
    }

    /// Another generation of this cluster has shown itself, and will again until one has yielded.
    pub(super) fn on_met(&mut self, theirs: Generation) {
        let Some(map) = &self.map else { return };
        let mine = map.generation();
        let stands =
            mine > theirs && (mine.counter > theirs.counter || self.keeps(Rule::FoundersDiffer));
        if mine.is_one_with(theirs) || stands || map.yielded_to().is_some() {
            return;
        }
        if self.holds_lease() {
            self.propose(None, vec![Change::Yield(theirs)]);
        } else if self.may_go_alone() {
            self.go(Gone::Yielded(theirs));
        }
    }

    /// Whether it is sure that this node's lease, and so any of its side, has run out.
    fn may_go_alone(&self) -> bool {
        self.hearing.lease_ended().is_some_and(|ended| self.now >= ended + patience(self.lease()))
    }

    /// What this side wrote since the two parted is with the other one.
    pub(super) fn on_merged(&mut self) {
        if let Some(generation) = self.map.as_ref().and_then(|map| map.yielded_to()) {
            self.go(Gone::Yielded(generation));
        }
    }
}

//! Steps of a node's control plane: an input, and its actions in their order (`server/src/peer/carry.rs`). A disk may
//! take its time or fail, and a process may end between two actions.

use cluster::control::{Action, Input};
use cluster::map::{NodeId, Peer};

use super::node::Node;
use super::world::{Event, World, ms, tell};

/// The way a process ends within a step. Messages that it has sent by then arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Death {
    /// After this many actions.
    After(u64),
    /// At a write that fails because the disk is full. The process must not go on.
    BeforeWriting,
    /// At a write with unknown outcome: a sync has failed, but the data was written.
    AfterWriting,
}

impl World {
    pub(super) fn give(&mut self, to: NodeId, input: Input) {
        let Some(node) = self.nodes.get_mut(&to) else { return };
        if node.is_stopped || node.is_writing() {
            return node.inbox.push(input);
        }
        let clock = node.clock.at(self.now);
        node.plane.now.set(clock);
        let mut actions = Vec::new();
        let before = self.tells.then(|| node.control.configuration().clone());
        node.control.handle(clock, input, &mut actions);
        let after = node.control.configuration().clone();
        if before.is_some_and(|before| before != after) {
            tell!(self, "{to} votes by {:?}, before by {:?}", after.voters, after.voters_before);
        }
        self.carry_out_all(to, actions);
        self.note_read_until(to);
        self.after(to);
    }

    /// Tells the control plane of a process that all its input is handled.
    fn note_read_until(&mut self, id: NodeId) {
        let has_heard_all = |node: &&mut Node| !node.is_writing() && node.inbox.is_empty();
        if let Some(node) = self.nodes.get_mut(&id).filter(has_heard_all) {
            node.control.note_read_until(node.clock.at(self.now));
        }
    }

    fn carry_out_all(&mut self, id: NodeId, actions: Vec<Action>) {
        let mut actions = actions.into_iter();
        while let Some(action) = actions.next() {
            let takes_time = self.takes_time(id, &action);
            if self.dies_before(id, &action) {
                return self.die(id);
            }
            let is_write = matches!(action, Action::Persist(_));
            self.carry_out(id, action);
            if is_write && self.dies == Some((id, Death::AfterWriting)) {
                return self.die(id);
            }
            let Some(node) = self.nodes.get_mut(&id) else { return };
            if takes_time {
                node.waits_to_do = Some(actions.collect());
                let (of, takes) = (node.me, node.disk_takes);
                return self.push(takes, Event::DiskDone { of });
            }
        }
    }

    /// Returns whether the node waits for this write: only for promises to others.
    fn takes_time(&self, id: NodeId, action: &Action) -> bool {
        let slow = self.nodes.get(&id).filter(|node| !node.disk_takes.is_zero());
        let Action::Persist(persist) = action else { return false };
        slow.is_some_and(|node| persist.is_promise(&node.disk))
    }

    fn dies_before(&mut self, id: NodeId, action: &Action) -> bool {
        let Some((_, death)) = self.dies.as_mut().filter(|(node, _)| *node == id) else {
            return false;
        };
        match death {
            Death::After(0) => true,
            Death::After(left) => {
                *left -= 1;
                false
            }
            Death::BeforeWriting => matches!(action, Action::Persist(_)),
            Death::AfterWriting => false,
        }
    }

    fn die(&mut self, id: NodeId) {
        if let Some((_, death)) = self.dies.take() {
            tell!(self, "-- {id} ends within a step: {death:?}");
        }
        let left = self.kill(id);
        self.died.extend(left);
    }

    /// Continues after a slow disk write: the node carries out the waiting actions, then handles the input
    /// that arrived.
    pub(super) fn on_disk_done(&mut self, of: Peer) {
        let Some(node) = self.nodes.get_mut(&of.id).filter(|node| node.me == of) else { return };
        if node.is_stopped {
            return self.push(ms(20), Event::DiskDone { of });
        }
        let Some(actions) = node.waits_to_do.take() else { return };
        node.control.note_disk_wait(node.disk_takes);
        self.carry_out_all(of.id, actions);
        while let Some(node) = self.nodes.get_mut(&of.id).filter(|node| !node.is_writing()) {
            if node.inbox.is_empty() {
                break;
            }
            let input = node.inbox.remove(0);
            self.give(of.id, input);
        }
        self.note_read_until(of.id);
        self.after(of.id);
    }
}

//! The thread that applies decisions to the data plane, in their order (`server/src/peer/applier.rs`). A long command
//! holds locks of slots, so this thread may lag behind the control thread by seconds.

use std::collections::VecDeque;
use std::time::Duration;

use cluster::Moment;
use cluster::control::{Action, Answer as ControlAnswer, Gone, MapChanged};
use cluster::data::{MoverInput, Order};
use cluster::map::{NodeId, Peer};

use super::Sabotage;
use super::world::{Event, World, ms, tell};

#[derive(Default)]
pub(super) struct Applier {
    /// Effects of the control plane that are not applied yet.
    waiting: VecDeque<Action>,
    /// True if a long command holds the slots' locks.
    is_blocked: bool,
}

impl Applier {
    pub(super) fn is_idle(&self) -> bool {
        !self.is_blocked && self.waiting.is_empty()
    }
}

impl World {
    /// Applies an action, or queues it behind those that wait for the locks.
    pub(super) fn apply_in_turn(&mut self, id: NodeId, action: Action) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if matches!(action, Action::Gone(_)) {
            // The control thread ends the lease itself.
            node.lease_until = Moment::START;
        }
        if node.applier.is_blocked {
            node.applier.waiting.push_back(action);
        } else {
            self.apply(id, action);
        }
    }

    /// Blocks the applier for `lasts`, as a command does that holds the locks of its slots.
    pub(super) fn block_applier(&mut self, id: NodeId, lasts: Duration) {
        let Some(node) = self.nodes.get_mut(&id).filter(|node| node.applier.is_idle()) else {
            return;
        };
        node.applier.is_blocked = true;
        let of = node.me;
        tell!(self, "-- maps are not applied on {id} for {lasts:?}");
        self.push(lasts, Event::Unblock { of });
    }

    pub(super) fn on_unblock(&mut self, of: Peer) {
        let Some(node) = self.nodes.get_mut(&of.id).filter(|node| node.me == of) else { return };
        if node.is_stopped {
            return self.push(ms(20), Event::Unblock { of });
        }
        node.applier.is_blocked = false;
        let clock = node.clock.at(self.now);
        node.plane.now.set(clock);
        while let Some(action) = self.next_to_apply(of) {
            self.apply(of.id, action);
        }
        self.after(of.id);
    }

    /// Returns the next waiting action; `None` as well if the process has ended.
    fn next_to_apply(&mut self, of: Peer) -> Option<Action> {
        self.nodes.get_mut(&of.id).filter(|node| node.me == of)?.applier.waiting.pop_front()
    }

    /// Carries out an action that concerns the slots.
    pub(super) fn apply(&mut self, id: NodeId, action: Action) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        match action {
            Action::Persist(_) | Action::Send { .. } => unreachable!("carried out at once"),
            Action::MapChanged(changed) => self.follow(id, &changed),
            Action::Lease { until } => node.lease_until = until,
            Action::Order(order) => {
                if let Order::Fill { buckets, taker, .. } = &order {
                    tell!(self, "{id} fills {buckets:?} to {taker}");
                }
                if let Order::Pause { .. } = &order {
                    self.hands_over = Some(id);
                }
                self.tell_mover(id, MoverInput::Order(order));
            }
            Action::BackupLag { from, remaining_bytes, .. } => {
                if remaining_bytes == 0 {
                    let now = node.plane.now.get();
                    node.plane.heard.borrow_mut().insert(from, now);
                }
            }
            Action::Skew(_) | Action::MakeRoom { .. } => {}
            Action::Yield { to } => {
                tell!(self, "{id} yields to {to:?}");
                self.begin_to_yield(id);
            }
            Action::Bring { buckets } => {
                tell!(self, "{id} hands over its data of {buckets:?}");
                self.begin_to_bring(id, buckets);
            }
            Action::Answer { id, answer: ControlAnswer::Join(answer) } => {
                self.on_join_answer(id, answer);
            }
            Action::Answer { .. } => {}
            Action::Gone(gone) => {
                tell!(self, "{id} is gone: {gone:?}");
                if self.sabotage == Some(Sabotage::MergeAfterDeath) && gone == Gone::Removed {
                    self.merge_after_death(id);
                }
                self.end(id, &gone);
                self.gone.push(id);
            }
        }
    }

    fn follow(&mut self, id: NodeId, changed: &MapChanged) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.follow(&changed.map);
        let links = node.plane.links.borrow();
        let idle = links.living().filter(|(.., link)| link.stream.is_none());
        let idle: Vec<Peer> = idle.map(|(_, peer, _)| peer).collect();
        drop(links);
        let me = node.me;
        node.mover_due = self.now;
        node.resume_parked(self.now);
        let waiting = node.waiting_streams();
        for stream in waiting {
            self.take_in(id, stream, &[]);
        }
        for peer in idle {
            let after = ms(1 + self.rng.below(20));
            self.push(after, Event::Dial { from: me, to: peer });
        }
    }
}

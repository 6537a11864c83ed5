//! Tracks which epoch of the map each member follows, and starts the work that a new list of members requires.
//!
//! `MembersHello` reports two facts: "I have entered this epoch", after which its sender accepts nothing under an
//! earlier one; and "I am settled in it", after which it holds only timers that it keeps and that are not in
//! doubt. `change.rs` waits for the first, and uses the second to decide which nodes a change must reach.

use crate::core::Timers;
use crate::ids::{MembersEpoch, TimeSpan, TimerPeer};
use crate::input::TimerRule;
use crate::members::Members;
use crate::message::{MembersHello, Stage, TimerMessage};
use crate::resync::Basis;

/// Another member's progress with the epochs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Follower {
    entered: MembersEpoch,
    /// Its stage in the epoch it has entered.
    stage: Stage,
}

impl Follower {
    pub(crate) fn is_done(self, epoch: MembersEpoch) -> bool {
        self.has_reached(Stage::Settled, epoch)
    }

    fn has_reached(self, stage: Stage, epoch: MembersEpoch) -> bool {
        self.entered >= epoch && self.stage >= stage
    }
}

impl Timers {
    pub(crate) fn on_members(&mut self, members: Members) {
        if members.epoch() <= self.members.epoch() {
            return; // Every epoch is entered once, and never left for an earlier one.
        }
        let epoch = self.members.epoch();
        // 1) The state under the last list. Only if every member had handed over everything can we
        //    rely on each replica having its timers.
        let all_settled = self.followers.values().all(|follower| follower.is_done(epoch));
        let base = (self.is_settled() && all_settled).then(|| self.members.clone());
        // 2) A node that was away has missed changes: all its timers are in doubt.
        let is_first = epoch == MembersEpoch(0);
        if !is_first && !self.members.contains(self.me) && members.contains(self.me) {
            self.begin_stay();
        }
        let basis = match base {
            Some(base) if members.places_as(&base) => Basis::Same,
            Some(base) => Basis::List(base),
            None => Basis::Unknown,
        };
        self.era.listing = self.era.listing.wrapping_add(1);
        self.members = members;
        self.keep_followers();
        // 3) Changes numbered under the old epoch are proposed again by their coordinators.
        self.abandon_numbered();
        self.resync_start(basis);
        // 4) Before this node says that it has entered: report what other nodes might do a second time.
        self.tell_anew();
        self.greet();
        self.propose_all();
        self.look_anew();
    }

    fn begin_stay(&mut self) {
        // A node that never had a lease was away since before this process started.
        if let Some(held) = self.lease.last_held(self.now.moment) {
            (self.departed, self.departed_earlier) = (held, TimeSpan::ZERO);
        }
        self.doubt_all();
    }

    /// Puts all timers of this node in doubt.
    pub(crate) fn doubt_all(&mut self) {
        self.era.stay = self.era.stay.wrapping_add(1);
        if self.table.len() > 0 {
            self.resync.doubt_all();
        }
    }

    fn keep_followers(&mut self) {
        let others = self.members.all().iter().filter(|node| **node != self.me);
        let known = |node: &TimerPeer| self.followers.get(node).copied().unwrap_or_default();
        self.followers = others.map(|node| (*node, known(node))).collect();
    }

    pub(crate) fn on_hello(&mut self, from: TimerPeer, hello: &MembersHello) {
        if hello.answer {
            let mine = self.hello();
            self.send(from, TimerMessage::Hello(mine));
        }
        // A new member may send before the map that has it arrives; any other unknown sender is no longer a member.
        if hello.epoch <= self.members.epoch() && !self.members.contains(from) {
            return;
        }
        let follower = self.followers.entry(from).or_default();
        if hello.epoch >= follower.entered {
            *follower = Follower { entered: hello.epoch, stage: hello.stage };
        }
        if self.all_entered() {
            self.take_parked();
        }
    }

    /// Returns whether no member accepts anything under an earlier epoch any more.
    pub(crate) fn all_entered(&self) -> bool {
        let epoch = self.members.epoch();
        let entered = |node: &TimerPeer| {
            *node == self.me || self.followers.get(node).is_some_and(|f| f.entered >= epoch)
        };
        self.members.all().iter().all(entered) || !self.keeps(TimerRule::WaitForEntered)
    }

    /// Returns the members that may hold timers they do not keep, and so must learn of changes to them.
    pub(crate) fn unsettled(&self) -> Vec<TimerPeer> {
        let epoch = self.members.epoch();
        let open = |node: &&TimerPeer| {
            self.followers.get(*node).is_none_or(|follower| !follower.is_done(epoch))
        };
        let others = self.members.all().iter().filter(|node| **node != self.me);
        others.filter(open).copied().collect()
    }

    /// Returns whether all members have handed over all timers that are not in doubt.
    pub(crate) fn all_handed_over(&self) -> bool {
        let epoch = self.members.epoch();
        let mut others = self.members.all().iter().filter(|node| **node != self.me);
        let has = |node: &TimerPeer| {
            let follower = self.followers.get(node);
            follower.is_some_and(|follower| follower.has_reached(Stage::Doubts, epoch))
        };
        self.resync.stage() >= Stage::Doubts && others.all(has)
    }

    /// Tells all members this node's epoch and stage.
    pub(crate) fn greet(&mut self) {
        let hello = self.hello();
        let others: Vec<TimerPeer> = self.followers.keys().copied().collect();
        for node in others {
            self.send(node, TimerMessage::Hello(hello.clone()));
        }
    }

    pub(crate) fn follow_again(&mut self) {
        let question = MembersHello { answer: true, ..self.hello() };
        for node in self.unsettled() {
            self.send(node, TimerMessage::Hello(question.clone()));
        }
    }

    fn hello(&self) -> MembersHello {
        MembersHello { epoch: self.members.epoch(), stage: self.resync.stage(), answer: false }
    }
}

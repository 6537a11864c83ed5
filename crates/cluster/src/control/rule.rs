//! Rules that the tests and the simulator leave out one by one, to see that they notice. No node is
//! started so.

use super::Control;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// A lease runs from the moment it was asked for, not from when the answer came.
    LeaseFromAsking,
    /// A new leader counts everybody as renewed, for it knows of no grant.
    NewLeaderWaits,
    /// A leader that was stopped counts everybody as renewed, for it has not read its sockets.
    StallIsNoticed,
    /// Whoever is proposed as dead gets no lease any more.
    NoGrantToTheCondemned,
    /// A bucket is paused and drained before its promotion is proposed.
    DrainBeforePromotion,
    /// A restarted process is no member until the map says so.
    BootsDiffer,
    /// Who has a third member in its log, though undecided, does not take over.
    NoThirdInTheLog,
    /// Of two generations with the same counter the one with the greater founder stands.
    FoundersDiffer,
}

impl Rule {
    pub const ALL: [Rule; 8] = [
        Rule::LeaseFromAsking,
        Rule::NewLeaderWaits,
        Rule::StallIsNoticed,
        Rule::NoGrantToTheCondemned,
        Rule::DrainBeforePromotion,
        Rule::BootsDiffer,
        Rule::NoThirdInTheLog,
        Rule::FoundersDiffer,
    ];
}

impl Control {
    /// This node does not keep the rule from here on.
    pub fn break_rule(&mut self, rule: Rule) {
        self.broken = Some(rule);
    }

    pub(super) fn keeps(&self, rule: Rule) -> bool {
        self.broken != Some(rule)
    }
}

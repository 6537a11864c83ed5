//! Rules to break on purpose: a simulator that does not notice is worth nothing.

use core::fmt;

use cluster::rules::{self, BrokenRule, Rule};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sabotage {
    /// A rule is left out of the production code.
    Breaks(Rule),
    /// A lease runs from the receipt of the grant, not from the request.
    LeaseFromReceipt,
    /// A taker that has acknowledged the end of a fill frees the copy when the connection breaks.
    TakerFreesAfterEnd,
    /// A process that starts again takes its old place in the map.
    RestartKeepsPlace,
    /// A write that ran and was not acknowledged is answered with an error.
    ErrorForUnacked,
    /// A process that was declared dead, but is alive, brings back those of its data that are newer.
    MergeAfterDeath,
    /// In a merge of two sides the data handed over wins, whatever was changed on the other side.
    LastComeWins,
    /// Deletions since two sides split are not remembered: there are no tombstones.
    NoTombs,
    /// The losing side ends before it has handed over its writes.
    GoesBeforeMerged,
}

impl Sabotage {
    pub const ALL: [Sabotage; 20] = [
        Sabotage::Breaks(Rule::NewLeaderWaits),
        Sabotage::Breaks(Rule::StallIsNoticed),
        Sabotage::Breaks(Rule::NoLeaseAfterDeathProposed),
        Sabotage::Breaks(Rule::CopiesBeforeLeave),
        Sabotage::Breaks(Rule::LeaseCheck),
        Sabotage::Breaks(Rule::BackupWait),
        Sabotage::Breaks(Rule::RefusalCheck),
        Sabotage::Breaks(Rule::ReignCheck),
        Sabotage::Breaks(Rule::TicketPerSlot),
        Sabotage::Breaks(Rule::CopiesWait),
        Sabotage::Breaks(Rule::HandoverWait),
        Sabotage::Breaks(Rule::WaitSet),
        Sabotage::Breaks(Rule::Comparison),
        Sabotage::Breaks(Rule::PositionCheck),
        Sabotage::Breaks(Rule::PrimaryExpires),
        Sabotage::LeaseFromReceipt,
        Sabotage::TakerFreesAfterEnd,
        Sabotage::RestartKeepsPlace,
        Sabotage::ErrorForUnacked,
        Sabotage::MergeAfterDeath,
    ];

    /// Leaves the rule out of the production code on this thread, if it belongs to that code.
    pub(super) fn begin(sabotage: Option<Sabotage>) -> BrokenRule {
        let rule = if let Some(Sabotage::Breaks(rule)) = sabotage { Some(rule) } else { None };
        rules::break_rule(rule)
    }

    /// Returns the one with this name.
    pub fn named(name: &str) -> Option<Sabotage> {
        Sabotage::ALL.into_iter().find(|it| it.to_string() == name)
    }
}

/// Formats the name in small letters with dashes: `wait-set`.
impl fmt::Display for Sabotage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if let Sabotage::Breaks(rule) = self {
            format!("{rule:?}")
        } else {
            format!("{self:?}")
        };
        for (place, letter) in name.char_indices() {
            if letter.is_uppercase() && place > 0 {
                f.write_str("-")?;
            }
            write!(f, "{}", letter.to_ascii_lowercase())?;
        }
        Ok(())
    }
}

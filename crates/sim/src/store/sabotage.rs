//! Rules to break on purpose: a simulator that does not notice is worth nothing.

use core::fmt;

use cluster::control::Rule;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sabotage {
    /// A rule of the control plane is left out.
    Control(Rule),
    /// A lease runs from when the grant came, not from when it was asked for.
    LeaseFromReceipt,
    /// A bucket that is being handed over is still read and written.
    ServesWhilePaused,
    /// Replies wait for the backups in the map only, not for a taker that is about to be one.
    NoWaitSet,
    /// A taker that has acknowledged the end frees the copy when the connection breaks.
    TakerFreesAfterEnd,
    /// A backup applies what any former primary sends.
    NoReignCheck,
    /// A backup applies an effect on top of whatever it has.
    NoPositionCheck,
    /// After a death a new primary serves without asking the other backups what they have.
    NoComparison,
    /// A backup removes what has expired by its own clock.
    BackupExpires,
    /// A process that starts again takes its old place in the map.
    RestartKeepsPlace,
    /// A write that ran and was not acknowledged is answered with an error.
    ErrorForUnacked,
    /// A reply does not wait for earlier writes to its slot.
    RepliesAtOnce,
    /// The lease is not looked at when a command has run.
    NoLeaseCheck,
    /// A process that was counted as dead and lives brings what it has that is newer.
    MergeAfterDeath,
    /// When two sides meet, what is handed over wins, whatever was changed on the other side.
    LastComeWins,
    /// What was taken away since two sides parted is not remembered.
    NoTombs,
    /// A side that yields ends before it has handed over what it wrote.
    GoesBeforeMerged,
}

impl Sabotage {
    pub const ALL: [Sabotage; 16] = [
        Sabotage::Control(Rule::NewLeaderWaits),
        Sabotage::Control(Rule::StallIsNoticed),
        Sabotage::Control(Rule::NoGrantToTheCondemned),
        Sabotage::LeaseFromReceipt,
        Sabotage::ServesWhilePaused,
        Sabotage::NoWaitSet,
        Sabotage::TakerFreesAfterEnd,
        Sabotage::NoReignCheck,
        Sabotage::NoPositionCheck,
        Sabotage::NoComparison,
        Sabotage::BackupExpires,
        Sabotage::RestartKeepsPlace,
        Sabotage::ErrorForUnacked,
        Sabotage::RepliesAtOnce,
        Sabotage::NoLeaseCheck,
        Sabotage::MergeAfterDeath,
    ];

    /// The one that is shown like this.
    pub fn named(name: &str) -> Option<Sabotage> {
        Sabotage::ALL.into_iter().find(|it| it.to_string() == name)
    }
}

/// Its name in small letters with dashes: `no-wait-set`.
impl fmt::Display for Sabotage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if let Sabotage::Control(rule) = self {
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

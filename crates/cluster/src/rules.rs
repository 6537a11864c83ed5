//! Safety rules that tests break on purpose: a simulator that does not notice a missing rule is worth
//! nothing. Each place that keeps a rule asks [`holds`]; a release build has no switch, and the answer is a
//! constant there.

/// A safety rule of the control plane, the data plane or the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    // ---- The control plane.
    /// A lease runs from the moment it was asked for, not from when the answer came.
    LeaseFromAsking,
    /// A new leader counts all members as renewed: it knows of no grant of the leader before it.
    NewLeaderWaits,
    /// A leader that was stopped counts all members as renewed: it has not read its sockets.
    StallIsNoticed,
    /// A member that is proposed as dead gets no lease any more.
    NoGrantToTheCondemned,
    /// A bucket is paused and drained before its promotion is proposed.
    DrainBeforePromotion,
    /// A restarted process is no member until the map says so.
    BootsDiffer,
    /// A node with a third member in its log, though undecided, does not take over.
    NoThirdInTheLog,
    /// Of two generations with the same counter the one with the greater founder stands.
    FoundersDiffer,

    // ---- The data plane and the gate.
    /// A reply leaves only while the lease is valid.
    LeaseCheck,
    /// A reply waits until every backup in the wait set has acknowledged.
    BackupWait,
    /// An acknowledgement does not cover what the same node has refused.
    RefusalCheck,
    /// A reply of an ended reign leaves only by what was acknowledged in that reign, and a backup takes
    /// nothing from a deposed primary.
    ReignCheck,
    /// Each slot that a reply depends on is judged for itself.
    TicketPerSlot,
    /// A write waits while its bucket has fewer copies than `min-copies`.
    CopiesWait,
    /// Nothing runs on a bucket that is being handed over.
    HandoverWait,
    /// A taker counts before it is proposed as a backup.
    WaitSet,
    /// A new primary compares with the other backups before it serves.
    Comparison,
    /// A backup applies an effect only on top of the position it was made on, and agrees with a new primary only
    /// if both are at the same position.
    PositionCheck,
    /// Only the primary takes expired keys away.
    PrimaryExpires,
}

/// True if this build has the switches that break a rule.
pub const CAN_BREAK: bool = cfg!(debug_assertions);

#[cfg(debug_assertions)]
thread_local! {
    static BROKEN: core::cell::Cell<Option<Rule>> = const { core::cell::Cell::new(None) };
}

/// True unless a test has broken the rule on this thread.
#[inline]
pub fn holds(rule: Rule) -> bool {
    #[cfg(debug_assertions)]
    return BROKEN.get() != Some(rule);
    #[cfg(not(debug_assertions))]
    {
        let _ = rule;
        true
    }
}

/// A rule stays broken on this thread until this is dropped.
#[must_use]
#[derive(Debug)]
pub struct Broken(());

/// Breaks a rule on this thread, or none. Panics if this build has no switches ([`CAN_BREAK`]).
pub fn break_rule(rule: Option<Rule>) -> Broken {
    assert!(CAN_BREAK || rule.is_none(), "a build without debug assertions keeps every rule");
    #[cfg(debug_assertions)]
    BROKEN.set(rule);
    Broken(())
}

impl Drop for Broken {
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        BROKEN.set(None);
    }
}

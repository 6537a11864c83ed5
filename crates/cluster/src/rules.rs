//! Safety rules that tests break on purpose: a simulator that does not notice a missing rule is worthless. Each
//! place that enforces a rule asks [`holds`]; release builds have no switch, and the answer is a constant there.

/// A safety rule of the control plane, the data plane or the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    // ---- The control plane.
    /// A lease runs from the moment it was requested, not from the arrival of the grant.
    LeaseFromAsking,
    /// A new leader counts all members as renewed: it does not know the grants of its predecessor.
    NewLeaderWaits,
    /// A leader that was suspended counts all members as renewed: it has not read its sockets meanwhile.
    StallIsNoticed,
    /// A member that is proposed as dead gets no more leases.
    NoLeaseAfterDeathProposed,
    /// A bucket is paused and drained before its promotion is proposed.
    DrainBeforePromotion,
    /// A restarted process is not a member until the map says so.
    BootsDiffer,
    /// A node with a third member in its log, even uncommitted, does not take over.
    NoThirdInTheLog,
    /// A node that leaves safely goes only when the nodes that stay have all copies of its buckets.
    CopiesBeforeLeave,
    /// Of two generations with the same counter the one with the greater founder wins.
    FoundersDiffer,

    // ---- The data plane and the gate.
    /// A reply leaves only while the lease is valid.
    LeaseCheck,
    /// A reply waits until every backup in the wait set has acknowledged.
    BackupWait,
    /// An acknowledgement does not cover what the same node has refused.
    RefusalCheck,
    /// A reply of an ended reign leaves only by acknowledgements made in that reign, and a backup accepts
    /// nothing from a deposed primary.
    ReignCheck,
    /// Each slot that a reply depends on is judged separately.
    TicketPerSlot,
    /// A write waits while its bucket has fewer copies than `min-copies`.
    CopiesWait,
    /// Nothing runs on a bucket that is being handed over.
    HandoverWait,
    /// A taker joins the wait set before it is proposed as a backup.
    WaitSet,
    /// A new primary compares positions with the other backups before it serves.
    Comparison,
    /// A backup applies an effect only on top of the position it was made on, and agrees with a new primary
    /// only if both are at the same position.
    PositionCheck,
    /// Only the primary removes expired keys.
    PrimaryExpires,
}

/// True if this build has the switches that break a rule.
pub const CAN_BREAK: bool = cfg!(debug_assertions);

#[cfg(debug_assertions)]
thread_local! {
    static BROKEN: core::cell::Cell<Option<Rule>> = const { core::cell::Cell::new(None) };
}

/// Returns whether the rule is enforced: always, unless a test has broken it on this thread.
#[inline]
pub fn is_enforced(rule: Rule) -> bool {
    #[cfg(debug_assertions)]
    return BROKEN.get() != Some(rule);
    #[cfg(not(debug_assertions))]
    {
        let _ = rule;
        true
    }
}

/// Keeps a rule broken on this thread until it is dropped.
#[must_use]
#[derive(Debug)]
pub struct BrokenRule(());

/// Breaks a rule on this thread, or none. Panics if this build has no switches ([`CAN_BREAK`]).
pub fn break_rule(rule: Option<Rule>) -> BrokenRule {
    assert!(CAN_BREAK || rule.is_none(), "a build without debug assertions keeps every rule");
    #[cfg(debug_assertions)]
    BROKEN.set(rule);
    BrokenRule(())
}

impl Drop for BrokenRule {
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        BROKEN.set(None);
    }
}

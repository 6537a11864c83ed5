//! Safety rules that tests break on purpose: a simulator that does not notice a missing rule is worth
//! nothing. Each place that keeps a rule asks [`holds`]; a release build has no switch, and the answer is a
//! constant there.

/// A rule of the data plane or of the gate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
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
    /// A backup applies an effect only on top of the position it was made on.
    PositionCheck,
    /// Only the primary takes expired keys away.
    PrimaryExpires,
}

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

/// Breaks a rule on this thread, or none any more. False if this build has no switches.
pub fn break_rule(rule: Option<Rule>) -> bool {
    #[cfg(debug_assertions)]
    BROKEN.set(rule);
    cfg!(debug_assertions) || rule.is_none()
}

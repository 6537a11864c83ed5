//! Timers on real processes: what a client of `/timers` sees, and what it is called back with while
//! nodes come, leave and die.

mod sink; //   Somebody to call back.
mod api; //    What each request is answered with.
mod malformed; // What is refused, and why.
mod forbidden; // What is refused when it pops.
mod commands; //  TIMER.SET and its kin.
mod restarts; //  Through a stop of the whole cluster, and through being counted as dead.
mod meeting; //  Two nodes that each went on alone meet again.
mod churn; //  A cluster that grows, shrinks and loses a node while timers pop.

use std::time::Duration;

/// Waits for something that is to become so.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    e2e::wait_until(what, Duration::from_secs(60), is_so);
}

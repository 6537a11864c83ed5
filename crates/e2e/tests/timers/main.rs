//! Timers on real processes: what a client of `/timers` sees, and the callbacks it gets while nodes
//! join, leave and die.

mod sink; //   A server that receives callbacks.
mod api; //    The answer to each request.
mod malformed; // Requests that are refused, and why.
mod forbidden; // Callbacks that are refused when they pop.
mod commands; //  TIMER.SET and related commands.
mod restarts; //  Through a stop of the whole cluster, and through being declared dead.
mod meeting; //  Two nodes that each continued alone meet again.
mod churn; //  A cluster that grows, shrinks and loses a node while timers pop.

use std::time::Duration;

/// Waits until a condition holds.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    e2e::wait_until(what, Duration::from_secs(60), is_so);
}

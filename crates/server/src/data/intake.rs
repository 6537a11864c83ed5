//! Builds the context in which a worker applies frames of other nodes: this node's locks and the round's counters.

use cluster::data::ApplyContext;
use commands::Outcome;
use store::{AccessTracking, Applied, Touch, UnixMillis};

use super::Data;

/// Returns the context in which frames are applied.
pub(crate) fn apply_context<'a>(
    data: &'a Data,
    now: UnixMillis,
    access: AccessTracking,
    outcome: &'a mut Outcome,
) -> ApplyContext<'a, Data, impl FnMut(Applied) + use<'a>> {
    let touch = match access {
        AccessTracking::Lru => Touch::at(now, access, 0),
        AccessTracking::Lfu(_) => Touch::Nothing,
    };
    ApplyContext { plane: data, touch, applied: |done| outcome.applied(done) }
}

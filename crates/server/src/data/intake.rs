//! Frames from other nodes: the surface on which `cluster::data` applies them, made of this node's
//! locks and the outcome of a worker's round.

use cluster::data::ApplyContext;
use commands::Outcome;
use store::{AccessTracking, Applied, Touch, UnixMillis};

use super::Data;

/// Returns the surface on which frames are applied.
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

//! Frames from other nodes: the surface on which `cluster::data` applies them, made of this node's
//! locks and the outcome of a worker's round.

use cluster::data::ApplyContext;
use commands::{CommandEnv, Outcome};
use store::{Access, Applied, Touch};

use crate::shared::Shared;

/// Returns the surface on which frames are applied.
pub(crate) fn apply_context<'a>(
    shared: &'a Shared,
    env: &CommandEnv,
    outcome: &'a mut Outcome,
) -> ApplyContext<'a, Shared, impl FnMut(Applied) + use<'a>> {
    let touch = match env.access {
        Access::Lru => Touch::at(env.now, env.access, 0),
        Access::Lfu(_) => Touch::Nothing,
    };
    ApplyContext { plane: shared, touch, applied: |done| outcome.applied(done) }
}

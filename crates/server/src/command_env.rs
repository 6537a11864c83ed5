//! Values that hold for all commands of one worker round: the time and the relevant settings.

use std::sync::Arc;

use commands::CommandEnv;
use commands::cluster::View;
use scripting::NodeScripts;
use settings::{EvictionPolicy, NodeCrossSlot, Settings};
use store::{AccessTracking, LfuTuning, Seed};

use crate::clock;

pub(crate) fn command_env(
    settings: &Settings,
    cluster: Arc<View>,
    seed: &Seed,
    scripts: &Arc<NodeScripts>,
) -> CommandEnv {
    CommandEnv {
        now: clock::now(),
        seed: seed.clone(),
        access: access(settings),
        notify: settings.notify_keyspace_events,
        out_of_memory: false,
        one_slot_only: settings.cross_slot == NodeCrossSlot::Never || cluster.one_slot_only(),
        cluster,
        password_required: !settings.requirepass.is_empty(),
        string_bytes_max: usize::try_from(settings.proto_max_bulk_len).unwrap_or(usize::MAX),
        scripts: Arc::clone(scripts),
        slow_script: settings.busy_reply_threshold,
    }
}

/// Returns the way in which accesses are recorded.
pub(crate) fn access(settings: &Settings) -> AccessTracking {
    match settings.maxmemory_policy {
        EvictionPolicy::AllKeysLfu | EvictionPolicy::VolatileLfu => {
            AccessTracking::Lfu(lfu_tuning(settings))
        }
        EvictionPolicy::NoEviction
        | EvictionPolicy::AllKeysLru
        | EvictionPolicy::VolatileLru
        | EvictionPolicy::AllKeysRandom
        | EvictionPolicy::VolatileRandom
        | EvictionPolicy::VolatileTtl => AccessTracking::Lru,
    }
}

pub(crate) fn lfu_tuning(settings: &Settings) -> LfuTuning {
    LfuTuning { log_factor: settings.lfu_log_factor, decay_minutes: settings.lfu_decay_time }
}

//! Eviction when memory is short: before a command that may need more memory, keys are evicted until enough is
//! free or no key is eligible. Each worker has its own evictor; the selection logic is in `store::evict`.

use cluster::serving::{Access, EffectLog, LockedSlots, ServedSlots, ServingPlane};
use commands::{CommandEnv, Keys, LockSet, Outcome};
use placement::{Slot, SplitMix64};
use settings::{EvictionPolicy, NotifyClasses, Settings};
use std::time::Instant;
use store::{Candidate, Cause, Effect, EvictionPool, LfuTuning, Policy, SAMPLES_MAX};

use crate::command_env::lfu_tuning;
use crate::data::{Data, Later};

/// Maximum number of keys evicted for one command, so that no client waits for a whole clean-up.
const ROUND_MAX: usize = 64;

pub(crate) struct Evictor {
    pool: EvictionPool,
    policy: Policy,
}

impl Default for Evictor {
    fn default() -> Evictor {
        Evictor { pool: EvictionPool::default(), policy: Policy::NoEviction }
    }
}

/// Inputs and outputs of an eviction.
pub(crate) struct EvictionContext<'a> {
    pub data: &'a Data,
    pub env: &'a CommandEnv,
    pub outcome: &'a mut Outcome,
    pub effects: &'a mut EffectLog,
    pub rng: &'a mut SplitMix64,
    /// Takes the events of keys whose removal is not acknowledged yet.
    pub later: &'a mut Later,
    /// The slots from which keys are evicted; all that this node serves if `None`.
    pub slots: Option<&'a [Slot]>,
}

impl EvictionContext<'_> {
    /// Returns whether memory is within its limit.
    #[inline]
    pub(crate) fn is_enough(&self, settings: &Settings) -> bool {
        let used =
            self.data.keyspace.memory.counted().saturating_add_signed(self.outcome.grown_bytes);
        // What may not be evicted must not grow: then every write counts against the one limit.
        let limit = if settings.maxmemory_policy == EvictionPolicy::NoEviction {
            settings.maxmemory
        } else {
            self.data.keyspace.memory.limit(settings.maxmemory)
        };
        settings.maxmemory == 0 || used <= limit
    }
}

impl Evictor {
    /// Evicts keys until memory is within its limit or `ROUND_MAX` keys are gone. Returns false if no more key
    /// is eligible. The caller must hold no slot lock, because this function may wait for any of them.
    #[cold]
    pub(crate) fn evict(&mut self, settings: &Settings, room: &mut EvictionContext<'_>) -> bool {
        if !self.follow_policy(settings) {
            return false;
        }
        for _ in 0..ROUND_MAX {
            if !self.evict_one(settings, room) {
                return false;
            }
            if room.is_enough(settings) {
                break;
            }
        }
        // Enough is free, or the next commands continue the eviction.
        true
    }

    /// Adopts the policy of the settings. Returns false if nothing may be evicted.
    fn follow_policy(&mut self, settings: &Settings) -> bool {
        let policy = policy(settings.maxmemory_policy);
        if policy != self.policy {
            self.pool.clear();
            self.policy = policy;
        }
        policy != Policy::NoEviction
    }

    /// Evicts keys until so many bytes are free, no more key is eligible, or time is up. Returns the bytes that
    /// were freed and whether more could be. The caller must hold no slot lock.
    #[cold]
    pub(crate) fn evict_bytes(
        &mut self,
        settings: &Settings,
        room: &mut EvictionContext<'_>,
        bytes: u64,
        deadline: Instant,
    ) -> Evicted {
        let mut evicted = Evicted { bytes: 0, has_more: self.follow_policy(settings) };
        self.pool.clear(); // Its candidates may be of other slots.
        while evicted.has_more && evicted.bytes < bytes && Instant::now() < deadline {
            let before = room.outcome.grown_bytes;
            evicted.has_more = self.evict_one(settings, room);
            let freed = before.saturating_sub(room.outcome.grown_bytes);
            evicted.bytes += u64::try_from(freed).unwrap_or(0);
        }
        evicted
    }

    fn evict_one(&mut self, settings: &Settings, room: &mut EvictionContext<'_>) -> bool {
        let samples = (settings.maxmemory_samples as usize).clamp(1, SAMPLES_MAX);
        for _ in 0..samples {
            if let Some(candidate) = self.sample(lfu_tuning(settings), room) {
                self.pool.offer(candidate);
            }
        }
        while let Some(candidate) = self.pool.take_best() {
            if remove(&candidate, self.policy, room) {
                return true;
            }
        }
        false
    }

    fn sample(&self, tuning: LfuTuning, room: &mut EvictionContext<'_>) -> Option<Candidate> {
        let slot = random_slot(self.policy, room)?;
        let state = room.data.lock_unless_busy(slot)?;
        if !state.replica().is_serving() {
            return None;
        }
        state.table().candidate(self.policy, room.env.now, tuning, room.rng.draw())
    }
}

/// The result of an eviction.
pub(crate) struct Evicted {
    pub bytes: u64,
    /// False if no more key is eligible.
    pub has_more: bool,
}

/// Returns a slot with an eligible key: the first one at or after a random position.
fn random_slot(policy: Policy, room: &mut EvictionContext<'_>) -> Option<Slot> {
    let keyspace = &room.data.keyspace;
    if let Some(slots) = room.slots {
        let start = room.rng.draw() as usize % slots.len().max(1);
        let (before, behind) = slots.split_at(start.min(slots.len()));
        let has_key = |slot: &&Slot| match policy.is_volatile() {
            true => keyspace.has_expiring(**slot),
            false => keyspace.len_of(**slot) > 0,
        };
        return behind.iter().chain(before).find(has_key).copied();
    }
    let number = room.rng.draw() % u64::from(Slot::COUNT);
    let start = u16::try_from(number).ok().and_then(Slot::new)?;
    let next = |from: Slot| {
        if policy.is_volatile() {
            keyspace.next_expiring(from)
        } else {
            keyspace.next_occupied(from)
        }
    };
    next(start).or_else(|| next(Slot::new(0)?))
}

/// Removes the candidate if it still exists (and still has an expiry, if the policy is volatile).
fn remove(candidate: &Candidate, policy: Policy, room: &mut EvictionContext<'_>) -> bool {
    let key = room.env.seed.named(&candidate.key);
    let locked = LockedSlots::lock_unless_busy(room.data, LockSet::One(key.slot()));
    let Some(locked) = locked else { return false }; // A slow script may go on for long.
    let opened = ServedSlots::open(room.data, locked, Access::WRITE, room.effects);
    let Ok(mut slots) = opened else { return false };
    let mut keys = Keys::new(&mut slots, room.env, room.outcome, room.rng);
    let may_go =
        keys.peek(&key).is_some_and(|found| !policy.is_volatile() || found.expires_at.is_some());
    if may_go {
        keys.apply(&Effect::Remove { key, cause: Cause::Evicted });
        keys.notify_key(NotifyClasses::EVICTED, "evicted", &key);
        room.outcome.evicted += 1;
    }
    let tickets = slots.finish().tickets;
    if may_go && !tickets.is_empty() {
        room.later.put_off(tickets, core::mem::take(&mut room.outcome.events));
    }
    may_go
}

fn policy(setting: EvictionPolicy) -> Policy {
    match setting {
        EvictionPolicy::NoEviction => Policy::NoEviction,
        EvictionPolicy::AllKeysLru => Policy::AllKeysLru,
        EvictionPolicy::AllKeysLfu => Policy::AllKeysLfu,
        EvictionPolicy::AllKeysRandom => Policy::AllKeysRandom,
        EvictionPolicy::VolatileLru => Policy::VolatileLru,
        EvictionPolicy::VolatileLfu => Policy::VolatileLfu,
        EvictionPolicy::VolatileRandom => Policy::VolatileRandom,
        EvictionPolicy::VolatileTtl => Policy::VolatileTtl,
    }
}

//! Making room when memory is short: before a command that may need more, keys go until enough is
//! free or nothing may go. Each worker has an evictor of its own; the thinking is in `store::evict`.

use cluster::serving::{Access, EffectLog, LockedSlots, ServedSlots};
use commands::settings::{EvictionPolicy, NotifyClasses, Settings};
use commands::{Keys, Locks, Outcome, Surroundings, roll};
use placement::Slot;
use store::{Candidate, Cause, Effect, EvictionPool, LfuTuning, Policy, SAMPLES_MAX};

use crate::shared::Shared;
use crate::surroundings::lfu_tuning;

/// Keys evicted for one command at most: no client waits for a whole clean-up.
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

/// What an eviction works with.
pub(crate) struct Room<'a> {
    pub shared: &'a Shared,
    pub around: &'a Surroundings,
    pub outcome: &'a mut Outcome,
    pub effects: &'a mut EffectLog,
    pub chance: &'a mut u64,
}

impl Room<'_> {
    /// Whether memory is below its limit.
    #[inline]
    pub(crate) fn is_enough(&self, settings: &Settings) -> bool {
        let used = self.shared.memory.counted().saturating_add_signed(self.outcome.grown_bytes);
        settings.maxmemory == 0 || used <= settings.maxmemory
    }
}

impl Evictor {
    /// Evicts until memory is below its limit, or some keys on the way there. False if nothing more may
    /// go. The caller holds no slot: any of them may be waited for.
    #[cold]
    pub(crate) fn evict(&mut self, settings: &Settings, room: &mut Room<'_>) -> bool {
        let policy = policy(settings.maxmemory_policy);
        if policy != self.policy {
            self.pool.clear();
            self.policy = policy;
        }
        if policy == Policy::NoEviction {
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
        // Enough, or on the way there: the commands that follow go on with it.
        true
    }

    fn evict_one(&mut self, settings: &Settings, room: &mut Room<'_>) -> bool {
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

    fn sample(&self, tuning: LfuTuning, room: &mut Room<'_>) -> Option<Candidate> {
        let slot = random_slot(self.policy, room)?;
        let state = room.shared.keyspace.lock_one(slot);
        if !state.duty().is_serving() {
            return None;
        }
        state.table().candidate(self.policy, room.around.now, tuning, roll(room.chance))
    }
}

/// A slot that holds something that may go: the first one behind a random place.
fn random_slot(policy: Policy, room: &mut Room<'_>) -> Option<Slot> {
    let keyspace = &room.shared.keyspace;
    let number = roll(room.chance) % u64::from(Slot::COUNT);
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

/// Takes the candidate away if it is still there (and still expires, if only such may go).
fn remove(candidate: &Candidate, policy: Policy, room: &mut Room<'_>) -> bool {
    let key = room.around.seed.key(&candidate.key);
    let locked = LockedSlots::lock(room.shared, Locks::One(key.slot()));
    let opened = ServedSlots::open(room.shared, locked, Access::WRITE, room.effects);
    let Ok(mut slots) = opened else { return false };
    let mut keys = Keys::new(&mut slots, room.around, room.outcome, room.chance);
    let may_go =
        keys.peek(&key).is_some_and(|found| !policy.is_volatile() || found.expires_at.is_some());
    if may_go {
        keys.apply(&Effect::Remove { key, cause: Cause::Evicted });
        keys.notify(NotifyClasses::EVICTED, "evicted", key.bytes());
        room.outcome.evicted += 1;
    }
    // Its event is told with the reply of the command that room is made for, or by the keeper.
    drop(slots);
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

//! The janitor: one thread for background work that no client asks for. It expires keys on time, frees large
//! values, evicts when a limit was lowered, and queries the allocator's memory usage.

use core::sync::atomic::Ordering::Relaxed;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use cluster::serving::{Access, EffectLog, LockedSlots, ServedSlots};
use commands::{CommandEnv, Keys, LockSet, Outcome};
use placement::{Hashmask, Slot, SplitMix64};
use store::Garbage;

use crate::counters::count;
use crate::data::{Later, SlotSet};
use crate::evictor::{EvictionContext, Evictor};
use crate::health_log::HealthLog;
use crate::log;
use crate::pubsub::{EventRules, PubsubOutbox};
use crate::shared::Shared;
use crate::stall_watch::{HealthChange, StallWatch};
use crate::watching::{LATENCY_EVENTS, SAMPLE_EVERY, Totals};

/// Interval between sweeps for expired keys. A key is removed, and its event sent, late by at most this
/// interval plus the time of one sweep.
const TICK: Duration = Duration::from_millis(20);
/// Interval between checks of full mailboxes.
const BREATH: Duration = Duration::from_millis(1);
/// Time for which garbage is freed before other threads get a turn.
const TURN: Duration = Duration::from_millis(1);
const MEMORY_EVERY: Duration = Duration::from_millis(100);
const CONDITION_EVERY: Duration = Duration::from_secs(1);
const PRESSURE_EVERY: Duration = Duration::from_millis(250);
const SIZES_EVERY: Duration = Duration::from_secs(5);
/// A node that has left stops after this time without a command, or after `FAREWELL_MAX` at the latest.
const FORGOTTEN_AFTER: Duration = Duration::from_millis(1_500);
const FAREWELL_MAX: Duration = Duration::from_secs(6);
/// Maximum number of keys expired while a slot's lock is held.
const EXPIRE_BATCH: usize = 32;
/// Hashes in which fields expire per lock acquisition; of each, up to 1,000 fields.
const HASH_BATCH: usize = 8;

pub(crate) struct Janitor {
    shared: Arc<Shared>,
    garbage: Receiver<Garbage>,
    env: CommandEnv,
    outcome: Outcome,
    effects: EffectLog,
    rng: SplitMix64,
    outbox: PubsubOutbox,
    memory_due: Instant,
    condition_due: Instant,
    sizes_due: Instant,
    /// Buckets that were logged as too large and not worth splitting.
    one_slot_buckets: BTreeSet<Hashmask>,
    sample_due: Instant,
    pressure_due: Instant,
    /// True if the last report of memory said that this node is near its limit.
    was_near_limit: bool,
    stall_watch: StallWatch,
    health_log: HealthLog,
    evictor: Evictor,
    /// Evicts keys for nodes that are full.
    evictor_for_others: Evictor,
    /// The command count when it last changed, and the time of that change.
    asked: (u64, Instant),
    /// Events of expired keys whose removal is not acknowledged yet.
    later: Later,
}

impl Janitor {
    pub(crate) fn new(shared: Arc<Shared>, garbage: Receiver<Garbage>) -> Janitor {
        let env = shared.command_env();
        let outbox = PubsubOutbox::new(shared.mailboxes.len());
        Janitor {
            shared,
            garbage,
            env,
            outcome: Outcome::default(),
            effects: EffectLog::default(),
            rng: SplitMix64::new(0),
            outbox,
            memory_due: Instant::now(),
            condition_due: Instant::now(),
            sizes_due: Instant::now(),
            one_slot_buckets: BTreeSet::new(),
            sample_due: Instant::now(),
            pressure_due: Instant::now(),
            was_near_limit: false,
            stall_watch: StallWatch::new(Instant::now()),
            health_log: HealthLog::default(),
            evictor: Evictor::default(),
            evictor_for_others: Evictor::default(),
            asked: (0, Instant::now()),
            later: Later::default(),
        }
    }

    /// Runs until the node stops.
    pub(crate) fn run(mut self) {
        let mut tick = Instant::now();
        while !self.shared.is_stopping() {
            tick += TICK;
            self.free_until(tick);
            self.env = self.shared.command_env();
            if self.shared.expires_actively.load(Relaxed) {
                let begun = Instant::now();
                self.expire();
                let settings = self.shared.settings.load();
                let event = LATENCY_EVENTS.expire_cycle;
                self.shared.watching.latency.note(event, begun.elapsed(), &settings);
            }
            if self.memory_due <= tick {
                self.shared.data.refresh_memory();
                self.sample_rates();
                self.shared.cluster_view.refresh(&self.shared.control);
                self.memory_due = tick + MEMORY_EVERY;
                self.report_pressure(tick);
                self.watch_for_stalls();
                if self.condition_due <= tick {
                    self.condition_due = tick + CONDITION_EVERY;
                    self.shared.data.report_condition(self.shared.vitals());
                    self.health_log.note(Instant::now(), &self.shared.health());
                }
                if self.sizes_due <= tick {
                    self.sizes_due = tick + SIZES_EVERY;
                    self.report_sizes();
                }
                if self.sample_due <= tick {
                    self.sample_due = tick + SAMPLE_EVERY;
                    let Shared { watching, counters, table, data, .. } = &*self.shared;
                    watching.sample(counters, table, data.keyspace.memory.used());
                }
            }
            self.evict(tick + TICK / 2);
            self.make_room_elsewhere(tick + TICK);
            self.tell();
            self.end_if_forgotten(tick);
            // After a suspension of the whole machine, catching up tick by tick is pointless.
            tick = tick.max(Instant::now());
        }
    }

    /// Reports the sizes of this node's buckets, and logs each that has outgrown the rest but cannot be split.
    fn report_sizes(&mut self) {
        let one_slot = self.shared.data.report_sizes();
        for size in &one_slot {
            if self.one_slot_buckets.insert(size.bucket) {
                let (bucket, mebibytes) = (size.bucket, size.bytes >> 20);
                let line = format!(
                    "bucket {bucket} has {mebibytes} MiB, nearly all of it in one slot: one large key, or many keys \
                     with the same hash tag; it cannot be split, spread its keys over more tags"
                );
                log::warn("balance", &line);
            }
        }
        self.one_slot_buckets.retain(|bucket| one_slot.iter().any(|size| size.bucket == *bucket));
    }

    /// Stops a node that has left, once no client asks any more or some time has passed. Until then it
    /// redirects clients: without redirects they would find out by an error.
    fn end_if_forgotten(&mut self, now: Instant) {
        let Some(left) = self.shared.data.left.get() else { return };
        let commands = self.shared.counters.total(|counters| &counters.commands);
        if self.asked.0 != commands {
            self.asked = (commands, now);
        }
        let silent = now.saturating_duration_since(self.asked.1.max(*left)) >= FORGOTTEN_AFTER;
        if silent || left.elapsed() >= FAREWELL_MAX {
            self.shared.stop();
        }
    }

    /// Evicts without a write, because the limit may have been lowered. Stops at `deadline` at the latest.
    fn evict(&mut self, deadline: Instant) {
        let settings = self.shared.settings.load_full();
        if settings.maxmemory == 0 {
            return;
        }
        let mut room = EvictionContext {
            data: &self.shared.data,
            env: &self.env,
            outcome: &mut self.outcome,
            effects: &mut self.effects,
            rng: &mut self.rng,
            later: &mut self.later,
            slots: None,
        };
        while !room.is_enough(&settings)
            && self.evictor.evict(&settings, &mut room)
            && Instant::now() < deadline
        {}
        self.tell();
        self.publish_outcome();
    }

    /// Reports the memory of this node while it is near its limit, and once when it no longer is.
    fn report_pressure(&mut self, now: Instant) {
        if now < self.pressure_due {
            return;
        }
        let settings = self.shared.settings.load_full();
        let level = self.shared.data.memory_level(&settings);
        let is_near = level.is_near_limit();
        if is_near || self.was_near_limit {
            // Above the limit at every measurement: it decides who evicts.
            self.pressure_due = if level.excess() > 0 { now } else { now + PRESSURE_EVERY };
            self.shared.data.report_memory(&settings);
        }
        self.was_near_limit = is_near;
    }

    /// Evicts keys for other nodes that hold backups of this node's buckets and are full. Buckets of which
    /// nothing may be evicted are refused writes that need memory.
    fn make_room_elsewhere(&mut self, deadline: Instant) {
        let shared = Arc::clone(&self.shared);
        let crowding = &shared.data.crowding;
        let settings = shared.settings.load_full();
        let mut refused: Option<SlotSet> = None;
        for (node, bytes) in crowding.owed(Instant::now()) {
            let slots = shared.data.slots_backed_by(node);
            let mut room = EvictionContext {
                data: &shared.data,
                env: &self.env,
                outcome: &mut self.outcome,
                effects: &mut self.effects,
                rng: &mut self.rng,
                later: &mut self.later,
                slots: Some(&slots),
            };
            let evictor = &mut self.evictor_for_others;
            let evicted = evictor.evict_bytes(&settings, &mut room, bytes, deadline);
            crowding.pay(node, evicted.bytes);
            if !evicted.has_more {
                let set = refused.get_or_insert_default();
                slots.iter().for_each(|slot| set.insert(*slot));
            }
            self.tell();
            self.publish_outcome();
        }
        crowding.refuse(refused);
    }

    /// Reports this node as sick while one of its threads, or its disk, stalls.
    fn watch_for_stalls(&mut self) {
        let Shared { counters, data, .. } = &*self.shared;
        let workers = &counters.threads[..counters.threads.len() - 1];
        let mut pulses: Vec<u64> = workers.iter().map(|it| it.pulse.load(Relaxed)).collect();
        pulses.push(data.disk_pulse.load(Relaxed));
        let change = self.stall_watch.look(Instant::now(), &pulses);
        *data.stalled.lock() = self.stall_watch.stalled();
        match change {
            Some(HealthChange::FellSick(stalled)) => {
                let line = format!(
                    "this node is sick: {stalled}; it gets no more buckets, and hands over those it serves to \
                     healthy nodes"
                );
                log::warn("health", &line);
            }
            Some(HealthChange::Recovered) => log::info("health", "this node is well again"),
            None => return,
        }
        data.report_condition(self.shared.vitals());
    }

    fn sample_rates(&self) {
        let totals = Totals {
            commands: self.shared.counters.total(|counters| &counters.commands),
            bytes_in: self.shared.counters.total(|counters| &counters.bytes_in),
            bytes_out: self.shared.counters.total(|counters| &counters.bytes_out),
        };
        self.shared.watching.rates.sample(Instant::now(), totals);
    }

    /// Frees garbage as it arrives, until the next tick.
    fn free_until(&mut self, tick: Instant) {
        let mut turn = Instant::now();
        loop {
            let now = Instant::now();
            match self.garbage.recv_timeout(tick.saturating_duration_since(now)) {
                Ok(garbage) => {
                    drop(garbage);
                    // There may be thousands behind it, and nothing waits for them.
                    if now.saturating_duration_since(turn) >= TURN {
                        turn = now;
                        thread::yield_now();
                    }
                }
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => unreachable!("`shared` holds a sender"),
            }
        }
    }

    /// Removes all expired keys and fields, slot by slot, a few per lock acquisition.
    fn expire(&mut self) {
        let mut from = Slot::new(0);
        while let Some(slot) =
            from.and_then(|from| self.shared.data.keyspace.next_due(from, self.env.now))
        {
            while self.expire_some(slot) {}
            from = Slot::new(slot.number() + 1);
        }
        self.publish_outcome();
    }

    /// Expires some keys and fields of a slot. Returns true if there may be more.
    fn expire_some(&mut self, slot: Slot) -> bool {
        let shared = Arc::clone(&self.shared);
        let locked = LockedSlots::lock(&shared.data, LockSet::One(slot));
        let effects = &mut self.effects;
        let Ok(mut slots) = ServedSlots::open(&shared.data, locked, Access::WRITE, effects) else {
            return false; // Another node serves the slot by now, or will in a moment.
        };
        let due = slots.due(slot, self.env.now, EXPIRE_BATCH);
        let hashes = slots.due_hashes(slot, self.env.now, HASH_BATCH, &self.env.seed);
        self.outcome.grown_bytes += hashes.grown_bytes;
        let mut keys = Keys::new(&mut slots, &self.env, &mut self.outcome, &mut self.rng);
        for key in &due.keys {
            let key = self.env.seed.named(key);
            keys.expire(&key);
        }
        for key in &hashes.names {
            let key = self.env.seed.named(key);
            keys.expire_fields(&key);
        }
        slots.force_publish_counts(); // The time of the next check may have changed although nothing was due.
        let tickets = slots.finish().tickets;
        if !tickets.is_empty() {
            self.later.put_off(tickets, core::mem::take(&mut self.outcome.events));
        }
        self.tell();
        !due.keys.is_empty() || !hashes.names.is_empty() || hashes.more
    }

    /// Publishes the events of removed keys. Waits while the delivering workers cannot keep up.
    fn tell(&mut self) {
        self.outcome.events.append(&mut self.later.ripe(&self.shared.data));
        let rules = EventRules::of(&self.shared.settings.load());
        let events = &mut self.outcome.events;
        self.outbox.tell(&self.shared.exchange, None, rules, events);
        if self.outbox.is_empty() {
            return;
        }
        self.outbox.post(&self.shared.data.links, &self.shared.mailboxes, None);
        while !self.shared.is_stopping()
            && self.shared.mailboxes.iter().any(|mailbox| mailbox.is_full())
        {
            std::thread::sleep(BREATH);
        }
    }

    fn publish_outcome(&mut self) {
        self.shared.data.have_links_written();
        let counters = self.shared.counters.threads.last().expect("the janitor's own are the last");
        count(&counters.expired, core::mem::take(&mut self.outcome.expired));
        count(&counters.evicted, core::mem::take(&mut self.outcome.evicted));
        count(&counters.changes, core::mem::take(&mut self.outcome.changes));
        self.shared.data.keyspace.memory.grow(core::mem::take(&mut self.outcome.grown_bytes));
        self.outcome.garbage.clear();
    }
}

//! Items kept over a restart, if the node has a data directory. A node that stops as the last of its cluster
//! starts again with them; a node that was away for a while gets only the changes since.
//!
//! A process that was declared dead continues in a new life with all its tables in memory (`Copies`), with or
//! without a data directory, and brings back data that all other nodes have lost.
//!
//! The items are written to disk when the node has stopped and read before it joins (`Role::Stale`). They are
//! deleted from disk before the node counts as a copy of anything: an old state must not come back. Called by
//! `node.rs`.

use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::sync::OnceLock;

use cluster::control::{Freshness, KeptCopy};
use cluster::data::SlotState;
use cluster::map::{ClusterId, Generation, Map, RecreateSource};
use cluster::replication::Position;
use commands::Outcome;
use placement::{Hashmask, Slot};
use store::{DecodeError, DecodedItem, Seed};

use crate::disk::{DiskError, ItemsHead, SharedDirectory, TakeItems};
use crate::keyspace::Keyspace;
use crate::log;

/// Items kept on disk, from the node's start until it counts as a copy of something.
#[derive(Default)]
pub(crate) struct KeptCopies {
    directory: Option<SharedDirectory>,
    /// True if there are still items on the disk.
    on_disk: AtomicBool,
    /// Set once the items are in memory.
    generation: OnceLock<Generation>,
}

impl KeptCopies {
    pub(crate) fn on(directory: Option<SharedDirectory>) -> KeptCopies {
        let on_disk = AtomicBool::new(directory.is_some());
        KeptCopies { directory, on_disk, generation: OnceLock::new() }
    }

    pub(crate) fn has_directory(&self) -> bool {
        self.directory.is_some()
    }

    pub(crate) fn directory(&self) -> Option<SharedDirectory> {
        self.directory.clone()
    }

    /// Returns the generation in which the copies that were read were made.
    pub(crate) fn generation(&self) -> Option<Generation> {
        self.generation.get().copied()
    }

    /// Deletes the items on disk. From now on the node's data may change, so the old state must not come back.
    pub(crate) fn forget(&self) {
        if self.on_disk.load(Ordering::Acquire)
            && let Some(directory) = &self.directory
        {
            let directory = directory.lock();
            // Panic on an error: a node that cannot keep its promises must not make new ones.
            directory.forget_items().expect("the data directory can be written to");
            self.on_disk.store(false, Ordering::Release);
        }
    }

    /// Reads the kept items before the node joins. After an error, none of them is in memory.
    pub(crate) fn read(&self, keyspace: &Keyspace) -> Result<Option<RestoredCopies>, DiskError> {
        let Some(directory) = &self.directory else { return Ok(None) };
        let (items, cluster) = {
            let directory = directory.lock();
            (directory.read_items()?, directory.cluster())
        };
        let Some(items) = items.filter(|items| Some(items.head().cluster) == cluster) else {
            return Ok(None);
        };
        let (generation, buckets) = (items.head().map.generation(), items.head().held.clone());
        let mut reading = StaleLoader { keyspace, outcome: Outcome::default() };
        let read = items.read(&mut reading);
        keyspace.memory.grow(reading.outcome.grown_bytes);
        match read {
            Ok(items) => {
                let _ = self.generation.set(generation); // Not set yet: the items are read once.
                Ok(Some(RestoredCopies { items, offers: offers(keyspace, &buckets) }))
            }
            Err(error) => {
                drop_all(keyspace);
                Err(error)
            }
        }
    }

    /// Returns the source of lost buckets, when the node has its map and serves no client yet. A node that is
    /// alone, and to which no other node can give its buckets back, takes the items it has kept; if it has none,
    /// it starts empty. `None` if no bucket is to be restored here.
    pub(crate) fn source_of_lost(
        &self,
        map: &Map,
        found: Option<&RestoredCopies>,
    ) -> Option<RecreateSource> {
        let is_alone = map.members().len() == 1;
        if !is_alone || map.lost().next().is_none() || !self.has_directory() {
            return None;
        }
        Some(match found {
            Some(RestoredCopies { items, .. }) => {
                log::info("data", &format!("restored {items} keys from the data directory"));
                RecreateSource::OwnData
            }
            None => {
                let line = "this node was not shut down cleanly: its data is lost, starting empty";
                log::warn("data", line);
                RecreateSource::Empty
            }
        })
    }

    /// Resets the data directory of a node whose side has yielded: its log is obsolete, and the node joins the
    /// other side as a new one. Called when no thread of the node runs any more.
    pub(crate) fn begin_anew(&self) {
        let Some(directory) = &self.directory else { return };
        if let Err(error) = directory.lock().begin_anew() {
            log::error("data", &format!("cannot reset the data directory: {error}"));
        }
    }

    /// Saves the items. Called when no thread of the node runs any more.
    pub(crate) fn save(&self, keyspace: &Keyspace, map: &Map) {
        let Some(directory) = &self.directory else { return };
        let cluster = directory.lock().cluster();
        let Some(cluster) = cluster else { return };
        match try_save(keyspace, map, directory, cluster) {
            Ok(count) => log::info("data", &format!("saved {count} keys to the data directory")),
            Err(error) => {
                let line = format!("cannot save the items to the data directory: {error}");
                log::error("data", &line);
            }
        }
    }
}

/// Copies from an earlier process, or from an earlier life of this one, in memory again.
pub(crate) struct RestoredCopies {
    items: u64,
    offers: Vec<KeptCopy>,
}

/// Everything a process held when it was declared dead, carried into its next life.
pub(crate) struct Copies {
    /// The seed with which the keys in the tables are hashed.
    pub(crate) seed: Seed,
    generation: Generation,
    buckets: Vec<Hashmask>,
    slots: Vec<(Slot, SlotState)>,
}

impl Copies {
    /// Takes the tables out of a node that has ended.
    pub(crate) fn take(keyspace: &Keyspace, kept: &KeptCopies, map: &Map) -> Copies {
        let buckets = whole_buckets(keyspace, map);
        let take = |slot: Slot| {
            let mut state = keyspace.lock_one(slot);
            state.replica().has_copy().then(|| (slot, core::mem::take(&mut *state)))
        };
        let slots = Slot::all().filter_map(take).collect();
        let generation = kept.generation().unwrap_or_else(|| map.generation());
        Copies { seed: keyspace.seed.clone(), generation, buckets, slots }
    }

    /// Puts the copies into a starting node with the same seed. They are stale copies, offered to the cluster.
    pub(crate) fn give_to(self, keyspace: &Keyspace, kept: &KeptCopies) -> RestoredCopies {
        let mut items = 0;
        for (slot, state) in self.slots {
            items += state.table().len() as u64;
            *keyspace.lock_one(slot) = state.into_stale();
        }
        let _ = kept.generation.set(self.generation); // Not set yet: the node has just started.
        RestoredCopies { items, offers: offers(keyspace, &self.buckets) }
    }
}

/// Drops all items after an incomplete read: a partial copy is worthless.
fn drop_all(keyspace: &Keyspace) {
    let mut outcome = Outcome::default();
    for slot in Slot::all() {
        if let Some(done) = keyspace.lock_one(slot).drop_stale(&keyspace.seed) {
            outcome.applied(done);
        }
    }
    keyspace.memory.grow(outcome.grown_bytes);
}

impl RestoredCopies {
    pub(crate) fn offers(&self) -> Vec<KeptCopy> {
        self.offers.clone()
    }
}

/// Returns the complete copies of these buckets that are here, with their positions.
fn offers(keyspace: &Keyspace, buckets: &[Hashmask]) -> Vec<KeptCopy> {
    let position = |slot: Slot| {
        let state = keyspace.lock_one(slot);
        let Position { reign, version } = state.position();
        (reign, version.0)
    };
    let offer = |bucket: &Hashmask| {
        let slots = bucket.slots().filter_map(Slot::new);
        let position = slots.map(position).max().unwrap_or_default();
        KeptCopy { bucket: *bucket, kept: Freshness::AsItWas, position }
    };
    buckets.iter().map(offer).collect()
}

fn try_save(
    keyspace: &Keyspace,
    map: &Map,
    directory: &SharedDirectory,
    cluster: ClusterId,
) -> io::Result<u64> {
    let head = ItemsHead { cluster, held: whole_buckets(keyspace, map), map: Map::clone(map) };
    let mut writer = directory.lock().write_items(&head)?;
    for slot in Slot::all() {
        let state = keyspace.lock_one(slot);
        // Write empty slots, too: a bucket is complete only if all its slots are here.
        if state.replica().has_copy() {
            writer.slot(slot, state.position(), state.table())?;
        }
    }
    writer.finish()
}

/// Returns the buckets of which this node had a complete copy at its end.
fn whole_buckets(keyspace: &Keyspace, map: &Map) -> Vec<Hashmask> {
    let is_whole = |bucket: &Hashmask| {
        let mut slots = bucket.slots().filter_map(Slot::new);
        slots.all(|slot| keyspace.lock_one(slot).replica().has_copy())
    };
    map.buckets().map(|bucket| bucket.hashmask).filter(is_whole).collect()
}

struct StaleLoader<'a> {
    keyspace: &'a Keyspace,
    outcome: Outcome,
}

impl TakeItems for StaleLoader<'_> {
    fn slot(&mut self, slot: Slot, at: Position) {
        let mut state = self.keyspace.lock_one(slot);
        self.outcome.applied(state.load_stale(at, &self.keyspace.seed));
    }

    fn divergence(&mut self, slot: Slot, piece: &[u8]) -> Result<(), DecodeError> {
        let mut state = self.keyspace.lock_one(slot);
        self.outcome.applied(state.load_stale_divergence(piece)?);
        Ok(())
    }

    fn item(&mut self, slot: Slot, item: &DecodedItem<'_>) {
        let mut state = self.keyspace.lock_one(slot);
        self.outcome.applied(state.load_stale_item(item, &self.keyspace.seed));
    }
}

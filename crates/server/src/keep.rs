//! What a node alone keeps when it stops, if it has a data directory: its items, to have them again
//! when it starts. In a cluster the others have them. Called by `node.rs`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cluster::control::{Answer, Ask};
use cluster::map::{ClusterId, Source};
use cluster::replication::Position;
use commands::Outcome;
use placement::Slot;
use store::DecodedItem;

use crate::disk::{DiskError, ItemsHead, SharedDirectory, TakeItems};
use crate::enter::Place;
use crate::shared::Shared;

/// For a decision that needs nobody else.
const DECIDED_WITHIN: Duration = Duration::from_secs(10);

/// Where a node keeps its items.
pub(crate) struct Keepsake {
    directory: SharedDirectory,
    cluster: ClusterId,
}

impl Keepsake {
    /// `None` for a node without a data directory.
    pub(crate) fn of(place: &Place) -> Option<Keepsake> {
        let directory = place.directory.as_ref().map(Arc::clone)?;
        Some(Keepsake { directory, cluster: place.start.cluster })
    }

    /// Called when the node has its map and serves nobody yet. A node that is alone, and that nobody
    /// can give its buckets back, takes what it has kept; one that has kept nothing begins empty.
    /// An error is one line.
    pub(crate) fn bring_back(&self, shared: &Shared) -> Result<(), String> {
        let map = shared.map();
        if map.members().len() > 1 || map.lost().next().is_none() {
            return self.forget();
        }
        let kept = self.load(shared).map_err(|error| error.to_string())?;
        let from = match kept {
            Some(count) => {
                eprintln!("opencluster: back from the data directory, keys: {count}");
                Source::OwnData
            }
            None => {
                eprintln!(
                    "opencluster: this node did not stop in good order: what it held is gone"
                );
                Source::Empty
            }
        };
        match shared.control.ask_and_wait(Ask::Recreate(from), DECIDED_WITHIN) {
            Some(Answer::Done) => self.forget(),
            Some(Answer::Refused(why) | Answer::Unknown(why)) => Err(why),
            Some(Answer::Join(_)) | None => Err("the map does not change".to_owned()),
        }
    }

    /// From now on they may change: an old state must not come back.
    fn forget(&self) -> Result<(), String> {
        let forgotten = self.directory.lock().forget_items();
        forgotten.map_err(|error| format!("the data directory: {error}"))
    }

    fn load(&self, shared: &Shared) -> Result<Option<u64>, DiskError> {
        let items = self.directory.lock().read_items()?;
        let Some(items) = items.filter(|items| items.head().cluster == self.cluster) else {
            return Ok(None);
        };
        let mut loading = Loading { shared, outcome: Outcome::default() };
        let count = items.read(&mut loading)?;
        shared.memory.grow(loading.outcome.grown_bytes);
        Ok(Some(count))
    }

    /// The log of a side that has yielded leads nowhere: the node joins the other side as one that knows
    /// nothing. Called when no thread of the node runs any more.
    pub(crate) fn begin_anew(&self) {
        if let Err(error) = self.directory.lock().begin_anew() {
            eprintln!("opencluster: the data directory: {error}");
        }
    }

    /// Called when no thread of the node runs any more.
    pub(crate) fn save(&self, shared: &Shared) {
        match self.try_save(shared) {
            Ok(count) => eprintln!("opencluster: kept in the data directory, keys: {count}"),
            Err(error) => eprintln!("opencluster: nothing could be kept: {error}"),
        }
    }

    fn try_save(&self, shared: &Shared) -> io::Result<u64> {
        let head = ItemsHead { cluster: self.cluster, map: (*shared.map()).clone() };
        let mut writer = self.directory.lock().write_items(&head)?;
        for slot in Slot::all() {
            let state = shared.keyspace.lock_one(slot);
            if !state.table.is_empty() {
                let reign = state.duty.written_in;
                let at = Position { reign, version: state.table.version() };
                writer.slot(slot, at, &state.table)?;
            }
        }
        writer.finish()
    }
}

struct Loading<'a> {
    shared: &'a Shared,
    outcome: Outcome,
}

impl TakeItems for Loading<'_> {
    fn slot(&mut self, slot: Slot, at: Position) {
        let mut state = self.shared.keyspace.lock_one(slot);
        state.duty.written_in = at.reign;
        self.outcome.applied(state.table.begin_copy(at.version, &self.shared.seed));
    }

    fn item(&mut self, slot: Slot, item: &DecodedItem<'_>) {
        let mut state = self.shared.keyspace.lock_one(slot);
        self.outcome.applied(state.table.copy_item(item, &self.shared.seed));
        self.shared.keyspace.note(slot, &state);
    }
}

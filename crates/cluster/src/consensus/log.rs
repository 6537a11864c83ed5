//! The log in memory, in the form the library reads, and the map it produces.
//!
//! Every committed entry is applied at once, so a snapshot can be made at any time and replaces all of
//! them. Some applied entries are kept: a node that missed only those needs no snapshot.

use std::collections::VecDeque;

use raft::eraftpb::{self, Entry};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use super::{Configuration, HardState, LogPlace, Saved, SnapshotData};
use crate::map::{ChangeOutcome, LogIndex, Map, NodeId};

/// Entries kept behind the last one applied when the log is compacted.
const TAIL: u64 = 256;
/// The log is compacted when it has this many more.
const COMPACT_AFTER: u64 = 1024;

pub(super) struct Log {
    hard_state: HardState,
    /// Position of the entry before the first of `entries`.
    before: LogPlace,
    entries: VecDeque<Entry>,
    /// Position up to which `map` and `configuration` include everything.
    applied: LogPlace,
    configuration: Configuration,
    /// `None` before the first snapshot of a joining node.
    map: Option<Map>,
}

impl Log {
    /// Returns the first snapshot of a cluster: the founder's map replaces an entry that never existed,
    /// so that every joining node begins with a snapshot.
    pub(super) fn founded(founder: NodeId, map: Map) -> SnapshotData {
        let at = LogPlace::new(LogIndex::FIRST.0, 1);
        SnapshotData { at, configuration: Configuration::of_voter(founder), map }
    }

    pub(super) fn new(saved: Saved) -> Log {
        let Saved { hard_state, snapshot, entries } = saved;
        let (before, configuration, map) = match snapshot {
            Some(snapshot) => (snapshot.at, snapshot.configuration, Some(snapshot.map)),
            None => (LogPlace::default(), Configuration::default(), None),
        };
        let entries = entries.iter().map(super::Entry::to_raft).collect();
        Log { hard_state, before, entries, applied: before, configuration, map }
    }

    pub(super) fn map(&self) -> Option<&Map> {
        self.map.as_ref()
    }

    pub(super) fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    pub(super) fn applied(&self) -> LogIndex {
        self.applied.index
    }

    pub(super) fn hard_state(&self) -> HardState {
        self.hard_state
    }

    pub(super) fn set_hard_state(&mut self, hard_state: HardState) {
        self.hard_state = hard_state;
    }

    pub(super) fn append(&mut self, entries: &[Entry]) {
        let Some(first) = entries.first() else { return };
        let kept = first.index - self.before.index.0 - 1;
        assert!(kept <= self.entries.len() as u64, "the log has no gap");
        self.entries.truncate(kept as usize);
        self.entries.extend(entries.iter().cloned());
    }

    pub(super) fn install(&mut self, snapshot: SnapshotData) {
        (self.before, self.applied) = (snapshot.at, snapshot.at);
        self.entries.clear();
        self.configuration = snapshot.configuration;
        self.map = Some(snapshot.map);
    }

    pub(super) fn apply_changes(
        &mut self,
        at: LogPlace,
        entry: &super::LogEntry,
    ) -> Vec<ChangeOutcome> {
        self.apply_nothing(at);
        let map = self.map.as_mut().expect("entries follow a snapshot, which has a map");
        map.apply_entry(at.index, entry.planned_at, &entry.changes)
    }

    pub(super) fn apply_configuration(&mut self, at: LogPlace, configuration: Configuration) {
        self.apply_nothing(at);
        self.configuration = configuration;
    }

    pub(super) fn apply_nothing(&mut self, at: LogPlace) {
        assert_eq!(at.index.0, self.applied.index.0 + 1, "entries are applied one after the other");
        self.applied = at;
    }

    /// Returns the entries of the log that are not committed as far as this node knows.
    pub(super) fn undecided(&self) -> impl Iterator<Item = super::Entry> + use<'_> {
        let decided = (self.applied.index.0 - self.before.index.0) as usize;
        self.entries.iter().skip(decided).map(super::Entry::of_raft)
    }

    pub(super) fn is_long(&self) -> bool {
        self.applied.index.0 - self.before.index.0 >= TAIL + COMPACT_AFTER
    }

    /// Drops the applied entries, except for the tail.
    pub(super) fn compact(&mut self) {
        let until = self.applied.index.0.saturating_sub(TAIL);
        while self.before.index.0 < until {
            let entry = self.entries.pop_front().expect("what is applied and not gone is here");
            self.before = LogPlace::new(entry.index, entry.term);
        }
    }

    /// Returns a snapshot of the map with everything applied, unless there is none yet.
    pub(super) fn to_snapshot(&self) -> Option<SnapshotData> {
        let (at, configuration) = (self.applied, self.configuration.clone());
        self.map.clone().map(|map| SnapshotData { at, configuration, map })
    }

    /// Returns everything this node needs after a restart: the applied entries as a snapshot, then the
    /// rest.
    pub(super) fn to_saved(&self) -> Saved {
        let saved = Saved::new(self.hard_state, self.to_snapshot(), self.undecided().collect());
        saved.expect("the log has no gap, and begins with a map")
    }

    fn place(&self, index: u64) -> Result<usize, StorageError> {
        if index <= self.before.index.0 {
            return Err(StorageError::Compacted);
        }
        let place = (index - self.before.index.0 - 1) as usize;
        if place < self.entries.len() { Ok(place) } else { Err(StorageError::Unavailable) }
    }
}

impl Storage for Log {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(RaftState::new(self.hard_state.to_raft(), self.configuration.to_raft()))
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        let places = self.place(low)?..=self.place(high - 1)?;
        let mut entries = self.entries.range(places).cloned().collect();
        raft::util::limit_size(&mut entries, max_size.into());
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        if index == self.before.index.0 {
            return Ok(self.before.term.0);
        }
        Ok(self.entries[self.place(index)?].term)
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.before.index.0 + 1)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.before.index.0 + self.entries.len() as u64)
    }

    fn snapshot(&self, _: u64, _: u64) -> raft::Result<eraftpb::Snapshot> {
        let snapshot = self.to_snapshot().ok_or(StorageError::SnapshotTemporarilyUnavailable)?;
        Ok(snapshot.to_raft())
    }
}

//! The log on disk: one file that begins with a snapshot, and is appended to with every write.
//!
//! With a new snapshot the file is written anew, with only what is still needed, and takes the place of
//! the old one at once: so a snapshot and the entries behind it always belong together.

use std::io;

use cluster::consensus::{Entry, HardState, Persist, Saved, SnapshotData};
use cluster::map::LogIndex;
use serde::{Deserialize, Serialize};

use super::directory::Directory;
use super::record::{self, Magic, Next, RecordsReader, RecordsWriter};
use super::{Damage, DiskError};

pub(super) const FILE: &str = "log";
const MAGIC: Magic = *b"OCLOG_01";

/// Each record is one write, whole or not at all.
#[derive(Serialize, Deserialize)]
struct Written {
    snapshot: Option<SnapshotData>,
    truncate_from: Option<LogIndex>,
    entries: Vec<Entry>,
    hard_state: Option<HardState>,
}

pub(super) struct KeptLog {
    /// What would be found if the node started again now.
    saved: Saved,
}

impl KeptLog {
    pub(super) fn create<D: Directory>(files: &D) -> io::Result<KeptLog> {
        let log = KeptLog { saved: Saved::default() };
        log.rewrite(files)?;
        Ok(log)
    }

    /// None if there is no log.
    pub(super) fn read<D: Directory>(files: &D) -> Result<Option<(KeptLog, Saved)>, DiskError> {
        let Some(mut reader) = RecordsReader::open(files, FILE, MAGIC)? else { return Ok(None) };
        let mut saved = Saved::default();
        let torn = loop {
            let written = match reader.next()? {
                Next::Record(record) => postcard::from_bytes::<Written>(record).ok(),
                Next::End => break false,
                Next::Torn => break true,
            };
            saved.write(written.ok_or_else(|| reader.unreadable())?.into());
        };
        let parts = (saved.hard_state(), saved.snapshot().cloned(), saved.entries().to_vec());
        let saved = Saved::new(parts.0, parts.1, parts.2);
        let saved = saved.map_err(|what| reader.damaged(Damage::Inconsistent(what)))?;
        let log = KeptLog { saved };
        if torn {
            // Or the next record would stand behind the torn one.
            log.rewrite(files).map_err(|error| reader.failed(error))?;
        }
        let saved = log.saved.clone();
        Ok(Some((log, saved)))
    }

    /// When it returns, all of it that matters is on disk.
    pub(super) fn write<D: Directory>(&mut self, files: &D, persist: Persist) -> io::Result<()> {
        if !persist.is_promise(&self.saved) {
            self.saved.write(persist); // It goes with what is written next.
            return Ok(());
        }
        let written = Written::from(persist.clone());
        self.saved.write(persist);
        if written.snapshot.is_some() {
            return self.rewrite(files);
        }
        let mut bytes = Vec::new();
        record::put(&written.encode(), &mut bytes);
        // Part of it may be there, and whether the rest of the file still is nobody knows.
        files.append(FILE, &bytes).or_else(|_| self.rewrite(files))
    }

    fn rewrite<D: Directory>(&self, files: &D) -> io::Result<()> {
        let mut writer = RecordsWriter::begin(files, FILE, MAGIC)?;
        let whole = Written {
            snapshot: self.saved.snapshot().cloned(),
            truncate_from: None,
            entries: self.saved.entries().to_vec(),
            hard_state: Some(self.saved.hard_state()),
        };
        writer.put(&whole.encode())?;
        writer.finish()
    }
}

impl Written {
    fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("entries and maps can be written")
    }
}

impl From<Persist> for Written {
    fn from(persist: Persist) -> Written {
        let Persist { snapshot, truncate_from, entries, hard_state } = persist;
        Written { snapshot, truncate_from, entries, hard_state }
    }
}

impl From<Written> for Persist {
    fn from(written: Written) -> Persist {
        let Written { snapshot, truncate_from, entries, hard_state } = written;
        Persist { snapshot, truncate_from, entries, hard_state }
    }
}

#[cfg(test)]
mod tests;

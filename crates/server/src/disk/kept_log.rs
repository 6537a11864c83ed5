//! The log on disk: one file that begins with a snapshot; every write appends to it.
//!
//! With a new snapshot the file is rewritten with only what is still needed, and replaced atomically: so a
//! snapshot and the entries after it always belong together.

use std::io;

use cluster::consensus::{Entry, HardState, Persist, Saved, SnapshotData};
use cluster::map::LogIndex;
use serde::{Deserialize, Serialize};

use super::directory::Directory;
use super::record::{self, Magic, NextRecord, RecordsReader, RecordsWriter};
use super::{Damage, DiskError};

pub(super) const FILE: &str = "log";
const MAGIC: Magic = *b"OCLOG_01";

/// One write to the log. Each is one record, complete or absent.
#[derive(Serialize, Deserialize)]
struct LogWrite {
    snapshot: Option<SnapshotData>,
    truncate_from: Option<LogIndex>,
    entries: Vec<Entry>,
    hard_state: Option<HardState>,
}

pub(super) struct KeptLog {
    /// The state that a restart would find now.
    saved: Saved,
}

impl KeptLog {
    pub(super) fn create<D: Directory>(files: &D) -> io::Result<KeptLog> {
        let log = KeptLog { saved: Saved::default() };
        log.rewrite(files)?;
        Ok(log)
    }

    /// Reads the log. Returns `None` if there is none.
    pub(super) fn read<D: Directory>(files: &D) -> Result<Option<(KeptLog, Saved)>, DiskError> {
        let Some(mut reader) = RecordsReader::open(files, FILE, MAGIC)? else { return Ok(None) };
        let mut saved = Saved::default();
        let torn = loop {
            let written = match reader.next()? {
                NextRecord::Record(record) => postcard::from_bytes::<LogWrite>(record).ok(),
                NextRecord::End => break false,
                NextRecord::Torn => break true,
            };
            saved.write(written.ok_or_else(|| reader.unreadable())?.into());
        };
        let parts = (saved.hard_state(), saved.snapshot().cloned(), saved.entries().to_vec());
        let saved = Saved::new(parts.0, parts.1, parts.2);
        let saved = saved.map_err(|what| reader.damaged(Damage::Inconsistent(what)))?;
        let log = KeptLog { saved };
        if torn {
            // Otherwise the next record would follow the torn one.
            log.rewrite(files).map_err(|error| reader.failed(error))?;
        }
        let saved = log.saved.clone();
        Ok(Some((log, saved)))
    }

    /// Writes to the log. On return, everything that a promise depends on is on disk.
    pub(super) fn write<D: Directory>(&mut self, files: &D, persist: Persist) -> io::Result<()> {
        if !persist.is_promise(&self.saved) {
            self.saved.write(persist); // Goes to disk with the next write.
            return Ok(());
        }
        let written = LogWrite::from(persist.clone());
        self.saved.write(persist);
        if written.snapshot.is_some() {
            return self.rewrite(files);
        }
        let mut bytes = Vec::new();
        record::put(&written.encode(), &mut bytes);
        // Part of it may be on disk, and the rest of the file is in an unknown state: rewrite it.
        files.append(FILE, &bytes).or_else(|_| self.rewrite(files))
    }

    fn rewrite<D: Directory>(&self, files: &D) -> io::Result<()> {
        let mut writer = RecordsWriter::begin(files, FILE, MAGIC)?;
        let whole = LogWrite {
            snapshot: self.saved.snapshot().cloned(),
            truncate_from: None,
            entries: self.saved.entries().to_vec(),
            hard_state: Some(self.saved.hard_state()),
        };
        writer.put(&whole.encode())?;
        writer.finish()
    }
}

impl LogWrite {
    fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("entries and maps can be written")
    }
}

impl From<Persist> for LogWrite {
    fn from(persist: Persist) -> LogWrite {
        let Persist { snapshot, truncate_from, entries, hard_state } = persist;
        LogWrite { snapshot, truncate_from, entries, hard_state }
    }
}

impl From<LogWrite> for Persist {
    fn from(written: LogWrite) -> Persist {
        let LogWrite { snapshot, truncate_from, entries, hard_state } = written;
        Persist { snapshot, truncate_from, entries, hard_state }
    }
}

#[cfg(test)]
mod tests;

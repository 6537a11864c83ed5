//! What a node keeps over a restart, in its data directory: who it is, and its part of the log.
//!
//! `lock` is held for as long as the process lives, so that two processes never share a directory.
//! `node` has its id and its cluster. `log` is a list of records, each with its length and checksum,
//! written at the end and synced; a torn end is what a crash leaves and is cut off. When a snapshot
//! makes most of it superfluous it is written anew and put in its place.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use cluster::consensus::{Entry, HardState, Inconsistent, Persist, Saved, SnapshotData};
use cluster::map::{ClusterId, LogIndex, NodeId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::frame;

const LOCK: &str = "lock";
const NODE: &str = "node";
const LOG: &str = "log";
const FORMAT: u32 = 1;
const HEADER_BYTES: usize = 8;

/// Who a node is, whatever process it runs as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Identity {
    format: u32,
    pub id: NodeId,
    pub cluster: ClusterId,
}

/// One step of what the log became.
#[derive(Serialize, Deserialize)]
enum Record {
    Snapshot(Box<SnapshotData>),
    TruncateFrom(LogIndex),
    Entry(Entry),
    HardState(HardState),
}

pub(crate) struct Disk {
    directory: PathBuf,
    log: File,
    /// What the log amounts to, to write it anew.
    saved: Saved,
    _lock: File,
}

/// The directory cannot be used. Nothing was changed in it.
#[derive(Debug)]
pub(crate) enum DiskError {
    Io(PathBuf, io::Error),
    Taken(PathBuf),
    Unreadable(PathBuf),
    Inconsistent(PathBuf, Inconsistent),
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiskError::Io(path, error) => write!(f, "{}: {error}", path.display()),
            DiskError::Taken(path) => {
                write!(f, "data-dir {} is in use by another process", path.display())
            }
            DiskError::Unreadable(path) => write!(
                f,
                "{}: this is no file of this version of OpenCluster; choose another --data-dir",
                path.display()
            ),
            DiskError::Inconsistent(path, why) => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl Disk {
    /// Opens a directory, and makes it if it is not there. What it had kept is returned.
    pub(crate) fn open(directory: &Path) -> Result<(Disk, Option<Identity>, Saved), DiskError> {
        let failed = |error| DiskError::Io(directory.to_owned(), error);
        fs::create_dir_all(directory).map_err(failed)?;
        let lock = take_lock(directory)?;
        let identity = read_identity(directory)?;
        let path = directory.join(LOG);
        let failed = |error| DiskError::Io(path.clone(), error);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(failed)?,
        };
        let (saved, good) = replay(&bytes);
        let saved =
            Saved::new(saved.hard_state(), saved.snapshot().cloned(), saved.entries().to_vec())
                .map_err(|why| DiskError::Inconsistent(path.clone(), why))?;
        let log = OpenOptions::new().create(true).append(true).open(&path).map_err(failed)?;
        log.set_len(good as u64).map_err(failed)?;
        let disk = Disk { directory: directory.to_owned(), log, saved, _lock: lock };
        let saved = disk.saved.clone();
        Ok((disk, identity, saved))
    }

    pub(crate) fn keep_identity(&self, id: NodeId, cluster: ClusterId) -> Result<(), DiskError> {
        let identity = Identity { format: FORMAT, id, cluster };
        let path = self.directory.join(NODE);
        replace(&path, &record(&identity)).map_err(|error| DiskError::Io(path, error))
    }

    /// Writes, and waits until it is on the disk. A node that cannot keep its promises must not go
    /// on making them: if this fails, it ends.
    pub(super) fn write(&mut self, persist: Persist) {
        self.try_write(persist).expect("the data directory can be written to");
    }

    fn try_write(&mut self, persist: Persist) -> io::Result<()> {
        let anew = persist.snapshot.is_some();
        let bytes = if anew { Vec::new() } else { records_of(&persist) };
        self.saved.write(persist);
        if anew {
            return self.write_anew();
        }
        self.log.write_all(&bytes)?;
        self.log.sync_data()
    }

    fn write_anew(&mut self) -> io::Result<()> {
        let path = self.directory.join(LOG);
        let whole = Persist {
            snapshot: self.saved.snapshot().cloned(),
            truncate_from: None,
            entries: self.saved.entries().to_vec(),
            hard_state: Some(self.saved.hard_state()),
        };
        replace(&path, &records_of(&whole))?;
        self.log = OpenOptions::new().append(true).open(&path)?;
        Ok(())
    }
}

fn take_lock(directory: &Path) -> Result<File, DiskError> {
    let path = directory.join(LOCK);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(|error| DiskError::Io(path.clone(), error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(DiskError::Taken(directory.to_owned())),
        Err(TryLockError::Error(error)) => Err(DiskError::Io(path, error)),
    }
}

fn read_identity(directory: &Path) -> Result<Option<Identity>, DiskError> {
    let path = directory.join(NODE);
    let bytes = match fs::read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read.map_err(|error| DiskError::Io(path.clone(), error))?,
    };
    let identity: Option<Identity> = first_record(&bytes).map(|(identity, _)| identity);
    identity
        .filter(|identity| identity.format == FORMAT)
        .map(Some)
        .ok_or(DiskError::Unreadable(path))
}

/// Puts a file in the place of another, so that at every moment one of them is there and whole.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(path.parent().expect("a file is in a directory"))?.sync_all()
}

/// What the records amount to, and how many bytes of them are good.
fn replay(bytes: &[u8]) -> (Saved, usize) {
    let mut saved = Saved::default();
    let mut good = 0;
    while let Some((step, length)) = first_record::<Record>(&bytes[good..]) {
        good += length;
        let mut persist = Persist::default();
        match step {
            Record::Snapshot(snapshot) => persist.snapshot = Some(*snapshot),
            Record::TruncateFrom(index) => persist.truncate_from = Some(index),
            Record::Entry(entry) => persist.entries.push(entry),
            Record::HardState(hard_state) => persist.hard_state = Some(hard_state),
        }
        saved.write(persist);
    }
    (saved, good)
}

fn records_of(persist: &Persist) -> Vec<u8> {
    let Persist { snapshot, truncate_from, entries, hard_state } = persist;
    let snapshot = snapshot.clone().map(|snapshot| Record::Snapshot(Box::new(snapshot)));
    let truncate = truncate_from.map(Record::TruncateFrom);
    let hard_state = hard_state.map(Record::HardState);
    let entries = entries.iter().cloned().map(Record::Entry);
    let steps = truncate.into_iter().chain(snapshot).chain(entries).chain(hard_state);
    steps.flat_map(|step| record(&step)).collect()
}

/// Length, checksum, bytes.
fn record<T: Serialize>(value: &T) -> Vec<u8> {
    let body = postcard::to_allocvec(value).expect("everything that is kept can be written");
    let length = u32::try_from(body.len()).expect("a record is far below 4 GiB");
    let checksum = crc32fast::hash(&body);
    [&length.to_le_bytes()[..], &checksum.to_le_bytes(), &body].concat()
}

/// The first record and its length, if it is whole.
fn first_record<T: DeserializeOwned>(bytes: &[u8]) -> Option<(T, usize)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, rest) = rest.split_first_chunk::<4>()?;
    let body = rest.get(..u32::from_le_bytes(*length) as usize)?;
    let is_whole = crc32fast::hash(body) == u32::from_le_bytes(*checksum);
    let value = is_whole.then(|| frame::read_body(body).ok()).flatten()?;
    Some((value, HEADER_BYTES + body.len()))
}

#[cfg(test)]
mod tests;

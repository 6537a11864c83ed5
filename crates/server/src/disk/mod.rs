//! The data directory: the state a node keeps over a restart, so that it returns with its id, its vote and its
//! log, and with its items too if it was the last of a cluster or has left for a while.
//!
//! ```text
//! lock    held while a process uses the directory
//! node    the node's id and its cluster
//! log     the log of map changes: the initial map, then all later writes
//! items   the items the node held when it was stopped, until it holds anything again
//! ```
//!
//! All files are checksummed records (`record.rs`). A file is either appended to or replaced as a whole. After
//! a crash or a power cut it has its old or its new content, or a torn end that was never acknowledged. The
//! control thread opens the directory, and writes what `Consensus` asks for before it sends anything.
mod directory; // File operations: few, so that tests can make each one fail.
mod record; //    Checksummed records, one after the other.
mod identity; //  The node's identity.
mod kept_log; //  The log.
mod items; //     The items.
#[cfg(test)]
mod memory; //    A directory that loses unsynced data.

use std::fmt;
use std::fs::{self, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cluster::consensus::{Inconsistent, Persist, Saved};
use cluster::map::{ClusterId, NodeId};
use parking_lot::Mutex;

pub(crate) use directory::private;
use directory::{Directory, Files};
use identity::StoredIdentity;
pub(crate) use items::{ItemsHead, ItemsReader, ItemsWriter, TakeItems};
use kept_log::KeptLog;

use crate::log;

/// The directory of a running node. No other process can open it meanwhile.
pub(crate) struct DataDirectory {
    files: Files,
    identity: StoredIdentity,
    log: KeptLog,
    /// Releases the directory when closed.
    _lock: fs::File,
}

/// Shared by the control thread, which writes the log, and the thread that stops the node, which writes the
/// items.
pub(crate) type SharedDirectory = Arc<Mutex<DataDirectory>>;

/// Reason why a data directory cannot be used. Nothing in it was changed.
#[derive(Debug)]
pub(crate) enum DiskError {
    InUse(PathBuf),
    /// The operating system reported an error.
    Failed {
        file: PathBuf,
        error: io::Error,
    },
    /// The content is not what was written.
    Damaged {
        file: PathBuf,
        what: Damage,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Damage {
    /// The file is not ours, or has an unknown version.
    Foreign,
    Missing,
    /// The record at this byte does not match its checksum, or cannot be decoded.
    Record(u64),
    /// The file is truncated.
    CutOff,
    Inconsistent(Inconsistent),
}

impl DataDirectory {
    /// Opens the directory, creating it if needed; a new one gets `fresh` as the node's id.
    pub(crate) fn open(path: &Path, fresh: NodeId) -> Result<(DataDirectory, Saved), DiskError> {
        let files = Files::at(path);
        let failed = |error| DiskError::Failed { file: path.to_owned(), error };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        hide(path);
        let lock = lock(&path.join("lock"))?;
        let (identity, log, saved) = open(&files, fresh)?;
        Ok((DataDirectory { files, identity, log, _lock: lock }, saved))
    }

    pub(crate) fn node(&self) -> NodeId {
        self.identity.node
    }

    /// Returns the cluster the node belongs to, if it has ever belonged to one.
    pub(crate) fn cluster(&self) -> Option<ClusterId> {
        self.identity.cluster
    }

    /// Records the cluster the node belongs to, before the node takes part in anything.
    pub(crate) fn set_cluster(&mut self, cluster: ClusterId) -> io::Result<()> {
        let identity = StoredIdentity { cluster: Some(cluster), ..self.identity };
        identity.write(&self.files)?;
        self.identity = identity;
        Ok(())
    }

    /// Writes what `Consensus` asks for. It is on disk when the function returns. After an error, nothing that
    /// depends on the write may ever be sent: the process should end.
    pub(crate) fn persist(&mut self, persist: Persist) -> io::Result<()> {
        self.log.write(&self.files, persist)
    }

    /// Reads the log again, for another life of the process that has the directory open.
    pub(crate) fn reload(&mut self) -> Result<Saved, DiskError> {
        let (identity, log, saved) = open(&self.files, self.identity.node)?;
        (self.identity, self.log) = (identity, log);
        Ok(saved)
    }

    /// Keeps the node's id and cluster, and discards the rest.
    pub(crate) fn begin_anew(&mut self) -> io::Result<()> {
        self.forget_items()?;
        self.log = KeptLog::create(&self.files)?;
        Ok(())
    }

    /// Begins to write the node's items; `ItemsWriter::finish` puts them in place.
    pub(crate) fn write_items(&self, head: &ItemsHead) -> io::Result<ItemsWriter<Files>> {
        ItemsWriter::begin(&self.files, head)
    }

    /// Opens the items that the node held when it was stopped cleanly.
    pub(crate) fn read_items(&self) -> Result<Option<ItemsReader<Files>>, DiskError> {
        ItemsReader::open(&self.files)
    }

    /// Deletes the items on disk. Call it once they are in memory and may change: they must not come back.
    pub(crate) fn forget_items(&self) -> io::Result<()> {
        self.files.remove(items::FILE)
    }
}

fn open<D: Directory>(
    files: &D,
    fresh: NodeId,
) -> Result<(StoredIdentity, KeptLog, Saved), DiskError> {
    if let Some(identity) = StoredIdentity::read(files)? {
        // A node with an id may have voted; without its log it could vote twice in the same term.
        let file = files.path_of(kept_log::FILE);
        let missing = DiskError::Damaged { file, what: Damage::Missing };
        let (log, saved) = KeptLog::read(files)?.ok_or(missing)?;
        return Ok((identity, log, saved));
    }
    let failed = |name, error| DiskError::Failed { file: files.path_of(name), error };
    let identity = StoredIdentity { node: fresh, cluster: None };
    let log = KeptLog::create(files).map_err(|error| failed(kept_log::FILE, error))?;
    identity.write(files).map_err(|error| failed(identity::FILE, error))?;
    Ok((identity, log, Saved::default()))
}

/// Hides the files of a directory from other users, and warns if they can look into the directory itself: whoever
/// made it may have had a reason.
fn hide(path: &Path) {
    let mode = |path: &Path| fs::metadata(path).map(|found| found.permissions().mode() & 0o777);
    if let Some(mode) = mode(path).ok().filter(|mode| mode & 0o077 != 0) {
        let line = format!(
            "other users of this machine can look into the data directory {0} (mode {mode:03o}); \
             run: chmod 700 {0}",
            path.display()
        );
        log::warn("disk", &line);
    }
    let files = fs::read_dir(path).into_iter().flatten().flatten();
    for file in files.filter(|file| file.file_type().is_ok_and(|kind| kind.is_file())) {
        if mode(&file.path()).is_ok_and(|mode| mode & 0o077 != 0) {
            // If the file is not ours, the directory's permissions must do.
            let _ = fs::set_permissions(file.path(), fs::Permissions::from_mode(0o600));
        }
    }
}

fn lock(path: &Path) -> Result<fs::File, DiskError> {
    let failed = |error| DiskError::Failed { file: path.to_owned(), error };
    let file = private().write(true).create(true).truncate(false).open(path);
    let file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(DiskError::InUse(path.parent().unwrap_or(path).to_owned()))
        }
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DiskError::InUse(path) => {
                write!(f, "the data directory {} is in use by another process", path.display())
            }
            DiskError::Failed { file, error } => write!(f, "{}: {error}", file.display()),
            DiskError::Damaged { file, what } => write!(
                f,
                "{} is damaged: {what}. With an empty data directory this node can join as a new one",
                file.display()
            ),
        }
    }
}

impl std::error::Error for DiskError {}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Foreign => f.write_str("it was not written by this version of OpenCluster"),
            Damage::Missing => f.write_str("it is missing"),
            Damage::Record(at) => write!(f, "the record at byte {at} cannot be read"),
            Damage::CutOff => f.write_str("its end is missing"),
            Damage::Inconsistent(what) => what.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use cluster::consensus::{HardState, Term};

    use super::memory::Memory;
    use super::*;

    #[test]
    fn a_node_keeps_its_id_and_its_cluster() {
        let files = Memory::default();
        let (identity, _, saved) = open(&files, NodeId(7)).unwrap();
        assert_eq!((identity.node, identity.cluster), (NodeId(7), None));
        assert!(saved.is_blank());
        let joined = StoredIdentity { cluster: Some(ClusterId(3)), ..identity };
        joined.write(&files).unwrap();
        let (again, _, _) = open(&files, NodeId(8)).unwrap();
        assert_eq!((again.node, again.cluster), (NodeId(7), Some(ClusterId(3))));
    }

    #[test]
    fn an_id_without_its_log_is_not_used() {
        let files = Memory::default();
        open(&files, NodeId(7)).unwrap();
        files.remove(kept_log::FILE).unwrap();
        let refused = open(&files, NodeId(8)).err().unwrap();
        let text = "/memory/log is damaged: it is missing. \
                    With an empty data directory this node can join as a new one";
        assert_eq!(refused.to_string(), text);
    }

    /// The same through the real file system, which `memory.rs` imitates.
    #[test]
    fn a_node_comes_back_from_its_directory() {
        let path = std::env::temp_dir().join(format!("opencluster-disk-{}", std::process::id()));
        let (mut first, saved) = DataDirectory::open(&path, NodeId(1)).unwrap();
        assert!(saved.is_blank());
        first.set_cluster(ClusterId(4)).unwrap();
        for term in 1..=3 {
            let hard_state = HardState { term: Term(term), ..HardState::default() };
            first.persist(Persist { hard_state: Some(hard_state), ..Persist::default() }).unwrap();
        }
        drop(first);
        let (second, saved) = DataDirectory::open(&path, NodeId(2)).unwrap();
        assert_eq!((second.node(), second.cluster()), (NodeId(1), Some(ClusterId(4))));
        assert_eq!(saved.hard_state().term, Term(3));
        second.forget_items().unwrap();
        assert!(second.read_items().unwrap().is_none());
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn other_users_cannot_read_anything_in_a_directory() {
        let path = std::env::temp_dir().join(format!("opencluster-modes-{}", std::process::id()));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        drop(DataDirectory::open(&path, NodeId(1)).unwrap());
        assert_eq!(mode(&path), 0o700);
        // As an older version left it.
        fs::set_permissions(path.join("log"), fs::Permissions::from_mode(0o644)).unwrap();
        drop(DataDirectory::open(&path, NodeId(1)).unwrap());
        for file in fs::read_dir(&path).unwrap() {
            let file = file.unwrap().path();
            assert_eq!(mode(&file), 0o600, "{}", file.display());
        }
        fs::remove_dir_all(&path).unwrap();
    }

    /// Returns the number of descriptors of this process that name a file of the directory.
    fn descriptors_in(path: &Path) -> usize {
        let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
        links
            .filter_map(|fd| fs::read_link(fd.path()).ok())
            .filter(|to| to.starts_with(path))
            .count()
    }

    #[test]
    fn the_log_stays_open_so_that_it_can_be_written_without_free_descriptors() {
        let path = std::env::temp_dir().join(format!("opencluster-open-{}", std::process::id()));
        let (mut directory, _) = DataDirectory::open(&path, NodeId(1)).unwrap();
        let mut write = |term| {
            let hard_state = HardState { term: Term(term), ..HardState::default() };
            let persist = Persist { hard_state: Some(hard_state), ..Persist::default() };
            directory.persist(persist).unwrap();
        };
        write(1);
        assert_eq!(descriptors_in(&path), 3, "the lock, the log and the directory");
        (2..20).for_each(&mut write);
        assert_eq!(descriptors_in(&path), 3);
        drop(directory);
        let (_, saved) = DataDirectory::open(&path, NodeId(2)).unwrap();
        assert_eq!(saved.hard_state().term, Term(19));
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_directory_has_one_user_at_a_time() {
        let path = std::env::temp_dir().join(format!("opencluster-lock-{}", std::process::id()));
        let (first, _) = DataDirectory::open(&path, NodeId(1)).unwrap();
        let second = DataDirectory::open(&path, NodeId(2)).err().unwrap();
        let text = format!("the data directory {} is in use by another process", path.display());
        assert_eq!(second.to_string(), text);
        drop(first);
        let (third, _) = DataDirectory::open(&path, NodeId(3)).unwrap();
        assert_eq!(third.node(), NodeId(1));
        fs::remove_dir_all(&path).unwrap();
    }
}

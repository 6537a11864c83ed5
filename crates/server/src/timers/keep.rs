//! Timers that survive a stop of the whole cluster: a file in the data directory. The node writes it when it
//! stops with timers that no other node has taken over, and reads and removes it when it starts.
//!
//! Also timers carried from one life of a process to the next. A process that was declared dead begins again in
//! the same process; one that yields executes itself anew. Both find their timers in memory that stays open as
//! a file descriptor.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};

use super::hub::Hub;
use crate::disk::private;
use crate::log;

/// The environment variable that names the open memory to the next life. It is no setting: those have another
/// prefix.
pub(crate) const CARRIED: &str = "_OPENCLUSTER_CARRIED_TIMERS";

const NAME: &str = "timers.snapshot";

pub(super) fn file(data_dir: &Path) -> PathBuf {
    data_dir.join(NAME)
}

/// Loads the timers that an earlier process has left. A file that cannot be used is kept for inspection under
/// another name.
pub(super) fn load(hub: &Hub) {
    let Some(file) = &hub.file else { return };
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return complain(file, &error.to_string()),
    };
    match hub.with_core(|core| core.load(&bytes)) {
        // Remove the file once read: otherwise timers popped from now on would come back with it.
        Ok(_) => fs::remove_file(file).unwrap_or_else(|error| complain(file, &error.to_string())),
        Err(error) => {
            complain(file, &error.to_string());
            let _ = fs::rename(file, file.with_extension("unreadable"));
        }
    }
}

/// Writes the timers this node still holds. The file is complete or absent.
pub(super) fn save(hub: &Hub) {
    let Some(file) = &hub.file else { return };
    let (pending, bytes) = hub.with_core(|core| (core.pending(), core.snapshot()));
    if pending == 0 {
        return;
    }
    let temporary = file.with_extension("tmp");
    let written = private()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&temporary)
        .and_then(|mut out| out.write_all(&bytes).and_then(|()| out.sync_all()))
        .and_then(|()| fs::rename(&temporary, file));
    if let Err(error) = written {
        complain(file, &error.to_string());
    }
}

/// Timers that a process leaves to its next life.
pub(crate) struct Carried(OwnedFd);

impl Carried {
    /// Returns the value for the environment variable [`CARRIED`].
    pub(crate) fn name(&self) -> String {
        self.0.as_raw_fd().to_string()
    }
}

/// Leaves this node's timers to its next life, independent of files.
pub(super) fn carry(hub: &Hub) -> Option<Carried> {
    let bytes = hub.carried();
    let left = || -> io::Result<OwnedFd> {
        // The descriptor stays open when the process executes itself.
        let memory = memfd_create("opencluster-timers", MemfdFlags::empty())?;
        let mut file = File::from(memory);
        file.write_all(&bytes)?;
        Ok(file.into())
    };
    let left = left();
    left.map(Carried).inspect_err(|error| complain(Path::new("timers"), &error.to_string())).ok()
}

/// Loads the timers that the last life of this process has left: from `carried`, or from the environment
/// variable.
pub(super) fn take_carried(hub: &Hub, carried: Option<&Carried>) {
    let name = carried.map(Carried::name).or_else(|| std::env::var(CARRIED).ok());
    let Some(name) = name else { return };
    let path = Path::new("/proc/self/fd").join(name);
    let taken = || -> io::Result<()> {
        let mut file = File::options().read(true).write(true).open(&path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            return Ok(()); // Loaded in an earlier life.
        }
        // Truncate the memory, so that a third life cannot load the same timers.
        file.set_len(0)?;
        hub.with_core(|core| core.load_carried(&bytes)).map_err(io::Error::other)?;
        Ok(())
    };
    taken().unwrap_or_else(|error| complain(&path, &error.to_string()));
}

fn complain(file: &Path, why: &str) {
    log::error("timers", &format!("{}: {why}", file.display()));
}

//! Timers through a stop of the whole cluster: a file in the data directory, written when the node
//! stops and holds timers that nobody else has taken over, read and removed when it starts.
//!
//! And from one life of a process to the next: one that was counted as dead begins again in the same process,
//! one that yields executes itself anew; both find their timers in a piece of memory that was left open.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};

use super::hub::Hub;
use crate::log;

/// Names the open memory to the next life. Not one of the settings, which begin otherwise.
pub(crate) const CARRIED: &str = "_OPENCLUSTER_CARRIED_TIMERS";

const NAME: &str = "timers.snapshot";

pub(super) fn file(data_dir: &Path) -> PathBuf {
    data_dir.join(NAME)
}

/// Takes in what an earlier process has left. A file that cannot be used stays where it is, for
/// somebody to look at, under another name.
pub(super) fn load(hub: &Hub) {
    let Some(file) = &hub.file else { return };
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => return complain(file, &error.to_string()),
    };
    match hub.with_core(|core| core.load(&bytes)) {
        // Once read it must go: timers popped from now on would come back with it.
        Ok(_) => fs::remove_file(file).unwrap_or_else(|error| complain(file, &error.to_string())),
        Err(error) => {
            complain(file, &error.to_string());
            let _ = fs::rename(file, file.with_extension("unreadable"));
        }
    }
}

/// Writes what this node still holds. Whole, or not at all.
pub(super) fn save(hub: &Hub) {
    let Some(file) = &hub.file else { return };
    let (pending, bytes) = hub.with_core(|core| (core.pending(), core.snapshot()));
    if pending == 0 {
        return;
    }
    let temporary = file.with_extension("tmp");
    let written = File::create(&temporary)
        .and_then(|mut out| out.write_all(&bytes).and_then(|()| out.sync_all()))
        .and_then(|()| fs::rename(&temporary, file));
    if let Err(error) = written {
        complain(file, &error.to_string());
    }
}

/// What a process leaves to its next life.
pub(crate) struct Carried(OwnedFd);

impl Carried {
    /// To be said in the environment, under [`CARRIED`].
    pub(crate) fn name(&self) -> String {
        self.0.as_raw_fd().to_string()
    }
}

/// Leaves what this node holds where its next life finds it, whatever becomes of files.
pub(super) fn carry(hub: &Hub) -> Option<Carried> {
    let bytes = hub.carried();
    let left = || -> io::Result<OwnedFd> {
        // It stays open when the process executes itself.
        let memory = memfd_create("opencluster-timers", MemfdFlags::empty())?;
        let mut file = File::from(memory);
        file.write_all(&bytes)?;
        Ok(file.into())
    };
    let left = left();
    left.map(Carried).inspect_err(|error| complain(Path::new("timers"), &error.to_string())).ok()
}

/// Takes in what the last life of this process has left: what is handed in, or named by the environment.
pub(super) fn take_carried(hub: &Hub, carried: Option<&Carried>) {
    let name = carried.map(Carried::name).or_else(|| std::env::var(CARRIED).ok());
    let Some(name) = name else { return };
    let path = Path::new("/proc/self/fd").join(name);
    let taken = || -> io::Result<()> {
        let mut file = File::options().read(true).write(true).open(&path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            return Ok(()); // Taken in an earlier life.
        }
        // The memory goes, and with it what a third life might take for its own.
        file.set_len(0)?;
        hub.with_core(|core| core.load_carried(&bytes)).map_err(io::Error::other)?;
        Ok(())
    };
    taken().unwrap_or_else(|error| complain(&path, &error.to_string()));
}

fn complain(file: &Path, why: &str) {
    log::error("timers", &format!("{}: {why}", file.display()));
}

//! Timers that survive a stop or a crash of the whole cluster: files in the data directory. `timers.snapshot` has
//! the timers of a node that stopped with timers that no other node has taken over, `timers.running` those of a
//! running node (`saver.rs`). A file goes only when a newer one is complete, or when other nodes have all timers.
//!
//! Also timers carried from one life of a process to the next. A process that was declared dead begins again in
//! the same process; one that yields executes itself anew. Both find their timers in memory that stays open as
//! a file descriptor.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, memfd_create};

use timers::{SnapshotError, TimerInput, Timers};

use super::hub::Hub;
use crate::disk::private;
use crate::log;

/// The environment variable that names the open memory to the next life. It is no setting: those have another
/// prefix.
pub(crate) const CARRIED: &str = "_OPENCLUSTER_CARRIED_TIMERS";

/// The timers that a node left when it stopped as the last one: nobody else has them.
const LEFT: &str = "timers.snapshot";
/// The timers that a node saves while it runs: after a crash other nodes may know better.
const RUNNING: &str = "timers.running";
/// Maximum number of timers encoded while the core's lock is held.
const PAGE: usize = 1000;

/// The files for timers in a data directory.
pub(super) struct TimerFiles(PathBuf);

impl TimerFiles {
    pub(super) fn within(data_dir: &Path) -> TimerFiles {
        TimerFiles(data_dir.to_owned())
    }

    fn place(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn rename(&self, from: &str, to: &str) {
        let renamed = fs::rename(self.place(from), self.place(to)).and_then(|()| self.sync());
        renamed.unwrap_or_else(|error| complain(&self.place(from), &error.to_string()));
    }

    fn remove(&self, name: &str) {
        match fs::remove_file(self.place(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                complain(&self.place(name), &error.to_string());
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Syncs the directory, so that a new name in it is on disk.
    fn sync(&self) -> io::Result<()> {
        File::open(&self.0)?.sync_all()
    }
}

/// A file that a start has found: its name, and the name it gets when the start has succeeded.
pub(super) type FoundFile = (&'static str, String);

/// Loads the timers that an earlier process has left or saved. Changes no file: a start that fails must leave them.
pub(super) fn load(hub: &Hub) -> Vec<FoundFile> {
    let Some(files) = &hub.files else { return Vec::new() };
    let mut found = Vec::new();
    let ways: [(&str, Load); 2] = [(LEFT, Timers::load), (RUNNING, Timers::load_running)];
    for (name, load) in ways {
        let loaded = match fs::read(files.place(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => Err(error.to_string()),
            Ok(bytes) => {
                hub.with_core(|core| load(core, &bytes)).map_err(|error| error.to_string())
            }
        };
        match loaded {
            Ok(_) => {
                // Other nodes get these timers now: from here on they may know better.
                found.push((name, RUNNING.to_owned()));
                return found;
            }
            Err(why) => {
                complain(&files.place(name), &why);
                found.push((name, format!("{name}.unreadable")));
            }
        }
    }
    found
}

type Load = fn(&mut Timers, &[u8]) -> Result<usize, SnapshotError>;

/// Renames the files that `load` has found, once this node is a member: what happens from now on, they do not know.
pub(super) fn settle(hub: &Hub, found: Vec<FoundFile>) {
    let Some(files) = &hub.files else { return };
    for (from, to) in found.into_iter().filter(|(from, to)| from != to) {
        files.rename(from, &to);
    }
}

/// Saves this node's timers when it stops. If other nodes have them all, the files are removed.
pub(super) fn save(hub: &Hub) {
    let Some(files) = hub.files.as_ref().filter(|_| hub.is_settled()) else { return };
    let (holds_any, is_last) = hub.with_core(|core| (core.holds_any(), core.is_last_holder()));
    if !holds_any {
        files.remove(LEFT);
        return files.remove(RUNNING);
    }
    let name = if is_last { LEFT } else { RUNNING };
    match write(hub, files, name, &|| false) {
        Ok(()) if is_last => files.remove(RUNNING),
        Ok(()) => {}
        Err(error) => complain(&files.place(name), &error.to_string()),
    }
}

/// Saves the timers of a running node. `is_over` ends it early.
pub(super) fn save_running(hub: &Hub, is_over: &dyn Fn() -> bool) {
    let Some(files) = &hub.files else { return };
    if let Err(error) = write(hub, files, RUNNING, is_over) {
        complain(&files.place(RUNNING), &error.to_string());
    }
}

/// Replaces a file by this node's timers. It has its old or its new content, whatever happens meanwhile.
fn write(hub: &Hub, files: &TimerFiles, name: &str, is_over: &dyn Fn() -> bool) -> io::Result<()> {
    let temporary = files.place(&format!("{name}.tmp"));
    let mut out = private().write(true).create(true).truncate(true).open(&temporary)?;
    hub.input(TimerInput::Tick);
    let (mut walk, head) = hub.with_core(|core| core.begin_snapshot());
    out.write_all(&head)?;
    while !walk.is_over() {
        if is_over() {
            return fs::remove_file(&temporary);
        }
        let page = hub.with_core(|core| core.snapshot_page(&mut walk, PAGE));
        out.write_all(&page)?;
    }
    out.sync_all()?;
    fs::rename(&temporary, files.place(name))?;
    files.sync()
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
/// variable. Returns whether there were any.
pub(super) fn take_carried(hub: &Hub, carried: Option<&Carried>) -> bool {
    let name = carried.map(Carried::name).or_else(|| std::env::var(CARRIED).ok());
    let Some(name) = name else { return false };
    let path = Path::new("/proc/self/fd").join(name);
    let taken = || -> io::Result<bool> {
        let mut file = File::options().read(true).write(true).open(&path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if bytes.is_empty() {
            return Ok(false); // Loaded in an earlier life.
        }
        // Truncate the memory, so that a third life cannot load the same timers.
        file.set_len(0)?;
        hub.with_core(|core| core.load_carried(&bytes)).map_err(io::Error::other)?;
        Ok(true)
    };
    taken().unwrap_or_else(|error| {
        complain(&path, &error.to_string());
        false
    })
}

fn complain(file: &Path, why: &str) {
    log::error("timers", &format!("{}: {why}", file.display()));
}

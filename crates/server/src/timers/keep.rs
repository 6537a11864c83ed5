//! Timers through a stop of the whole cluster: a file in the data directory, written when the node
//! stops and holds timers that nobody else has taken over, read and removed when it starts.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::hub::Hub;

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

fn complain(file: &Path, why: &str) {
    eprintln!("opencluster: {}: {why}", file.display());
}

//! Settings that change at run time, and the file they are written back to.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use settings::{ChangeError, Settings, find, rewrite_file};

use crate::timers::Hub;

/// Serializes changes and remembers which settings differ from those at start.
#[derive(Default)]
pub(crate) struct ConfigChanges(Mutex<BTreeSet<&'static str>>);

impl ConfigChanges {
    /// Applies all changes or none.
    pub(crate) fn change(
        &self,
        settings: &ArcSwap<Settings>,
        timers: &Hub,
        changes: &[(&str, &str)],
    ) -> Result<(), ChangeError> {
        let mut changed = self.0.lock();
        let next = settings.load().with_changes(changes)?;
        timers.settings_changed(&next);
        settings.store(Arc::new(next));
        changed.extend(changes.iter().filter_map(|(name, _)| Some(find(name)?.name)));
        Ok(())
    }

    /// Writes the changed settings into the configuration file. The error is a complete error reply.
    pub(crate) fn rewrite(
        &self,
        settings: &ArcSwap<Settings>,
        file: Option<&Path>,
    ) -> Result<(), String> {
        let Some(path) = file else {
            return Err("ERR The server is running without a config file".to_owned());
        };
        let changed = self.0.lock();
        let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
        let text = rewrite_file(&text, &settings.load(), changed.iter().copied());
        let text = text.map_err(|error| failed(&error))?;
        replace(path, text.as_bytes()).map_err(|error| failed(&error))
    }
}

fn failed(error: &dyn core::fmt::Display) -> String {
    format!("ERR Rewriting config file: {error}")
}

/// Replaces a file atomically: a reader sees the old or the new content, never a mixture.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = Path::new(&beside);
    let written = write_whole(beside, path, content).and_then(|()| fs::rename(beside, path));
    if written.is_err() {
        let _ = fs::remove_file(beside); // Best effort: a leftover file does no harm.
    }
    written
}

fn write_whole(beside: &Path, like: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(beside)?;
    // The file may hold a password: copy the permissions, so that no one else can read the new file.
    file.set_permissions(fs::metadata(like)?.permissions())?;
    file.write_all(content)?;
    file.sync_all()
}

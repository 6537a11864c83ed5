//! Settings that change while the node runs, and the file they are written back to.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use commands::settings::{Settings, find, rewrite_file};
use commands::{ChangeError, changed_settings};
use parking_lot::Mutex;

use crate::shared::Shared;

/// Keeps changes one after the other, and remembers which settings are no longer as at start.
#[derive(Default)]
pub(crate) struct ConfigChanges(Mutex<BTreeSet<&'static str>>);

impl ConfigChanges {
    /// Makes all changes or none.
    pub(crate) fn change(
        &self,
        shared: &Shared,
        changes: &[(&str, &str)],
    ) -> Result<(), ChangeError> {
        let mut changed = self.0.lock();
        let settings: Settings = changed_settings(&shared.settings.load(), changes)?;
        shared.timers.settings_changed(&settings);
        shared.settings.store(Arc::new(settings));
        changed.extend(changes.iter().filter_map(|(name, _)| Some(find(name)?.name)));
        Ok(())
    }

    /// Writes what was changed into the configuration file. The error is a whole error reply.
    pub(crate) fn rewrite(&self, shared: &Shared) -> Result<(), String> {
        let Some(path) = &shared.config_file else {
            return Err("ERR The server is running without a config file".to_owned());
        };
        let changed = self.0.lock();
        let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
        let settings = shared.settings.load();
        let text = rewrite_file(&text, &settings, changed.iter().copied());
        let text = text.map_err(|error| failed(&error))?;
        replace(path, text.as_bytes()).map_err(|error| failed(&error))
    }
}

fn failed(error: &dyn core::fmt::Display) -> String {
    format!("ERR Rewriting config file: {error}")
}

/// Puts a whole new file in the place of the old one: whoever reads sees one or the other.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = Path::new(&beside);
    let written = write_whole(beside, path, content).and_then(|()| fs::rename(beside, path));
    if written.is_err() {
        let _ = fs::remove_file(beside); // Nothing depends on it.
    }
    written
}

fn write_whole(beside: &Path, like: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create(beside)?;
    // The file may hold a password, so whoever could not read the old one cannot read this.
    file.set_permissions(fs::metadata(like)?.permissions())?;
    file.write_all(content)?;
    file.sync_all()
}

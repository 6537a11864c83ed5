//! The settings of a running node, as CONFIG and AUTH ask for them.

use std::sync::Arc;

use crate::settings::{SettingError, Settings};

/// Whoever keeps the settings.
pub trait Configuration {
    fn settings(&self) -> Arc<Settings>;

    /// Changes several settings, all or none of them.
    fn change_settings(&mut self, changes: &[(&str, &str)]) -> Result<(), ChangeError>;

    /// Writes what was changed to the file the node was started with. The error is a whole error
    /// reply.
    fn rewrite_settings(&mut self) -> Result<(), String>;
}

/// A change that was refused; none of its companions was made either.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeError {
    /// Which of the changes.
    pub index: usize,
    pub error: SettingError,
}

/// The settings after several changes made while the node runs; if one is refused, none is made.
pub fn changed_settings(
    settings: &Settings,
    changes: &[(&str, &str)],
) -> Result<Settings, ChangeError> {
    let mut changed = settings.clone();
    for (index, (name, text)) in changes.iter().enumerate() {
        changed.change(name, text).map_err(|error| ChangeError { index, error })?;
    }
    Ok(changed)
}

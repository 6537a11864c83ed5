//! The settings of a running node, as CONFIG and AUTH access them.

use std::sync::Arc;

use settings::{SettingRefusal, Settings};

/// Access to the settings of the node.
pub trait Configuration {
    fn settings(&self) -> Arc<Settings>;

    /// Changes several settings, all or none of them.
    fn change_settings(&mut self, changes: &[(&str, &str)]) -> Result<(), ChangeError>;

    /// Writes the changed settings to the file the node was started with. The error is a complete error reply.
    fn rewrite_settings(&mut self) -> Result<(), String>;
}

/// A refused change; the other changes of the same call were not made either.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeError {
    /// The index of the refused change.
    pub index: usize,
    pub error: SettingRefusal,
}

/// Returns the settings after several changes at run time; if one is refused, none is made.
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

//! The settings of a running node, as CONFIG and AUTH access them.

use std::sync::Arc;

use settings::{ChangeError, Settings};

/// Access to the settings of the node.
pub trait Configuration {
    fn settings(&self) -> Arc<Settings>;

    /// Changes several settings, all or none of them.
    fn change_settings(&mut self, changes: &[(&str, &str)]) -> Result<(), ChangeError>;

    /// Writes the changed settings to the file the node was started with. The error is a complete error reply.
    fn rewrite_settings(&mut self) -> Result<(), String>;
}

//! The settings, for CONFIG. All workers pick up changes at their next round.

use std::sync::Arc;

use commands::settings::Settings;
use commands::{ChangeError, Configuration};

use super::NodeHost;

impl Configuration for NodeHost<'_> {
    fn settings(&self) -> Arc<Settings> {
        self.shared.settings.load_full()
    }

    fn change_settings(&mut self, changes: &[(&str, &str)]) -> Result<(), ChangeError> {
        let shared = self.shared;
        shared.config.change(&shared.settings, &shared.timers, changes)
    }

    fn rewrite_settings(&mut self) -> Result<(), String> {
        let shared = self.shared;
        shared.config.rewrite(&shared.settings, shared.config_file.as_deref())
    }
}

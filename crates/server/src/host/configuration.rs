//! The settings, for CONFIG. All workers pick up changes at their next round.

use std::sync::Arc;

use commands::Configuration;
use settings::{ChangeError, Settings};

use super::NodeHost;

impl Configuration for NodeHost<'_> {
    fn settings(&self) -> Arc<Settings> {
        self.shared.settings.load_full()
    }

    fn change_settings(&mut self, changes: &[(&str, &str)]) -> Result<(), ChangeError> {
        self.shared.config.change(self.shared, changes)
    }

    fn rewrite_settings(&mut self) -> Result<(), String> {
        self.shared.config.rewrite(self.shared)
    }
}

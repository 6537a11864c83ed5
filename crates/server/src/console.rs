//! The node, as its console sees it.

use std::sync::Arc;

use cluster::control::OperatorRequest;
use cluster::map::Map;
use cluster::status::Status;
use commands::SlowCommand;

use crate::cluster_view;
use crate::http::{ConsoleSource, Sample};
use crate::shared::Shared;

/// Maximum number of slow-log entries shown.
const SLOW_COMMANDS_SHOWN: usize = 64;

impl ConsoleSource for Shared {
    fn map(&self) -> Arc<Map> {
        Shared::map(self)
    }

    fn cluster_without_buckets(&self) -> Status {
        Shared::status_without_buckets(self)
    }

    fn hour(&self) -> Vec<Sample> {
        self.watching.hour.samples()
    }

    fn latest_sample(&self) -> Option<Sample> {
        self.watching.hour.latest()
    }

    fn slow_commands(&self) -> Vec<SlowCommand> {
        self.watching.slow_log.newest(SLOW_COMMANDS_SHOWN)
    }

    fn ask(&self, ask: OperatorRequest) -> Result<(), String> {
        cluster_view::ask(&self.data, &self.control, ask)
    }
}

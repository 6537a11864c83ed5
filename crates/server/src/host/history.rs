//! Slow commands and events, for SLOWLOG and LATENCY.

use commands::{History, LatencyEvent, SlowCommand};

use super::NodeHost;

impl History for NodeHost<'_> {
    fn slow_commands(&self, count: usize) -> Vec<SlowCommand> {
        self.shared.watching.slow_log.newest(count)
    }

    fn slow_command_count(&self) -> usize {
        self.shared.watching.slow_log.len()
    }

    fn forget_slow_commands(&mut self) {
        self.shared.watching.slow_log.clear();
    }

    fn latency_events(&self) -> Vec<LatencyEvent> {
        self.shared.watching.latency.events()
    }

    fn forget_latency_event(&mut self, name: &str) -> bool {
        self.shared.watching.latency.forget(name)
    }
}

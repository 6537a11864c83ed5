//! Detects whether the servers have other work than this migration. If so, a single carrier moves few keys at
//! a time, and pauses: a server executes one command after the other, and each client waits for the commands
//! before its own. The servers are observed once, before the walk begins: load that starts later is not noticed.

use std::thread;
use std::time::{Duration, Instant};

use fleet::Server;
use resp::Value;

use super::lanes::Lanes;
use crate::admin::Info;

/// Time for which the servers are observed.
const LOOK: Duration = Duration::from_millis(200);
/// Commands per second above which a server is busy; more than proxies need to watch the map.
const BUSY_PER_SECOND: f64 = 100.0;
/// Pause after work, as a multiple of the work's duration.
const RESTS: u32 = 2;
/// Number of keys moved at once on busy servers; a server handles them in a moment.
const FEW_KEYS: usize = 8;
/// Maximum pause. A key that took seconds was moved in small chunks, and stopping the migration must not take long.
const REST_MAX: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(super) struct Courtesy {
    gives_way: bool,
}

impl Courtesy {
    /// Observes servers that this process leaves alone meanwhile.
    pub(super) fn look(lanes: &mut Lanes, servers: &[Server]) -> Courtesy {
        let mut count = || servers.iter().map(|it| commands_of(lanes, *it)).collect::<Vec<_>>();
        let (before, begun) = (count(), Instant::now());
        thread::sleep(LOOK);
        let after = count();
        let seconds = begun.elapsed().as_secs_f64();
        let gives_way = before.into_iter().zip(after).any(|(before, after)| {
            let (Some(before), Some(after)) = (before, after) else { return false };
            after.saturating_sub(before) as f64 / seconds > BUSY_PER_SECOND
        });
        Courtesy { gives_way }
    }

    /// Returns how many of `all` carriers work at a time.
    pub(super) fn carriers(self, all: usize) -> usize {
        if self.gives_way { 1 } else { all }
    }

    /// Returns how many of `all` keys are moved at once.
    pub(super) fn keys_at_once(self, all: usize) -> usize {
        if self.gives_way { all.min(FEW_KEYS) } else { all }
    }

    /// Pauses after work of this duration.
    pub(super) fn rest(self, worked: Duration) {
        if self.gives_way {
            thread::sleep((worked * RESTS).min(REST_MAX));
        }
    }
}

/// Returns the number of commands a server has executed, if it reports it.
fn commands_of(lanes: &mut Lanes, server: Server) -> Option<u64> {
    let answer = lanes.on(server, |control| control.call(&["INFO", "stats"])).ok()?;
    commands_in(&answer)
}

fn commands_in(info: &Value) -> Option<u64> {
    let text = String::from_utf8_lossy(info.text()?);
    Info(&text).field("total_commands_processed")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_has_done_is_read_from_info() {
        let told = "# Stats\r\ntotal_connections_received:7\r\ntotal_commands_processed:4321\r\n";
        assert_eq!(commands_in(&Value::Bulk(told.into())), Some(4321));
        assert_eq!(commands_in(&Value::Error(b"NOPERM".to_vec())), None);
    }
}

//! Latency of commands on each member, from its own INFO: a thread asks once a second. It shows the command
//! that was called most, because that is what users wait for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::talk::{NodeArgs, Talk};

const EVERY: Duration = Duration::from_secs(1);

/// Latency of the command that was called most since the node started, in microseconds.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Latency {
    pub(super) command: String,
    pub(super) p50: f64,
    pub(super) p99: f64,
}

/// Latencies reported by the members, by name. The thread asks until this is dropped.
pub(super) struct Latencies {
    snapshot: Arc<Mutex<BTreeMap<String, Latency>>>,
    asked: Arc<Mutex<Vec<(String, NodeArgs)>>>,
}

impl Latencies {
    pub(super) fn start() -> Latencies {
        let latencies = Latencies { snapshot: Arc::default(), asked: Arc::default() };
        let (snapshot, asked) = (Arc::downgrade(&latencies.snapshot), Arc::clone(&latencies.asked));
        let ask = move || {
            while let Some(snapshot) = snapshot.upgrade() {
                let members = asked.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let answers = members.into_iter().filter_map(|(name, at)| Some((name, of(&at)?)));
                let answers = answers.collect();
                *snapshot.lock().unwrap_or_else(PoisonError::into_inner) = answers;
                drop(snapshot);
                thread::sleep(EVERY);
            }
        };
        let thread = thread::Builder::new().name("latency".to_owned()).spawn(ask);
        thread.expect("a process can start one more thread");
        latencies
    }

    /// Sets the members to ask from now on.
    pub(super) fn ask(&self, members: Vec<(String, NodeArgs)>) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = members;
    }

    pub(super) fn snapshot(&self) -> BTreeMap<String, Latency> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn of(node: &NodeArgs) -> Option<Latency> {
    let mut talk = Talk::to(node).ok()?;
    let mut section = |name| {
        let answer = talk.ask(&["INFO", name]).ok()?;
        Some(String::from_utf8_lossy(answer.text()?).into_owned())
    };
    let (counts, times) = (section("commandstats")?, section("latencystats")?);
    read(&counts, &times)
}

/// Parses `cmdstat_get:calls=5,...` and `latency_percentiles_usec_get:p50=1.003,p99=2.007,...`
fn read(counts: &str, times: &str) -> Option<Latency> {
    let calls = |line: &str| -> Option<(u64, String)> {
        let (command, rest) = line.strip_prefix("cmdstat_")?.split_once(':')?;
        let calls = rest.strip_prefix("calls=")?.split(',').next()?.parse().ok()?;
        Some((calls, command.to_owned()))
    };
    // Commands that tools send to inspect the node are not commands of users.
    let is_of_users =
        |(_, command): &(u64, String)| !command.starts_with("cluster|") && command != "info";
    let (_, command) = counts.lines().filter_map(calls).filter(is_of_users).max()?;
    let name = format!("latency_percentiles_usec_{command}:");
    let line = times.lines().find_map(|line| line.strip_prefix(name.as_str()))?;
    let value = |name: &str| -> Option<f64> {
        line.split(',').find_map(|part| part.strip_prefix(name))?.trim().parse().ok()
    };
    Some(Latency { p50: value("p50=")?, p99: value("p99=")?, command })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_users_call_most_is_told() {
        let counts = "# Commandstats\r\ncmdstat_get:calls=50,usec=70\r\n\
                      cmdstat_cluster|status:calls=900,usec=1\r\ncmdstat_set:calls=7,usec=1\r\n";
        let times = "latency_percentiles_usec_set:p50=9.0,p99=9.0,p99.9=9.0\r\n\
                     latency_percentiles_usec_get:p50=1.003,p99=2.5,p99.9=7.0\r\n";
        let snapshot = Latency { command: "get".to_owned(), p50: 1.003, p99: 2.5 };
        assert_eq!(read(counts, times), Some(snapshot));
        assert_eq!(read("", times), None);
    }
}

//! A fourth node joins three that hold a million keys and serve a steady load.
use std::io;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::foreign::{ForeignLoad, Library};
use super::members::{Members, PRIMARIES};
use super::paced::{self, Keys, Load, Paced, Work};
use crate::servers::{Kind, Tools};

const KEYS: u64 = 1_000_000;
const VALUE_BYTES: usize = 100;
const PER_SECOND: u64 = 5_000;
const BEFORE: Duration = Duration::from_secs(5);

#[derive(Serialize, Deserialize)]
pub(crate) struct Growth {
    /// Time from the start of the fourth process (ours) or of the rebalancing (theirs) until the cluster is balanced.
    pub(crate) seconds: f64,
    pub(crate) megabytes_per_second: f64,
    pub(crate) before: Waits,
    pub(crate) during: Waits,
    pub(crate) after: Waits,
    /// The longest wait of a command for the handover of a bucket, if the server reports it.
    pub(crate) longest_handover_micros: Option<u64>,
    /// Times that the clients have read the whole map because of the growth.
    #[serde(default)]
    pub(crate) refreshes: usize,
}

/// The clients of a growth.
#[derive(Clone, Copy)]
pub(super) enum Clients {
    /// Our load generator.
    Generator,
    Library(Library),
}

enum Running {
    Generator(Paced),
    Library(ForeignLoad),
}

impl Clients {
    fn start(self, seed: std::net::SocketAddr, keys: u64) -> io::Result<Running> {
        match self {
            Clients::Generator => {
                let (value_bytes, per_second) = (VALUE_BYTES, PER_SECOND);
                let work = Work { keys: Keys::Each(keys), value_bytes, per_second };
                Ok(Running::Generator(Paced::start(seed, &work)))
            }
            Clients::Library(library) => {
                ForeignLoad::start(library, seed, keys).map(Running::Library)
            }
        }
    }
}

impl Running {
    fn end(self) -> io::Result<Load> {
        match self {
            Running::Generator(paced) => paced.end(),
            Running::Library(foreign) => foreign.end(),
        }
    }
}

/// The waits of clients, in microseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Waits {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) longest: f64,
}

pub(super) fn measure(
    tools: &Tools,
    kind: Kind,
    clients: Clients,
    quick: bool,
) -> io::Result<Growth> {
    let keys = if quick { KEYS / 10 } else { KEYS };
    let mut cluster = Members::start(tools, kind)?;
    let seed = cluster.servers[0].address;
    paced::fill(seed, keys, VALUE_BYTES)?;
    let load = clients.start(seed, keys)?;
    std::thread::sleep(BEFORE);
    if kind != Kind::Ours {
        cluster.add(tools)?;
        cluster.add(tools)?;
        cluster.take_in()?;
    }
    let begun = Instant::now();
    let ended = if kind == Kind::Ours {
        cluster.add(tools)?;
        cluster.wait_until_even(PRIMARIES + 1)?
    } else {
        cluster.rebalance()?;
        Instant::now()
    };
    std::thread::sleep(BEFORE);
    let load = load.end()?;
    let handover = |server: &crate::servers::Server| {
        server.info("cluster", "handover_longest_micros").ok().flatten()?.parse::<u64>().ok()
    };
    let longest = cluster.servers.iter().filter_map(handover).max();
    Ok(growth(&load, begun, ended, keys, longest))
}

fn growth(load: &Load, begun: Instant, ended: Instant, keys: u64, longest: Option<u64>) -> Growth {
    let seconds = ended.duration_since(begun).as_secs_f64();
    let of = |wanted: &dyn Fn(Instant) -> bool| {
        let mut waits: Vec<f64> = load
            .samples
            .iter()
            .filter(|(due, _)| wanted(*due))
            .map(|(_, took)| took.as_secs_f64() * 1e6)
            .collect();
        waits.sort_by(f64::total_cmp);
        Waits::of(&waits)
    };
    // A quarter of both copies of all data has moved.
    let item = VALUE_BYTES as f64 + 16.0;
    let megabytes = keys as f64 * item * 2.0 / (PRIMARIES as f64 + 1.0) / 1e6;
    Growth {
        seconds,
        megabytes_per_second: megabytes / seconds,
        before: of(&|due| due < begun),
        during: of(&|due| due >= begun && due < ended),
        after: of(&|due| due >= ended),
        longest_handover_micros: longest,
        refreshes: load.refreshes.iter().filter(|at| **at >= begun).count(),
    }
}

impl Waits {
    /// Computes the percentiles of waits in ascending order.
    fn of(waits: &[f64]) -> Waits {
        let at = |share: f64| {
            let index = (waits.len() as f64 * share) as usize;
            waits.get(index.min(waits.len().saturating_sub(1))).copied().unwrap_or(0.0)
        };
        Waits { p50: at(0.5), p99: at(0.99), p999: at(0.999), longest: at(1.0) }
    }

    /// Returns a table row in milliseconds.
    fn row(&self) -> String {
        let Waits { p50, p99, p999, longest } = self;
        let millis = [p50, p99, p999, longest].map(|micros| format!("{:.2}", micros / 1e3));
        millis.join(" / ")
    }

    fn describe(&self) -> String {
        format!("{:.0}/{:.0}/{:.0}/{:.0}", self.p50, self.p99, self.p999, self.longest)
    }
}

impl Growth {
    pub(super) fn row(&self, kind: Kind) -> String {
        let [before, during, after] = [self.before, self.during, self.after].map(|it| it.row());
        format!("| {} | {:.2} s | {before} | {during} | {after} |\n", kind.name(), self.seconds)
    }

    /// Returns the factor by which the clients' waits rose during the growth.
    pub(super) fn p99_ratio(&self) -> f64 {
        self.during.p99 / self.before.p99
    }

    /// Returns our results beside their targets.
    pub(super) fn targets(&self) -> String {
        let ratio = self.p99_ratio();
        let handover = self.longest_handover_micros.map_or(0.0, |micros| micros as f64 / 1e3);
        format!(
            "\n| ours | | target |\n|---|---:|---:|\n\
             | even after | {:.2} s | 3 s |\n\
             | p99 during, of before | {ratio:.2} | 1.5 |\n\
             | the longest a command waited for a handover | {handover:.1} ms | 10 ms |\n\
             | copied | {:.0} MB/s | 60 MB/s where the load allows |\n",
            self.seconds, self.megabytes_per_second,
        )
    }

    pub(super) fn line(&self, kind: Kind) -> String {
        format!(
            "{:<12} a fourth node: even after {:.2} s ({:.0} MB/s); p50/p99/p99.9/max us before {}, \
             during {}, after {}; p99 ratio {:.2}; {} refreshes; longest handover {} us",
            kind.name(),
            self.seconds,
            self.megabytes_per_second,
            self.before.describe(),
            self.during.describe(),
            self.after.describe(),
            self.p99_ratio(),
            self.refreshes,
            self.longest_handover_micros.map_or("-".to_owned(), |micros| micros.to_string()),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_told_apart_by_when_they_were_due() {
        let begun = Instant::now();
        let ended = begun + Duration::from_secs(1);
        let sample = |millis: i64, micros: u64| {
            let due = if millis < 0 {
                begun.checked_sub(Duration::from_millis(millis.unsigned_abs())).unwrap()
            } else {
                begun + Duration::from_millis(millis.unsigned_abs())
            };
            (due, Duration::from_micros(micros))
        };
        let samples = vec![sample(-5, 10), sample(5, 200), sample(2_000, 30)];
        let refreshes = samples.iter().map(|(due, _)| *due).collect();
        let growth = growth(&Load { samples, refreshes }, begun, ended, KEYS, None);
        assert_eq!(growth.refreshes, 2, "those before do not count");
        let longest =
            [growth.before, growth.during, growth.after].map(|waits| waits.longest.round());
        assert_eq!(longest, [10.0, 200.0, 30.0]);
        assert!((growth.megabytes_per_second - 58.0).abs() < 1.0);
    }
}

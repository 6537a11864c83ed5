//! A second node joins one on which a single bucket takes 50,000 writes a second: its copy must complete.
use std::io;
use std::time::{Duration, Instant};

use placement::Slot;
use serde::{Deserialize, Serialize};

use super::members::Members;
use super::paced::{Keys, Paced, Samples, Work};
use crate::servers::{Kind, Tools};

const WRITES_PER_SECOND: u64 = 50_000;
const PIPELINE: usize = 50;
const KEYS: usize = 20_000;
const VALUE_BYTES: usize = 100;
/// Number of slots of the smallest initial bucket.
const SLOTS: u16 = 16;
const BEFORE: Duration = Duration::from_secs(3);

#[derive(Serialize, Deserialize)]
pub(crate) struct Hot {
    /// Time from the start of the second process until both nodes have everything.
    pub(crate) seconds: f64,
    pub(crate) writes_per_second_before: f64,
    pub(crate) writes_per_second_during: f64,
}

pub(super) fn measure(tools: &Tools) -> io::Result<Hot> {
    let mut cluster = Members { kind: Kind::Ours, servers: Vec::new() };
    cluster.add(tools)?;
    let names = (0_u64..).map(|number| format!("hot:{number}")).filter(is_hot);
    let keys = Keys::Piped(names.take(KEYS).collect(), PIPELINE);
    let per_second = WRITES_PER_SECOND / PIPELINE as u64;
    let work = Work { keys, value_bytes: VALUE_BYTES, per_second };
    let started = Instant::now();
    let load = Paced::start(cluster.servers[0].address, &work);
    std::thread::sleep(BEFORE);
    let begun = Instant::now();
    cluster.add(tools)?;
    let ended = cluster.wait_until_even(2)?;
    let samples = load.end()?.samples;
    let rate = |from: Instant, to: Instant| rate(&samples, from, to);
    Ok(Hot {
        seconds: ended.duration_since(begun).as_secs_f64(),
        writes_per_second_before: rate(started, begun),
        writes_per_second_during: rate(begun, ended),
    })
}

fn is_hot(key: &String) -> bool {
    Slot::of(key.as_bytes()).number() < SLOTS
}

/// Returns the rate of writes that were answered in this interval.
fn rate(samples: &Samples, from: Instant, to: Instant) -> f64 {
    let answered = samples.iter().map(|(due, took)| *due + *took);
    let inside = answered.filter(|at| *at >= from && *at < to).count();
    inside as f64 * PIPELINE as f64 / to.duration_since(from).as_secs_f64()
}

impl Hot {
    pub(super) fn line(&self) -> String {
        format!(
            "a bucket that takes {:.0} writes a second is on two nodes after {:.2} s; meanwhile {:.0} a second",
            self.writes_per_second_before, self.seconds, self.writes_per_second_during,
        )
    }
}

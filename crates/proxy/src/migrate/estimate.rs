//! Estimates the number, routes and sizes of the keys that move: keys are counted, sizes sampled. Used by the
//! plan of a migration, and by `fleet status` while one runs.

use std::collections::BTreeMap;
use std::io;
use std::thread;

use fleet::view::{Place, Route};
use fleet::{Address, Server, View};
use placement::{ServerMap, ServerMapChange};
use resp::Value;

use crate::admin::{AdminError, Go, Look, PATIENCE, pages, refused_at};
use crate::servers::{Access, Control};

/// Sampling interval: the size of one in this many moving keys is asked for.
const SAMPLE_EVERY: u64 = 32;
/// Maximum number of keys walked per server for a quick estimate; the rest is extrapolated.
const SAMPLED_KEYS: u64 = 100_000;
/// Maximum number of misplaced keys kept by name.
const EXAMPLES: usize = 5;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Load {
    pub keys: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Estimate {
    pub routes: BTreeMap<Route, Load>,
    /// Number of all keys walked.
    pub walked: u64,
    /// Number of keys not at their server under the current map, and some of them by name.
    pub misplaced: u64,
    pub examples: Vec<Misplaced>,
    /// True if every key was counted.
    pub exact: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misplaced {
    pub key: Vec<u8>,
    pub on: Server,
    pub belongs: Server,
}

impl Estimate {
    pub fn total(&self) -> Load {
        let add = |sum: Load, load: &Load| Load {
            keys: sum.keys + load.keys,
            bytes: sum.bytes + load.bytes,
        };
        self.routes.values().fold(Load::default(), add)
    }

    /// Estimates what a change to `next` would move, counted over all servers.
    pub(crate) fn full(
        look: &Look,
        next: &ServerMap,
        access: &Access,
    ) -> Result<Estimate, AdminError> {
        let change =
            ServerMapChange { previous: look.config.current.clone(), current: next.clone() };
        let count = |key: &[u8], on: Server| {
            let belongs = Server(change.previous.server_of(key));
            if belongs != on {
                return Found::Misplaced { belongs };
            }
            let to = Server(change.current.server_of(key));
            if to == on { Found::Stays } else { Found::Moves(Route { from: on, to }) }
        };
        walk(look, access, u64::MAX, &count)
    }

    /// Estimates what remains of the migration in progress.
    pub(crate) fn sampled(look: &Look, access: &Access) -> Result<Estimate, AdminError> {
        let view = View::of(&look.config);
        let count = |key: &[u8], on: Server| match view.place(key) {
            Place::Moving(route) if route.from == on => Found::Moves(route),
            Place::Moving(_) | Place::At(_) | Place::Held => Found::Stays,
        };
        walk(look, access, SAMPLED_KEYS, &count)
    }

    fn merge(&mut self, other: Estimate) {
        for (route, load) in other.routes {
            let sum = self.routes.entry(route).or_default();
            sum.keys += load.keys;
            sum.bytes += load.bytes;
        }
        self.walked += other.walked;
        self.misplaced += other.misplaced;
        self.examples.extend(other.examples);
        self.examples.truncate(EXAMPLES);
        self.exact &= other.exact;
    }
}

enum Found {
    Stays,
    Moves(Route),
    Misplaced { belongs: Server },
}

type Count<'a> = dyn Fn(&[u8], Server) -> Found + Sync + 'a;

/// Walks all servers at once, one thread each.
fn walk(
    look: &Look,
    access: &Access,
    keys_max: u64,
    count: &Count<'_>,
) -> Result<Estimate, AdminError> {
    let present = look.servers.iter().filter(|seen| seen.facts.is_ok());
    let results = thread::scope(|scope| {
        let start = |seen| scope.spawn(move || walk_one(seen, access, keys_max, count));
        let threads: Vec<_> = present.map(start).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("walking does not panic"))
            .collect::<Vec<_>>()
    });
    let mut sum = Estimate { exact: true, ..Estimate::default() };
    for result in results {
        sum.merge(result?);
    }
    Ok(sum)
}

fn walk_one(
    seen: &crate::admin::Seen,
    access: &Access,
    keys_max: u64,
    count: &Count<'_>,
) -> Result<Estimate, AdminError> {
    let failed = |error: io::Error| refused_at(&seen.address, &error.to_string());
    let mut control = connect(&seen.address, access).map_err(failed)?;
    let mut walk = OneWalk::new(seen.server);
    pages(&mut control, |control, keys| {
        for key in keys {
            walk.count(key, count);
        }
        walk.weigh(control)?;
        Ok(if walk.estimate.walked < keys_max { Go::On } else { Go::Stop })
    })
    .map_err(failed)?;
    let all = seen.facts.as_ref().map_or(0, |facts| facts.keys);
    Ok(walk.finish(all.max(1), keys_max))
}

fn connect(address: &Address, access: &Access) -> io::Result<Control> {
    Control::connect(address, access, PATIENCE)
}

struct OneWalk {
    server: Server,
    estimate: Estimate,
    /// Keys whose size is to be asked for.
    sample: Vec<Vec<u8>>,
    sampled: u64,
    sampled_bytes: u64,
}

impl OneWalk {
    fn new(server: Server) -> OneWalk {
        let estimate = Estimate { exact: true, ..Estimate::default() };
        OneWalk { server, estimate, sample: Vec::new(), sampled: 0, sampled_bytes: 0 }
    }

    fn count(&mut self, key: Vec<u8>, count: &Count<'_>) {
        let estimate = &mut self.estimate;
        estimate.walked += 1;
        match count(&key, self.server) {
            Found::Stays => {}
            Found::Misplaced { belongs } => {
                estimate.misplaced += 1;
                if estimate.examples.len() < EXAMPLES {
                    estimate.examples.push(Misplaced { key, on: self.server, belongs });
                }
            }
            Found::Moves(route) => {
                let load = estimate.routes.entry(route).or_default();
                load.keys += 1;
                if load.keys % SAMPLE_EVERY == 1 {
                    self.sample.push(key);
                }
            }
        }
    }

    fn weigh(&mut self, control: &mut Control) -> io::Result<()> {
        let sample = std::mem::take(&mut self.sample);
        let command = |key: Vec<u8>| vec![b"MEMORY".to_vec(), b"USAGE".to_vec(), key];
        let commands: Vec<Vec<Vec<u8>>> = sample.into_iter().map(command).collect();
        for answer in control.pipeline(&commands)? {
            if let Value::Integer(bytes) = answer {
                self.sampled += 1;
                self.sampled_bytes += bytes.unsigned_abs();
            }
        }
        Ok(())
    }

    fn finish(mut self, all: u64, keys_max: u64) -> Estimate {
        let walked = self.estimate.walked.max(1);
        let cut = self.estimate.walked >= keys_max && all > walked;
        self.estimate.exact = !cut;
        for load in self.estimate.routes.values_mut() {
            if cut {
                load.keys = load.keys * all / walked;
            }
            load.bytes = load.keys * self.sampled_bytes / self.sampled.max(1);
        }
        self.estimate
    }
}

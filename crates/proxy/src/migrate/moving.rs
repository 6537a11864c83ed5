//! Finds, weighs, batches and moves keys: one thread walks each server that gives keys, a few threads carry
//! them. `run.rs` calls it once the maps are switched.
//!
//! A walk meets every key that exists from its beginning to its end, and no key that moves ever comes back,
//! so one walk is enough if nothing failed. If something failed, or if a cluster gives keys (its nodes may
//! change during the walk), another walk follows, until one finds nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use fleet::config::weight;
use fleet::view::{Place, Route};
use fleet::write::BIG_BYTES;
use fleet::{BigMoveJob, Config, Kind, Outcome, Server, Token, View};
use parking_lot::Mutex;
use resp::Value;

use super::courtesy::Courtesy;
use super::lanes::{Broken, Lanes};
use super::progress::{Left, Progress};
use crate::admin::{Go, pages};
use crate::servers::{Access, Control};

/// Number of threads that carry keys. More would only make the servers' queues longer.
const CARRIERS: usize = 4;
/// Maximum keys per batch. A batch is small, so that it blocks a server for well under a millisecond.
const BATCH_KEYS: usize = 64;
const BATCH_BYTES: u64 = 256 * 1024;
/// Niceness of the threads that move keys. They give way to everything else on this machine: applications and
/// possibly the servers themselves.
const NICENESS: i32 = 10;
/// Maximum number of walks; keys that still do not move are left to `--resume`.
const WALKS_MAX: usize = 5;

/// Context of the carriers.
pub(super) struct Mover<'a> {
    pub(super) config: &'a Config,
    pub(super) access: &'a Access,
    pub(super) id: &'a str,
    pub(super) rate: Option<u64>,
    pub(super) skip_larger_than: Option<u64>,
    pub(super) progress: &'a Arc<Progress>,
}

enum Cargo {
    Batch { route: Route, keys: Vec<Vec<u8>> },
    Big { route: Route, key: Vec<u8> },
}

/// Result of one walk over all servers.
#[derive(Default)]
struct Walked {
    /// Number of keys handed to the carriers.
    found: AtomicU64,
    /// True if some of them may still be at their old server.
    troubled: AtomicBool,
    /// Servers that cannot be reached, with the reason.
    away: Mutex<BTreeMap<Server, String>>,
}

/// Keys that stay at their old server and are not tried again.
type Stays = BTreeSet<Vec<u8>>;

impl Mover<'_> {
    /// Moves everything there is to move; keys that cannot move are recorded in the progress.
    pub(super) fn run(&self) {
        let mut away = BTreeMap::new();
        for _ in 0..WALKS_MAX {
            let stays: Stays =
                self.progress.left().into_iter().filter_map(|left| left.key).collect();
            let walked = Walked { away: Mutex::new(away.clone()), ..Walked::default() };
            self.walk(&walked, &stays);
            let met_all = !walked.troubled.into_inner() && self.givers_are_plain();
            let found = walked.found.into_inner();
            away = walked.away.into_inner();
            if found == 0 || met_all || self.progress.is_stopping() {
                break;
            }
        }
        for (server, why) in away {
            let address = &self.config.servers[server.0];
            let why = format!("server {address}: {why}");
            self.progress.left_behind(Left { key: None, why });
        }
    }

    /// Returns the servers that may give keys: those with weight in the previous map.
    fn givers(&self) -> Vec<Server> {
        let has_weight = |server: &Server| weight(&self.config.previous, *server) > 0;
        (0..self.config.servers.len()).map(Server).filter(has_weight).collect()
    }

    fn givers_are_plain(&self) -> bool {
        let is_plain = |server: &Server| self.config.servers[server.0].kind == Kind::Plain;
        self.givers().iter().all(is_plain)
    }

    fn walk(&self, walked: &Walked, stays: &Stays) {
        let (sender, receiver) = sync_channel(CARRIERS * 2);
        let receiver = Mutex::new(receiver);
        let pace = Pace::new(self.rate);
        let servers: Vec<Server> = (0..self.config.servers.len()).map(Server).collect();
        let courtesy = Courtesy::look(&mut self.lanes("look"), &servers);
        thread::scope(|scope| {
            for server in self.givers() {
                let sender = sender.clone();
                scope.spawn(move || self.walk_server(server, walked, stays, &sender));
            }
            drop(sender);
            for number in 0..courtesy.carriers(CARRIERS) {
                let (receiver, pace) = (&receiver, &pace);
                scope.spawn(move || self.carry(number, walked, receiver, pace, courtesy));
            }
        });
    }

    // Finding and weighing.

    fn walk_server(
        &self,
        server: Server,
        walked: &Walked,
        stays: &Stays,
        sender: &SyncSender<Cargo>,
    ) {
        if walked.away.lock().contains_key(&server) {
            return;
        }
        give_way();
        let view = View::of(self.config);
        let mut lanes = self.lanes("walk");
        let result = lanes.on(server, |control| {
            pages(control, |control, keys| {
                let keys: Vec<(Vec<u8>, Route)> = keys
                    .into_iter()
                    .filter(|key| !stays.contains(key))
                    .filter_map(|key| match view.place(&key) {
                        Place::Moving(route) if route.from == server => Some((key, route)),
                        Place::Moving(_) | Place::At(_) | Place::Held => None,
                    })
                    .collect();
                for cargo in self.weigh(control, keys)? {
                    walked.found.fetch_add(cargo.keys(), Ordering::Relaxed);
                    if sender.send(cargo).is_err() {
                        return Ok(Go::Stop);
                    }
                }
                Ok(if self.progress.is_stopping() { Go::Stop } else { Go::On })
            })
        });
        if let Err(broken) = result {
            self.note_broken(&broken, walked);
        }
    }

    /// Groups keys into batches by route, and large ones separately.
    fn weigh(&self, control: &mut Control, keys: Vec<(Vec<u8>, Route)>) -> io::Result<Vec<Cargo>> {
        let command =
            |(key, _): &(Vec<u8>, Route)| vec![b"MEMORY".to_vec(), b"USAGE".to_vec(), key.clone()];
        let commands: Vec<Vec<Vec<u8>>> = keys.iter().map(command).collect();
        let mut sizes = Vec::with_capacity(keys.len());
        // All at once would block the server for the time of a whole page.
        for commands in commands.chunks(BATCH_KEYS) {
            sizes.extend(control.pipeline(commands)?);
        }
        let mut cargo = Vec::new();
        let mut open: BTreeMap<Route, (Vec<Vec<u8>>, u64)> = BTreeMap::new();
        for ((key, route), size) in keys.into_iter().zip(sizes) {
            if size == Value::Null {
                continue; // Gone meanwhile.
            }
            // If a server does not report sizes, its keys are treated as small.
            let bytes = if let Value::Integer(bytes) = size { bytes.unsigned_abs() } else { 0 };
            if self.skip_larger_than.is_some_and(|max| bytes > max) {
                let why = format!("{bytes} bytes, larger than --skip-larger-than");
                self.progress.left_behind(Left { key: Some(key), why });
                continue;
            }
            if bytes > BIG_BYTES {
                cargo.push(Cargo::Big { route, key });
                continue;
            }
            let batch = open.entry(route).or_default();
            batch.0.push(key);
            batch.1 += bytes;
            if batch.0.len() >= BATCH_KEYS || batch.1 >= BATCH_BYTES {
                let (keys, _) = std::mem::take(batch);
                cargo.push(Cargo::Batch { route, keys });
            }
        }
        let rest = open.into_iter().filter(|(_, (keys, _))| !keys.is_empty());
        cargo.extend(rest.map(|(route, (keys, _))| Cargo::Batch { route, keys }));
        Ok(cargo)
    }

    // Carrying.

    fn carry(
        &self,
        number: usize,
        walked: &Walked,
        cargo: &Mutex<Receiver<Cargo>>,
        pace: &Pace,
        courtesy: Courtesy,
    ) {
        give_way();
        let mut lanes = self.lanes("carry");
        let mut count = 0_u64;
        loop {
            let next = cargo.lock().recv();
            let Ok(cargo) = next else { return };
            for piece in cargo.pieces(courtesy.keys_at_once(BATCH_KEYS)) {
                // Drain the queue, so that the walkers can end.
                if self.progress.is_stopping() || self.is_away(piece.route(), walked) {
                    walked.troubled.store(true, Ordering::Relaxed);
                    continue;
                }
                count += 1;
                let token = Token::new(format!("{}-{number}-{count}", self.id));
                let begun = Instant::now();
                let bytes = match self.carry_one(&mut lanes, piece, &token) {
                    Ok(bytes) => bytes,
                    Err(broken) => {
                        self.note_broken(&broken, walked);
                        0
                    }
                };
                courtesy.rest(begun.elapsed());
                pace.spend(bytes);
            }
        }
    }

    fn carry_one(&self, lanes: &mut Lanes, cargo: Cargo, token: &Token) -> Result<u64, Broken> {
        match cargo {
            Cargo::Big { route, key } => self.carry_big(lanes, route, key, token),
            Cargo::Batch { route, keys } => {
                let mut job = lanes.mover(route, token, keys);
                lanes.run(&mut job, || true)?;
                let (mut keys, mut bytes, mut refused) = (0, 0, Vec::new());
                for (key, outcome) in job.outcomes() {
                    match outcome {
                        // Zero bytes: the key was already there, because it was met twice or moved by a client.
                        Outcome::Moved { bytes: size } => {
                            keys += u64::from(*size > 0);
                            bytes += *size as u64;
                        }
                        Outcome::Gone => {}
                        Outcome::Refused(_) => refused.push(key.to_vec()),
                    }
                }
                self.progress.moved(keys, bytes);
                // Servers of different versions do not accept each other's dumps: move these by elements.
                for key in refused {
                    bytes += self.carry_big(lanes, route, key, token)?;
                }
                Ok(bytes)
            }
        }
    }

    fn carry_big(
        &self,
        lanes: &mut Lanes,
        route: Route,
        key: Vec<u8>,
        token: &Token,
    ) -> Result<u64, Broken> {
        let mut job = BigMoveJob::new(route, token.clone(), key.clone());
        let ran = lanes.run(&mut job, || !self.progress.is_stopping());
        let refused = match (ran, job.outcome()) {
            (Err(Broken::Job(_)), _) if self.progress.is_stopping() => return Ok(0),
            (Err(Broken::Job(why)), _) => why,
            (Err(broken), _) => return Err(broken),
            (Ok(()), Some(Outcome::Refused(why))) => why.clone(),
            (Ok(()), Some(Outcome::Moved { bytes })) => {
                self.progress.moved(1, *bytes as u64);
                return Ok(*bytes as u64);
            }
            (Ok(()), Some(Outcome::Gone) | None) => return Ok(0),
        };
        self.progress.left_behind(Left { key: Some(key), why: refused });
        Ok(0)
    }

    fn lanes(&self, role: &str) -> Lanes {
        let id = format!("{}.{role}", self.id);
        Lanes::new(&self.config.servers, self.access, &id, self.config.epoch)
    }

    fn is_away(&self, route: Route, walked: &Walked) -> bool {
        let away = walked.away.lock();
        away.contains_key(&route.from) || away.contains_key(&route.to)
    }

    fn note_broken(&self, broken: &Broken, walked: &Walked) {
        walked.troubled.store(true, Ordering::Relaxed);
        match broken {
            Broken::Server { server, why } => {
                walked.away.lock().entry(*server).or_insert_with(|| why.clone());
            }
            Broken::Job(_) if self.progress.is_stopping() => {}
            Broken::Job(why) => {
                self.progress.left_behind(Left { key: None, why: why.clone() });
            }
        }
    }
}

/// Lowers this thread's priority. If that is not allowed, nothing but some courtesy is lost.
fn give_way() {
    let _ = rustix::process::nice(NICENESS);
}

impl Cargo {
    /// Splits the cargo into pieces of at most `keys_max` keys.
    fn pieces(self, keys_max: usize) -> Vec<Cargo> {
        match self {
            Cargo::Batch { route, keys } if keys.len() > keys_max => {
                let pieces = keys.chunks(keys_max);
                pieces.map(|keys| Cargo::Batch { route, keys: keys.to_vec() }).collect()
            }
            whole @ (Cargo::Batch { .. } | Cargo::Big { .. }) => vec![whole],
        }
    }

    fn route(&self) -> Route {
        match self {
            Cargo::Batch { route, .. } | Cargo::Big { route, .. } => *route,
        }
    }

    fn keys(&self) -> u64 {
        match self {
            Cargo::Batch { keys, .. } => keys.len() as u64,
            Cargo::Big { .. } => 1,
        }
    }
}

/// Limits the rate to a number of bytes per second.
struct Pace {
    rate: Option<u64>,
    /// Time at which the bytes carried so far are within the rate.
    paid: Mutex<Instant>,
}

impl Pace {
    fn new(rate: Option<u64>) -> Pace {
        Pace { rate, paid: Mutex::new(Instant::now()) }
    }

    fn spend(&self, bytes: u64) {
        let Some(rate) = self.rate else { return };
        let cost = Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / rate.max(1));
        let until = {
            let mut paid = self.paid.lock();
            *paid = (*paid).max(Instant::now()) + cost;
            *paid
        };
        thread::sleep(until.saturating_duration_since(Instant::now()));
    }
}

/// Removes the older of two copies that a mover left when it died, before a migration is reverted: afterwards
/// the copy at the old server would be authoritative. Use it only behind the barrier, when no mover is running.
pub(super) fn sweep(lanes: &mut Lanes, migrating: &Config) -> Result<u64, Broken> {
    let view = View::of(&Config { next: None, ..migrating.clone() });
    let servers = (0..migrating.servers.len()).map(Server);
    let mut swept = 0;
    for from in servers.filter(|server| weight(&migrating.previous, *server) > 0) {
        let mut by_taker: BTreeMap<Server, BTreeSet<Vec<u8>>> = BTreeMap::new();
        lanes.on(from, |control| {
            pages(control, |_, keys| {
                for key in keys {
                    if let Place::Moving(route) = view.place(&key)
                        && route.from == from
                    {
                        by_taker.entry(route.to).or_default().insert(key);
                    }
                }
                Ok(Go::On)
            })
        })?;
        for (to, keys) in by_taker {
            let commands: Vec<Vec<Vec<u8>>> =
                keys.iter().map(|key| vec![b"EXISTS".to_vec(), key.clone()]).collect();
            let exists = lanes.on(to, |control| control.pipeline(&commands))?;
            let twice = keys.into_iter().zip(exists);
            let twice = twice.filter(|(_, exists)| *exists == Value::Integer(1));
            let commands: Vec<Vec<Vec<u8>>> =
                twice.map(|(key, _)| vec![b"UNLINK".to_vec(), key]).collect();
            swept += commands.len() as u64;
            lanes.on(from, |control| control.pipeline(&commands))?;
        }
    }
    Ok(swept)
}

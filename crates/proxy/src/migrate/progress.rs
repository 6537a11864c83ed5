//! Progress of a migration: written by the migrator's threads, read by its observers.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use parking_lot::Mutex;

/// Current activity of a migration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Phase {
    Waiting,
    Announcing,
    Switching,
    Moving,
    Ending,
}

impl Phase {
    pub fn words(self) -> &'static str {
        match self {
            Phase::Waiting => "waiting for the other migration",
            Phase::Announcing => "announcing the map",
            Phase::Switching => "switching maps",
            Phase::Moving => "moving keys",
            Phase::Ending => "ending",
        }
    }
}

#[derive(Debug)]
pub struct Progress {
    phase: AtomicU8,
    keys: AtomicU64,
    bytes: AtomicU64,
    /// Set to end the migration early.
    stop: AtomicBool,
    left: Mutex<Vec<Left>>,
}

/// A key, or the keys of a server, that did not move.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Left {
    /// The key; `None` for all keys that a server holds.
    pub key: Option<Vec<u8>>,
    pub why: String,
}

/// Outcome of a migration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    Done,
    /// It was stopped; `migrate --resume` continues it.
    Paused,
    /// Some keys are still at their old server; the status stays 1.
    Incomplete,
}

#[derive(Clone, Debug)]
pub struct Report {
    pub outcome: Outcome,
    pub keys: u64,
    pub bytes: u64,
    pub left: Vec<Left>,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress {
            phase: AtomicU8::new(Phase::Waiting as u8),
            keys: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            left: Mutex::new(Vec::new()),
        }
    }
}

impl Progress {
    /// Asks the migration to stop as soon as nothing is half done.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub fn phase(&self) -> Phase {
        let number = self.phase.load(Ordering::Relaxed);
        let phases = [Phase::Waiting, Phase::Announcing, Phase::Switching, Phase::Moving];
        phases.into_iter().find(|phase| *phase as u8 == number).unwrap_or(Phase::Ending)
    }

    pub fn keys(&self) -> u64 {
        self.keys.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub(super) fn moved(&self, keys: u64, bytes: u64) {
        self.keys.fetch_add(keys, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Records what did not move, once.
    pub(super) fn left_behind(&self, left: Left) {
        let mut all = self.left.lock();
        if !all.contains(&left) {
            all.push(left);
        }
    }

    pub(super) fn left(&self) -> Vec<Left> {
        self.left.lock().clone()
    }
}

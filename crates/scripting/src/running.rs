//! The scripts that run on a node, as its other threads see them: to kill one, and to know which slots it holds.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};

use crate::sha::ScriptId;
use crate::texts::Texts;

/// The slots whose locks a script holds, by their numbers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Held {
    These(Vec<u16>),
    All,
}

impl Held {
    fn includes(&self, slot: u16) -> bool {
        match self {
            Held::These(slots) => slots.contains(&slot),
            Held::All => true,
        }
    }
}

/// A script that has run for some time. Shorter ones are not known to other threads.
#[derive(Debug)]
pub struct Running {
    stage: AtomicU8,
    /// True if it has run for longer than `busy-reply-threshold`.
    is_slow: AtomicBool,
    held: Held,
    /// The script's id or the function's name.
    pub name: String,
}

const READING: u8 = 0;
const WRITING: u8 = 1;
const KILLED: u8 = 2;

impl Running {
    /// Records that the script is about to write. Returns false if it was killed before.
    pub(crate) fn begin_write(&self) -> bool {
        let stage = self.stage.compare_exchange(READING, WRITING, AcqRel, Acquire);
        stage.is_ok() || stage == Err(WRITING)
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.stage.load(Acquire) == KILLED
    }

    fn kill(&self) -> bool {
        let stage = self.stage.compare_exchange(READING, KILLED, AcqRel, Acquire);
        stage.is_ok() || stage == Err(KILLED)
    }
}

/// The reason no script was killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KillError {
    NothingRuns,
    /// It has written: what it did cannot be undone.
    HasWritten,
}

/// Everything that the threads of a node share about scripts.
#[derive(Debug, Default)]
pub struct NodeScripts {
    running: Mutex<Vec<Arc<Running>>>,
    /// Number of slow scripts, so that others need not look.
    slow: AtomicUsize,
    texts: Mutex<Texts>,
    cluster: RwLock<ClusterScripts>,
    /// Held by a script that takes locks while it runs: two of them could wait for each other.
    turn: Mutex<()>,
}

/// The scripts that all nodes of the cluster have.
#[derive(Debug, Default)]
struct ClusterScripts {
    version: u64,
    texts: BTreeMap<ScriptId, Arc<[u8]>>,
}

impl NodeScripts {
    /// Waits for the turn of a script that takes locks while it runs. `None` if a slow script runs meanwhile.
    pub fn take_turn(&self) -> Option<MutexGuard<'_, ()>> {
        const LOOK_EVERY: Duration = Duration::from_millis(5);
        loop {
            if let Some(turn) = self.turn.try_lock_for(LOOK_EVERY) {
                return Some(turn);
            }
            if self.slow.load(Relaxed) > 0 {
                return None;
            }
        }
    }

    /// Waits at most `patience` for that turn.
    pub fn take_turn_within(&self, patience: Duration) -> Option<MutexGuard<'_, ()>> {
        self.turn.try_lock_for(patience)
    }

    /// Returns whether a script is known to use no other keys than those that it declares.
    pub fn declares_its_keys(&self, id: &ScriptId) -> bool {
        self.texts.lock().declares_its_keys(id)
    }

    /// Records whether a script has used only the keys that it declares. Once it has not, it never counts as one
    /// that does.
    pub fn note_keys(&self, id: &ScriptId, only_declared: bool) {
        self.texts.lock().note_keys(id, only_declared);
    }

    /// Makes a script known that has already run for a while.
    pub(crate) fn enter(&self, name: &str, held: &Held, has_written: bool) -> Arc<Running> {
        let running = Arc::new(Running {
            stage: AtomicU8::new(if has_written { WRITING } else { READING }),
            is_slow: AtomicBool::new(false),
            held: held.clone(),
            name: name.to_owned(),
        });
        self.running.lock().push(Arc::clone(&running));
        running
    }

    pub(crate) fn leave(&self, running: &Arc<Running>) {
        if running.is_slow.load(Relaxed) {
            self.slow.fetch_sub(1, Relaxed);
        }
        self.running.lock().retain(|it| !Arc::ptr_eq(it, running));
    }

    pub(crate) fn note_time(&self, running: &Running, elapsed: Duration, threshold: Duration) {
        if elapsed >= threshold && !running.is_slow.swap(true, Relaxed) {
            self.slow.fetch_add(1, Relaxed);
        }
    }

    /// Ends the running scripts that have not written yet.
    pub fn kill(&self) -> Result<(), KillError> {
        let running = self.running.lock();
        if running.is_empty() {
            return Err(KillError::NothingRuns);
        }
        let killed = running.iter().filter(|it| it.kill()).count();
        if killed == 0 { Err(KillError::HasWritten) } else { Ok(()) }
    }

    /// Returns whether a slow script holds the lock of this slot.
    pub fn is_busy(&self, slot: u16) -> bool {
        let holds = |it: &Arc<Running>| it.is_slow.load(Relaxed) && it.held.includes(slot);
        self.slow.load(Relaxed) > 0 && self.running.lock().iter().any(holds)
    }

    /// Returns the text of a script that this node remembers.
    pub fn text(&self, id: &ScriptId) -> Option<Arc<[u8]>> {
        self.texts.lock().get(id)
    }

    /// Returns whether this node remembers a script.
    pub fn knows(&self, id: &ScriptId) -> bool {
        self.texts.lock().has(id)
    }

    /// Remembers the text of a script. If there are too many, the one that was not used for longest is forgotten.
    pub fn remember(&self, id: ScriptId, text: &[u8]) {
        self.texts.lock().put(id, text);
    }

    /// Adopts the scripts that all nodes of the cluster have, in this version of them. Forgets those that were
    /// remembered before the flush with this number.
    pub fn follow_cluster(&self, version: u64, flush: u64, texts: BTreeMap<ScriptId, Arc<[u8]>>) {
        *self.cluster.write() = ClusterScripts { version, texts };
        self.texts.lock().follow_flush(flush);
    }

    /// Returns the version of the cluster's scripts that this node follows.
    pub fn cluster_version(&self) -> u64 {
        self.cluster.read().version
    }

    /// Returns the text of a script that all nodes of the cluster have.
    pub fn cluster_text(&self, id: &ScriptId) -> Option<Arc<[u8]>> {
        self.cluster.read().texts.get(id).map(Arc::clone)
    }

    /// Forgets all scripts.
    pub fn forget_texts(&self) {
        self.texts.lock().clear();
    }

    /// Returns the number of scripts that this node remembers, and their bytes.
    pub fn text_figures(&self) -> (usize, usize) {
        self.texts.lock().figures()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_killed_only_before_it_writes() {
        let node = NodeScripts::default();
        assert_eq!(node.kill(), Err(KillError::NothingRuns));
        let reader = node.enter("a", &Held::These(vec![7]), false);
        assert_eq!(node.kill(), Ok(()));
        assert!(reader.is_killed() && !reader.begin_write());
        node.leave(&reader);
        let writer = node.enter("b", &Held::All, false);
        assert!(writer.begin_write() && writer.begin_write());
        assert_eq!(node.kill(), Err(KillError::HasWritten));
        assert!(!writer.is_killed());
        node.leave(&writer);
        assert_eq!(node.kill(), Err(KillError::NothingRuns));
    }

    #[test]
    fn only_the_slots_of_a_slow_script_are_busy() {
        let node = NodeScripts::default();
        let running = node.enter("a", &Held::These(vec![7]), false);
        let threshold = Duration::from_secs(5);
        node.note_time(&running, Duration::from_secs(4), threshold);
        assert!(!node.is_busy(7));
        node.note_time(&running, Duration::from_secs(5), threshold);
        assert!(node.is_busy(7) && !node.is_busy(8));
        node.leave(&running);
        assert!(!node.is_busy(7));
    }
}

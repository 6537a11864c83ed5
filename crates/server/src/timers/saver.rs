//! Saves the timers of a running node to its data directory, again and again, for a crash of all nodes.
//! `service.rs` starts it; `keep.rs` has the files.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::hub::Hub;
use super::keep;

/// Time between two snapshots: what a crash of all nodes can undo.
const SAVE_EVERY: Duration = Duration::from_secs(5);
/// A large snapshot is written less often: the pause is at least this many times what the last one took.
const PAUSES: u32 = 20;

/// The running thread. It ends when this value is dropped.
pub(super) struct Saver {
    /// Closed to end the thread.
    running: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Saver {
    /// Starts the thread, if there is a data directory.
    pub(super) fn start(hub: &Arc<Hub>) -> io::Result<Option<Saver>> {
        if hub.files.is_none() {
            return Ok(None);
        }
        let (running, ended) = mpsc::channel();
        let hub = Arc::clone(hub);
        let thread = thread::Builder::new().name("timers-file".to_owned());
        let thread = thread.spawn(move || save_until(&hub, &ended))?;
        Ok(Some(Saver { running: Some(running), thread: Some(thread) }))
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        drop(self.running.take());
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the thread that saves timers panicked");
        }
    }
}

fn save_until(hub: &Hub, ended: &Receiver<()>) {
    let is_over = || ended.try_recv() == Err(TryRecvError::Disconnected);
    let mut pause = SAVE_EVERY;
    let mut saved = None;
    while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let changes = hub.with_core(|core| core.changes());
        if saved == Some(changes) || !hub.is_settled() {
            continue;
        }
        let begun = Instant::now();
        keep::save_running(hub, &is_over);
        saved = Some(changes);
        pause = SAVE_EVERY.max(begun.elapsed() * PAUSES);
    }
}

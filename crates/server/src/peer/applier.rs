//! The thread that applies decisions to the data plane: maps, leases and orders, one after the other in the
//! control plane's order. A map takes every slot's lock, and a command may hold one for seconds; the control
//! thread, which renews the lease and answers the other nodes, must not wait for that.
//!
//! A lease counts for the data plane only when the maps before it are applied, because both go through this one
//! queue.

use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::DataPlane;

/// Maximum number of queued jobs. A control thread that is further ahead waits.
const WAITING_MAX: usize = 1024;

type ApplierJob = Box<dyn FnOnce(&dyn DataPlane) + Send>;

pub(super) struct Applier {
    jobs: Option<SyncSender<ApplierJob>>,
    thread: Option<JoinHandle<()>>,
    given: u64,
    /// Number of jobs that are done.
    done: Arc<AtomicU64>,
}

impl Applier {
    pub(super) fn start(data: Arc<dyn DataPlane>) -> io::Result<Applier> {
        let (jobs, waiting) = sync_channel(WAITING_MAX);
        let done = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&done);
        let apply = move || apply_all(&waiting, &*data, &count);
        let thread = thread::Builder::new().name("applier".to_owned()).spawn(apply)?;
        Ok(Applier { jobs: Some(jobs), thread: Some(thread), given: 0, done })
    }

    /// Queues a job, to be applied after all earlier jobs.
    pub(super) fn enqueue(&mut self, job: impl FnOnce(&dyn DataPlane) + Send + 'static) {
        self.given += 1;
        let jobs = self.jobs.as_ref().expect("it ends when this is dropped");
        jobs.send(Box::new(job)).expect("the applier does not end before its owner");
    }

    /// Returns whether all queued jobs are applied.
    pub(super) fn has_caught_up(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.given
    }
}

impl Drop for Applier {
    /// Waits until the remaining jobs are applied, and ends the thread.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || thread::panicking(), "the applier panicked");
        }
    }
}

fn apply_all(waiting: &Receiver<ApplierJob>, data: &dyn DataPlane, done: &AtomicU64) {
    for job in waiting {
        job(data);
        done.fetch_add(1, Ordering::Release);
    }
}

//! The lock, the announcement, the barrier, the switch: the migrator's side of `fleet::switch` over
//! real connections. While a [`Switching`] lives, a thread renews its lock.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use fleet::config::Lock;
use fleet::switch::{
    BarrierJob, ChangeJob, Holder, LAPSED, LOCK_MS, ReleaseJob, RenewJob, TakeLockJob,
};
use fleet::{Address, Config, Epoch, Server};

use super::options::Busy;
use super::progress::Progress;
use crate::admin::{AdminError, PATIENCE};
use crate::servers::{Access, Runner};

const RENEW_EVERY: Duration = Duration::from_millis(LOCK_MS / 5);
const ASK_AGAIN_EVERY: Duration = Duration::from_millis(500);

pub(crate) struct Switching {
    runner: Runner,
    lock: Lock,
    /// All servers that take part, the first one first.
    servers: Vec<Server>,
    renewer: Renewer,
}

impl Switching {
    /// Takes the lock on all of `servers`.
    pub(crate) fn begin(
        addresses: &[Address],
        servers: &[Server],
        access: &Access,
        busy: Busy,
        progress: &Arc<Progress>,
    ) -> Result<Switching, AdminError> {
        let lock = own_lock().map_err(|error| AdminError::Refused(error.to_string()))?;
        let mut runner = Runner::new(addresses.to_vec(), access.clone(), PATIENCE);
        while let Err(why) = runner.run(&mut TakeLockJob::new(lock.clone(), servers)) {
            let _ = runner.run(&mut ReleaseJob::new(&lock, servers));
            if busy == Busy::Refuse || progress.is_stopping() {
                return Err(AdminError::Busy(why));
            }
            std::thread::sleep(ASK_AGAIN_EVERY);
        }
        let renewing = Runner::new(addresses.to_vec(), access.clone(), PATIENCE);
        let renewer = Renewer::start(renewing, &lock, servers, Arc::clone(progress));
        Ok(Switching { runner, lock, servers: servers.to_vec(), renewer })
    }

    fn holder(&self) -> Holder {
        Holder::Us(self.lock.text())
    }

    /// Makes every server repeat the first server's configuration.
    pub(crate) fn repeat(&mut self, first: &Config) -> Result<(), AdminError> {
        let job = ChangeJob::repeat_as(self.holder(), first, &self.servers);
        self.change(job)
    }

    /// Announces a map, and waits until nobody acts on an older one. A failed announcement is withdrawn.
    pub(super) fn announce(&mut self, announced: &Config) -> Result<usize, AdminError> {
        let job = ChangeJob::announce(self.holder(), announced.clone(), &self.servers);
        let done = self.change(job).and_then(|()| self.barrier(announced.epoch));
        if done.is_err() {
            // If this fails, still report the first error; a proxy would withdraw the announcement too.
            let _ = self.undo(announced);
        }
        done
    }

    fn barrier(&mut self, epoch: Epoch) -> Result<usize, AdminError> {
        let mut job = BarrierJob::new(epoch, &self.servers);
        self.runner.run(&mut job).map_err(|why| describe(&why))?;
        Ok(job.killed())
    }

    /// Withdraws an announcement.
    pub(super) fn undo(&mut self, announced: &Config) -> Result<Config, AdminError> {
        let undone = announced.undone();
        self.change(ChangeJob::undo(self.holder(), undone.clone(), &self.servers))?;
        Ok(undone)
    }

    /// Puts a configuration of the announced epoch into force: the switch, or the end.
    pub(super) fn commit(&mut self, new: &Config) -> Result<(), AdminError> {
        self.change(ChangeJob::commit(self.holder(), new.clone(), &self.servers))
    }

    fn change(&mut self, mut job: ChangeJob) -> Result<(), AdminError> {
        self.runner.run(&mut job).map(|_| ()).map_err(|why| describe(&why))
    }

    pub(super) fn lost(&self) -> bool {
        self.renewer.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Switching {
    fn drop(&mut self) {
        self.renewer.end();
        // One by one: an unreachable server must not keep the others locked.
        for server in self.servers.iter().rev() {
            let _ = self.runner.run(&mut ReleaseJob::new(&self.lock, &[*server]));
        }
    }
}

/// Removes the error code that clients would get.
fn describe(why: &str) -> AdminError {
    AdminError::Refused(why.strip_prefix("ERR ").unwrap_or(why).to_owned())
}

struct Renewer {
    ended: Arc<AtomicBool>,
    lost: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Renewer {
    fn start(
        mut runner: Runner,
        lock: &Lock,
        servers: &[Server],
        progress: Arc<Progress>,
    ) -> Renewer {
        let (ended, lost) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (lock, servers) = (lock.clone(), servers.to_vec());
        let flags = (Arc::clone(&ended), Arc::clone(&lost));
        let run = move || {
            while !flags.0.load(Ordering::Relaxed) {
                for server in &servers {
                    let renewed = runner.run(&mut RenewJob::new(&lock, &[*server]));
                    // An unreachable server's lock is not renewed; the locks on the others still show who runs.
                    if renewed.is_err_and(|why| why == LAPSED) && *server == Server::FIRST {
                        flags.1.store(true, Ordering::Relaxed);
                        progress.stop();
                        return;
                    }
                }
                std::thread::park_timeout(RENEW_EVERY);
            }
        };
        let thread = std::thread::Builder::new().name("fleet-lock".to_owned()).spawn(run).ok();
        Renewer { ended, lost, thread }
    }

    fn end(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn own_lock() -> io::Result<Lock> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.split_whitespace().next().unwrap_or("this machine").to_owned();
    let holder = format!("process {} on {host}", std::process::id());
    Ok(Lock { token: random_id()?, holder })
}

/// Returns a random number that nobody else has drawn.
pub(crate) fn random_id() -> io::Result<String> {
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

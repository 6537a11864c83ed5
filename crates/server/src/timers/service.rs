//! The timer thread: it sleeps until something is due, makes callbacks, and keeps the links to other nodes.
//! `node.rs` starts it. It ends when the node stops, and then saves the remaining timers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use cluster::map::Peer;
use settings::Settings;
use timers::TimerInput;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::timeout;

use super::callbacks::Caller;
use super::hub::{Hub, Work};
use super::keep::{self, Carried};
use super::links::TimerLinks;
use super::saver::Saver;
use crate::peer::ControlHandle;
use crate::runtime::runtime;

/// Maximum number of work items handled between two checks of the time.
const WORK_AT_ONCE: usize = 64;

/// The running thread.
pub(crate) struct Service {
    hub: Arc<Hub>,
    thread: Option<JoinHandle<()>>,
    saver: Option<Saver>,
}

/// A service that does not run yet, so that its hub can be given to others first.
pub(crate) struct PreparedTimers {
    pub hub: Arc<Hub>,
    work: UnboundedReceiver<Work>,
    runtime: tokio::runtime::Runtime,
}

/// Prepares the service with the timers that an earlier process has left in the data directory, or an earlier
/// life of this one in memory.
pub(crate) fn prepare(
    me: Peer,
    settings: &Settings,
    control: ControlHandle,
    carried: Option<&Carried>,
) -> io::Result<PreparedTimers> {
    let runtime = runtime()?;
    let (sender, work) = mpsc::unbounded_channel();
    let hub = Arc::new(Hub::new(me, sender, settings, control));
    if !keep::take_carried(&hub, carried) {
        hub.set_found(keep::load(&hub));
    }
    Ok(PreparedTimers { hub, work, runtime })
}

impl PreparedTimers {
    /// Starts the thread. `client_addr` is where this node's own commands are run.
    pub(crate) fn start(self, client_addr: SocketAddr) -> io::Result<Service> {
        let PreparedTimers { hub, work, runtime } = self;
        let caller = Caller::new(Arc::clone(&hub), client_addr);
        let worker =
            TimerWorker { hub: Arc::clone(&hub), work, caller, links: TimerLinks::default() };
        let run = move || {
            runtime.block_on(worker.run());
            // Do not wait for a link that is being opened.
            runtime.shutdown_background();
        };
        let saver = Saver::start(&hub)?;
        let thread = thread::Builder::new().name("timers".to_owned()).spawn(run)?;
        Ok(Service { hub, thread: Some(thread), saver })
    }
}

impl Service {
    /// Ends the threads, and saves timers that no other node has, if there is a data directory.
    pub(crate) fn stop(mut self) {
        self.end();
        keep::save(&self.hub);
    }

    /// Ends the thread, and leaves its timers to the next life of this process.
    pub(crate) fn start_over(mut self) -> Option<Carried> {
        self.end();
        keep::carry(&self.hub)
    }

    fn end(&mut self) {
        self.saver = None;
        let _ = self.hub.work.send(Work::Stop);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the thread of timers panicked");
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.end();
    }
}

struct TimerWorker {
    hub: Arc<Hub>,
    work: UnboundedReceiver<Work>,
    caller: Caller,
    links: TimerLinks,
}

impl TimerWorker {
    async fn run(mut self) {
        loop {
            let mut next = timeout(self.hub.tick(), self.work.recv()).await.ok();
            let mut done = 0;
            while let Some(work) = next {
                match work {
                    None | Some(Work::Stop) => return,
                    Some(work) => self.carry_out(work),
                }
                done += 1;
                let more = (done < WORK_AT_ONCE).then(|| self.work.try_recv().ok()).flatten();
                next = more.map(Some);
            }
        }
    }

    fn carry_out(&mut self, work: Work) {
        match work {
            Work::Wake | Work::Stop => {}
            Work::Call(call) => self.caller.call(call),
            Work::Map(map) => {
                // The links first: the core has messages for new members.
                self.links.follow(&self.hub, self.hub.others(&map));
                self.hub.follow(&map);
            }
            Work::Lease(until) => self.hub.input(TimerInput::Lease { until }),
            Work::Links(maker) => self.links.set_maker(&self.hub, maker),
            Work::Accepted(peer, stream) => self.links.accept(&self.hub, peer, stream),
        }
    }
}

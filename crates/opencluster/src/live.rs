//! Continuous polling of a cluster's status, by a thread of its own, so that a screen never waits for a
//! frozen node. Used by `top` and `demo`.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use cluster::status::Status;

use crate::status_cmd;
use crate::talk::NodeArgs;

const EVERY: Duration = Duration::from_millis(250);

/// Access to the latest status. The thread polls until this is dropped.
pub(crate) struct Live {
    latest: Arc<Mutex<Option<Seen>>>,
}

/// A cluster's status, and the time it was seen.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) status: Arc<Status>,
    pub(crate) at: Instant,
}

impl Live {
    /// Asks these nodes in their order until one answers; if none does, asks the members of the last status.
    pub(crate) fn watch(nodes: Arc<Mutex<Vec<NodeArgs>>>) -> Live {
        let latest = Arc::new(Mutex::new(None));
        let shown = Arc::downgrade(&latest);
        let look = move || {
            let mut known = Vec::new();
            while let Some(latest) = shown.upgrade() {
                let first = nodes.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let asked = first.iter().chain(&known);
                if let Some(status) =
                    asked.into_iter().find_map(|it| status_cmd::of_cluster(it).ok())
                {
                    if let Some(like) = first.first() {
                        let at = |member| like.at(status_cmd::address(member));
                        known = status.members.iter().map(at).collect();
                    }
                    let seen = Seen { status: Arc::new(status), at: Instant::now() };
                    *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
                }
                drop(latest);
                thread::sleep(EVERY);
            }
        };
        let thread = thread::Builder::new().name("look".to_owned()).spawn(look);
        thread.expect("a process can start one more thread");
        Live { latest }
    }

    /// Returns the last status; `None` before any node has answered.
    pub(crate) fn latest(&self) -> Option<Seen> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

//! The node's progress: joining, waiting for its links, ready, gone. The control thread writes it; the
//! start of the node waits for it, and `/readyz` reads it.

use std::time::{Duration, Instant};

use cluster::control::Gone;
use parking_lot::{Condvar, Mutex};

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum StartupPhase {
    /// The node has no map of which it is a member.
    Joining,
    /// `up` of its `of` links to the other members are up.
    Linking {
        up: usize,
        of: usize,
    },
    /// All links are up, but the node has no lease: it could only refuse the clients' commands.
    Leaseless,
    /// Final, unless the node goes: the cluster judges links that break later.
    Ready,
    Gone(Gone),
}

impl StartupPhase {
    /// Describes what is missing.
    pub(crate) fn words(&self) -> String {
        match self {
            StartupPhase::Joining => {
                "waiting for the map from another node of the cluster".to_owned()
            }
            StartupPhase::Linking { up, of } => {
                format!("{up} of {of} links to the other nodes are up")
            }
            StartupPhase::Leaseless => {
                "no lease: the others have not agreed on a leader".to_owned()
            }
            StartupPhase::Ready => "ready".to_owned(),
            StartupPhase::Gone(gone) => gone_words(gone).to_owned(),
        }
    }
}

fn gone_words(gone: &Gone) -> &str {
    match gone {
        Gone::Left | Gone::LeftFor(_) | Gone::LeftAsTheLast => "this node has left the cluster",
        Gone::Removed => "the other nodes declared this node dead",
        Gone::Yielded(_) => "another generation of the cluster survived the split",
        Gone::Refused(reason) => reason,
    }
}

#[derive(Debug)]
pub(crate) struct StartupState {
    progress: Mutex<StartupPhase>,
    changed: Condvar,
}

impl Default for StartupState {
    fn default() -> StartupState {
        StartupState { progress: Mutex::new(StartupPhase::Joining), changed: Condvar::new() }
    }
}

impl StartupState {
    pub(crate) fn progress(&self) -> StartupPhase {
        self.progress.lock().clone()
    }

    pub(super) fn set(&self, progress: StartupPhase) {
        let mut known = self.progress.lock();
        let may_follow = match *known {
            StartupPhase::Joining | StartupPhase::Linking { .. } | StartupPhase::Leaseless => true,
            StartupPhase::Ready => matches!(progress, StartupPhase::Gone(_)),
            StartupPhase::Gone(_) => false,
        };
        if may_follow && *known != progress {
            *known = progress;
            self.changed.notify_all();
        }
    }

    /// Returns whether the node is not ready yet.
    pub(super) fn is_awaited(&self) -> bool {
        !matches!(*self.progress.lock(), StartupPhase::Ready | StartupPhase::Gone(_))
    }

    /// Waits until the node is ready or gone, at most for `limit`; returns its progress then.
    pub(crate) fn wait(&self, limit: Duration) -> StartupPhase {
        let until = Instant::now() + limit;
        let mut progress = self.progress.lock();
        while !matches!(*progress, StartupPhase::Ready | StartupPhase::Gone(_)) {
            if self.changed.wait_until(&mut progress, until).timed_out() {
                break;
            }
        }
        progress.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_is_never_taken_back_and_gone_is_the_end() {
        let startup = StartupState::default();
        startup.set(StartupPhase::Linking { up: 1, of: 2 });
        assert_eq!(startup.wait(Duration::ZERO), StartupPhase::Linking { up: 1, of: 2 });
        startup.set(StartupPhase::Ready);
        startup.set(StartupPhase::Linking { up: 0, of: 2 });
        assert_eq!(startup.wait(Duration::from_secs(9)), StartupPhase::Ready);
        startup.set(StartupPhase::Gone(Gone::Left));
        startup.set(StartupPhase::Ready);
        assert_eq!(startup.progress(), StartupPhase::Gone(Gone::Left));
    }
}

//! One migrator at a time: a lock on every server, with a token and an expiry. The first server is locked
//! first, so that of two simultaneous migrators one gets nothing.
//!
//! The lock keeps two migrators from disturbing each other, and fences every write of the configuration. The
//! guarantee about values does not depend on it.

use resp::Value;

use crate::config::{LOCK, Lock, Server};
use crate::job::{Answer, Batch, Job, Lane, Step, error, items, unexpected};

/// Lifetime of a lock that is not renewed.
pub const LOCK_MS: u64 = 5_000;

/// Error of a renewal if another migrator or nobody holds the lock.
pub const LAPSED: &str = "the lock of this migration has expired";

/// Takes the lock on every server. Fails with the name of its holder; then run a `ReleaseJob` for the servers
/// that were already locked.
#[derive(Clone, PartialEq, Debug)]
pub struct TakeLockJob {
    lock: Lock,
    servers: Vec<Server>,
    taken: usize,
}

impl TakeLockJob {
    /// Creates a job; `servers` begins with the first server.
    pub fn new(lock: Lock, servers: &[Server]) -> TakeLockJob {
        TakeLockJob { lock, servers: servers.to_vec(), taken: 0 }
    }

    fn take(&mut self) -> Step {
        let Some(server) = self.servers.get(self.taken) else {
            return Step::Done(Answer::Nothing);
        };
        let key = LOCK.as_bytes();
        let lifetime = LOCK_MS.to_string();
        let text = self.lock.text();
        let mut batch = Batch::default();
        batch.push(&[b"SET", key, text.as_bytes(), b"NX", b"PX", lifetime.as_bytes()]);
        batch.push(&[b"GET", key]);
        batch.push(&[b"PTTL", key]);
        batch.ask(*server)
    }
}

impl Job for TakeLockJob {
    fn start(&mut self) -> Step {
        self.take()
    }

    fn on_answers(&mut self, answers: &[Value]) -> Step {
        let server = self.servers[self.taken];
        let [taken, found, left] = answers else { return unexpected(server, answers.first()) };
        if let Some(first) = error(answers) {
            return unexpected(server, Some(first));
        }
        let ours = found.text() == Some(self.lock.text().as_bytes());
        if *taken != Value::Null || ours {
            self.taken += 1;
            return self.take();
        }
        let text = String::from_utf8_lossy(found.text().unwrap_or_default()).into_owned();
        let holder = text.split_once(' ').map_or("somebody", |(_, holder)| holder);
        let seconds = if let Value::Integer(ms) = left { ms.max(&0) / 1000 + 1 } else { 0 };
        Step::Failed(format!(
            "a migration is running: {holder} (its lock expires in {seconds} s unless it is \
             renewed)"
        ))
    }

    fn on_waited(&mut self) -> Step {
        unreachable!("taking the lock never waits")
    }
}

/// Extends the lock where it is still ours. Fails where it is not.
#[derive(Clone, PartialEq, Debug)]
pub struct RenewJob(IfOurs);

/// Releases the lock where it is still ours.
#[derive(Clone, PartialEq, Debug)]
pub struct ReleaseJob(IfOurs);

impl RenewJob {
    pub fn new(lock: &Lock, servers: &[Server]) -> RenewJob {
        RenewJob(IfOurs::new(lock, servers, Then::Renew))
    }
}

impl ReleaseJob {
    pub fn new(lock: &Lock, servers: &[Server]) -> ReleaseJob {
        ReleaseJob(IfOurs::new(lock, servers, Then::Release))
    }
}

#[derive(Clone, PartialEq, Debug)]
struct IfOurs {
    text: String,
    todo: Vec<Server>,
    then: Then,
    looked: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    Renew,
    Release,
}

impl IfOurs {
    fn new(lock: &Lock, servers: &[Server], then: Then) -> IfOurs {
        // The first server comes last: while it is locked nobody else begins.
        let todo = servers.to_vec();
        IfOurs { text: lock.text(), todo, then, looked: false }
    }

    fn look(&mut self) -> Step {
        let Some(server) = self.todo.last() else { return Step::Done(Answer::Nothing) };
        self.looked = false;
        let mut batch = Batch::default();
        batch.push(&[b"WATCH", LOCK.as_bytes()]);
        batch.push(&[b"GET", LOCK.as_bytes()]);
        batch.ask_on(*server, Lane::Own)
    }

    fn act(&mut self, ours: bool) -> Step {
        self.looked = true;
        let server = *self.todo.last().expect("it was just looked at");
        let lifetime = LOCK_MS.to_string();
        let mut batch = Batch::default();
        batch.push(&[b"MULTI"]);
        match (ours, self.then) {
            (true, Then::Renew) => {
                batch.push(&[b"PEXPIRE", LOCK.as_bytes(), lifetime.as_bytes()]);
            }
            (true, Then::Release) => batch.push(&[b"DEL", LOCK.as_bytes()]),
            // Nothing to do; the empty transaction ends the WATCH.
            (false, _) => {}
        }
        batch.push(&[b"EXEC"]);
        batch.ask_on(server, Lane::Own)
    }

    fn on_answers(&mut self, answers: &[Value]) -> Step {
        let server = *self.todo.last().expect("a server was asked");
        if let Some(first) = error(answers) {
            return unexpected(server, Some(first));
        }
        if !self.looked {
            let ours = answers.last().and_then(Value::text) == Some(self.text.as_bytes());
            if !ours && self.then == Then::Renew {
                return Step::Failed(LAPSED.to_owned());
            }
            return self.act(ours);
        }
        if items(answers.last()).is_some() {
            self.todo.pop();
        }
        self.look()
    }
}

impl Job for RenewJob {
    fn start(&mut self) -> Step {
        self.0.look()
    }

    fn on_answers(&mut self, answers: &[Value]) -> Step {
        self.0.on_answers(answers)
    }

    fn on_waited(&mut self) -> Step {
        unreachable!("renewing never waits")
    }
}

impl Job for ReleaseJob {
    fn start(&mut self) -> Step {
        self.0.look()
    }

    fn on_answers(&mut self, answers: &[Value]) -> Step {
        self.0.on_answers(answers)
    }

    fn on_waited(&mut self) -> Step {
        unreachable!("releasing never waits")
    }
}

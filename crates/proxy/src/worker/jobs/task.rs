//! Common type of the jobs that a worker runs.

use fleet::plan::Bring;
use fleet::{BringJob, Job, Knowledge, Known, ReadJob, Route, Server, Token, Wanted, WriteJob};

use super::flush::FlushJob;

pub(crate) enum Task {
    Read(Box<ReadJob>),
    Write(Box<WriteJob>),
    Bring(Box<BringJob>),
    Flush(Box<FlushJob>),
}

impl Task {
    pub(crate) fn read(route: Route, key: &[u8], command: &[&[u8]]) -> Task {
        Task::Read(Box::new(ReadJob::new(route, key, command)))
    }

    pub(crate) fn write(bring: &Bring, token: Token, command: &[&[u8]]) -> Task {
        let bring = BringJob::new(bring.to, token, wanted(bring, command));
        Task::Write(Box::new(WriteJob::new(bring, command)))
    }

    /// Creates a write of one key, the command's first argument.
    pub(crate) fn write_one(
        route: Route,
        known: Knowledge,
        token: Token,
        command: &[&[u8]],
    ) -> Task {
        let wanted = Wanted { key: command[1].to_vec(), from: route.from, known };
        let bring = BringJob::new(route.to, token, vec![wanted]);
        Task::Write(Box::new(WriteJob::new(bring, command)))
    }

    pub(crate) fn bring(bring: &Bring, token: Token, command: &[&[u8]]) -> Task {
        Task::Bring(Box::new(BringJob::new(bring.to, token, wanted(bring, command))))
    }

    pub(crate) fn flush(server: Server, command: &[&[u8]]) -> Task {
        Task::Flush(Box::new(FlushJob::new(server, command)))
    }

    pub(super) fn job(&mut self) -> &mut dyn Job {
        match self {
            Task::Read(job) => job.as_mut(),
            Task::Write(job) => job.as_mut(),
            Task::Bring(job) => job.as_mut(),
            Task::Flush(job) => job.as_mut(),
        }
    }

    pub(super) fn writes(&self) -> bool {
        match self {
            Task::Read(_) => false,
            Task::Write(_) | Task::Bring(_) | Task::Flush(_) => true,
        }
    }

    pub(super) fn keys(&self) -> Vec<Vec<u8>> {
        match self {
            Task::Read(job) => vec![job.key().to_vec()],
            Task::Write(job) => job.learnt().map(|(key, _)| key.to_vec()).collect(),
            Task::Bring(job) => job.learnt().map(|(key, _)| key.to_vec()).collect(),
            Task::Flush(_) => Vec::new(),
        }
    }

    /// Records what a finished job has learnt.
    pub(super) fn learnt(&self, known: &mut Known) {
        match self {
            Task::Read(job) => known.learn(job.key(), job.learnt()),
            Task::Write(job) => job.learnt().for_each(|(key, what)| known.learn(key, what)),
            Task::Bring(job) => job.learnt().for_each(|(key, what)| known.learn(key, what)),
            Task::Flush(_) => {}
        }
    }
}

/// Returns the keys to be moved for a command.
fn wanted(bring: &Bring, command: &[&[u8]]) -> Vec<Wanted> {
    let wanted = |key: &fleet::plan::MovingKey| Wanted {
        key: command[key.place].to_vec(),
        from: key.from,
        known: key.known,
    };
    bring.keys.iter().map(wanted).collect()
}

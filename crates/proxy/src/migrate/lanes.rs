//! Connections that carry the epoch in their names, and jobs run over them, as `fleet::job` requires of the
//! runner of a job that touches keys.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use fleet::{Address, Ask, Epoch, Job, Kind, Lane, MoveJob, Route, Server, Step, Token, names};
use resp::Value;

use crate::servers::{Access, Control};
use crate::watcher::read_config;

/// Maximum time for a server to answer before it is considered dead.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Lanes {
    servers: Vec<Address>,
    access: Access,
    id: String,
    epoch: Epoch,
    connections: BTreeMap<(Server, bool), Control>,
}

/// Reason why a job did not finish.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Broken {
    /// A server cannot be reached.
    Server { server: Server, why: String },
    /// The job itself failed, or was stopped.
    Job(String),
}

impl Lanes {
    /// Creates lanes. With [`Epoch::NONE`] the connections get no name: for users that only read.
    pub(crate) fn new(servers: &[Address], access: &Access, id: &str, epoch: Epoch) -> Lanes {
        Lanes {
            servers: servers.to_vec(),
            access: access.clone(),
            id: id.to_owned(),
            epoch,
            connections: BTreeMap::new(),
        }
    }

    /// Returns the job that moves these keys, in the form that its two servers allow.
    pub(crate) fn mover(&self, route: Route, token: &Token, keys: Vec<Vec<u8>>) -> MoveJob {
        let job = MoveJob::new(route, token.clone(), keys);
        let is_cluster = |server: Server| self.servers[server.0].kind == Kind::Cluster;
        if is_cluster(route.from) || is_cluster(route.to) { job.by_slot() } else { job }
    }

    /// Runs a job; calls `go_on` before each of its steps.
    pub(crate) fn run(
        &mut self,
        job: &mut dyn Job,
        go_on: impl Fn() -> bool,
    ) -> Result<(), Broken> {
        let mut step = job.start();
        loop {
            if !go_on() {
                // A WATCH on a connection of the job's own must not outlive the job.
                self.connections.retain(|(_, own), _| !own);
                return Err(Broken::Job("stopped by the operator".to_owned()));
            }
            step = match step {
                Step::Ask(ask) => job.on_answers(&self.ask(&ask)?),
                Step::Wait(ms) => {
                    std::thread::sleep(Duration::from_millis(ms));
                    job.on_waited()
                }
                Step::Done(_) => return Ok(()),
                Step::Failed(why) => {
                    self.connections.retain(|(_, own), _| !own);
                    return Err(Broken::Job(why));
                }
            };
        }
    }

    fn ask(&mut self, ask: &Ask) -> Result<Vec<Value>, Broken> {
        self.with(ask.server, ask.lane == Lane::Own, |control| {
            control.send(&ask.bytes)?;
            (0..ask.answers).map(|_| control.receive()).collect()
        })
    }

    /// Runs `act` on the shared connection to a server.
    pub(crate) fn on<T>(
        &mut self,
        server: Server,
        act: impl FnOnce(&mut Control) -> io::Result<T>,
    ) -> Result<T, Broken> {
        self.with(server, false, act)
    }

    fn with<T>(
        &mut self,
        server: Server,
        is_own: bool,
        act: impl FnOnce(&mut Control) -> io::Result<T>,
    ) -> Result<T, Broken> {
        let broken = |error: io::Error| Broken::Server { server, why: error.to_string() };
        let mut control = match self.connections.remove(&(server, is_own)) {
            Some(control) => control,
            None => self.connect(server).map_err(broken)?,
        };
        let done = act(&mut control).map_err(broken)?;
        // Only a connection without an error is reused.
        self.connections.insert((server, is_own), control);
        Ok(done)
    }

    fn connect(&self, server: Server) -> io::Result<Control> {
        let mut control = Control::connect(&self.servers[server.0], &self.access, PATIENCE)?;
        if self.epoch == Epoch::NONE {
            return Ok(control);
        }
        let name =
            |epoch| ["CLIENT".to_owned(), "SETNAME".to_owned(), names::connection(&self.id, epoch)];
        control.call(&name(Epoch::NONE))?;
        let config = read_config(&mut control)?.map_err(io::Error::other)?;
        if config.is_none_or(|config| config.epoch > self.epoch) {
            return Err(io::Error::other("its map has changed meanwhile"));
        }
        control.call(&name(self.epoch))?;
        Ok(control)
    }
}

//! Runs a job of `fleet` to its end over blocking connections: per server, one that its asks share, and one
//! that is the job's own.

use std::collections::BTreeMap;
use std::time::Duration;

use fleet::{Address, Answer, Ask, Job, Lane, Server, Step};
use resp::Value;

use super::{Access, Control};

pub struct Runner {
    servers: Vec<Address>,
    access: Access,
    patience: Duration,
    connections: BTreeMap<(Server, bool), Control>,
}

impl Runner {
    pub fn new(servers: Vec<Address>, access: Access, patience: Duration) -> Runner {
        Runner { servers, access, patience, connections: BTreeMap::new() }
    }

    /// Runs a job. The error is a readable reason why it did not finish.
    pub fn run(&mut self, job: &mut dyn Job) -> Result<Answer, String> {
        let mut step = job.start();
        loop {
            step = match step {
                Step::Ask(ask) => job.on_answers(&self.ask(&ask)?),
                Step::Wait(millis) => {
                    std::thread::sleep(Duration::from_millis(millis));
                    job.on_waited()
                }
                Step::Done(answer) => return Ok(answer),
                Step::Failed(text) => return Err(text),
            };
        }
    }

    fn ask(&mut self, ask: &Ask) -> Result<Vec<Value>, String> {
        let Some(address) = self.servers.get(ask.server.0) else {
            return Err(format!("there is no server {} in the list", ask.server.0));
        };
        let place = (ask.server, ask.lane == Lane::Own);
        if !self.connections.contains_key(&place) {
            let connected = Control::connect(address, &self.access, self.patience);
            let control = connected.map_err(|error| format!("{address}: {error}"))?;
            self.connections.insert(place, control);
        }
        let control = self.connections.get_mut(&place).expect("it was just put there");
        let asked = control.send(&ask.bytes);
        let answers = asked.and_then(|()| (0..ask.answers).map(|_| control.receive()).collect());
        answers.map_err(|error| {
            self.connections.remove(&place);
            format!("{address}: {error}")
        })
    }
}

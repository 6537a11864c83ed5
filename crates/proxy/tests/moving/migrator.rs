//! A minimal migrator, step by step, for tests that stop in between.

use std::time::Duration;

use fleet::config::Lock;
use fleet::switch::{BarrierJob, ChangeJob, Holder, ReleaseJob, TakeLockJob};
use fleet::{Address, Config, MoveJob, Place, Server, Token, View};
use proxy::{Access, Control, Runner};
use resp::Value;

const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Migrator {
    addresses: Vec<Address>,
    servers: Vec<Server>,
    lock: Lock,
}

/// A migration that has started and not ended.
pub(crate) struct Begun {
    config: Config,
    pub(crate) killed: usize,
}

impl Migrator {
    pub(crate) fn new(addresses: Vec<Address>) -> Migrator {
        let servers = (0..addresses.len()).map(Server).collect();
        let lock = Lock { token: "test".to_owned(), holder: "a test".to_owned() };
        Migrator { addresses, servers, lock }
    }

    /// Migrates from one map to another; returns the number of connections that had to be killed.
    pub(crate) fn migrate(&self, map: &str) -> usize {
        let begun = self.begin(map);
        let killed = begun.killed;
        self.end(&begun);
        killed
    }

    pub(crate) fn announce_and_die(&self, map: &str) {
        self.announce(map);
    }

    fn announce(&self, map: &str) -> Config {
        self.run(&mut TakeLockJob::new(self.lock.clone(), &self.servers));
        let config = self.config().announced(map.parse().unwrap(), self.addresses.clone());
        self.run(&mut ChangeJob::announce(self.us(), config.clone(), &self.servers));
        config
    }

    pub(crate) fn begin(&self, map: &str) -> Begun {
        let announced = self.announce(map);
        let mut barrier = BarrierJob::new(announced.epoch, &self.servers);
        self.run(&mut barrier);
        let config = announced.switched();
        self.run(&mut ChangeJob::commit(self.us(), config.clone(), &self.servers));
        Begun { config, killed: barrier.killed() }
    }

    pub(crate) fn end(&self, begun: &Begun) {
        let view = View::of(&begun.config);
        for server in view.walk() {
            self.empty(server, &view);
        }
        self.run(&mut ChangeJob::commit(self.us(), begun.config.ended(), &self.servers));
        self.run(&mut ReleaseJob::new(&self.lock, &self.servers));
    }

    fn empty(&self, server: Server, view: &View) {
        let mut control = self.control(server);
        let Value::Array(keys) = control.call(&["KEYS", "*"]).unwrap() else { panic!() };
        for key in keys.iter().filter_map(Value::text) {
            if fleet::names::is_reserved(key) {
                continue;
            }
            if let Place::Moving(route) = view.place(key)
                && route.from == server
            {
                let token = Token::new(format!("migrator:{}", String::from_utf8_lossy(key)));
                self.run(&mut MoveJob::new(route, token, [key.to_vec()]));
            }
        }
    }

    fn config(&self) -> Config {
        let mut command = vec!["MGET"];
        command.extend(fleet::config::KEYS);
        let answer = self.control(Server::FIRST).call(&command).unwrap();
        Config::read(&answer).unwrap().unwrap()
    }

    fn us(&self) -> Holder {
        Holder::Us(self.lock.text())
    }

    fn control(&self, server: Server) -> Control {
        Control::connect(&self.addresses[server.0], &Access::default(), PATIENCE).unwrap()
    }

    fn run(&self, job: &mut dyn fleet::Job) {
        let mut runner = Runner::new(self.addresses.clone(), Access::default(), PATIENCE);
        runner.run(job).unwrap();
    }
}

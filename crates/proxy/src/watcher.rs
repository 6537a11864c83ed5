//! The thread that knows the map: it reads the first server's configuration every so often and tells
//! the workers. What a change of it means is decided by `fleet::switch`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleet::switch::{ChangeJob, Follow, Follower, Holder};
use fleet::{Address, Config, Server};

use crate::servers::{Control, Runner, resolve};
use crate::shared::{Fleet, Known, Shared};

/// How often the first server is asked.
const INTERVAL: Duration = Duration::from_millis(50);
/// The same while a change is announced: until it is made, clients of the keys that will move wait.
const ALERT_INTERVAL: Duration = Duration::from_millis(5);
/// How often the servers' names are looked up again.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Watcher {
    shared: Arc<Shared>,
    follower: Follower,
    /// To the first server.
    control: Option<Control>,
    resolved: Instant,
    trouble: Option<String>,
}

impl Watcher {
    pub(crate) fn new(shared: Arc<Shared>, config: Config) -> Watcher {
        let follower = Follower::new(config);
        Watcher { shared, follower, control: None, resolved: Instant::now(), trouble: None }
    }

    /// Watches until the proxy stops.
    pub(crate) fn run(mut self) {
        *self.shared.look_again.lock() = Some(std::thread::current());
        while !self.shared.is_stopping() {
            self.look();
            if self.resolved.elapsed() > RESOLVE_INTERVAL {
                self.resolve_again();
            }
            let is_announced = self.follower.config().next.is_some();
            std::thread::park_timeout(if is_announced { ALERT_INTERVAL } else { INTERVAL });
        }
    }

    fn look(&mut self) {
        let address = self.follower.config().servers[Server::FIRST.0].clone();
        // A first server that is away changes nothing: no map is switched without it, and our
        // connections keep their names. Only what it says can.
        let Some(read) = self.read(&address) else { return };
        let follow = match read {
            Ok(config) => self.follower.on_config(config),
            Err(why) => Follow::Stop(format!("{address}: {why}")),
        };
        match follow {
            Follow::Nothing if self.trouble.is_none() => {}
            Follow::Nothing | Follow::Resume => self.publish(None),
            Follow::Drain => {
                self.publish(None);
                // Each worker lets what it has under way end before it renames its own links.
                self.follower.drained();
            }
            Follow::Undo => self.undo(),
            Follow::Stop(why) => {
                if self.trouble.as_ref() != Some(&why) {
                    self.publish(Some(why));
                }
            }
        }
    }

    /// The first server's configuration; nothing if it cannot be asked.
    fn read(&mut self, address: &Address) -> Option<Result<Option<Config>, String>> {
        let access = &self.shared.options.access;
        if self.control.is_none() {
            self.control = Control::connect(address, access, PATIENCE).ok();
        }
        match read_config(self.control.as_mut()?) {
            Ok(read) => Some(read),
            Err(_) => {
                self.control = None;
                None
            }
        }
    }

    /// Takes back the announcement of a migrator that died. Others may be quicker.
    fn undo(&mut self) {
        let config = self.follower.config().clone();
        let servers: Vec<Server> =
            (0..config.servers.len()).map(Server).filter(|server| config.needs(*server)).collect();
        let access = self.shared.options.access.clone();
        let mut runner = Runner::new(config.servers.clone(), access, PATIENCE);
        let mut job = ChangeJob::undo(Holder::Nobody, config.undone(), &servers);
        // Whatever became of it is read at the next look.
        let _ = runner.run(&mut job);
    }

    fn publish(&mut self, trouble: Option<String>) {
        self.trouble.clone_from(&trouble);
        let known = self.shared.fleet.load();
        let socket = |address: &Address| {
            let same = known.servers.iter().find(|known| known.address == *address);
            same.and_then(|known| known.socket).or_else(|| resolve(address).ok())
        };
        let config = self.follower.config().clone();
        let servers = config.servers.iter();
        let servers =
            servers.map(|address| Known { address: address.clone(), socket: socket(address) });
        let (servers, view) = (servers.collect(), self.follower.view().clone());
        self.shared.publish(Fleet { view, config, servers, trouble });
    }

    /// A server's name may lead elsewhere after a while.
    fn resolve_again(&mut self) {
        self.resolved = Instant::now();
        let known = self.shared.fleet.load_full();
        let found: Vec<Option<SocketAddr>> = known
            .servers
            .iter()
            .map(|known| resolve(&known.address).ok().or(known.socket))
            .collect();
        if found.iter().ne(known.servers.iter().map(|known| &known.socket)) {
            let servers = known.servers.iter().zip(found);
            let servers = servers
                .map(|(known, socket)| Known { address: known.address.clone(), socket })
                .collect();
            self.shared.publish(Fleet {
                servers,
                view: known.view.clone(),
                config: known.config.clone(),
                trouble: known.trouble.clone(),
            });
        }
    }
}

/// Reads what a server says of the fleet. The outer error is the connection's.
pub(crate) fn read_config(
    control: &mut Control,
) -> std::io::Result<Result<Option<Config>, String>> {
    let mut command = vec!["MGET"];
    command.extend(fleet::config::KEYS);
    let answer = control.call(&command)?;
    Ok(Config::read(&answer).map_err(|error| error.to_string()))
}

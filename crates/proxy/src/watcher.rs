//! The thread that follows the map: it regularly reads the first server's configuration and informs the
//! workers. `fleet::switch` decides what a change means.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fleet::switch::{ChangeJob, Follow, Follower, Holder};
use fleet::{Address, Config, Server};

use crate::servers::{Control, Runner, resolve};
use crate::shared::{Fleet, Known, Shared};

/// Interval between reads of the first server's configuration.
const INTERVAL: Duration = Duration::from_millis(50);
/// The same while a change is announced: until it is made, clients of the keys that will move wait.
const ALERT_INTERVAL: Duration = Duration::from_millis(5);
/// Interval between lookups of the servers' names.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(5);
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Watcher {
    shared: Arc<Shared>,
    follower: Follower,
    /// Connection to the first server.
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
        // An unreachable first server changes nothing: no map is switched without it, and our connections
        // keep their names. Only its configuration can change something.
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
                // Each worker drains its requests in flight before it renames its own links.
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

    /// Returns the first server's configuration; `None` if it cannot be asked.
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

    /// Withdraws the announcement of a migrator that died. Another proxy may be quicker.
    fn undo(&mut self) {
        let config = self.follower.config().clone();
        let servers: Vec<Server> =
            (0..config.servers.len()).map(Server).filter(|server| config.needs(*server)).collect();
        let access = self.shared.options.access.clone();
        let mut runner = Runner::new(config.servers.clone(), access, PATIENCE);
        let mut job = ChangeJob::undo(Holder::Nobody, config.undone(), &servers);
        // The next read shows the result.
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

    /// Resolves the servers' names again, because their addresses may change.
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

/// Reads a server's configuration of the fleet. The outer error is that of the connection.
pub(crate) fn read_config(
    control: &mut Control,
) -> std::io::Result<Result<Option<Config>, String>> {
    let mut command = vec!["MGET"];
    command.extend(fleet::config::KEYS);
    let answer = control.call(&command)?;
    Ok(Config::read(&answer).map_err(|error| error.to_string()))
}

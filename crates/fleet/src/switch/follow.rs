//! The proxy's side of a switch: the proxy regularly passes the first server's configuration to [`Follower`],
//! which says what to do about it.

use crate::config::{Address, Config, Difference, Epoch, Status};
use crate::view::{Phase, View};

/// Required action of a proxy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Follow {
    Nothing,
    /// Decide all further commands by [`Follower::view`], and clear `Known`. Let every command and job
    /// started under an earlier epoch end (unblock those that block at a server with `CLIENT UNBLOCK`, and
    /// restart them). Then call [`Follower::drained`], rename all connections with the view's epoch, and only
    /// then answer what the new view no longer holds.
    Drain,
    /// Decide all further commands, and those held, by [`Follower::view`].
    Resume,
    /// The migrator died before it switched: run `ChangeJob::undo` with `Holder::Nobody`.
    Undo,
    /// Serve nothing any more, for this reason.
    Stop(String),
}

/// Number of consecutive reads without the lock before an announcement is withdrawn. The migrator writes the
/// lock before it announces, so one would do; two tolerate a slow read.
const LAPSED_READS: u32 = 2;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Follower {
    config: Config,
    view: View,
    draining: bool,
    lapsed_reads: u32,
}

impl Follower {
    /// Starts with the first server's configuration. No connection has a name yet.
    pub fn new(config: Config) -> Follower {
        let view = View::of(&config);
        Follower { config, view, draining: false, lapsed_reads: 0 }
    }

    pub fn view(&self) -> &View {
        &self.view
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the epoch for a new connection's name, given the epoch in its server's own keys. `None` means
    /// that the server knows a newer map than we do: read the first server again.
    pub fn name_epoch(&self, server_says: Epoch) -> Option<Epoch> {
        (server_says <= self.view.epoch()).then_some(self.view.epoch())
    }

    /// Takes the first server's present configuration. `None` means that its keys are gone.
    pub fn on_config(&mut self, config: Option<Config>) -> Follow {
        let Some(config) = config else {
            let why = "the first server has lost its server.config.* keys; run `opencluster fleet \
                       check`";
            return Follow::Stop(why.to_owned());
        };
        if let Some(why) = self.impossible(&config) {
            return Follow::Stop(why);
        }
        let newer = config.epoch > self.config.epoch;
        let lapsed = config.next.is_some() && config.lock.is_none() && !newer;
        self.lapsed_reads = if lapsed { self.lapsed_reads + 1 } else { 0 };
        let view = View::of(&config);
        let changed = view != self.view;
        self.config = config;
        self.view = view;
        if newer {
            self.draining = true;
            return Follow::Drain;
        }
        if self.lapsed_reads >= LAPSED_READS {
            return Follow::Undo;
        }
        if changed && !self.draining { Follow::Resume } else { Follow::Nothing }
    }

    /// Records that everything started under an earlier epoch has ended.
    pub fn drained(&mut self) {
        self.draining = false;
    }

    /// Returns the reason if `new` cannot have followed from our configuration.
    fn impossible(&self, new: &Config) -> Option<String> {
        let old = &self.config;
        if new.epoch < old.epoch {
            let (from, to) = (old.epoch.number(), new.epoch.number());
            return Some(format!("server.config.epoch went back from {from} to {to}"));
        }
        if !follows(&old.servers, &new.servers, new.epoch > old.epoch) {
            let why = "server.config.servers changed other than by adding servers at its end, or by \
                       replacing some";
            return Some(why.to_owned());
        }
        let settled =
            *self.view.phase() == Phase::Settled && View::of(new).phase() == &Phase::Settled;
        let same = new.epoch == old.epoch && new.current == old.current;
        let elsewhere = new.epoch == old.epoch && settled && !same;
        elsewhere.then(|| {
            let (old, new) = (&old.current, &new.current);
            format!("server.config.current changed from {old} to {new} without a migration")
        })
    }
}

/// Returns whether a list of servers can have followed from another. Servers are added at the end; in a new epoch a
/// server may have another address, but not one that another server had.
fn follows(old: &[Address], new: &[Address], is_new_epoch: bool) -> bool {
    let fits = |(old_one, new_one): (&Address, &Address)| {
        old_one == new_one || (is_new_epoch && !old.contains(new_one))
    };
    new.len() >= old.len() && old.iter().zip(new).all(fits)
}

/// Relation of a server's configuration to the first server's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Agreement {
    Same,
    /// The server has yet to repeat the first server's configuration, or got a change just before the first
    /// server did.
    UnderWay,
    Differs(Difference),
}

impl Agreement {
    pub fn between(first: &Config, other: &Config) -> Agreement {
        let Some(difference) = first.difference(other) else { return Agreement::Same };
        let list = |config: &Config| config.servers.clone();
        let behind = other.epoch < first.epoch;
        let prefix = list(first).starts_with(&list(other))
            || list(other).starts_with(&list(first))
            || (behind && follows(&list(other), &list(first), true));
        let changing = first.next.is_some() || other.next.is_some();
        let moving = [first, other].iter().any(|config| config.status == Status::InProgress);
        // The first server gets an announcement first and a switch last.
        let explained = behind || (other.epoch == first.epoch && (changing || moving));
        if prefix && explained { Agreement::UnderWay } else { Agreement::Differs(difference) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Address, Lock};

    fn config() -> Config {
        Config::first(Address::list("a:1,b:1").unwrap(), "1.1".parse().unwrap())
    }

    fn announced() -> Config {
        let lock = Lock { token: "t".to_owned(), holder: "me".to_owned() };
        let servers = config().servers;
        Config { lock: Some(lock), ..config().announced("1.0".parse().unwrap(), servers) }
    }

    #[test]
    fn a_proxy_drains_at_an_announcement_and_goes_on_after_the_switch() {
        let mut follower = Follower::new(config());
        assert_eq!(follower.on_config(Some(config())), Follow::Nothing);
        assert_eq!(follower.on_config(Some(announced())), Follow::Drain);
        assert!(follower.view().holds_keys());
        assert_eq!(follower.on_config(Some(announced())), Follow::Nothing);
        follower.drained();
        assert_eq!(follower.on_config(Some(announced().switched())), Follow::Resume);
        assert!(!follower.view().holds_keys());
        assert_eq!(follower.on_config(Some(announced().switched().ended())), Follow::Resume);
    }

    #[test]
    fn a_proxy_that_slept_through_the_switch_drains_too() {
        let mut follower = Follower::new(config());
        assert_eq!(follower.on_config(Some(announced().switched())), Follow::Drain);
    }

    #[test]
    fn an_announcement_whose_lock_has_lapsed_is_taken_back() {
        let mut follower = Follower::new(config());
        let orphan = Config { lock: None, ..announced() };
        assert_eq!(follower.on_config(Some(orphan.clone())), Follow::Drain);
        assert_eq!(follower.on_config(Some(orphan.clone())), Follow::Nothing);
        assert_eq!(follower.on_config(Some(orphan.clone())), Follow::Undo);
        assert_eq!(follower.on_config(Some(orphan.undone())), Follow::Drain);
        assert!(!follower.view().holds_keys());
    }

    #[test]
    fn what_cannot_have_happened_stops_the_proxy() {
        let stops = |next: Option<Config>| {
            let mut follower = Follower::new(announced());
            matches!(follower.on_config(next), Follow::Stop(_))
        };
        assert!(stops(None));
        assert!(stops(Some(config())));
        assert!(stops(Some(Config { servers: Address::list("b:1,a:1").unwrap(), ..announced() })));
        let elsewhere = Address::list("a:1,c:1").unwrap();
        assert!(!stops(Some(Config {
            servers: elsewhere.clone(),
            epoch: announced().epoch.next(),
            ..announced()
        })));
        assert!(stops(Some(Config { servers: elsewhere, ..announced() })), "not in the same epoch");
        let mut follower = Follower::new(config());
        let other = Config { current: "1.2".parse().unwrap(), ..config() };
        let Follow::Stop(why) = follower.on_config(Some(other)) else { panic!() };
        assert_eq!(why, "server.config.current changed from 1.1 to 1.2 without a migration");
    }

    #[test]
    fn a_connection_is_named_only_when_we_know_as_much_as_its_server() {
        let follower = Follower::new(config());
        assert_eq!(follower.name_epoch(Epoch::new(1)), Some(Epoch::new(1)));
        assert_eq!(follower.name_epoch(Epoch::new(2)), None);
        assert_eq!(Follower::new(announced()).name_epoch(Epoch::new(1)), Some(Epoch::new(2)));
    }

    #[test]
    fn servers_may_differ_only_while_a_change_is_under_way() {
        let between = |first: &Config, other: &Config| Agreement::between(first, other);
        let config = config();
        let announced = Config { lock: None, ..announced() };
        assert_eq!(between(&config, &config), Agreement::Same);
        assert_eq!(between(&announced, &config), Agreement::UnderWay);
        assert_eq!(between(&announced, &announced.switched()), Agreement::UnderWay);
        assert!(matches!(between(&config, &announced), Agreement::Differs(_)));
        let other = Config { current: "1.2".parse().unwrap(), ..config.clone() };
        assert!(matches!(between(&config, &other), Agreement::Differs(_)));
    }
}

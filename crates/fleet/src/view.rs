//! A proxy's view of the fleet: the maps of one epoch, and the place of each key under them.
//!
//! Built from the first server's [`Config`]; `plan.rs` uses it for every command.

use std::cmp::Ordering;

use placement::ServerMap;

use crate::config::{Config, Epoch, Kind, Server, Status, weight};

/// The maps of one epoch. A command runs from its beginning to its end under one view.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct View {
    epoch: Epoch,
    servers: Vec<Kind>,
    current: ServerMap,
    phase: Phase,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Phase {
    /// One map is in force; no change is in progress.
    Settled,
    /// A map is announced but not switched to yet: keys that it moves are held.
    Announced { next: ServerMap },
    /// Keys move from their server under the previous map to their server under the current one.
    Migrating { previous: ServerMap },
    /// A migration is about to be reverted: its keys are held.
    TurningBack { previous: ServerMap },
}

/// The place of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    At(Server),
    /// Moving from one server to the other: only a job of `read.rs` or `write.rs` may touch it.
    Moving(Route),
    /// No command may touch it until the maps are switched.
    Held,
}

/// Source and target server of a moving key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Route {
    pub from: Server,
    pub to: Server,
}

impl View {
    /// Builds the view from the first server's configuration.
    pub fn of(config: &Config) -> View {
        let previous = || config.previous.clone();
        let phase = match (config.status, &config.next) {
            (Status::InProgress, Some(_)) => Phase::TurningBack { previous: previous() },
            (Status::InProgress, None) => Phase::Migrating { previous: previous() },
            (_, Some(next)) => Phase::Announced { next: next.clone() },
            (_, None) => Phase::Settled,
        };
        let servers = config.servers.iter().map(|address| address.kind).collect();
        View { epoch: config.epoch, servers, current: config.current.clone(), phase }
    }

    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    pub fn current(&self) -> &ServerMap {
        &self.current
    }

    /// Returns whether some keys must wait for a switch of maps.
    pub fn holds_keys(&self) -> bool {
        match self.phase {
            Phase::Settled | Phase::Migrating { .. } => false,
            Phase::Announced { .. } | Phase::TurningBack { .. } => true,
        }
    }

    pub fn place(&self, key: &[u8]) -> Place {
        let here = Server(self.current.server_of(key));
        let other = |map: &ServerMap| Server(map.server_of(key));
        match &self.phase {
            Phase::Settled => Place::At(here),
            Phase::Migrating { previous } => match other(previous) {
                from if from == here => Place::At(here),
                from => Place::Moving(Route { from, to: here }),
            },
            Phase::Announced { next: map } | Phase::TurningBack { previous: map } => {
                if other(map) == here { Place::At(here) } else { Place::Held }
            }
        }
    }

    pub fn is_cluster(&self, server: Server) -> bool {
        self.servers.get(server.0) == Some(&Kind::Cluster)
    }

    /// Returns the server of a channel's messages. It does not depend on a change in progress, so publishers
    /// and subscribers of a channel always meet. Subscribers move over at the switch.
    pub fn channel(&self, channel: &[u8]) -> Server {
        Server(self.current.server_of(channel))
    }

    /// Returns the servers that may hold keys, in the order for walking all of them.
    ///
    /// A key moves only to a server whose weight grew by a larger factor. The servers that grew least come
    /// first, so a walk meets a key that moves meanwhile at its old server or at its new one.
    pub fn walk(&self) -> Vec<Server> {
        let previous = match &self.phase {
            Phase::Migrating { previous } | Phase::TurningBack { previous } => previous,
            Phase::Settled | Phase::Announced { .. } => &self.current,
        };
        let weights = |server: Server| (weight(previous, server), weight(&self.current, server));
        let mut servers: Vec<Server> = (0..self.servers.len()).map(Server).collect();
        servers.retain(|server| weights(*server) != (0, 0));
        servers.sort_by(|left, right| growth(weights(*left), weights(*right)));
        servers
    }
}

/// Compares by `after / before`, without dividing.
fn growth(left: (u32, u32), right: (u32, u32)) -> Ordering {
    let cross =
        |(before, _): (u32, u32), (_, after): (u32, u32)| u64::from(before) * u64::from(after);
    cross(right, left).cmp(&cross(left, right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Address;

    fn view(previous: &str, current: &str) -> View {
        let servers = Address::list("a:1,b:1,c:1,d:1,e:1").unwrap();
        let mut config = Config::first(servers, current.parse().unwrap());
        config.previous = previous.parse().unwrap();
        config.status = Status::InProgress;
        View::of(&config)
    }

    #[test]
    fn a_key_that_moves_during_a_walk_is_met_at_its_old_place_or_at_its_new_one() {
        for (previous, current) in [
            ("4.4.4.4", "4.4.0.4"),
            ("4.4.0.4", "4.4.0.4.4"),
            ("2.4.6", "6.4.2"),
            ("1.2.3", "3.2.5.1"),
        ] {
            let view = view(previous, current);
            let walk = view.walk();
            let at = |server| walk.iter().position(|other| *other == server).unwrap();
            let mut moved = 0;
            for number in 0..2_000 {
                if let Place::Moving(route) = view.place(format!("key:{number}").as_bytes()) {
                    assert!(at(route.from) < at(route.to), "{previous} -> {current}: {route:?}");
                    moved += 1;
                }
            }
            assert!(moved > 100);
        }
    }

    #[test]
    fn servers_without_weight_are_not_walked() {
        let servers =
            |view: View| view.walk().into_iter().map(|server| server.0).collect::<Vec<_>>();
        assert_eq!(servers(view("4.4.0.4", "4.4.0.4")), [0, 1, 3]);
        assert_eq!(servers(view("4.4.4.4", "4.4.0.4")), [2, 0, 1, 3]);
    }

    #[test]
    fn an_announced_map_holds_just_the_keys_it_moves() {
        let servers = Address::list("a:1,b:1").unwrap();
        let mut config = Config::first(servers, "1.1".parse().unwrap());
        let before = View::of(&config);
        config.next = Some("1.0".parse().unwrap());
        let announced = View::of(&config);
        for number in 0..100 {
            let key = format!("key:{number}").into_bytes();
            let stays = before.place(&key) == Place::At(Server(0));
            let expected = if stays { Place::At(Server(0)) } else { Place::Held };
            assert_eq!(announced.place(&key), expected);
        }
    }
}

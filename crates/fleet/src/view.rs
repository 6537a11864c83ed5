//! What a proxy acts on: the maps of one epoch, and where each key is under them.
//!
//! Made from the first server's [`Config`]; used by `plan.rs` for every command.

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
    /// One map, nothing under way.
    Settled,
    /// A map is announced and not yet switched to: keys that it moves are held.
    Announced { next: ServerMap },
    /// Keys move from where the previous map has them to where the current one does.
    Migrating { previous: ServerMap },
    /// A migration is about to be turned back: its keys are held.
    TurningBack { previous: ServerMap },
}

/// Where a key is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    At(Server),
    /// On its way from the one to the other: only a job of `read.rs` or `write.rs` may touch it.
    Moving(Route),
    /// Nobody may touch it until the maps are switched.
    Held,
}

/// From the server that had a key to the one that shall have it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Hash)]
pub struct Route {
    pub from: Server,
    pub to: Server,
}

impl View {
    /// What the first server's configuration means.
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

    /// Whether some keys have to wait for a switch of maps.
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

    /// Where a channel's messages go: the same server for a name whatever is under way, so that
    /// those who publish and those who listen meet. Listeners move over at the switch.
    pub fn channel(&self, channel: &[u8]) -> Server {
        Server(self.current.server_of(channel))
    }

    /// The servers that may hold keys, in the order in which to walk them all.
    ///
    /// A key moves only to a server whose weight grew by a larger factor. Those that grew least
    /// come first, so a key that moves during the walk is met at its old place or at its new one.
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

//! Tries every order in which commands of clients and movers can reach the servers.
//!
//! `server.rs` is a minimal in-memory Redis server. `world.rs` holds some of them and some actors: clients
//! behind proxies, movers, a migrator, the passing of time. Its scheduler takes every possible next step of
//! every actor, remembers the states it has seen, and asks `history.rs` at each end whether the clients'
//! observations are possible on a single server. The jobs are those of production. `moves.rs` has the table
//! of races during a migration, `maps.rs` those of a switch, `large.rs` those of large keys, `foreign.rs`
//! those of keys that cannot move. Scenarios too long to try in every order are in `long.rs`, drawn from seeds.

mod server;
mod history;
mod world;
mod moves;
mod maps;
mod large;
mod foreign;
mod long;

use crate::config::{Address, Config, Server, Status};
use crate::view::{Route, View};

const ROUTE: Route = Route { from: Server(0), to: Server(1) };

/// Returns a view under which all keys move from server 0 to server 1.
fn view() -> View {
    let servers = Address::list("a:1,b:1").unwrap();
    let mut config = Config::first(servers, "0.1".parse().unwrap());
    config.previous = "1.0".parse().unwrap();
    config.status = Status::InProgress;
    View::of(&config)
}

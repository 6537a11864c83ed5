//! Races of a switch of maps: two proxies with different knowledge, a migrator that dies or sleeps on the
//! way. Also shows what happens without the barrier.

use super::world::{Actor, AnyJob, Deed, Fate, Found, World, words};
use crate::config::{Address, Config, Lock, Server};
use crate::moving::{MoveJob, Token};
use crate::switch::{BarrierJob, ChangeJob, Holder, LOCK_MS};
use crate::view::Route;

const BOTH: [Server; 2] = [Server(0), Server(1)];

fn config() -> Config {
    Config::first(Address::list("a:1,b:1").unwrap(), "1.0".parse().unwrap())
}

fn announced() -> Config {
    let config = config();
    let servers = config.servers.clone();
    config.announced("0.1".parse().unwrap(), servers)
}

fn lock() -> Lock {
    Lock { token: "t".to_owned(), holder: "m".to_owned() }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Barrier {
    Kept,
    LeftOut,
}

/// A migrator that works from the announcement to the end of the migration of the one key.
fn migrator(barrier: Barrier) -> Actor {
    let holder = Holder::Us(lock().text());
    let change = |job: ChangeJob| Deed::Job(AnyJob::Change(job));
    let switched = announced().switched();
    let route = Route { from: Server(0), to: Server(1) };
    let keys = [b"k".to_vec()];
    let mut deeds = vec![
        change(ChangeJob::announce(holder.clone(), announced(), &BOTH)),
        Deed::Job(AnyJob::Barrier(BarrierJob::new(announced().epoch, &BOTH).with_patience_ms(20))),
        change(ChangeJob::commit(holder.clone(), switched.clone(), &BOTH)),
        Deed::Job(AnyJob::Move(MoveJob::new(route, Token::new("m"), keys))),
        change(ChangeJob::commit(holder, switched.ended(), &BOTH)),
    ];
    if barrier == Barrier::LeftOut {
        deeds.remove(1);
    }
    Actor::new(deeds)
}

/// A proxy that reads the configuration where the line is `?`.
fn proxy(lines: &[&str]) -> Actor {
    let deed = |line: &&str| match *line {
        "?" => Deed::Follow,
        line => Deed::Command(words(line)),
    };
    Actor::follower(&config(), lines.iter().map(deed).collect::<Vec<_>>())
}

fn race(actors: Vec<Actor>) -> Found {
    let mut world = World::new(2, actors);
    for server in [0, 1] {
        for (key, value) in config().pairs() {
            world = world.given(server, &format!("SET {key} {value}"));
        }
        world = world.locked(server, &lock().text());
    }
    for actor in 1..world.actors.len() {
        if world.actors[actor].follower.is_some() {
            world = world.named(actor, config().epoch);
        }
    }
    let found = world.given(0, "SET k 1").violations(&proxy(&["?", "GET k"]));
    assert!(found.ends > 1, "{found:?}");
    found
}

#[test]
fn two_proxies_that_hear_of_the_new_map_at_different_times_agree() {
    let found = race(vec![
        migrator(Barrier::Kept),
        proxy(&["?", "SET k 2", "?", "GET k"]),
        proxy(&["?", "SET k 3"]),
    ]);
    assert_eq!(found.violations, 0, "{found:?}");
}

#[test]
fn a_proxy_that_never_looks_is_cut_off_before_it_can_do_harm() {
    let found = race(vec![
        migrator(Barrier::Kept),
        proxy(&["?", "SET k 2", "?"]),
        proxy(&["GET k", "SET k 3", "GET k"]),
    ]);
    assert_eq!(found.violations, 0, "{found:?}");
}

#[test]
fn without_the_barrier_two_proxies_disagree() {
    let found = race(vec![
        migrator(Barrier::LeftOut),
        proxy(&["?", "SET k 2", "?"]),
        proxy(&["GET k", "SET k 3", "GET k"]),
    ]);
    assert!(found.violations > 0, "{found:?}");
}

#[test]
fn a_migrator_that_dies_leaves_a_fleet_that_goes_on() {
    let mut migrator = migrator(Barrier::Kept);
    migrator.fate = Fate::MayDie;
    let found = race(vec![
        migrator,
        proxy(&["?", "SET k 2", "?", "?", "?", "GET k"]),
        Actor::new([Deed::Time(LOCK_MS + 1)]),
    ]);
    assert_eq!(found.violations, 0, "{found:?}");
}

#[test]
fn a_migrator_that_sleeps_past_its_lock_switches_nothing() {
    let found = race(vec![
        migrator(Barrier::Kept),
        proxy(&["?", "?", "?", "SET k 2"]),
        proxy(&["GET k"]),
        Actor::new([Deed::Time(LOCK_MS + 1)]),
    ]);
    assert_eq!(found.violations, 0, "{found:?}");
}

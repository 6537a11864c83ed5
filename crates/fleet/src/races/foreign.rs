//! Keys of a type that the new server does not support: they stay at their old server and are written there,
//! until they are deleted or become something that can move.

use super::world::{Actor, AnyJob, Deed, Fate, Found, World};
use super::{ROUTE, view};
use crate::big::BigMoveJob;
use crate::moving::{MARKER_MS, MoveJob, Token};

fn client(lines: &[&str]) -> Actor {
    Actor::client(&view(), lines)
}

/// Moves the key as the migrator does: whole first, then by elements.
fn mover() -> Actor {
    let (token, key) = (Token::new("m"), b"k".to_vec());
    let whole = MoveJob::new(ROUTE, token.clone(), [key.clone()]);
    Actor::new([
        Deed::Job(AnyJob::Move(whole)),
        Deed::Job(AnyJob::Big(BigMoveJob::new(ROUTE, token, key))),
    ])
}

fn world(actors: Vec<Actor>) -> World {
    let mut world = World::new(2, actors).given(0, "RPUSH k a");
    world.servers[1].texts_only = true;
    world
}

fn race(actors: Vec<Actor>, last: &str) -> Found {
    let found = world(actors).violations(&client(&[last]));
    assert!(found.ends > 1 && found.states > 3, "{found:?}");
    found
}

fn assert_safe(actors: Vec<Actor>, last: &str) {
    let found = race(actors, last);
    assert_eq!(found.violations, 0, "{found:?}");
}

#[test]
fn two_writers_and_a_mover_lose_nothing() {
    assert_safe(vec![mover(), client(&["RPUSH k b"]), client(&["RPUSH k c"])], "LRANGE k 0 9");
}

#[test]
fn a_delete_stands_and_what_is_written_behind_it_too() {
    assert_safe(vec![mover(), client(&["DEL k", "GET k"]), client(&["GET k"])], "GET k");
    assert_safe(vec![mover(), client(&["DEL k", "SET k 1", "GET k"])], "GET k");
    assert_safe(vec![client(&["DEL k", "SET k 1"]), client(&["APPEND k 2", "GET k"])], "GET k");
}

#[test]
fn a_key_that_becomes_a_text_is_moved_like_any_other() {
    assert_safe(vec![mover(), client(&["SET k 1"]), client(&["APPEND k 2", "GET k"])], "GET k");
}

#[test]
fn a_client_that_dies_in_the_middle_harms_nobody() {
    let mut dying = client(&["SET k 1"]);
    dying.fate = Fate::MayDie;
    let time = Actor::new([Deed::Time(MARKER_MS + 1)]);
    assert_safe(vec![dying, client(&["DEL k", "SET k 2", "GET k"]), time], "GET k");
}

#[test]
fn it_never_comes_to_the_new_place() {
    let mut ends = 0;
    world(vec![mover(), client(&["RPUSH k b"])]).explore(&mut |world| {
        ends += 1;
        assert!(world.servers[0].has(b"k") && !world.servers[1].has(b"k"));
        assert!(!world.servers[1].has(&crate::names::marker(b"k")));
    });
    assert!(ends > 0);
}

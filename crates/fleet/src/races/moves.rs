//! Races of a moving key: whatever clients and movers do in whatever order, clients see what a single server
//! would have shown them. Also shows what happens when a safeguard is left out.

use resp::Value;

use super::world::{Actor, AnyJob, Deed, Fate, Found, World};
use super::{ROUTE, view};
use crate::job::{Job, Step};
use crate::moving::{MARKER_MS, MoveJob, Safeguards, Token};

fn client(lines: &[&str]) -> Actor {
    Actor::client(&view(), lines)
}

fn mover(token: &str) -> Actor {
    Actor::new([Deed::Job(AnyJob::Move(MoveJob::new(ROUTE, Token::new(token), [b"k".to_vec()])))])
}

fn time(ms: u64) -> Actor {
    Actor::new([Deed::Time(ms)])
}

/// Runs the actors in every order, with `start` on server 0.
fn race(start: &str, actors: Vec<Actor>) -> Found {
    let found = World::new(2, actors).given(0, start).violations(&client(&["GET k"]));
    assert!(found.ends > 1 && found.states > 3, "{found:?}");
    found
}

/// Asserts safety if all actors live, and if the first one dies between any two of its steps.
fn assert_safe(start: &str, actors: &[Actor]) {
    let mut actors = actors.to_vec();
    let found = race(start, actors.clone());
    assert_eq!(found.violations, 0, "{found:?}");
    actors[0].fate = Fate::MayDie;
    actors.push(time(MARKER_MS + 1));
    let found = race(start, actors);
    assert_eq!(found.violations, 0, "{found:?}");
}

#[test]
fn a_write_during_the_copy_stands() {
    assert_safe("SET k 1", &[mover("m"), client(&["SET k 2"]), client(&["GET k"])]);
}

#[test]
fn a_delete_during_the_copy_stands() {
    assert_safe("SET k 1", &[mover("m"), client(&["DEL k"]), client(&["GET k"])]);
}

#[test]
fn an_expiry_during_the_copy_stands() {
    assert_safe("SET k 1 PX 1000", &[mover("m"), time(1_500), client(&["GET k", "GET k"])]);
    assert_safe("SET k 1 PX 1000", &[mover("m"), time(1_500), client(&["INCR k"])]);
}

#[test]
fn an_expiry_set_during_the_copy_stands() {
    assert_safe("SET k 1", &[mover("m"), client(&["PEXPIRE k 1000", "GET k"]), time(1_500)]);
    assert_safe("SET k 1", &[mover("m"), client(&["SET k 2 PX 1000", "GET k"]), time(1_500)]);
}

#[test]
fn an_increment_of_a_key_not_yet_moved_counts_on() {
    assert_safe("SET k 1", &[mover("m"), client(&["INCR k"]), client(&["INCR k"])]);
}

#[test]
fn two_movers_and_a_delete_bring_nothing_back() {
    assert_safe("SET k 1", &[mover("m"), mover("n"), client(&["DEL k"])]);
}

#[test]
fn a_client_that_dies_in_the_middle_of_a_write_harms_nobody() {
    assert_safe("SET k 1", &[client(&["INCR k"]), client(&["GET k"]), mover("m")]);
}

#[test]
fn a_marker_that_expired_under_its_mover_brings_nothing_back() {
    let actors =
        || vec![mover("m"), client(&["DEL k"]), time(MARKER_MS + 1), client(&["GET k", "GET k"])];
    assert_eq!(race("SET k 1", actors()).violations, 0);
}

#[test]
fn what_a_proxy_remembers_is_true_however_slow_a_mover_is() {
    // The first write settles the key, so the others go straight to its new server.
    let writer = || client(&["SET k 2", "DEL k", "INCR k"]);
    let found = race("SET k 1", vec![mover("m"), writer(), time(MARKER_MS + 1)]);
    assert_eq!(found.violations, 0);
}

/// Asserts that leaving out a safeguard is detected; otherwise these tests prove nothing.
fn assert_caught(start: &str, safeguards: Safeguards, mut actors: Vec<Actor>) {
    for actor in &mut actors {
        actor.safeguards = safeguards;
        for deed in &mut actor.deeds {
            if let Deed::Job(AnyJob::Move(job)) = deed {
                *job = job.clone().with_safeguards(safeguards);
            }
        }
    }
    assert!(race(start, actors).violations > 0);
}

#[test]
fn without_the_token_a_slow_mover_brings_a_deleted_key_back() {
    let safeguards = Safeguards { check_token: false, ..Safeguards::ALL };
    let actors = vec![mover("m"), client(&["DEL k"]), time(MARKER_MS + 1)];
    assert_caught("SET k 1", safeguards, actors);
}

#[test]
fn without_moving_before_a_write_an_expired_value_uncovers_an_older_one() {
    let safeguards = Safeguards { move_before_write: false, ..Safeguards::ALL };
    assert_caught("SET k 1", safeguards, vec![client(&["SET k 2 PX 50"]), time(100)]);
}

#[test]
fn without_moving_before_a_write_a_counter_begins_anew() {
    let safeguards = Safeguards { move_before_write: false, ..Safeguards::ALL };
    assert_caught("SET k 1", safeguards, vec![client(&["INCR k"]), mover("m")]);
}

#[test]
fn a_mover_that_was_refused_goes_on_with_the_markers_it_still_has() {
    let ok = || Value::Simple(b"OK".to_vec());
    let text = |text: &str| Value::Bulk(text.as_bytes().to_vec());
    let time = || Value::Array(vec![text("1"), text("0")]);
    let keys = [b"a".to_vec(), b"b".to_vec()];
    let mut job = MoveJob::new(ROUTE, Token::new("m"), keys);
    job.start();
    job.on_answers(&[ok(), ok(), ok(), ok(), Value::Array(vec![text("m"), text("m")])]);
    let copies = [text("dump"), Value::Integer(-1), text("dump"), Value::Integer(-1)];
    job.on_answers(&[&[time()], &copies[..]].concat());
    // A client has written one of the keys, so both restores are refused. The marker of the first still exists.
    let marking = job.on_answers(&[ok(), ok(), ok(), ok(), Value::Null]);
    assert!(matches!(marking, Step::Ask(_)), "{marking:?}");
    let copying = job.on_answers(&[Value::Null, ok(), ok(), Value::Array(vec![text("m")])]);
    assert!(matches!(copying, Step::Ask(_)), "it waits for itself: {copying:?}");
}

//! Tests that large keys, moved element by element, arrive complete, and that their races are safe too.

use super::world::{Actor, AnyJob, Deed, Fate, World};
use super::{ROUTE, view};
use crate::big::BigMoveJob;
use crate::moving::{MARKER_MS, Outcome, Token};

fn mover() -> Actor {
    Actor::new([Deed::Job(AnyJob::Big(BigMoveJob::new(ROUTE, Token::new("m"), b"k".to_vec())))])
}

#[test]
fn all_elements_arrive_and_nothing_else_is_left() {
    for start in [
        "SET k text",
        "RPUSH k a b c a",
        "SADD k a b c",
        "SADD k a",
        "HSET k f 1 g 2 h 3",
        "ZADD k 1 a 2.5 b -inf c",
        "SET k text PX 1000",
    ] {
        let world = World::new(2, vec![mover()]).given(0, start);
        let expected = world.servers[0].shown(b"k");
        let mut ends = 0;
        world.explore(&mut |world| {
            ends += 1;
            assert_eq!(world.servers[1].shown(b"k"), expected);
            for name in [crate::names::marker(b"k"), crate::names::data(b"k")] {
                assert!(!world.servers[1].has(&name));
            }
            assert!(!world.servers[0].has(b"k"));
        });
        assert_eq!(ends, 1);
    }
}

/// Runs one mover of `k` alone, and returns its outcome.
fn moved(world: &mut World) -> Option<Outcome> {
    let mut job = BigMoveJob::new(ROUTE, Token::new("m"), b"k".to_vec());
    assert_eq!(super::world::run(world, &mut job), Ok(()));
    job.outcome().cloned()
}

#[test]
fn expiries_of_fields_move_too() {
    let mut world = World::new(2, Vec::new());
    world.servers.iter_mut().for_each(|server| server.has_field_expiry = true);
    let mut world = world.given(0, "HSET k f 1 g 2 h 3").given(0, "HPEXPIREAT k 900 FIELDS 1 g");
    let expected = world.servers[0].shown(b"k");
    assert!(matches!(moved(&mut world), Some(Outcome::Moved { .. })));
    assert_eq!(world.servers[1].shown(b"k"), expected);
    assert!(!world.servers[0].has(b"k"));
}

#[test]
fn a_hash_whose_fields_expire_stays_where_the_new_server_cannot_expire_fields() {
    let mut world = World::new(2, Vec::new());
    world.servers[0].has_field_expiry = true;
    let mut world = world.given(0, "HSET k f 1 g 2").given(0, "HPEXPIREAT k 900 FIELDS 1 g");
    let before = world.servers[0].shown(b"k");
    let Some(Outcome::Refused(why)) = moved(&mut world) else { panic!("it must stay") };
    assert!(why.contains("fields"), "{why}");
    assert_eq!(world.servers[0].shown(b"k"), before);
    assert!(!world.servers[1].has(b"k"));
}

#[test]
fn a_write_a_delete_and_a_death_during_a_long_move_are_safe() {
    for line in ["SET k 2", "DEL k"] {
        for fate in [Fate::Lives, Fate::MayDie] {
            let mut mover = mover();
            mover.fate = fate;
            let client = Actor::client(&view(), &[line, "GET k"]);
            let time = Actor::new([Deed::Time(MARKER_MS + 1)]);
            let world = World::new(2, vec![mover, client, time]).given(0, "SET k 1");
            let found = world.violations(&Actor::client(&view(), &["GET k"]));
            assert!(found.ends > 1);
            assert_eq!(found.violations, 0, "{line}: {found:?}");
        }
    }
}

#[test]
fn an_expiry_during_a_long_move_leaves_no_half_of_it() {
    let client = Actor::client(&view(), &["GET k", "GET k"]);
    let time = Actor::new([Deed::Time(1_500)]);
    let world = World::new(2, vec![mover(), client, time]).given(0, "SET k 1 PX 1000");
    let found = world.violations(&Actor::client(&view(), &["GET k"]));
    assert_eq!(found.violations, 0, "{found:?}");
}

#[test]
fn the_outcome_tells_what_was_carried() {
    let mut job = BigMoveJob::new(ROUTE, Token::new("m"), b"k".to_vec());
    let mut world = World::new(2, Vec::new()).given(0, "RPUSH k aa bb");
    assert_eq!(super::world::run(&mut world, &mut job), Ok(()));
    assert_eq!(job.outcome(), Some(&Outcome::Moved { bytes: 4 }));
}

//! Longer scenarios: several clients with several commands each, movers of both kinds that may die, and time
//! passing. There are too many orders to try them all; some hundred are drawn from seeds.

use sim_engine::Rng;

use super::world::{Actor, AnyJob, Deed, Fate, World};
use super::{ROUTE, view};
use crate::big::BigMoveJob;
use crate::moving::{MARKER_MS, MoveJob, Safeguards, Token};

const SEEDS: u64 = 200;
/// Number of seeds that may be needed to expose a missing safeguard.
const SEEDS_BROKEN: u64 = 4_000;
const CLIENTS: usize = 3;
const COMMANDS: usize = 3;

fn client(rng: &mut Rng) -> Actor {
    let commands =
        ["GET k", "SET k 7", "INCR k", "DEL k", "SET k 3 PX 800", "PEXPIRE k 900", "GET k"];
    let lines: Vec<&str> = (0..COMMANDS).map(|_| *rng.choose(&commands).unwrap()).collect();
    Actor::client(&view(), &lines)
}

fn story(seed: u64, safeguards: Safeguards) -> World {
    let mut rng = Rng::new(seed);
    let route = ROUTE;
    let key = || b"k".to_vec();
    let small = |token: &str| {
        let job = MoveJob::new(route, Token::new(token), [key()]).with_safeguards(safeguards);
        Actor::new([Deed::Job(AnyJob::Move(job))])
    };
    let big = BigMoveJob::new(route, Token::new("big"), key());
    let mut actors = vec![small("m"), small("n"), Actor::new([Deed::Job(AnyJob::Big(big))])];
    actors.extend((0..CLIENTS).map(|_| client(&mut rng)));
    for actor in &mut actors {
        actor.safeguards = safeguards;
        actor.fate = if rng.below(2) == 0 { Fate::Lives } else { Fate::MayDie };
    }
    let times = [500, 700, MARKER_MS + 1].map(Deed::Time);
    actors.push(Actor::new(times));
    let start = if rng.below(2) == 0 { "SET k 1" } else { "SET k 1 PX 1000" };
    World::new(2, actors).given(0, start)
}

/// Returns the seeds whose scenario shows a client something that no single server would have shown.
fn violations(seeds: u64, safeguards: Safeguards) -> impl Iterator<Item = u64> {
    let last = Actor::client(&view(), &["GET k"]);
    (0..seeds).filter(move |seed| !story(*seed, safeguards).wander(*seed, &last))
}

#[test]
fn in_no_long_story_does_a_value_go_back() {
    assert_eq!(violations(SEEDS, Safeguards::ALL).next(), None);
}

#[test]
fn long_stories_find_a_missing_token_and_a_missing_move_too() {
    let without_token = Safeguards { check_token: false, ..Safeguards::ALL };
    assert!(violations(SEEDS_BROKEN, without_token).next().is_some());
    let without_move = Safeguards { move_before_write: false, ..Safeguards::ALL };
    assert!(violations(SEEDS_BROKEN, without_move).next().is_some());
}

//! Histories of the store from seeds: whatever happens, every invariant holds; and a rule broken on purpose
//! is detected.
//!
//! `OPENCLUSTER_QUICK=1` runs a tenth, `OPENCLUSTER_NIGHTLY=1` a hundred thousand of each kind.

use cluster::rules::Rule;
use sim::store::{Many, Reunion, Run, Sabotage, Sky, Sum, meet};

const NIGHTLY: u64 = 100_000;

fn how_many(normal: u64) -> u64 {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    match (is_set("OPENCLUSTER_NIGHTLY"), is_set("OPENCLUSTER_QUICK")) {
        (true, _) => NIGHTLY,
        (false, true) => normal / 10,
        (false, false) => normal,
    }
}

fn like(sky: Sky, sabotage: Option<Sabotage>) -> Run {
    Run { seed: 0, sky, sabotage, tells: false }
}

/// Fails the test at the first history that fails, with the command to reproduce it.
fn all_hold(count: u64, sky: Sky) -> Sum {
    let many = Many { seeds: 0..count, like: like(sky, None), threads: 2 };
    many.run(|_| {}).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn while_nodes_come_and_go_no_history_shows_it() {
    let sum = all_hold(how_many(300), Sky::Calm);
    assert_eq!(sum.lost, 0, "nobody has died");
    assert!(sum.answered > 200 * sum.histories);
}

#[test]
fn whatever_fails_what_was_acknowledged_stays() {
    let sum = all_hold(how_many(2_000), Sky::Stormy);
    assert!(sum.lost * 10 < sum.histories, "{sum:?}: most histories must tell something");
    assert!(sum.unknown * 2 < sum.histories, "{sum:?}: six keys each, and few may stay unjudged");
}

fn shows(sabotage: Sabotage, count: u64) {
    let many = Many { seeds: 0..count, like: like(Sky::Stormy, Some(sabotage)), threads: 2 };
    assert!(many.run(|_| {}).is_err(), "{sabotage:?} is not noticed within {count} histories");
}

/// Two rules are each enforced in two places, and only one of the places is detected by itself. With the
/// reign check left out of `Ticket::judge` alone, or the position check left out of `ReceivingSlot::judge` alone,
/// 200 histories detect nothing.
#[test]
fn whichever_rule_is_left_out_shows() {
    for sabotage in Sabotage::ALL {
        shows(sabotage, 200);
    }
}

/// The rules that keep a reply from leaving too early, by name: none of them may go missing from the list.
#[test]
fn the_rules_of_the_gate_are_among_those_left_out() {
    for rule in [
        Rule::LeaseCheck,
        Rule::BackupWait,
        Rule::RefusalCheck,
        Rule::ReignCheck,
        Rule::TicketPerSlot,
        Rule::CopiesWait,
    ] {
        assert!(Sabotage::ALL.contains(&Sabotage::Breaks(rule)), "{rule:?}");
    }
}

/// Runs scenarios of two sides until one detects that this rule is broken.
fn shows_when_sides_meet(sabotage: Sabotage) {
    let told = |seed| meet(seed, Some(sabotage), false);
    assert!((0..200).any(|seed| told(seed).is_err()), "{sabotage:?} is not noticed");
}

#[test]
fn two_sides_that_went_on_apart_become_one_and_what_either_wrote_is_there() {
    let told = |seed| meet(seed, None, false).map_err(|what| format!("seed {seed}: {what}"));
    let reunions: Result<Vec<Reunion>, String> = (0..300).map(told).collect();
    let reunions = reunions.unwrap_or_else(|what| panic!("{what}"));
    let sum = |of: fn(&Reunion) -> u64| reunions.iter().map(of).sum::<u64>();
    assert!(sum(|it| it.taken) > 100 && sum(|it| it.conflicts) > 100, "{reunions:?}");
    assert!(reunions.iter().any(|it| it.sides == 1) && reunions.iter().any(|it| it.sides == 2));
}

#[test]
fn two_sides_that_both_yield_show() {
    shows_when_sides_meet(Sabotage::Breaks(Rule::FoundersDiffer));
}

#[test]
fn a_merge_that_does_not_look_at_what_is_there_shows() {
    shows_when_sides_meet(Sabotage::LastComeWins);
}

#[test]
fn keys_that_are_not_remembered_as_taken_away_show() {
    shows_when_sides_meet(Sabotage::NoTombs);
}

#[test]
fn a_side_that_goes_before_it_has_handed_over_shows() {
    shows_when_sides_meet(Sabotage::GoesBeforeMerged);
}

//! Histories of the store from seeds: whatever happens, every invariant holds; and where a rule is
//! broken on purpose, it shows.

use cluster::control::Rule;
use sim::store::{Failure, Report, Run, Sabotage, Sky, run};

/// Runs seeds on a few threads; the first that fails fails the test with the command to see it again.
fn all_hold(seeds: core::ops::Range<u64>, sky: Sky) -> Vec<Report> {
    let threads = 2;
    let part = |first: u64| {
        let seeds = seeds.clone().skip(first as usize).step_by(threads);
        let told = |seed| run(Run { seed, sky, sabotage: None, tells: false });
        seeds.map(told).collect::<Result<Vec<Report>, Failure>>()
    };
    let parts: Vec<_> = std::thread::scope(|scope| {
        let parts: Vec<_> =
            (0..threads as u64).map(|first| scope.spawn(move || part(first))).collect();
        parts.into_iter().map(|part| part.join().expect("a history panicked")).collect()
    });
    let reports = parts.into_iter().map(|part| part.unwrap_or_else(|failure| panic!("{failure}")));
    reports.flatten().collect()
}

#[test]
fn while_nodes_come_and_go_no_history_shows_it() {
    let reports = all_hold(0..100, Sky::Calm);
    assert!(reports.iter().all(|report| !report.lost), "nobody has died");
    assert!(reports.iter().map(|report| report.answered).sum::<u64>() > 20_000);
}

#[test]
fn whatever_fails_what_was_acknowledged_stays() {
    let reports = all_hold(0..50, Sky::Stormy);
    let lost = reports.iter().filter(|report| report.lost).count();
    assert!(lost < 5, "{lost} histories in which all copies were gone tell nothing");
    let unknown: usize = reports.iter().map(|report| report.unknown).sum();
    assert!(unknown < 20, "{unknown} histories were too tangled to judge");
}

/// Runs seeds until one shows that this rule is broken.
fn shows(sabotage: Sabotage) {
    let told = |seed| run(Run { seed, sky: Sky::Stormy, sabotage: Some(sabotage), tells: false });
    assert!((0..200).any(|seed| told(seed).is_err()), "{sabotage:?} is not noticed");
}

#[test]
fn a_new_leader_that_does_not_wait_shows() {
    shows(Sabotage::Control(Rule::NewLeaderWaits));
}

#[test]
fn a_bucket_that_is_served_while_it_is_handed_over_shows() {
    shows(Sabotage::ServesWhilePaused);
}

#[test]
fn a_process_that_takes_its_old_place_shows() {
    shows(Sabotage::RestartKeepsPlace);
}

#[test]
fn replies_that_do_not_wait_for_backups_show() {
    shows(Sabotage::RepliesAtOnce);
}

#[test]
fn a_lease_that_nobody_looks_at_shows() {
    shows(Sabotage::NoLeaseCheck);
}

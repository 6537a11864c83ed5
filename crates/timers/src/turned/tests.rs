//! Tests one of two nodes while the other is silent, with a lease that ends.

use super::*;
use crate::ids::{MembersEpoch, MonotonicMillis, Now, ReplicationFactor, TimerId, TimerPeer};
use crate::input::{TimerAnswer, TimerInput, TimerRefusal, TimerRequest, TimerSettings};
use crate::members::TimerMember;
use crate::message::{RequestId, TimerQuery};

const ME: TimerPeer = TimerPeer { id: 1, boot: 1 };
const OTHER: TimerPeer = TimerPeer { id: 2, boot: 1 };
const ID: TimerId = TimerId { number: 7, factor: ReplicationFactor::DEFAULT };

/// The moment of the last lease report, and the moment at which the lease ends.
const TOLD: u64 = 10_000;
const ENDS: u64 = 11_000;

fn members(epoch: u64, nodes: &[TimerPeer]) -> TimerInput {
    let member =
        |id: &TimerPeer| TimerMember { id: *id, name: format!("node-{}", id.id), weight: 1 };
    TimerInput::Members { epoch: MembersEpoch(epoch), members: nodes.iter().map(member).collect() }
}

fn survivor() -> Timers {
    let now = Now::exact(MonotonicMillis(0), 0);
    let mut core = Timers::new(ME, 1, now, TimerSettings::default());
    told(&mut core, 0, members(1, &[ME, OTHER]));
    told(&mut core, TOLD - 250, TimerInput::Lease { until: MonotonicMillis(ENDS - 250) });
    core
}

/// Handles an input, and returns whether the core reports a waiting client.
fn told(core: &mut Timers, at: u64, input: TimerInput) -> bool {
    let mut out = Vec::new();
    core.handle(Now::exact(MonotonicMillis(at), at), input, &mut out);
    out.contains(&TimerAction::ClientDemand)
}

fn asked(core: &mut Timers, at: u64, wish: TimerRequest) -> bool {
    told(core, at, TimerInput::Request { request: RequestId(at), wish })
}

fn renew(core: &mut Timers) {
    assert!(!told(core, TOLD, TimerInput::Lease { until: MonotonicMillis(ENDS) }));
}

#[test]
fn who_wants_a_timer_changed_has_turned_to_a_node_without_a_lease() {
    let mut core = survivor();
    renew(&mut core);
    // The core last got the time long before: the time of the request counts.
    assert!(asked(&mut core, ENDS + 50_000, TimerRequest::Delete(ID)));
}

#[test]
fn it_is_told_again_while_the_client_waits_and_not_after_it_has_given_up() {
    let mut core = survivor();
    renew(&mut core);
    assert!(asked(&mut core, ENDS + 1, TimerRequest::Delete(ID)));
    assert!(told(&mut core, ENDS + 201, TimerInput::Tick));
    assert!(!told(&mut core, ENDS + 202, TimerInput::Tick), "not at every occasion");
    assert!(told(&mut core, ENDS + 9_000, TimerInput::Tick));
    assert!(!told(&mut core, ENDS + 10_001, TimerInput::Tick));
    assert!(!told(&mut core, ENDS + 20_000, TimerInput::Tick));
}

#[test]
fn with_a_lease_nobody_has_to_be_told_and_one_that_comes_back_ends_it() {
    let mut core = survivor();
    renew(&mut core);
    assert!(!asked(&mut core, ENDS - 500, TimerRequest::Delete(ID)));
    assert!(!told(&mut core, ENDS - 1, TimerInput::Tick));
    assert!(
        told(&mut core, ENDS + 1_000, TimerInput::Tick),
        "it came when we heard nothing any more"
    );
    assert!(!told(
        &mut core,
        ENDS + 2_000,
        TimerInput::Lease { until: MonotonicMillis(ENDS + 3_000) }
    ));
    assert!(!told(&mut core, ENDS + 2_900, TimerInput::Tick));
}

#[test]
fn a_node_that_was_alone_before_the_other_came_has_no_lease_for_ever() {
    let mut core = survivor();
    assert!(!told(&mut core, TOLD - 1, TimerInput::Lease { until: MonotonicMillis(u64::MAX) }));
    renew(&mut core);
    assert!(asked(&mut core, ENDS + 1, TimerRequest::Delete(ID)));
}

#[test]
fn who_came_before_the_silence_has_not_turned_to_us() {
    let mut core = survivor();
    assert!(!asked(&mut core, TOLD - 1, TimerRequest::Delete(ID)));
    renew(&mut core);
    assert!(!told(&mut core, ENDS + 1_000, TimerInput::Tick));
}

#[test]
fn who_asks_for_one_timer_has_turned_to_us_and_who_looks_at_lists_and_numbers_has_not() {
    for sight in [TimerQuery::Page { after: None, limit: 1 }, TimerQuery::Stats, TimerQuery::Dead] {
        let mut core = survivor();
        assert!(!asked(&mut core, ENDS + 1, TimerRequest::See(sight)));
        assert!(!told(&mut core, ENDS + 500, TimerInput::Tick));
    }
    assert!(asked(&mut survivor(), ENDS + 1, TimerRequest::See(TimerQuery::Timer(ID))));
}

#[test]
fn a_timer_that_only_the_silent_node_could_have_is_not_said_to_be_missing() {
    let mut core = survivor();
    asked(&mut core, ENDS, TimerRequest::See(TimerQuery::Timer(ID)));
    let mut out = Vec::new();
    let later = Now::exact(MonotonicMillis(ENDS + 2_000), 0);
    core.handle(later, TimerInput::Tick, &mut out);
    let answer = TimerAnswer::Refused(TimerRefusal::Unseen);
    assert!(out.contains(&TimerAction::Answer { request: RequestId(ENDS), answer }));
}

#[test]
fn who_looks_for_a_timer_does_not_wait_for_a_node_that_is_out_of_the_map() {
    let mut core = survivor();
    asked(&mut core, ENDS, TimerRequest::See(TimerQuery::Timer(ID)));
    let mut out = Vec::new();
    core.handle(Now::exact(MonotonicMillis(ENDS + 1), 0), members(2, &[ME]), &mut out);
    let answer = TimerAnswer::Timer(None);
    assert_eq!(out, [TimerAction::Answer { request: RequestId(ENDS), answer }]);
}

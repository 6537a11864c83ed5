//! Tests one of two nodes while the other is silent, with a lease that ends.

use super::*;
use crate::ids::{Epoch, MonotonicMillis, Now, Peer, ReplicationFactor, TimerId};
use crate::input::{Input, TimerAnswer, TimerRefusal, TimerSettings, Wish};
use crate::members::Member;
use crate::message::{RequestId, Sight};

const ME: Peer = Peer { id: 1, boot: 1 };
const OTHER: Peer = Peer { id: 2, boot: 1 };
const ID: TimerId = TimerId { number: 7, factor: ReplicationFactor::DEFAULT };

/// The moment of the last lease report, and the moment at which the lease ends.
const TOLD: u64 = 10_000;
const ENDS: u64 = 11_000;

fn members(epoch: u64, nodes: &[Peer]) -> Input {
    let member = |id: &Peer| Member { id: *id, name: format!("node-{}", id.id), weight: 1 };
    Input::Members { epoch: Epoch(epoch), members: nodes.iter().map(member).collect() }
}

fn survivor() -> Timers {
    let now = Now { moment: MonotonicMillis(0), wall: 0 };
    let mut core = Timers::new(ME, 1, now, TimerSettings::default());
    told(&mut core, 0, members(1, &[ME, OTHER]));
    told(&mut core, TOLD - 250, Input::Lease { until: MonotonicMillis(ENDS - 250) });
    core
}

/// Handles an input, and returns whether the core reports a waiting client.
fn told(core: &mut Timers, at: u64, input: Input) -> bool {
    let mut out = Vec::new();
    core.handle(Now { moment: MonotonicMillis(at), wall: at }, input, &mut out);
    out.contains(&Action::ClientTurned)
}

fn asked(core: &mut Timers, at: u64, wish: Wish) -> bool {
    told(core, at, Input::Request { request: RequestId(at), wish })
}

fn renew(core: &mut Timers) {
    assert!(!told(core, TOLD, Input::Lease { until: MonotonicMillis(ENDS) }));
}

#[test]
fn who_wants_a_timer_changed_has_turned_to_a_node_without_a_lease() {
    let mut core = survivor();
    renew(&mut core);
    // The core last got the time long before: the time of the request counts.
    assert!(asked(&mut core, ENDS + 50_000, Wish::Delete(ID)));
}

#[test]
fn it_is_told_again_while_the_client_waits_and_not_after_it_has_given_up() {
    let mut core = survivor();
    renew(&mut core);
    assert!(asked(&mut core, ENDS + 1, Wish::Delete(ID)));
    assert!(told(&mut core, ENDS + 201, Input::Tick));
    assert!(!told(&mut core, ENDS + 202, Input::Tick), "not at every occasion");
    assert!(told(&mut core, ENDS + 9_000, Input::Tick));
    assert!(!told(&mut core, ENDS + 10_001, Input::Tick));
    assert!(!told(&mut core, ENDS + 20_000, Input::Tick));
}

#[test]
fn with_a_lease_nobody_has_to_be_told_and_one_that_comes_back_ends_it() {
    let mut core = survivor();
    renew(&mut core);
    assert!(!asked(&mut core, ENDS - 500, Wish::Delete(ID)));
    assert!(!told(&mut core, ENDS - 1, Input::Tick));
    assert!(told(&mut core, ENDS + 1_000, Input::Tick), "it came when we heard nothing any more");
    assert!(!told(&mut core, ENDS + 2_000, Input::Lease { until: MonotonicMillis(ENDS + 3_000) }));
    assert!(!told(&mut core, ENDS + 2_900, Input::Tick));
}

#[test]
fn a_node_that_was_alone_before_the_other_came_has_no_lease_for_ever() {
    let mut core = survivor();
    assert!(!told(&mut core, TOLD - 1, Input::Lease { until: MonotonicMillis(u64::MAX) }));
    renew(&mut core);
    assert!(asked(&mut core, ENDS + 1, Wish::Delete(ID)));
}

#[test]
fn who_came_before_the_silence_has_not_turned_to_us() {
    let mut core = survivor();
    assert!(!asked(&mut core, TOLD - 1, Wish::Delete(ID)));
    renew(&mut core);
    assert!(!told(&mut core, ENDS + 1_000, Input::Tick));
}

#[test]
fn who_asks_for_one_timer_has_turned_to_us_and_who_looks_at_lists_and_numbers_has_not() {
    for sight in [Sight::Page { after: None, limit: 1 }, Sight::Stats, Sight::Dead] {
        let mut core = survivor();
        assert!(!asked(&mut core, ENDS + 1, Wish::See(sight)));
        assert!(!told(&mut core, ENDS + 500, Input::Tick));
    }
    assert!(asked(&mut survivor(), ENDS + 1, Wish::See(Sight::Timer(ID))));
}

#[test]
fn a_timer_that_only_the_silent_node_could_have_is_not_said_to_be_missing() {
    let mut core = survivor();
    asked(&mut core, ENDS, Wish::See(Sight::Timer(ID)));
    let mut out = Vec::new();
    let later = Now { moment: MonotonicMillis(ENDS + 2_000), wall: 0 };
    core.handle(later, Input::Tick, &mut out);
    let answer = TimerAnswer::Refused(TimerRefusal::Unseen);
    assert!(out.contains(&Action::Answer { request: RequestId(ENDS), answer }));
}

#[test]
fn who_looks_for_a_timer_does_not_wait_for_a_node_that_is_out_of_the_map() {
    let mut core = survivor();
    asked(&mut core, ENDS, Wish::See(Sight::Timer(ID)));
    let mut out = Vec::new();
    core.handle(Now { moment: MonotonicMillis(ENDS + 1), wall: 0 }, members(2, &[ME]), &mut out);
    let answer = TimerAnswer::Timer(None);
    assert_eq!(out, [Action::Answer { request: RequestId(ENDS), answer }]);
}

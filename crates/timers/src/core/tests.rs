//! Tests what clients and callback targets see of a cluster in which messages arrive at once: first the helpers
//! of these tests, then the claims. The simulator covers storms of failures and splits.

use std::collections::VecDeque;

use super::*;
use crate::calls::CallLimits;
use crate::ids::{MembersEpoch, ReplicationFactor, Sequence};
use crate::input::{Call, Seen, TimerAnswer, TimerRefusal};
use crate::members::TimerMember;
use crate::message::{MembersHello, Popped, ResyncWanted, TimerQuery, Want};
use crate::spec::{Callback, Retry, TimerSpec, TimerTag};
use crate::stats::LATENESS_BOUNDS;
use crate::target::HttpTarget;

const SECOND: u64 = 1000;

/// A few nodes and their time. Callbacks wait in `called` until the test answers them.
struct Cluster {
    now: u64,
    nodes: Vec<Timers>,
    called: VecDeque<(usize, Call)>,
    answers: Vec<TimerAnswer>,
    requests: u64,
    /// The result of every callback; `None` leaves them to the test.
    result: Option<Result<(), String>>,
}

fn node_id(node: usize) -> TimerPeer {
    TimerPeer { id: node as u64 + 1, boot: 1 }
}

fn spec(interval: u64, pops: u64) -> TimerSpec {
    let target = HttpTarget::parse("http://10.0.0.9:80/pop").unwrap();
    let callback = Callback::Http { target, opaque: "hello".into(), timeout: TimeSpan(2000) };
    let (interval, repeat_for) = (TimeSpan(interval), TimeSpan(interval * pops));
    TimerSpec { tags: Vec::new(), interval, repeat_for, callback, retry: Retry::NONE }
}

impl Cluster {
    fn new(nodes: usize) -> Cluster {
        Cluster::with(nodes, TimerSettings::default())
    }

    fn with(count: usize, settings: TimerSettings) -> Cluster {
        let now = Now::exact(MonotonicMillis(0), 0);
        let nodes = (0..count).map(|node| Timers::new(node_id(node), node as u64, now, settings));
        let nodes = nodes.collect();
        let result = Some(Ok(()));
        let (called, answers) = (VecDeque::new(), Vec::new());
        let mut cluster = Cluster { now: 0, nodes, called, answers, requests: 0, result };
        cluster.set_members(1);
        cluster
    }

    fn set_members(&mut self, epoch: u64) {
        let member =
            |node| TimerMember { id: node_id(node), name: format!("node-{node}"), weight: 1 };
        let members: Vec<TimerMember> = (0..self.nodes.len()).map(member).collect();
        for node in 0..self.nodes.len() {
            let until = MonotonicMillis(u64::MAX);
            self.input(node, TimerInput::Lease { until });
            self.input(
                node,
                TimerInput::Members { epoch: MembersEpoch(epoch), members: members.clone() },
            );
        }
    }

    fn input(&mut self, node: usize, input: TimerInput) {
        let now = Now::exact(MonotonicMillis(self.now), self.now);
        let mut open = VecDeque::from([(node, input)]);
        while let Some((node, input)) = open.pop_front() {
            let mut actions = Vec::new();
            self.nodes[node].handle(now, input, &mut actions);
            for action in actions {
                match action {
                    TimerAction::Send { to, message } => {
                        let input = TimerInput::Peer { from: node_id(node), message };
                        open.push_back((to.id as usize - 1, input));
                    }
                    TimerAction::Answer { answer, .. } => self.answers.push(answer),
                    TimerAction::Call(call) => {
                        if let Some(result) = self.result.clone() {
                            open.push_back((
                                node,
                                TimerInput::CallEnded { call: call.call, result },
                            ));
                        }
                        self.called.push_back((node, call));
                    }
                    TimerAction::ClientDemand => panic!("all have leases here"),
                }
            }
        }
    }

    /// Sends a request to the first node, and returns its answer if there is one at once.
    fn ask(&mut self, wish: TimerRequest) -> Option<TimerAnswer> {
        self.requests += 1;
        self.input(0, TimerInput::Request { request: RequestId(self.requests), wish });
        self.answers.pop()
    }

    fn create(&mut self, spec: TimerSpec) -> TimerId {
        let wish = TimerRequest::Create { spec, factor: ReplicationFactor::DEFAULT };
        match self.ask(wish) {
            Some(TimerAnswer::Done(id)) => id,
            other => panic!("not done: {other:?}"),
        }
    }

    fn see(&mut self, sight: TimerQuery) -> TimerAnswer {
        self.ask(TimerRequest::See(sight)).expect("looking is answered at once here")
    }

    /// Advances time in steps of 10 ms, and returns the calls made: their times and sequence numbers.
    fn pass(&mut self, time: u64) -> Vec<(u64, u32)> {
        self.called.clear();
        let mut calls = Vec::new();
        for _ in 0..time / 10 {
            self.now += 10;
            for node in 0..self.nodes.len() {
                self.input(node, TimerInput::Tick);
            }
            calls.extend(self.called.drain(..).map(|(_, call)| (self.now, call.sequence.0)));
        }
        calls
    }
}

#[test]
fn a_timer_pops_after_its_interval_once() {
    let mut cluster = Cluster::new(3);
    cluster.create(spec(5 * SECOND, 1));
    assert_eq!(cluster.pass(4990), []);
    assert_eq!(cluster.pass(60 * SECOND), [(5000, 0)]);
}

#[test]
fn a_timer_that_repeats_counts_its_pops_and_does_not_drift() {
    let mut cluster = Cluster::new(3);
    cluster.create(spec(SECOND, 3));
    assert_eq!(cluster.pass(60 * SECOND), [(1000, 0), (2000, 1), (3000, 2)]);
}

#[test]
fn a_timer_that_repeats_for_less_than_its_interval_never_pops() {
    let mut cluster = Cluster::new(2);
    let spec = TimerSpec { repeat_for: TimeSpan(999), ..spec(SECOND, 1) };
    cluster.create(spec);
    assert_eq!(cluster.pass(10 * SECOND), []);
    assert_eq!(cluster.nodes[0].pending() + cluster.nodes[1].pending(), 0);
}

#[test]
fn a_timer_without_an_interval_pops_at_once() {
    let mut cluster = Cluster::new(1);
    cluster.create(spec(0, 1));
    assert_eq!(cluster.called.len(), 1);
    assert_eq!(cluster.pass(10 * SECOND), []);
}

#[test]
fn what_was_due_while_the_machine_slept_pops_once() {
    let mut cluster = Cluster::new(1);
    cluster.create(spec(SECOND, 100));
    cluster.now = 50_500;
    assert_eq!(cluster.pass(600), [(50_510, 0), (51_000, 1)]);
}

#[test]
fn a_put_starts_the_interval_anew_and_goes_on_counting() {
    let mut cluster = Cluster::new(3);
    let id = cluster.create(spec(5 * SECOND, 10));
    assert_eq!(cluster.pass(12 * SECOND), [(5000, 0), (10_000, 1)]);
    let again = cluster.ask(TimerRequest::Put { id, spec: spec(4 * SECOND, 1) });
    assert_eq!(again, Some(TimerAnswer::Done(id)));
    assert_eq!(cluster.pass(60 * SECOND), [(16_000, 2)]);
}

#[test]
fn a_put_under_an_unknown_id_makes_a_timer() {
    let mut cluster = Cluster::new(3);
    let id: TimerId = "00000000deadbeef-3".parse().unwrap();
    cluster.ask(TimerRequest::Put { id, spec: spec(SECOND, 1) });
    assert_eq!(cluster.nodes.iter().map(Timers::pending).sum::<usize>(), 3);
    assert_eq!(cluster.pass(5 * SECOND), [(1000, 0)]);
}

#[test]
fn a_deleted_timer_does_not_pop_and_can_be_deleted_again() {
    let mut cluster = Cluster::new(3);
    let id = cluster.create(spec(5 * SECOND, 1));
    cluster.pass(4 * SECOND);
    assert_eq!(cluster.ask(TimerRequest::Delete(id)), Some(TimerAnswer::Done(id)));
    assert_eq!(cluster.ask(TimerRequest::Delete(id)), Some(TimerAnswer::Done(id)));
    assert_eq!(cluster.pass(60 * SECOND), []);
}

#[test]
fn nothing_is_left_of_a_timer_when_its_tombstone_is_gone() {
    let mut cluster = Cluster::new(3);
    let id = cluster.create(spec(5 * SECOND, 1));
    cluster.ask(TimerRequest::Delete(id));
    assert_eq!(cluster.nodes.iter().map(|node| node.table.len()).sum::<usize>(), 2);
    cluster.pass(61 * SECOND);
    assert_eq!(cluster.nodes.iter().map(|node| node.table.len()).sum::<usize>(), 0);
}

#[test]
fn deleting_what_never_was_leaves_nothing_behind() {
    let mut cluster = Cluster::new(3);
    let id: TimerId = "00000000deadbeef-2".parse().unwrap();
    assert_eq!(cluster.ask(TimerRequest::Delete(id)), Some(TimerAnswer::Done(id)));
    assert_eq!(cluster.nodes.iter().map(|node| node.table.len()).sum::<usize>(), 0);
}

#[test]
fn a_failing_callback_is_tried_by_every_replica_and_then_given_up() {
    let mut cluster = Cluster::new(3);
    cluster.result = Some(Err("503".into()));
    let id = cluster.create(spec(5 * SECOND, 1));
    assert_eq!(cluster.pass(60 * SECOND), [(5000, 0), (7000, 0)]);
    let TimerAnswer::Dead(Seen { found, silent: 0 }) = cluster.see(TimerQuery::Dead) else {
        panic!()
    };
    assert_eq!(found.len(), 1);
    let letter = &found[0];
    assert_eq!((letter.id, letter.sequence, letter.at), (id, Sequence(0), 7000));
    assert_eq!((letter.destination.as_str(), letter.why.as_str()), ("10.0.0.9:80", "503"));
}

#[test]
fn retries_come_after_all_replicas_and_each_waits_twice_as_long() {
    let mut cluster = Cluster::new(2);
    cluster.result = Some(Err("503".into()));
    let retry = Retry { attempts: 3, backoff: TimeSpan(500) };
    cluster.create(TimerSpec { retry, ..spec(5 * SECOND, 1) });
    let expected = [5000, 7000, 7500, 8500, 10_500].map(|at| (at, 0));
    assert_eq!(cluster.pass(60 * SECOND), expected);
}

#[test]
fn a_retry_that_succeeds_is_the_pop() {
    let mut cluster = Cluster::new(1);
    cluster.result = Some(Err("503".into()));
    let retry = Retry { attempts: 3, backoff: TimeSpan(500) };
    cluster.create(TimerSpec { retry, ..spec(SECOND, 1) });
    assert_eq!(cluster.pass(SECOND), [(1000, 0)]);
    cluster.result = Some(Ok(()));
    assert_eq!(cluster.pass(60 * SECOND), [(1500, 0)]);
    let TimerAnswer::Dead(Seen { found, .. }) = cluster.see(TimerQuery::Dead) else { panic!() };
    assert!(found.is_empty());
}

#[test]
fn a_slow_callback_is_not_made_by_the_next_replica_too() {
    let mut cluster = Cluster::new(3);
    cluster.result = None;
    cluster.create(spec(5 * SECOND, 1));
    cluster.pass(4 * SECOND);
    assert_eq!(cluster.pass(4 * SECOND).len(), 1);
}

#[test]
fn a_timer_that_has_ended_here_and_goes_on_elsewhere_is_asked_for_and_not_made_up() {
    let mut cluster = Cluster::new(2);
    let id = cluster.create(spec(SECOND, 1));
    assert_eq!(cluster.pass(SECOND), [(1000, 0)]);
    let version = cluster.nodes[1].table.get(id).expect("a tombstone").version;
    let progress = TimerState { version, sequence: Sequence(2) };
    let popped = Popped { id, progress, left: 3, due_in: TimeSpan(SECOND) };
    let heard = TimerInput::Peer { from: node_id(0), message: TimerMessage::Popped(popped) };
    let mut actions = Vec::new();
    let now = Now::exact(MonotonicMillis(cluster.now), cluster.now);
    cluster.nodes[1].handle(now, heard, &mut actions);
    let wanted = TimerMessage::Want(Want { id });
    assert_eq!(actions, [TimerAction::Send { to: node_id(0), message: wanted }]);
    assert_eq!(cluster.pass(10 * SECOND), []);
}

#[test]
fn a_node_that_holds_only_tombstones_hands_them_over_before_it_leaves() {
    let mut cluster = Cluster::new(2);
    let id = cluster.create(spec(SECOND, 1));
    cluster.pass(SECOND);
    assert!(cluster.nodes.iter().all(|node| node.pending() == 0 && !node.is_empty_handed()));
    // The other node may have to be asked whether it has the tombstone.
    let member =
        |node, weight| TimerMember { id: node_id(node), name: format!("node-{node}"), weight };
    let members = vec![member(0, 1), member(1, 0)];
    for node in [0, 1] {
        let members = members.clone();
        cluster.input(node, TimerInput::Members { epoch: MembersEpoch(2), members });
    }
    cluster.pass(SECOND);
    assert!(cluster.nodes[1].is_empty_handed());
    cluster.ask(TimerRequest::Put { id, spec: spec(SECOND, 1) });
    assert_eq!(cluster.pass(2 * SECOND).iter().map(|(_, number)| *number).collect::<Vec<_>>(), [1]);
}

#[test]
fn who_hands_over_a_timer_that_is_due_lets_the_new_primary_have_its_turn_first() {
    let mut cluster = Cluster::new(2);
    let id = cluster.create(spec(5 * SECOND, 1));
    let backup = (0..2).find(|node| cluster.nodes[*node].kept().eq([(id, 1)])).expect("one of two");
    let mut core = cluster.nodes.swap_remove(backup);
    let primary = TimerPeer { boot: 2, ..node_id(1 - backup) };
    let mut handle = |moment: u64, input: TimerInput| {
        let mut actions = Vec::new();
        core.handle(Now::exact(MonotonicMillis(moment), moment), input, &mut actions);
        actions
    };
    // 1) The primary is back as a new process, with nothing.
    let member = |id: TimerPeer| TimerMember { id, name: format!("node-{}", id.id - 1), weight: 1 };
    let mut members = vec![member(node_id(backup)), member(primary)];
    members.sort_by_key(|member| member.id);
    let epoch = MembersEpoch(2);
    let actions = handle(100, TimerInput::Members { epoch, members });
    let offer = actions.into_iter().find_map(|action| match action {
        TimerAction::Send { message: TimerMessage::Offer(offer), .. } => Some(offer),
        TimerAction::Send { .. }
        | TimerAction::Answer { .. }
        | TimerAction::Call(_)
        | TimerAction::ClientDemand => None,
    });
    let page = offer.expect("it lacks the timer").page;
    let from = primary;
    let hello = MembersHello { epoch, stage: Stage::HandsOver, answer: false };
    handle(100, TimerInput::Peer { from, message: TimerMessage::Hello(hello) });
    // 2) It asks for the timer shortly before the backup's turn.
    let wanted =
        TimerMessage::Wanted(ResyncWanted { epoch, page, ids: vec![id], newer: Vec::new() });
    handle(6990, TimerInput::Peer { from, message: wanted });
    let is_call = |action: &TimerAction| matches!(action, TimerAction::Call(_));
    assert!(!handle(7010, TimerInput::Tick).iter().any(is_call));
    // 3) The primary falls silent.
    assert!(!handle(8980, TimerInput::Tick).iter().any(is_call));
    assert!(handle(8990, TimerInput::Tick).iter().any(is_call));
}

#[test]
fn one_hanging_host_does_not_hold_up_another() {
    let calls = CallLimits { in_all: 100, per_destination: 2 };
    let mut cluster = Cluster::with(1, TimerSettings { calls, ..TimerSettings::default() });
    cluster.result = None;
    for _ in 0..10 {
        cluster.create(spec(SECOND, 1));
    }
    let target = HttpTarget::parse("http://10.0.0.8:80/").unwrap();
    let callback = Callback::Http { target, opaque: String::new(), timeout: TimeSpan(2000) };
    cluster.create(TimerSpec { callback, ..spec(SECOND, 1) });
    assert_eq!(cluster.pass(SECOND).len(), 3);
    let stats = cluster.nodes[0].stats();
    assert_eq!((stats.calls_in_flight, stats.calls_waiting), (3, 8));
}

#[test]
fn a_full_node_takes_no_new_timer_but_changes_and_deletes_old_ones() {
    let mut cluster = Cluster::with(1, TimerSettings { timers_max: 1, ..TimerSettings::default() });
    let id = cluster.create(spec(SECOND, 1));
    let wish = TimerRequest::Create { spec: spec(SECOND, 1), factor: ReplicationFactor::DEFAULT };
    assert_eq!(cluster.ask(wish), Some(TimerAnswer::Refused(TimerRefusal::Full)));
    let put = cluster.ask(TimerRequest::Put { id, spec: spec(2 * SECOND, 1) });
    assert_eq!(put, Some(TimerAnswer::Done(id)));
    assert_eq!(cluster.ask(TimerRequest::Delete(id)), Some(TimerAnswer::Done(id)));
}

#[test]
fn a_node_whose_timers_are_too_large_takes_only_what_adds_nothing() {
    let bytes_max = 100_000;
    let limits = TimerSettings { bytes_max, ..TimerSettings::default() };
    let mut cluster = Cluster::with(1, limits);
    let sized = |bytes: usize| {
        let callback = Callback::Publish { channel: "c".into(), message: "x".repeat(bytes) };
        TimerSpec { callback, ..spec(SECOND * 1_000, 1) }
    };
    let small = cluster.create(sized(10));
    let large = cluster.create(sized(60_000));
    let last = cluster.create(sized(60_000));
    assert!((bytes_max..bytes_max + 70_000).contains(&cluster.nodes[0].bytes()));
    let full = Some(TimerAnswer::Refused(TimerRefusal::Full));
    let wish = TimerRequest::Create { spec: sized(1), factor: ReplicationFactor::DEFAULT };
    assert_eq!(cluster.ask(wish.clone()), full);
    assert_eq!(cluster.ask(TimerRequest::Put { id: small, spec: sized(60_000) }), full);
    let put = cluster.ask(TimerRequest::Put { id: large, spec: sized(10) });
    assert_eq!(put, Some(TimerAnswer::Done(large)));
    assert!(matches!(cluster.ask(wish), Some(TimerAnswer::Done(_))), "there is room again");
    for id in [small, large, last] {
        assert_eq!(cluster.ask(TimerRequest::Delete(id)), Some(TimerAnswer::Done(id)));
    }
    assert!(cluster.nodes[0].bytes() < 1_000, "one timer and three tombstones");
}

#[test]
fn a_node_without_a_map_refuses() {
    let now = Now::exact(MonotonicMillis(0), 0);
    let mut node = Timers::new(node_id(0), 1, now, TimerSettings::default());
    let mut actions = Vec::new();
    let wish = TimerRequest::Create { spec: spec(SECOND, 1), factor: ReplicationFactor::DEFAULT };
    node.handle(now, TimerInput::Request { request: RequestId(1), wish }, &mut actions);
    let answer = TimerAnswer::Refused(TimerRefusal::NotReady);
    assert_eq!(actions, [TimerAction::Answer { request: RequestId(1), answer }]);
}

#[test]
fn a_silent_replica_leaves_the_outcome_unknown() {
    let mut cluster = Cluster::new(2);
    let now = Now::exact(MonotonicMillis(0), 0);
    let mut actions = Vec::new();
    let wish =
        TimerRequest::Create { spec: spec(60 * SECOND, 1), factor: ReplicationFactor::DEFAULT };
    let input = TimerInput::Request { request: RequestId(1), wish };
    cluster.nodes[0].handle(now, input, &mut actions);
    assert!(actions.iter().all(|action| !matches!(action, TimerAction::Answer { .. })));
    let later = Now::exact(MonotonicMillis(11 * SECOND), 0);
    actions.clear();
    cluster.nodes[0].handle(later, TimerInput::Tick, &mut actions);
    let answer = TimerAnswer::Refused(TimerRefusal::Unknown);
    assert!(actions.contains(&TimerAction::Answer { request: RequestId(1), answer }));
}

#[test]
fn a_timer_can_be_seen_from_any_node() {
    let mut cluster = Cluster::new(5);
    let id = cluster.create(spec(60 * SECOND, 2));
    cluster.pass(10 * SECOND);
    let TimerAnswer::Timer(Some(record)) = cluster.see(TimerQuery::Timer(id)) else {
        panic!("not found")
    };
    let TimerLife::Pending { left, due_in, .. } = record.life else { panic!("not pending") };
    assert_eq!((record.id, left, due_in), (id, 2, TimeSpan(50_000)));
    cluster.ask(TimerRequest::Delete(id));
    assert_eq!(cluster.see(TimerQuery::Timer(id)), TimerAnswer::Timer(None));
}

#[test]
fn pages_show_every_timer_once_in_the_order_of_ids() {
    let mut cluster = Cluster::new(3);
    let mut ids: Vec<TimerId> = (0..25).map(|_| cluster.create(spec(60 * SECOND, 1))).collect();
    ids.sort_unstable();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let sight = TimerQuery::Page { after, limit: 10 };
        let TimerAnswer::Page(Seen { found, silent: 0 }) = cluster.see(sight) else { panic!() };
        assert!(found.timers.len() <= 10);
        seen.extend(found.timers.iter().map(|record| record.id));
        after = found.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, ids);
}

#[test]
fn the_numbers_of_all_nodes_are_added_up() {
    let mut cluster = Cluster::new(3);
    let tags = vec![TimerTag { name: "CALL".into(), count: 2 }];
    cluster.create(TimerSpec { tags: tags.clone(), ..spec(5 * SECOND, 1) });
    cluster.create(TimerSpec { tags, ..spec(60 * SECOND, 1) });
    let deleted = cluster.create(spec(60 * SECOND, 1));
    cluster.ask(TimerRequest::Delete(deleted));
    cluster.pass(10 * SECOND);
    let TimerAnswer::Stats(Seen { found, .. }) = cluster.see(TimerQuery::Stats) else { panic!() };
    assert_eq!((found.primary, found.held, found.tombstones, found.popped), (1, 2, 4, 1));
    assert_eq!(found.tags, [("CALL".to_owned(), 2)].into());
    let late = LATENESS_BOUNDS.iter().zip(found.lateness.counts).find(|(_, count)| *count > 0);
    assert_eq!(late, Some((&1, 1)));
}

#[test]
fn a_snapshot_brings_everything_back_and_what_is_overdue_pops_at_once() {
    let mut cluster = Cluster::new(1);
    let soon = cluster.create(spec(20 * SECOND, 1));
    let later = cluster.create(spec(600 * SECOND, 1));
    cluster.pass(5 * SECOND);
    let bytes = cluster.nodes[0].snapshot();
    let mut next = Cluster::new(1);
    next.nodes[0] = Timers::new(
        node_id(0),
        9,
        Now::exact(MonotonicMillis(0), 65_000),
        TimerSettings::default(),
    );
    assert_eq!(next.nodes[0].load(&bytes), Ok(2));
    next.set_members(1);
    assert_eq!(next.pass(3 * SECOND), [(2000, 0)]);
    assert_eq!(next.see(TimerQuery::Timer(soon)), TimerAnswer::Timer(None));
    let TimerAnswer::Timer(Some(record)) = next.see(TimerQuery::Timer(later)) else {
        panic!("lost")
    };
    let TimerLife::Pending { due_in, .. } = record.life else { panic!("ended") };
    // The clock's readings before and after the stop are rounded down: up to a millisecond less has passed.
    assert_eq!(due_in, TimeSpan(600_000 - 5000 - 60_000 + 1 - 3000));
}

impl Cluster {
    /// Replaces a node by a new process, which finds what the last one saved before it crashed.
    fn restart(&mut self, node: usize, snapshot: &[u8]) {
        let now = Now::exact(MonotonicMillis(self.now), self.now);
        let id = TimerPeer { id: node as u64 + 1, boot: 1 };
        let mut core = Timers::new(id, self.now + node as u64, now, TimerSettings::default());
        core.load_running(snapshot).expect("a good snapshot");
        self.nodes[node] = core;
    }
}

#[test]
fn after_a_crash_of_all_nodes_the_saved_timers_pop_once_however_long_it_took() {
    let mut cluster = Cluster::new(3);
    for _ in 0..30 {
        cluster.create(spec(20 * SECOND, 1));
        cluster.create(spec(900 * SECOND, 1));
    }
    cluster.pass(5 * SECOND);
    let saved: Vec<Vec<u8>> = cluster.nodes.iter().map(Timers::snapshot).collect();
    cluster.now += 600 * SECOND;
    (0..3).for_each(|node| cluster.restart(node, &saved[node]));
    cluster.set_members(2);
    assert_eq!(cluster.pass(60 * SECOND).len(), 30, "those that were due pop, and once");
    assert!(cluster.nodes.iter().all(Timers::is_settled));
    assert_eq!(cluster.pass(900 * SECOND).len(), 30);
}

#[test]
fn a_node_that_comes_back_from_a_crash_repeats_nothing_that_others_did_meanwhile() {
    let mut cluster = Cluster::new(3);
    let deleted = cluster.create(spec(300 * SECOND, 1));
    for _ in 0..30 {
        cluster.create(spec(20 * SECOND, 1));
    }
    cluster.pass(5 * SECOND);
    let saved = cluster.nodes[2].snapshot();
    cluster.ask(TimerRequest::Delete(deleted));
    assert_eq!(cluster.pass(200 * SECOND).len(), 30);
    cluster.restart(2, &saved);
    cluster.set_members(2);
    assert_eq!(cluster.pass(600 * SECOND), [], "popped or deleted while it was away");
    assert!(cluster.nodes.iter().all(|node| node.pending() == 0));
}

#[test]
fn a_snapshot_in_pages_is_the_same_as_one_at_once() {
    let mut cluster = Cluster::new(1);
    for _ in 0..10 {
        cluster.create(spec(20 * SECOND, 1));
    }
    let node = &cluster.nodes[0];
    for limit in [1, 3, 5, 10, 11] {
        let (mut walk, mut bytes) = node.begin_snapshot();
        while !walk.is_over() {
            bytes.extend(node.snapshot_page(&mut walk, limit));
        }
        assert_eq!(bytes, node.snapshot());
    }
}

/// Runs a node at times in microseconds.
struct FineClock {
    core: Timers,
}

impl FineClock {
    fn alone() -> FineClock {
        let mut cluster = Cluster::new(1);
        FineClock { core: cluster.nodes.remove(0) }
    }

    /// Passes an input, and returns the number of calls that began.
    fn at(&mut self, micros: u64, input: TimerInput) -> usize {
        let mut actions = Vec::new();
        let now = Now::at(std::time::Duration::from_micros(micros), micros / 1000);
        self.core.handle(now, input, &mut actions);
        actions.iter().filter(|action| matches!(action, TimerAction::Call(_))).count()
    }

    fn create(&mut self, micros: u64, spec: TimerSpec) {
        let wish = TimerRequest::Create { spec, factor: ReplicationFactor::DEFAULT };
        self.at(micros, TimerInput::Request { request: RequestId(1), wish });
    }
}

#[test]
fn a_timer_never_pops_before_its_interval_has_passed_to_the_microsecond() {
    for begun in [100_000, 100_001, 100_300, 100_999] {
        let mut node = FineClock::alone();
        node.create(begun, spec(50, 1));
        let early = (begun..begun + 50_000).step_by(100);
        for micros in early.chain([begun + 49_999]) {
            assert_eq!(node.at(micros, TimerInput::Tick), 0, "early: {begun} to {micros}");
        }
        assert_eq!(node.at(begun + 51_000, TimerInput::Tick), 1, "at most a millisecond late");
    }
}

#[test]
fn a_replica_that_learns_of_a_pop_rounds_the_next_one_up() {
    let mut cluster = Cluster::new(2);
    let id = cluster.create(spec(SECOND, 3));
    let backup = (0..2).find(|node| cluster.nodes[*node].kept().eq([(id, 1)])).expect("one of two");
    let TimerAnswer::Timer(Some(record)) = cluster.see(TimerQuery::Timer(id)) else { panic!() };
    let progress = TimerState { version: record.version, sequence: Sequence(1) };
    let popped = Popped { id, progress, left: 2, due_in: TimeSpan(500) };
    let mut node = FineClock { core: cluster.nodes.swap_remove(backup) };
    let message = TimerMessage::Popped(popped);
    node.at(1_000_700, TimerInput::Peer { from: node_id(1 - backup), message });
    let entry = node.core.table.get(id).expect("it keeps the timer");
    assert_eq!(entry.due, MonotonicMillis(1501), "not before 1500.7");
}

#[test]
fn a_snapshot_that_is_not_whole_is_refused() {
    use crate::snapshot::SnapshotError;
    let mut cluster = Cluster::new(1);
    cluster.create(spec(20 * SECOND, 1));
    let bytes = cluster.nodes[0].snapshot();
    let mut load = |bytes: &[u8]| cluster.nodes[0].load(bytes);
    assert_eq!(load(b""), Err(SnapshotError::NotASnapshot));
    assert_eq!(load(b"REDIS0011 and something more"), Err(SnapshotError::NotASnapshot));
    assert_eq!(load(&bytes[..bytes.len() - 1]), Err(SnapshotError::Damaged));
    for place in 5..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1;
        assert_eq!(load(&damaged), Err(SnapshotError::Damaged), "byte {place}");
    }
    let mut newer = bytes.clone();
    newer[4] = 2;
    assert_eq!(load(&newer), Err(SnapshotError::TimerVersion(2)));
}

#[test]
fn ids_of_a_node_do_not_repeat() {
    let mut cluster = Cluster::new(1);
    let ids: BTreeSet<TimerId> = (0..1000).map(|_| cluster.create(spec(SECOND, 1))).collect();
    assert_eq!(ids.len(), 1000);
}

//! Tests a primary, message by message; the test plays the other node.

use super::*;
use crate::ids::{MembersEpoch, Now};
use crate::input::{TimerInput, TimerRequest, TimerSettings};
use crate::members::TimerMember;
use crate::message::{MembersHello, Stage};
use crate::spec::{Callback, Retry};
use crate::target::HttpTarget;

const ME: TimerPeer = TimerPeer { id: 1, boot: 1 };
const OTHER: TimerPeer = TimerPeer { id: 2, boot: 1 };

struct Primary {
    core: Timers,
    id: TimerId,
    out: Vec<TimerAction>,
}

impl Primary {
    /// Creates the primary of some timer, in a cluster of two. The other node has not settled: it may hold anything.
    fn new() -> Primary {
        let mut core = Timers::new(ME, 1, NOW, TimerSettings::default());
        let mut out = Vec::new();
        core.handle(NOW, TimerInput::Lease { until: MonotonicMillis(u64::MAX) }, &mut out);
        let id = TimerId { number: 0, factor: ReplicationFactor::DEFAULT };
        let mut primary = Primary { core, id, out };
        primary.enter(MembersEpoch(1));
        let is_ours = |number: &u64| {
            let id = TimerId { number: *number, factor: ReplicationFactor::DEFAULT };
            primary.core.members.replicas(id).first() == Some(&ME)
        };
        primary.id.number = (0..).find(is_ours).expect("every second one is");
        primary
    }

    fn enter(&mut self, epoch: MembersEpoch) {
        let member = |id: TimerPeer| TimerMember { id, name: format!("node-{}", id.id), weight: 1 };
        let members = vec![member(ME), member(OTHER)];
        self.core.handle(NOW, TimerInput::Members { epoch, members }, &mut self.out);
        self.hear(TimerMessage::Hello(MembersHello {
            epoch,
            stage: Stage::HandsOver,
            answer: false,
        }));
        self.out.clear();
    }

    fn hear(&mut self, message: TimerMessage) {
        self.core.handle(NOW, TimerInput::Peer { from: OTHER, message }, &mut self.out);
    }

    fn ask(&mut self, request: u64, wish: TimerRequest) {
        let request = RequestId(request);
        self.core.handle(NOW, TimerInput::Request { request, wish }, &mut self.out);
    }

    /// Returns the change last sent to the other node, and answers that the other node was at `was` before.
    fn stored(&mut self, was: u32) -> Option<Record> {
        let store =
            std::mem::take(&mut self.out).into_iter().rev().find_map(|action| match action {
                TimerAction::Send { message: TimerMessage::Store(store), .. } => Some(store),
                TimerAction::Send { .. }
                | TimerAction::Answer { .. }
                | TimerAction::Call(_)
                | TimerAction::ClientDemand => None,
            })?;
        let Record { id, version, .. } = store.record;
        let was = Sequence(was);
        self.hear(TimerMessage::Stored(Stored { epoch: store.epoch, id, version, was }));
        Some(store.record)
    }

    fn propose(&mut self, request: u64, change: TimerChange) {
        let (request, id) = (RequestId(request), self.id);
        let epoch = self.core.members.epoch();
        self.hear(TimerMessage::Propose(Propose {
            request,
            open_from: request,
            epoch,
            id,
            change,
        }));
    }

    fn says(&self, message: &TimerMessage) -> bool {
        let sent = TimerAction::Send { to: OTHER, message: message.clone() };
        self.out.contains(&sent)
    }
}

const NOW: Now = Now::exact(MonotonicMillis(1000), 1000);

fn spec() -> TimerSpec {
    let target = HttpTarget::parse("http://10.0.0.9:80/pop").unwrap();
    let timeout = TimeSpan::from_secs(2);
    let callback = Callback::Http { target, opaque: String::new(), timeout };
    let interval = TimeSpan::from_secs(60);
    TimerSpec { tags: Vec::new(), interval, repeat_for: interval, callback, retry: Retry::NONE }
}

#[test]
fn a_timer_deleted_by_a_primary_that_never_heard_of_it_goes_on_counting_when_set_again() {
    let mut primary = Primary::new();
    let id = primary.id;
    primary.ask(1, TimerRequest::Delete(id));
    // The other node has popped it once.
    let first = primary.stored(1).expect("the other node may hold it");
    assert_eq!(first.sequence, Sequence(0));
    let second = primary.stored(0).expect("told again, with the number that comes next");
    assert_eq!(second.sequence, Sequence(1));
    assert!(second.version > first.version && matches!(second.life, TimerLife::Ended { .. }));
    let answer = TimerAction::Answer { request: RequestId(1), answer: TimerAnswer::Done(id) };
    assert!(primary.out.contains(&answer));
    primary.ask(2, TimerRequest::Put { id, spec: spec() });
    assert_eq!(primary.stored(1).map(|record| record.sequence), Some(Sequence(1)));
}

#[test]
fn a_repeated_proposal_that_comes_after_its_answer_does_not_undo_a_later_deletion() {
    let mut primary = Primary::new();
    let (id, epoch) = (primary.id, MembersEpoch(1));
    let done =
        |request, result| TimerMessage::Done(Done { request: RequestId(request), epoch, result });
    primary.propose(7, TimerChange::Set(spec()));
    primary.stored(0).expect("it is kept by both");
    assert!(primary.says(&done(7, ChangeResult::Kept)));
    primary.ask(1, TimerRequest::Delete(id));
    primary.stored(0).expect("it is deleted by both");
    primary.out.clear();
    // Sent before our answer arrived.
    primary.propose(7, TimerChange::Set(spec()));
    assert_eq!(primary.out.len(), 1);
    assert!(primary.says(&done(7, ChangeResult::Kept)), "the answer may have been lost");
    assert_eq!(primary.core.pending(), 0);
    // Another request is another change.
    primary.propose(8, TimerChange::Set(spec()));
    assert!(primary.stored(0).is_some());
    assert_eq!(primary.core.pending(), 1);
}

#[test]
fn an_answer_of_an_earlier_epoch_is_not_passed_on_while_the_change_is_proposed_again() {
    let mut node = Primary::new();
    // Use a timer whose primary is the other node.
    let is_theirs = |number: &u64| {
        let id = TimerId { number: *number, factor: ReplicationFactor::DEFAULT };
        node.core.members.replicas(id).first() == Some(&OTHER)
    };
    node.id.number = (0..).find(is_theirs).expect("every second one is");
    let id = node.id;
    node.ask(1, TimerRequest::Put { id, spec: spec() });
    node.enter(MembersEpoch(2));
    let (request, result) = (RequestId(1), ChangeResult::Kept);
    let answer = TimerAction::Answer { request, answer: TimerAnswer::Done(id) };
    node.hear(TimerMessage::Done(Done { request, epoch: MembersEpoch(1), result }));
    assert!(!node.out.contains(&answer));
    node.hear(TimerMessage::Done(Done { request, epoch: MembersEpoch(2), result }));
    assert!(node.out.contains(&answer));
}

//! Tests a primary, message by message; the test plays the other node.

use super::*;
use crate::ids::{Epoch, Now};
use crate::input::{Input, TimerSettings, Wish};
use crate::members::Member;
use crate::message::{Hello, Stage};
use crate::spec::{Callback, Retry};
use crate::target::HttpTarget;

const ME: Peer = Peer { id: 1, boot: 1 };
const OTHER: Peer = Peer { id: 2, boot: 1 };

struct Primary {
    core: Timers,
    id: TimerId,
    out: Vec<Action>,
}

impl Primary {
    /// Creates the primary of some timer, in a cluster of two. The other node has not settled: it may hold anything.
    fn new() -> Primary {
        let mut core = Timers::new(ME, 1, NOW, TimerSettings::default());
        let mut out = Vec::new();
        core.handle(NOW, Input::Lease { until: MonotonicMillis(u64::MAX) }, &mut out);
        let id = TimerId { number: 0, factor: ReplicationFactor::DEFAULT };
        let mut primary = Primary { core, id, out };
        primary.enter(Epoch(1));
        let is_ours = |number: &u64| {
            let id = TimerId { number: *number, factor: ReplicationFactor::DEFAULT };
            primary.core.members.replicas(id).first() == Some(&ME)
        };
        primary.id.number = (0..).find(is_ours).expect("every second one is");
        primary
    }

    fn enter(&mut self, epoch: Epoch) {
        let member = |id: Peer| Member { id, name: format!("node-{}", id.id), weight: 1 };
        let members = vec![member(ME), member(OTHER)];
        self.core.handle(NOW, Input::Members { epoch, members }, &mut self.out);
        self.hear(Message::Hello(Hello { epoch, stage: Stage::HandsOver, answer: false }));
        self.out.clear();
    }

    fn hear(&mut self, message: Message) {
        self.core.handle(NOW, Input::Peer { from: OTHER, message }, &mut self.out);
    }

    fn ask(&mut self, request: u64, wish: Wish) {
        let request = RequestId(request);
        self.core.handle(NOW, Input::Request { request, wish }, &mut self.out);
    }

    /// Returns the change last sent to the other node, and answers that the other node was at `was` before.
    fn stored(&mut self, was: u32) -> Option<Record> {
        let store =
            std::mem::take(&mut self.out).into_iter().rev().find_map(|action| match action {
                Action::Send { message: Message::Store(store), .. } => Some(store),
                Action::Send { .. }
                | Action::Answer { .. }
                | Action::Call(_)
                | Action::ClientTurned => None,
            })?;
        let Record { id, version, .. } = store.record;
        let was = Sequence(was);
        self.hear(Message::Stored(Stored { epoch: store.epoch, id, version, was }));
        Some(store.record)
    }

    fn propose(&mut self, request: u64, change: TimerChange) {
        let (request, id) = (RequestId(request), self.id);
        let epoch = self.core.members.epoch();
        self.hear(Message::Propose(Propose { request, open_from: request, epoch, id, change }));
    }

    fn says(&self, message: &Message) -> bool {
        let sent = Action::Send { to: OTHER, message: message.clone() };
        self.out.contains(&sent)
    }
}

const NOW: Now = Now { moment: MonotonicMillis(1000), wall: 1000 };

fn spec() -> Spec {
    let target = HttpTarget::parse("http://10.0.0.9:80/pop").unwrap();
    let timeout = TimeSpan::from_secs(2);
    let callback = Callback::Http { target, opaque: String::new(), timeout };
    let interval = TimeSpan::from_secs(60);
    Spec { tags: Vec::new(), interval, repeat_for: interval, callback, retry: Retry::NONE }
}

#[test]
fn a_timer_deleted_by_a_primary_that_never_heard_of_it_goes_on_counting_when_set_again() {
    let mut primary = Primary::new();
    let id = primary.id;
    primary.ask(1, Wish::Delete(id));
    // The other node has popped it once.
    let first = primary.stored(1).expect("the other node may hold it");
    assert_eq!(first.sequence, Sequence(0));
    let second = primary.stored(0).expect("told again, with the number that comes next");
    assert_eq!(second.sequence, Sequence(1));
    assert!(second.version > first.version && matches!(second.life, Life::Ended { .. }));
    let answer = Action::Answer { request: RequestId(1), answer: TimerAnswer::Done(id) };
    assert!(primary.out.contains(&answer));
    primary.ask(2, Wish::Put { id, spec: spec() });
    assert_eq!(primary.stored(1).map(|record| record.sequence), Some(Sequence(1)));
}

#[test]
fn a_repeated_proposal_that_comes_after_its_answer_does_not_undo_a_later_deletion() {
    let mut primary = Primary::new();
    let (id, epoch) = (primary.id, Epoch(1));
    let done = |request, result| Message::Done(Done { request: RequestId(request), epoch, result });
    primary.propose(7, TimerChange::Set(spec()));
    primary.stored(0).expect("it is kept by both");
    assert!(primary.says(&done(7, ChangeResult::Kept)));
    primary.ask(1, Wish::Delete(id));
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
    node.ask(1, Wish::Put { id, spec: spec() });
    node.enter(Epoch(2));
    let (request, result) = (RequestId(1), ChangeResult::Kept);
    let answer = Action::Answer { request, answer: TimerAnswer::Done(id) };
    node.hear(Message::Done(Done { request, epoch: Epoch(1), result }));
    assert!(!node.out.contains(&answer));
    node.hear(Message::Done(Done { request, epoch: Epoch(2), result }));
    assert!(node.out.contains(&answer));
}

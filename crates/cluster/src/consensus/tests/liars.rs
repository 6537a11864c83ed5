//! No message makes a node panic, however wrong it is: peers know the secret, but they may run another
//! version, or be broken.

use std::collections::BTreeSet;

use super::net::{self, A, B, C, D, Net};
use crate::consensus::*;
use crate::map::{LogIndex, NodeId};

/// A source of numbers that are often nearly right: numbers that are far off fail the first check.
struct Numbers {
    state: u64,
    /// The end of the victim's log, and its term.
    last: LogIndex,
    term: Term,
}

impl Numbers {
    fn new(seed: u64) -> Numbers {
        Numbers { state: seed, last: LogIndex(1), term: Term(1) }
    }

    fn look_at(&mut self, victim: &Consensus) {
        (self.last, self.term) = (victim.last_index(), victim.term());
    }

    fn next(&mut self) -> u64 {
        let state = self.state.wrapping_mul(6_364_136_223_846_793_005);
        self.state = state.wrapping_add(1_442_695_040_888_963_407);
        self.state >> 33
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn number(&mut self) -> u64 {
        let extremes = [0, 1, u64::MAX, u64::MAX - 1, 1 << 62];
        match self.below(8) {
            0 => extremes[self.below(extremes.len() as u64) as usize],
            _ => self.below(12),
        }
    }

    /// Returns an index, mostly near the end of the log.
    fn index(&mut self) -> LogIndex {
        match self.below(4) {
            0 => LogIndex(self.number()),
            _ => LogIndex((self.last.0 + self.below(4)).saturating_sub(2)),
        }
    }

    /// Returns a term, mostly the present one.
    fn term(&mut self) -> Term {
        match self.below(4) {
            0 => Term(self.number()),
            _ => self.term,
        }
    }

    fn place(&mut self) -> LogPlace {
        LogPlace { index: self.index(), term: self.term() }
    }

    fn nodes(&mut self) -> BTreeSet<NodeId> {
        (0..self.below(4)).map(|_| NodeId(self.below(5))).collect()
    }

    fn ballot(&mut self) -> Ballot {
        [Ballot::Poll, Ballot::Election, Ballot::HandOver][self.below(3) as usize]
    }

    fn read(&mut self) -> Option<u64> {
        let context = self.number();
        (self.below(2) == 0).then_some(context)
    }

    fn payload(&mut self) -> Payload {
        match self.below(3) {
            0 => Payload::Nothing,
            1 => Payload::Changes(net::entry("lie")),
            _ => Payload::Reconfigure(Reconfiguration {
                voters: self.nodes(),
                learners: self.nodes(),
                removed: self.nodes(),
            }),
        }
    }

    /// Returns entries, mostly in order: otherwise nothing would ever pass the first check.
    fn entries(&mut self, after: LogPlace) -> Vec<Entry> {
        let entry = |step: u64, numbers: &mut Numbers| Entry {
            index: match numbers.below(6) {
                0 => numbers.index(),
                _ => LogIndex(after.index.0.wrapping_add(step)),
            },
            term: match numbers.below(4) {
                0 => numbers.term(),
                _ => after.term,
            },
            payload: numbers.payload(),
        };
        (1..=self.below(4)).map(|step| entry(step, self)).collect()
    }

    fn body(&mut self) -> MessageBody {
        match self.below(10) {
            0 | 1 => {
                let after = self.place();
                MessageBody::Append { after, entries: self.entries(after), commit: self.index() }
            }
            2 => MessageBody::Appended { last: self.index(), commit: self.index() },
            3 => MessageBody::NotAppended {
                after: self.index(),
                hint: self.place(),
                commit: self.index(),
            },
            4 => MessageBody::Vote {
                ballot: self.ballot(),
                last: self.place(),
                commit: self.place(),
            },
            5 => MessageBody::VoteGranted { ballot: self.ballot() },
            6 => MessageBody::VoteRefused { ballot: self.ballot(), commit: self.place() },
            7 => MessageBody::Snapshot(Box::new(SnapshotData {
                at: self.place(),
                configuration: Configuration {
                    voters: self.nodes(),
                    learners: self.nodes(),
                    voters_before: if self.below(2) == 0 { self.nodes() } else { BTreeSet::new() },
                    learners_next: BTreeSet::new(),
                },
                map: net::founding_map(A),
            })),
            8 => MessageBody::Heartbeat { commit: self.index(), read: self.read() },
            _ => match self.below(2) {
                0 => MessageBody::HeartbeatAnswer { commit: self.index(), read: self.read() },
                _ => MessageBody::TimeoutNow,
            },
        }
    }

    fn message(&mut self) -> RaftMessage {
        RaftMessage { term: self.term(), body: self.body() }
    }
}

/// Sends one node nothing but invalid messages, in every role; it keeps running.
#[test]
fn no_message_makes_a_node_fall_over() {
    for seed in 0..300 {
        let mut numbers = Numbers::new(seed);
        let mut net = Net::of([A, B, C]);
        net.start(D, Begin::Join);
        let victim = [A, B, D][(seed % 3) as usize];
        for _ in 0..150 {
            numbers.look_at(&net[victim]);
            let from = NodeId(numbers.below(5));
            let message = numbers.message();
            net.node(victim).step(from, &message);
            if numbers.below(10) == 0 {
                net.node(victim).tick();
            }
            if numbers.below(10) == 0 {
                let _ = net.node(victim).propose(&net::entry("truth"));
                net.node(victim).read_index(seed);
            }
            net.take(victim);
        }
    }
}

#[test]
fn a_heartbeat_cannot_commit_what_is_not_there() {
    let mut net = Net::of([A, B, C]);
    let beyond = LogIndex(net[B].last_index().0 + 1);
    let before = net[B].committed();
    let body = MessageBody::Heartbeat { commit: beyond, read: None };
    let term = net[B].term();
    net.node(B).step(A, &RaftMessage { term, body });
    assert_eq!(net[B].committed(), before);
    assert!(net.node(B).ready().messages.is_empty());
}

#[test]
fn a_poll_that_could_only_be_refused_before_the_first_election_is_not_answered() {
    let mut net = Net::of([A, B, C]);
    let at = LogPlace { index: LogIndex(100), term: Term(1) };
    let configuration = net[A].configuration().clone();
    let snapshot = SnapshotData { at, configuration, map: net::founding_map(A) };
    let mut saved = Saved::default();
    saved.write(Persist { snapshot: Some(snapshot), ..Persist::default() });
    net.start(C, Begin::Resume(saved));
    assert_eq!(net[C].term(), Term(0), "and with that it cannot refuse anything");
    let earlier = LogPlace { index: LogIndex(7), term: Term(1) };
    let body = MessageBody::Vote { ballot: Ballot::Poll, last: earlier, commit: earlier };
    net.node(C).step(B, &RaftMessage { term: Term(3), body });
    assert!(net.node(C).ready().messages.is_empty());
}

#[test]
fn an_answer_to_what_was_never_sent_counts_for_nothing() {
    let mut net = Net::of([A, B, C]);
    let (term, last) = (net[A].term(), net[A].last_index());
    let body = MessageBody::Appended { last: LogIndex(last.0 + 5), commit: last };
    net.node(A).step(B, &RaftMessage { term, body });
    net.cut_off(B);
    net.cut_off(C);
    net.propose(A, "heard by nobody");
    assert_eq!(net[A].committed(), last);
}

#[test]
fn a_hint_beyond_all_logs_is_no_hint() {
    let mut net = Net::of([A, B, C]);
    net.node(A).report_unreachable(B); // From here on it probes where the two logs diverge.
    let hint = LogPlace { index: LogIndex(u64::MAX), term: Term(0) };
    let body = MessageBody::NotAppended { after: net[A].last_index(), hint, commit: LogIndex(1) };
    let term = net[A].term();
    net.node(A).step(B, &RaftMessage { term, body });
    net.propose(A, "goes on");
    net.run(2);
    assert_eq!(net.names(B), ["goes on"]);
}

#[test]
fn no_entry_is_kept_that_no_leader_can_have_sent() {
    let mut net = Net::of([A, B, C]);
    let (term, last) = (net[B].term(), net[B].last_index());
    let after = LogPlace { index: last, term };
    let entry = |term| Entry { index: LogIndex(last.0 + 1), term, payload: Payload::Nothing };
    for wrong in [Term(term.0 + 1), Term(term.0 - 1)] {
        let body = MessageBody::Append { after, entries: vec![entry(wrong)], commit: last };
        net.node(B).step(A, &RaftMessage { term, body });
        assert_eq!(net[B].last_index(), last, "{wrong} in {term}");
    }
    let right = MessageBody::Append { after, entries: vec![entry(term)], commit: last };
    net.node(B).step(A, &RaftMessage { term, body: right });
    assert_eq!(net[B].last_index(), LogIndex(last.0 + 1));
}

#[test]
fn no_snapshot_is_taken_that_no_leader_can_have_sent() {
    let mut net = Net::of([A, B, C]);
    let (term, last) = (net[B].term(), net[B].last_index());
    let snapshot = |at_term| SnapshotData {
        at: LogPlace { index: LogIndex(last.0 + 9), term: at_term },
        configuration: net[B].configuration().clone(),
        map: net::founding_map(A),
    };
    let bodies =
        [Term(term.0 + 1), term].map(|term| MessageBody::Snapshot(Box::new(snapshot(term))));
    let [wrong, right] = bodies;
    net.node(B).step(A, &RaftMessage { term, body: wrong });
    assert_eq!(net[B].last_index(), last);
    net.node(B).step(A, &RaftMessage { term, body: right });
    assert_eq!(net[B].last_index(), LogIndex(last.0 + 9));
}

#[test]
fn nobody_is_heard_and_no_node_hears_itself() {
    let mut net = Net::of([A, B, C]);
    for from in [NodeId(0), B] {
        let body = MessageBody::Heartbeat { commit: LogIndex(1), read: None };
        let term = net[B].term();
        net.node(B).step(from, &RaftMessage { term, body });
        assert!(net.node(B).ready().is_empty(), "from {from}");
    }
}

#[test]
fn no_message_uses_up_the_terms() {
    let mut net = Net::of([A, B, C]);
    let term = net[B].term();
    let body = MessageBody::Heartbeat { commit: LogIndex(1), read: None };
    net.node(B).step(C, &RaftMessage { term: Term(1 << 61), body });
    assert_eq!(net[B].term(), term);
}

#[test]
fn only_the_leader_can_tell_a_node_to_stand_for_election() {
    let mut net = Net::of([A, B, C]);
    let message = RaftMessage { term: net[B].term(), body: MessageBody::TimeoutNow };
    net.node(B).step(C, &message);
    assert!(net.node(B).ready().is_empty());
    net.node(B).step(A, &message);
    assert!(net.node(B).ready().messages.iter().all(|(_, message)| {
        matches!(message.body, MessageBody::Vote { ballot: Ballot::HandOver, .. })
    }));
}

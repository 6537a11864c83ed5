//! Documents of the cluster: a write is answered when every node that may serve has it.

use sim_engine::Quality;

use super::super::{Answer, OperatorRequest, WriteRequest};
use super::world::{World, ms};
use crate::map::{DocumentWrite, Documents, LogIndex, NodeId};

fn write(t: &mut World, node: u64, name: &str, text: &str) -> u64 {
    let documents = vec![DocumentWrite::put(name, text.as_bytes())];
    t.ask(node, OperatorRequest::Write(WriteRequest { documents, only_at: None }))
}

fn documents(t: &World, node: u64) -> &Documents {
    t.nodes[&NodeId(node)].map.as_ref().unwrap().documents()
}

fn text(t: &World, node: u64, name: &str) -> String {
    let content = documents(t, node).get(name).map(|document| document.content.to_vec());
    String::from_utf8(content.unwrap_or_default()).unwrap()
}

fn wait_for(t: &mut World, asks: &[u64]) {
    t.run_until(|t| asks.iter().all(|ask| t.answers.contains_key(ask)));
}

#[test]
fn when_a_write_is_answered_every_member_has_it() {
    for seed in 0..50 {
        let mut t = World::of(5);
        t.network.quality =
            Quality { delay_us: (1_000, 40_000), lost: seed, doubled: seed, broken: 0 };
        let ask = write(&mut t, 1 + seed % 5, "a", "one");
        wait_for(&mut t, &[ask]);
        assert_eq!(t.answers[&ask], Answer::Done, "seed {seed}");
        for node in 1..=5 {
            assert_eq!(text(&t, node, "a"), "one", "seed {seed}, node {node}");
        }
    }
}

#[test]
fn of_two_writes_at_once_both_are_done_and_one_stands_everywhere() {
    let mut t = World::of(3);
    let asks = [write(&mut t, 2, "a", "two"), write(&mut t, 3, "a", "three")];
    wait_for(&mut t, &asks);
    assert!(asks.iter().all(|ask| t.answers[ask] == Answer::Done), "{:?}", t.answers);
    let stands = text(&t, 1, "a");
    assert!(["two", "three"].contains(&stands.as_str()), "{stands}");
    t.run(ms(1_000));
    assert!((1..=3).all(|node| text(&t, node, "a") == stands), "repeated proposals are void");
}

#[test]
fn a_write_based_on_old_documents_is_refused_and_changes_nothing() {
    let mut t = World::of(3);
    let seen = documents(&t, 1).version();
    let first = write(&mut t, 2, "a", "two");
    wait_for(&mut t, &[first]);
    let documents = vec![DocumentWrite::put("a", "late".as_bytes())];
    let request = WriteRequest { documents, only_at: Some(seen) };
    let late = t.ask(1, OperatorRequest::Write(request));
    wait_for(&mut t, &[late]);
    assert!(matches!(&t.answers[&late], Answer::Refused(text) if text.contains("changed")));
    assert_eq!(text(&t, 1, "a"), "two");
}

#[test]
fn a_document_that_is_too_large_is_refused_at_once() {
    let mut t = World::of(1);
    let large = "x".repeat(crate::map::DOCUMENT_BYTES_MAX + 1);
    let ask = write(&mut t, 1, "a", &large);
    wait_for(&mut t, &[ask]);
    assert!(matches!(&t.answers[&ask], Answer::Refused(_)), "{:?}", t.answers[&ask]);
    assert_eq!(documents(&t, 1).version(), LogIndex(0));
}

#[test]
fn a_joining_node_has_the_documents_before_it_may_serve() {
    let mut t = World::of(2);
    let ask = write(&mut t, 2, "a", "one");
    wait_for(&mut t, &[ask]);
    t.join(3);
    t.run_until(|t| t.nodes.get(&NodeId(3)).is_some_and(|node| node.has_lease(t.now)));
    assert_eq!(text(&t, 3, "a"), "one");
}

#[test]
fn a_member_that_is_cut_off_has_lost_its_lease_when_a_write_is_answered() {
    let mut t = World::of(3);
    let cut = t.follower();
    let writer = t.leader().unwrap();
    t.cut_off(&[cut]);
    let ask = write(&mut t, writer, "a", "one");
    wait_for(&mut t, &[ask]);
    assert_eq!(t.answers[&ask], Answer::Done);
    assert_eq!(text(&t, cut, "a"), "", "it cannot know");
    assert!(!t.nodes[&NodeId(cut)].has_lease(t.now), "and so it may not serve");
}

#[test]
fn a_node_without_a_majority_says_that_the_write_is_undecided() {
    let mut t = World::of(3);
    let cut = t.follower();
    t.cut_off(&[cut]);
    let ask = write(&mut t, cut, "a", "one");
    wait_for(&mut t, &[ask]);
    assert!(matches!(&t.answers[&ask], Answer::Unknown(_)), "{:?}", t.answers[&ask]);
}

#[test]
fn a_write_that_was_given_up_is_not_made_hours_later() {
    let mut t = World::of(3);
    let cut = t.follower();
    t.cut_off(&[cut]);
    let early = write(&mut t, cut, "a", "early");
    wait_for(&mut t, &[early]);
    let late = write(&mut t, cut, "a", "late");
    t.run(ms(1_000));
    t.network.cut.clear();
    wait_for(&mut t, &[late]);
    t.run(ms(2_000));
    let done = t.answers[&late] == Answer::Done;
    let stands = text(&t, t.leader().unwrap(), "a");
    assert_eq!(stands, if done { "late" } else { "" }, "{:?}", t.answers);
}

#[test]
fn many_writes_at_once_are_all_done_with_one_entry_each() {
    let mut t = World::of(3);
    let before = t.map().epoch();
    let asks: Vec<u64> = (0..100).map(|it| write(&mut t, 2, "a", &it.to_string())).collect();
    wait_for(&mut t, &asks);
    assert!(asks.iter().all(|ask| t.answers[ask] == Answer::Done));
    assert_eq!(text(&t, 1, "a"), "99");
    assert_eq!(t.map().epoch().0 - before.0, 100, "no entry was void");
}

#[test]
fn a_node_that_leaves_answers_the_writes_it_has_begun() {
    let mut t = World::of(3);
    let leaver = t.follower();
    t.leave(leaver);
    t.run(ms(5));
    let ask = write(&mut t, leaver, "a", "one");
    wait_for(&mut t, &[ask]);
}

//! Several nodes in one process, with real sockets and no data: they form one map, lose their links
//! and make them again, and ignore strangers.

mod fake; // A node without data.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cluster::Moment;
use cluster::control::{Answer, Message, OperatorRequest};
use cluster::map::{Generation, LeaveWay, LogIndex, NodeId, Setting};
use settings::Secret;

use self::fake::{FakeNode, eventually};
use super::handshake::forged::{self, Forgery};
use super::hello::{HandshakeRefusal, Purpose};
use super::{dialer, draw_number, random};

const SOON: Duration = Duration::from_secs(5);

#[test]
fn a_node_alone_founds_a_cluster_and_is_ready_at_once() {
    let node = FakeNode::found("a");
    node.is_ready();
    let map = node.map().expect("it has one");
    assert_eq!(map.members().len(), 1);
    assert!(node.lease() == Moment::NEVER, "alone it needs nobody's leave");
}

#[test]
fn three_nodes_share_one_map_and_spread_the_buckets() {
    let a = FakeNode::found("a");
    let b = FakeNode::join("b", &a).expect("welcome");
    let c = FakeNode::join("c", &b).expect("welcome at any member");
    let nodes = [&a, &b, &c];
    nodes.iter().for_each(|node| node.is_ready());
    eventually("all have the same map, evenly spread", || {
        let maps: Vec<_> = nodes.iter().filter_map(|node| node.map()).collect();
        let same = maps.len() == 3 && maps.iter().all(|map| map.epoch() == maps[0].epoch());
        same && maps[0].loads().iter().all(|load| (170..=171).contains(&load.total()))
    });
    let leased = nodes.iter().all(|node| node.lease() > crate::data::boottime::now());
    assert!(leased, "all may serve");
}

#[test]
fn links_that_are_cut_are_made_again() {
    let a = FakeNode::found("a");
    let b = FakeNode::join("b", &a).expect("welcome");
    a.is_ready();
    b.is_ready();
    for round in 0..3 {
        let before = (a.data_links(), b.data_links());
        a.cut_data_links();
        b.cut_data_links();
        eventually("data links are back", || {
            a.data_links() > before.0 && b.data_links() > before.1
        });
        let setting = Setting::MinBuckets(7 + round);
        let answer =
            b.control_handle.ask_and_wait(OperatorRequest::Set(setting), Duration::from_secs(5));
        assert_eq!(answer, Some(Answer::Done));
    }
}

#[test]
fn whoever_may_not_join_is_told_why_and_the_cluster_is_undisturbed() {
    let a = FakeNode::found("a");
    a.is_ready();
    let epoch = a.map().expect("it has one").epoch();
    let why = |result: Result<FakeNode, String>| result.map(|_| ()).expect_err("not welcome");
    assert_eq!(
        why(FakeNode::join_with("b", &a, "another secret")),
        "wrong cluster secret; set --secret-file to the cluster's secret"
    );
    let namesake = why(FakeNode::join("a", &a));
    assert!(namesake.starts_with("the name a is in use by a live node"), "{namesake}");
    assert_eq!(a.map().expect("it has one").epoch(), epoch);
}

#[test]
fn garbage_on_the_peer_port_closes_that_link_and_nothing_else() {
    let a = FakeNode::found("a");
    let b = FakeNode::join("b", &a).expect("welcome");
    a.is_ready();
    b.is_ready();
    for round in 0..200_u32 {
        let mut stream = TcpStream::connect(("127.0.0.1", a.port)).expect("it listens");
        let mut garbage: [u8; 64] = random::bytes();
        if round % 2 == 0 {
            garbage[..8].copy_from_slice(b"OPENCLUS");
            let versions = cluster::control::ProtocolRange::OURS.to_number();
            garbage[8..12].copy_from_slice(&versions.to_le_bytes());
        }
        // The node may close the connection before it has read all of it.
        let _ = stream.write_all(&garbage[..usize::try_from(round % 64).expect("short") + 1]);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let answer = b
        .control_handle
        .ask_and_wait(OperatorRequest::Set(Setting::MinBuckets(9)), Duration::from_secs(5));
    assert_eq!(answer, Some(Answer::Done));
}

/// Connects as a process that knows the secret and claims to be node b: its messages are accepted. `None` if
/// its lies have removed b from the cluster by now.
fn impostor(a: &FakeNode, b: &FakeNode) -> Option<TcpStream> {
    let mut hello = b.roster().hello(Purpose::Control, a.peer().id);
    hello.from.boot = cluster::map::Boot(draw_number());
    let stream = dialer::connect("127.0.0.1", a.port).expect("it listens");
    dialer::introduce(stream, &Secret::new(fake::SECRET), hello).ok().map(|(_, stream)| stream)
}

/// Returns a message with one to four of its bits flipped.
fn twisted(message: &Message) -> Vec<u8> {
    let mut frame = Vec::new();
    super::frame::put(message, 1 << 20, &mut frame).expect("short enough");
    let random: [u8; 9] = random::bytes();
    for flip in random.chunks_exact(2).take(1 + usize::from(random[8] % 4)) {
        let at = 4 + usize::from(u16::from_le_bytes([flip[0], flip[1]])) % (frame.len() - 4);
        frame[at] ^= 1 << (flip[0] % 8);
    }
    frame
}

#[test]
fn messages_with_their_bits_turned_over_stop_no_thread() {
    for _ in 0..4 {
        let a = FakeNode::found("a");
        let b = FakeNode::join("b", &a).expect("welcome");
        a.is_ready();
        b.is_ready();
        let samples = fake::sample_messages(&a.map().expect("it has one"));
        for sample in samples.iter().cycle().take(500) {
            let Some(mut stream) = impostor(&a, &b) else { break };
            // The node may close the link at any moment.
            let _ = stream.write_all(&twisted(sample));
        }
        assert!(a.voters() > 0, "the control thread answers");
    }
}

#[test]
fn a_node_that_leaves_hands_everything_on_and_the_last_one_just_goes() {
    let a = FakeNode::found("a");
    let b = FakeNode::join("b", &a).expect("welcome");
    a.is_ready();
    b.is_ready();
    a.control_handle.ask(OperatorRequest::Leave(LeaveWay::Safe), |_| {});
    eventually("a has left", || a.gone() == Some(cluster::control::Gone::Left));
    eventually("b holds everything", || {
        b.map().is_some_and(|map| map.members().len() == 1 && map.loads()[0].primaries == 256)
    });
    b.control_handle.ask(OperatorRequest::Leave(LeaveWay::Safe), |_| {});
    eventually("b was the last", || b.gone() == Some(cluster::control::Gone::LeftAsTheLast));
}

#[test]
fn a_node_that_dies_is_taken_off_the_map() {
    let a = FakeNode::found("a");
    let b = FakeNode::join("b", &a).expect("welcome");
    let c = FakeNode::join("c", &a).expect("welcome");
    [&a, &b, &c].iter().for_each(|node| node.is_ready());
    eventually("three vote", || b.voters() == 3);
    drop(c);
    eventually("two are left", || b.map().is_some_and(|map| map.members().len() == 2));
    assert!(b.lease() > crate::data::boottime::now());
}

#[test]
fn a_node_whose_slots_are_held_for_long_is_not_taken_for_dead() {
    let a = FakeNode::found("a");
    let b = FakeNode::join("b", &a).expect("welcome");
    let c = FakeNode::join("c", &a).expect("welcome");
    [&a, &b, &c].iter().for_each(|node| node.is_ready());
    eventually("three vote", || b.voters() == 3);
    let set = |buckets| {
        a.control_handle.ask_and_wait(OperatorRequest::Set(Setting::MinBuckets(buckets)), SOON)
    };
    b.while_slots_are_held(|| {
        let until = Instant::now() + Duration::from_secs(3);
        for buckets in (7..).take_while(|_| Instant::now() < until) {
            assert_eq!(set(buckets), Some(Answer::Done));
            thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(a.map().expect("it has one").members().len(), 3, "b was given up");
        assert!(b.lease() < crate::data::boottime::now(), "a lease counts behind its maps only");
    });
    eventually("b catches up", || b.map() == a.map());
    eventually("b serves again", || b.lease() > crate::data::boottime::now());
}

/// Starts a process without the secret on the port of a stopped node. It refuses every dialer, alternately as no
/// member and with a generation far ahead. Returns the number of its answers.
fn forge_refusals(port: u16) -> Arc<AtomicUsize> {
    let answered = Arc::new(AtomicUsize::new(0));
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("its node has gone");
    let count = Arc::clone(&answered);
    thread::spawn(move || {
        let generation = Generation { counter: 1 << 60, founder: NodeId(3) };
        let refusals = [
            HandshakeRefusal::NoMember(LogIndex(u64::MAX)),
            HandshakeRefusal::OtherGeneration(generation),
        ];
        for (mut stream, refusal) in
            listener.incoming().map_while(Result::ok).zip(refusals.iter().cycle())
        {
            if forged::refuse(&mut stream, *refusal, Forgery::SentBack).is_ok() {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    answered
}

#[test]
fn nobody_gives_up_its_place_because_a_stranger_answers_in_the_place_of_a_node() {
    let a = FakeNode::found("a");
    let b = FakeNode::join("b", &a).expect("welcome");
    let c = FakeNode::join("c", &a).expect("welcome");
    [&a, &b, &c].iter().for_each(|node| node.is_ready());
    eventually("three vote", || b.voters() == 3);
    let (port, generation) = (c.port, a.map().expect("it has one").generation());
    drop(c);
    let answered = forge_refusals(port);
    let until = Instant::now() + Duration::from_secs(3);
    while Instant::now() < until {
        assert_eq!((a.gone(), b.gone()), (None, None), "a stranger is believed");
        thread::sleep(Duration::from_millis(20));
    }
    assert!(answered.load(Ordering::Relaxed) > 0, "they have dialed the stranger");
    eventually("two are left", || b.map().is_some_and(|map| map.members().len() == 2));
    let map = b.map().expect("it has one");
    assert_eq!((map.generation(), map.yielded_to()), (generation, None));
    let now = crate::data::boottime::now();
    assert!(a.lease() > now && b.lease() > now, "both serve");
}

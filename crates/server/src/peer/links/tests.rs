//! Tests of links over real sockets, to peers that follow the protocol and to some that do not.

use std::io::Write;
use std::net::{Shutdown, TcpListener};

use cluster::Moment;
use cluster::balance;
use cluster::control::JoinAnswer;
use cluster::map::{Boot, LogIndex};
use mio::{Events, Poll};

use super::super::random;
use super::*;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let one = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    (one, listener.accept().expect("one dialed").0)
}

fn peer(id: u64) -> Peer {
    Peer { id: NodeId(id), boot: Boot(id) }
}

fn message() -> Message {
    Message::LeaseAsk { number: 7, applied: LogIndex(9), is_cut_off: false }
}

/// The links of node 1, and a poll they are registered with.
struct Here {
    links: ControlLinks,
    poll: Poll,
}

impl Here {
    fn new() -> Here {
        Here { links: ControlLinks::default(), poll: Poll::new().expect("a poll can be had") }
    }

    /// Adds a link to this peer, and returns its other end if the link was taken.
    fn link(&mut self, to: Peer, made_by: MadeBy) -> Option<TcpStream> {
        let (here, there) = pair();
        self.adopt(here, to, made_by).then_some(there)
    }

    fn adopt(&mut self, socket: TcpStream, to: Peer, made_by: MadeBy) -> bool {
        let registry = self.poll.registry();
        let added = self.links.add(Moment::START, NodeId(1), to, made_by, socket, registry);
        added.expect("a socket can be registered")
    }

    /// Reads until a message comes or the link breaks.
    fn read(&mut self, node: u64) -> Result<Vec<Message>, LinkFailure> {
        let mut events = Events::with_capacity(8);
        let mut messages = Vec::new();
        while messages.is_empty() {
            self.links.read(Moment::START, NodeId(node), |_, message| messages.push(message))?;
            if messages.is_empty() {
                let soon = Some(Duration::from_millis(1));
                self.poll.poll(&mut events, soon).expect("a poll can be waited for");
            }
        }
        Ok(messages)
    }
}

#[test]
fn messages_arrive_and_empty_frames_are_nothing_but_a_sign_of_life() {
    let mut here = Here::new();
    let mut there = here.link(peer(2), MadeBy::Me).expect("the first one is taken");
    let mut bytes = 0_u32.to_le_bytes().to_vec();
    frame::put(&message(), CONTROL_BYTES_MAX, &mut bytes).expect("short");
    there.write_all(&bytes).expect("sent");
    assert_eq!(here.read(2), Ok(vec![message()]));
    here.links.send(NodeId(2), &message()).expect("short");
    assert!(here.links.flush(Moment::START).is_empty());
    let got: Message = frame::receive(&mut there, CONTROL_BYTES_MAX).expect("it comes");
    assert_eq!(got, message());
}

#[test]
fn of_two_links_the_one_made_by_the_lower_stays_and_a_newer_one_replaces_its_like() {
    let mut here = Here::new();
    assert!(here.link(peer(2), MadeBy::Them).is_some());
    assert!(here.link(peer(2), MadeBy::Me).is_some(), "node 1 is the lower");
    assert!(here.link(peer(2), MadeBy::Them).is_none());
    assert!(here.link(peer(2), MadeBy::Me).is_some());
    let reborn = Peer { boot: Boot(77), ..peer(2) };
    assert!(here.link(reborn, MadeBy::Them).is_some(), "another process is another peer");
    assert_eq!(here.links.peers(), [reborn]);
}

#[test]
fn a_silent_link_is_found_and_one_that_is_kept_alive_is_not() {
    let mut here = Here::new();
    let mut there = here.link(peer(2), MadeBy::Me).expect("taken");
    let due = Moment::START + SAY_EVERY;
    assert_eq!(here.links.next_due(), Some(due));
    assert!(here.links.keep_alive(due).is_empty());
    assert!(here.links.flush(due).is_empty());
    let mut sign = [1; 4];
    there.read_exact(&mut sign).expect("it says that it is there");
    assert_eq!(sign, [0; 4]);
    let just_before = Moment::START + (SILENT_MAX - Duration::from_millis(1));
    assert!(here.links.keep_alive(just_before).is_empty());
    assert_eq!(here.links.keep_alive(Moment::START + SILENT_MAX), [(peer(2), LinkFailure::Silent)]);
}

#[test]
fn what_nobody_reads_is_dropped_and_not_kept_for_ever() {
    let mut here = Here::new();
    let _there = here.link(peer(2), MadeBy::Me).expect("taken");
    let answer = JoinAnswer::Wait("x".repeat(1 << 20));
    let large = Message::JoinAnswer { number: 1, answer };
    for _ in 0..200 {
        here.links.send(NodeId(2), &large).expect("below the limit");
        here.links.flush(Moment::START);
    }
    let unsent = here.links.links[&NodeId(2)].unsent.len();
    assert!(unsent <= UNSENT_BYTES_MAX + CONTROL_BYTES_MAX, "{unsent} bytes are kept");
}

/// Returns bytes that a peer could send: noise, noise in a valid frame, a message that is cut off, longer
/// than announced, or with a bit flipped.
fn strange(round: u64) -> Vec<u8> {
    let random: [u8; 64] = random::bytes();
    let mut good = Vec::new();
    let ping = Message::Balance(balance::BalanceMessage::Ping);
    let message = if round.is_multiple_of(2) { message() } else { ping };
    frame::put(&message, CONTROL_BYTES_MAX, &mut good).expect("short");
    let length = usize::from(random[0] % 60);
    match round % 5 {
        0 => random[..length].to_vec(),
        1 => [&(length as u32).to_le_bytes()[..], &random[..length]].concat(),
        2 => good[..length % good.len()].to_vec(),
        3 => [&good[..], &random[..length]].concat(),
        _ => {
            let at = length % good.len();
            good[at] ^= 1 << (random[1] % 8);
            good
        }
    }
}

#[test]
fn of_ten_thousand_strange_frames_none_does_more_than_end_its_link() {
    let mut garbled = 0;
    for round in 0..10_000 {
        let mut unframer = Unframer::default();
        unframer.push(&strange(round));
        let mut count = 0;
        let taken = take_messages(&mut unframer, |_| count += 1);
        assert!(count <= 8, "some bytes are not that many messages");
        garbled += u32::from(taken.is_err());
    }
    assert!(garbled > 1_000, "only {garbled} were found out");
}

#[test]
fn a_strange_frame_closes_its_link_and_no_other() {
    let mut here = Here::new();
    let mut bystander = here.link(peer(3), MadeBy::Me).expect("taken");
    for round in 0..100 {
        // All bytes are there before the link reads them.
        let (socket, mut there) = pair();
        there.write_all(&strange(round)).expect("sent");
        there.shutdown(Shutdown::Write).expect("still open");
        assert!(here.adopt(socket, peer(2), MadeBy::Me));
        while here.read(2).is_ok() {}
        assert_eq!(here.links.remove(NodeId(2)), Some(peer(2)));
    }
    let mut bytes = Vec::new();
    frame::put(&message(), CONTROL_BYTES_MAX, &mut bytes).expect("short");
    bystander.write_all(&bytes).expect("its link stands");
    assert_eq!(here.read(3), Ok(vec![message()]));
}

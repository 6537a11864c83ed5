//! Tests of the two ends of one socket, and of what a stranger can do to one of them.

use std::net::TcpListener;
use std::thread;

use cluster::map::{Boot, ClusterId, Generation, LogIndex, NodeId, Peer};
use proptest::prelude::*;

use super::super::hello::Purpose;
use super::forged::Forgery;
use super::*;

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let one = TcpStream::connect(listener.local_addr().expect("bound")).expect("it listens");
    (one, listener.accept().expect("one dialed").0)
}

fn peer(id: u64) -> Peer {
    Peer { id: NodeId(id), boot: Boot(id * 100) }
}

fn hello() -> Hello {
    let generation = Some(Generation { counter: 1, founder: NodeId(2) });
    let (from, to) = (peer(1), Some(NodeId(2)));
    Hello { purpose: Purpose::Data, from, to, cluster: Some(ClusterId(9)), generation, at: None }
}

fn standing() -> AcceptorState {
    let generation = Generation { counter: 1, founder: NodeId(2) };
    AcceptorState { me: peer(2), cluster: ClusterId(9), generation, expects: 7 }
}

/// Runs both ends with their secrets, and returns the result of each.
fn meet(
    secrets: [&str; 2],
    hello: Hello,
    verdict: Result<AcceptorState, HandshakeRefusal>,
) -> (Result<AcceptorState, String>, Result<Hello, String>) {
    let (dialer, acceptor) = pair();
    let theirs = Secret::new(secrets[1]);
    let there = thread::spawn(move || receive(&acceptor, &theirs, |_| verdict));
    let here = introduce(&dialer, &Secret::new(secrets[0]), hello);
    drop(dialer);
    let there = there.join().expect("a handshake never panics");
    let text = |error: HelloError| error.to_string();
    (here.map_err(text), there.map(|(hello, _)| hello).map_err(text))
}

#[test]
fn two_who_share_a_secret_learn_who_the_other_is() {
    assert_eq!(meet(["s", "s"], hello(), Ok(standing())), (Ok(standing()), Ok(hello())));
    assert_eq!(meet(["", ""], hello(), Ok(standing())), (Ok(standing()), Ok(hello())));
}

#[test]
fn one_with_another_secret_is_told_so_and_judged_by_nobody() {
    let differs = || "wrong cluster secret; set --secret-file to the cluster's secret".to_owned();
    let (dialer, acceptor) = pair();
    let there = thread::spawn(move || {
        receive(&acceptor, &Secret::new("s"), |_| panic!("a stranger is not looked at"))
            .map(|_| ())
            .map_err(|error| error.to_string())
    });
    let here = introduce(&dialer, &Secret::new("t"), hello()).map_err(|error| error.to_string());
    assert_eq!(here, Err(differs()));
    assert_eq!(there.join().expect("judged by nobody"), Err(differs()));
}

#[test]
fn a_refusal_reaches_both_ends_in_words() {
    let cases = [
        (HandshakeRefusal::OtherCluster, "it belongs to another cluster"),
        (HandshakeRefusal::NoMember(LogIndex(5)), "this node is not a member of that cluster"),
        (HandshakeRefusal::OtherBoot, "another process of this node is a member there"),
        (HandshakeRefusal::NotJoined, "it has not joined a cluster itself yet"),
    ];
    for (refusal, words) in cases {
        let words = || words.to_owned();
        assert_eq!(meet(["s", "s"], hello(), Err(refusal)), (Err(words()), Err(words())));
    }
}

#[test]
fn one_who_answers_for_another_is_not_believed() {
    let other = AcceptorState { me: peer(3), ..standing() };
    assert_eq!(
        meet(["s", "s"], hello(), Ok(other)).0,
        Err("another node has this address: 3".to_owned())
    );
    let other = AcceptorState { cluster: ClusterId(8), ..standing() };
    let words = "it belongs to another cluster".to_owned();
    assert_eq!(meet(["s", "s"], hello(), Ok(other)).0, Err(words));
}

#[test]
fn another_version_is_named_on_both_sides() {
    let (mut dialer, acceptor) = pair();
    let there = thread::spawn(move || receive(&acceptor, &Secret::default(), |_| Ok(standing())));
    dialer.write_all(&MAGIC).expect("it reads");
    dialer.write_all(&99_u32.to_le_bytes()).expect("it reads");
    let mut answer = [0; PREFIX_BYTES];
    dialer.read_exact(&mut answer).expect("it says its own version");
    assert_eq!(answer, prefix());
    let error = there.join().expect("no panic").map(|_| ()).expect_err("not that version");
    assert_eq!(
        error.to_string(),
        format!(
            "no common protocol version: {} on this node, 99 on the other",
            ProtocolRange::OURS
        )
    );
}

#[test]
fn a_neighbouring_version_is_accepted_if_the_ranges_overlap() {
    let ours = ProtocolRange::OURS;
    let announced = |oldest, newest| {
        let number = ProtocolRange { oldest, newest }.to_number();
        let bytes = [&MAGIC[..], &number.to_le_bytes()].concat();
        read_prefix(&mut &bytes[..]).map_err(|error| error.to_string())
    };
    assert_eq!(announced(ours.newest - 1, ours.newest), Ok(()), "it also speaks an older one");
    assert_eq!(announced(ours.newest, ours.newest + 1), Ok(()), "it also speaks a newer one");
    let refusal = |there: &str| {
        Err(format!("no common protocol version: {ours} on this node, {there} on the other"))
    };
    let (after, later) = (ours.newest + 1, ours.newest + 2);
    assert_eq!(announced(after, later), refusal(&format!("{after} to {later}")));
    let before = ours.oldest - 1;
    assert_eq!(announced(before, before), refusal(&before.to_string()));
}

#[test]
fn one_who_answers_without_the_secret_is_found_out() {
    let (dialer, mut acceptor) = pair();
    let here = thread::spawn(move || introduce(&dialer, &Secret::new("s"), hello()));
    // The acceptor follows the protocol, but makes up a proof.
    read_prefix(&mut acceptor).expect("a node dials");
    frame::receive_body(&mut acceptor, HELLO_BYTES_MAX).expect("it says who it is");
    acceptor.write_all(&prefix()).expect("it reads");
    frame::send(&mut acceptor, &Nonce::draw(), HELLO_BYTES_MAX).expect("it reads");
    let proof: Proof = frame::receive(&mut acceptor, HELLO_BYTES_MAX).expect("it proves itself");
    let verdict = HandshakeReply::Welcome { standing: standing(), proof };
    frame::send(&mut acceptor, &verdict, HELLO_BYTES_MAX).expect("it reads");
    let error = here.join().expect("no panic").map(|_| ()).expect_err("sent back is not proven");
    let words = "wrong cluster secret; set --secret-file to the cluster's secret";
    assert_eq!(error.to_string(), words);
}

/// Returns all refusals but the one that nobody can prove.
fn refusals() -> [HandshakeRefusal; 6] {
    let generation = Generation { counter: 1 << 60, founder: NodeId(3) };
    [
        HandshakeRefusal::OtherCluster,
        HandshakeRefusal::OtherGeneration(generation),
        HandshakeRefusal::OtherNode(NodeId(3)),
        HandshakeRefusal::NoMember(LogIndex(u64::MAX)),
        HandshakeRefusal::OtherBoot,
        HandshakeRefusal::NotJoined,
    ]
}

#[test]
fn a_refusal_without_a_proof_is_not_believed() {
    for refusal in refusals() {
        for forgery in [Forgery::NoProof, Forgery::SentBack] {
            let (dialer, mut acceptor) = pair();
            let here = thread::spawn(move || introduce(&dialer, &Secret::new("s"), hello()));
            forged::refuse(&mut acceptor, refusal, forgery).expect("it plays along");
            let error = here.join().expect("no panic").expect_err("there is no link");
            let is_ignored = matches!(error, HelloError::Unproven(told) if told == refusal);
            assert!(is_ignored, "{refusal:?} with {forgery:?} came as {error:?}");
        }
    }
}

#[test]
fn a_refusal_by_one_who_knows_the_secret_is_believed() {
    for refusal in refusals() {
        let (dialer, acceptor) = pair();
        let secret = Secret::new("s");
        let there = thread::spawn(move || receive(&acceptor, &secret, |_| Err(refusal)));
        let error = introduce(&dialer, &Secret::new("s"), hello()).expect_err("there is no link");
        assert!(matches!(error, HelloError::Refused(told) if told == refusal), "{error:?}");
        assert!(there.join().expect("no panic").is_err());
    }
}

#[test]
fn one_who_has_not_proven_itself_gets_no_proof() {
    let (mut dialer, acceptor) = pair();
    let there = thread::spawn(move || receive(&acceptor, &Secret::new("s"), |_| Ok(standing())));
    let opening = Opening { hello: hello(), nonce: Nonce::draw() };
    let opened = encoded(&opening).expect("short");
    dialer.write_all(&[&prefix()[..], &opened].concat()).expect("it reads");
    read_prefix(&mut dialer).expect("a node answers");
    let challenge: Nonce = frame::receive(&mut dialer, HELLO_BYTES_MAX).expect("it asks");
    let challenged = encoded(&challenge).expect("short");
    let made_up = proof::prove(&Secret::new("t"), ProverRole::Dialer, &[&opened, &challenged]);
    frame::send(&mut dialer, &made_up, HELLO_BYTES_MAX).expect("it reads");
    let verdict: HandshakeReply = frame::receive(&mut dialer, HELLO_BYTES_MAX).expect("it answers");
    let HandshakeReply::Refused { refusal, proof } = verdict else {
        panic!("a stranger is let in")
    };
    assert_eq!((refusal, proof), (HandshakeRefusal::SecretDiffers, None));
    assert!(there.join().expect("no panic").is_err());
}

#[test]
fn one_who_hangs_up_or_sends_garbage_ends_only_its_own_link() {
    let (dialer, acceptor) = pair();
    drop(dialer);
    let error = receive(&acceptor, &Secret::default(), |_| Ok(standing())).map(|_| ());
    assert_eq!(error.expect_err("nobody there").to_string(), "it closed the connection");
    let (mut dialer, acceptor) = pair();
    dialer.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    let error = receive(&acceptor, &Secret::default(), |_| Ok(standing())).map(|_| ());
    let words = "the other end does not speak the peer protocol";
    assert_eq!(error.expect_err("no node").to_string(), words);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn whatever_a_stranger_says_it_never_gets_in(
        good in 0_usize..120,
        garbage in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        // The beginning of a valid hello, then arbitrary bytes.
        let opening = Opening { hello: hello(), nonce: Nonce::draw() };
        let mut said = [&prefix()[..], &encoded(&opening).expect("short")].concat();
        said.truncate(good);
        said.extend_from_slice(&garbage);
        let (mut dialer, acceptor) = pair();
        dialer.write_all(&said).expect("the socket takes a few bytes");
        dialer.shutdown(std::net::Shutdown::Write).expect("still open");
        let got = receive(&acceptor, &Secret::new("s"), |_| Ok(standing()));
        prop_assert!(got.is_err());
    }
}

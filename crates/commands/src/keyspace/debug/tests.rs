//! Tests of DEBUG as scripts.

use core::time::Duration;

use settings::DebugClients;

use crate::ActiveExpiry;
use crate::testing::{TestNode, check, check_on};

/// The digests are those of redis-server 7.0.15 for the same keys.
#[test]
fn digests_are_those_of_redis() {
    check(
        r"
        > DEBUG DIGEST
        0000000000000000000000000000000000000000
        > SET a x
        OK
        > DEBUG DIGEST
        023fb603a3c136a7fc93e7b6c60c8e265f793d05
        > SET n 12
        OK
        > DEBUG DIGEST
        49b75b38ecf7fe16ba26398714c19408cd94b800
        > EXPIRE n 100
        (integer) 1
        > DEBUG DIGEST
        1f0d55133b3d5cb6411e0c6d91e0dd386d1fc7a1
        > DEBUG DIGEST-VALUE a missing n
        1) e1c099d36d86ec50b7f83540e7e59065055be33d
        2) 0000000000000000000000000000000000000000
        3) 83df3a94c43338a2db2a05ddb5dbb794b842c619
        > DEBUG DIGEST-VALUE
        (empty array)
        ",
    );
}

#[test]
fn an_object_tells_how_it_is_kept() {
    check(
        r"
        > SET k abc
        OK
        +7s
        > DEBUG OBJECT k
        Value at:slot-7629 refcount:1 encoding:embstr serializedlength:4 lru:5501184 lru_seconds_idle:7
        > DEBUG OBJECT missing
        (error) ERR no such key
        > DEBUG OBJECT
        (error) ERR unknown subcommand or wrong number of arguments for 'OBJECT'. Try DEBUG HELP.
        > DEBUG
        (error) ERR wrong number of arguments for 'debug' command
        ",
    );
}

#[test]
fn the_host_is_asked_to_sleep_and_to_let_expired_keys_be() {
    let mut node = TestNode::default();
    check_on(
        &mut node,
        r"
        > DEBUG SLEEP 0.25
        OK
        > DEBUG SLEEP soon
        OK
        > DEBUG SET-ACTIVE-EXPIRE 0
        OK
        ",
    );
    assert_eq!(node.host.slept, Duration::from_millis(250));
    assert_eq!(node.host.active_expiry, ActiveExpiry::Off);
    node.run("DEBUG SET-ACTIVE-EXPIRE 1");
    assert_eq!(node.host.active_expiry, ActiveExpiry::On);
}

#[test]
fn patterns_can_be_tried() {
    check(
        r"
        > DEBUG STRINGMATCH-LEN h[ae]llo hallo
        (integer) 1
        > DEBUG STRINGMATCH-LEN h[ae]llo hullo
        (integer) 0
        ",
    );
}

#[test]
fn a_reply_of_every_type_is_told_in_both_protocols() {
    let raw = |node: &mut TestNode, kind: &str| node.run(&format!("DEBUG PROTOCOL {kind}"));
    let mut node = TestNode::default();
    assert_eq!(raw(&mut node, "double"), "\"3.141\"");
    assert_eq!(raw(&mut node, "true"), "(integer) 1");
    assert_eq!(raw(&mut node, "push"), "(error) ERR RESP2 is not supported by this command");
    node.session(1).protocol = resp::Protocol::Resp3;
    assert_eq!(raw(&mut node, "double"), "(double) 3.141");
    assert_eq!(raw(&mut node, "true"), "(true)");
    for kind in ["string", "integer", "bignum", "null", "array", "set", "map", "attrib", "push"] {
        assert!(!raw(&mut node, kind).starts_with("(error)"), "{kind}");
    }
    assert!(raw(&mut node, "verbose").starts_with("(error) ERR Wrong protocol type name."));
}

#[test]
fn debug_is_for_those_whom_the_setting_allows() {
    let mut node = TestNode::default();
    let refused = "(error) ERR DEBUG command not allowed.";
    for (clients, is_allowed) in
        [(DebugClients::Nobody, false), (DebugClients::Local, true), (DebugClients::All, true)]
    {
        node.host.settings.enable_debug_command = clients;
        let reply = node.run("DEBUG SLEEP 0.5");
        assert_eq!(!reply.starts_with(refused), is_allowed, "{clients:?}: {reply}");
    }
    assert_eq!(node.host.slept, Duration::from_secs(1), "twice half a second");
}

//! Tests of CLIENT and its subcommands as scripts.

use crate::testing::{TestNode, check, check_on};
use crate::{ClientFacts, PauseScope};

#[test]
fn a_connection_has_a_number_and_a_name() {
    check(
        r#"
        > CLIENT ID
        (integer) 1
        > CLIENT GETNAME
        (nil)
        > CLIENT SETNAME me
        OK
        > CLIENT GETNAME
        "me"
        > CLIENT SETNAME "not me"
        (error) ERR Client names cannot contain spaces, newlines or special characters.
        > CLIENT SETNAME ""
        OK
        > CLIENT GETNAME
        (nil)
        > CLIENT SETINFO LIB-NAME mylib
        OK
        > CLIENT SETINFO lib-ver "1 2"
        (error) ERR lib-ver cannot contain spaces, newlines or special characters.
        > CLIENT SETINFO colour red
        (error) ERR Unrecognized option 'colour'
        > CLIENT NOSUCH
        (error) ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP.
        > CLIENT
        (error) ERR wrong number of arguments for 'client' command
        "#,
    );
}

#[test]
fn a_line_of_client_list_has_the_fields_of_redis() {
    let mut node = TestNode::default();
    node.run("CLIENT SETNAME me");
    node.run("CLIENT NO-EVICT on");
    let line = node.run("CLIENT INFO");
    let names: Vec<&str> =
        line.trim_matches('"').split(' ').map(|field| field.split('=').next().unwrap()).collect();
    assert_eq!(
        names.join(" "),
        "id addr laddr fd name age idle flags db sub psub ssub multi qbuf qbuf-free argv-mem \
         multi-mem rbs rbp obl oll omem tot-mem events cmd user redir resp lib-name lib-ver"
    );
    assert!(line.contains(" name=me "), "{line}");
    assert!(line.contains(" flags=e "), "{line}");
    assert!(line.contains(" multi=-1 "), "{line}");
}

#[test]
fn list_and_kill_choose_by_filters() {
    let mut node = TestNode::default();
    let other = |id, address: &str| ClientFacts {
        id,
        address: address.to_owned(),
        age_seconds: 100,
        ..ClientFacts::default()
    };
    node.host.others = vec![other(7, "1.1.1.1:1"), other(8, "1.1.1.1:2"), other(9, "1.1.1.1:3")];
    node.host.others[2].channels = 1;

    assert_eq!(node.run("CLIENT LIST").matches("id=").count(), 4);
    assert_eq!(node.run("CLIENT LIST TYPE pubsub").matches("id=").count(), 1);
    assert_eq!(node.run("CLIENT LIST TYPE replica"), "\"\"");
    assert_eq!(node.run("CLIENT LIST ID 7 8 99 -1").matches("id=").count(), 2);
    check_on(
        &mut node,
        r#"
        > CLIENT KILL 1.1.1.1:9
        (error) ERR No such client
        > CLIENT KILL 1.1.1.1:1
        OK
        > CLIENT KILL TYPE pubsub ID 8
        (integer) 0
        > CLIENT KILL TYPE pubsub
        (integer) 1
        > CLIENT KILL MAXAGE 10 SKIPME no
        (integer) 1
        > CLIENT KILL ID 0
        (error) ERR client-id should be greater than 0
        > CLIENT KILL TYPE strange
        (error) ERR Unknown client type 'strange'
        > CLIENT KILL USER nobody
        (error) ERR No such user 'nobody'
        > CLIENT KILL SKIPME perhaps
        (error) ERR syntax error
        > CLIENT LIST ID x
        (error) ERR Invalid client ID
        "#,
    );
    assert!(!node.session(1).closing);
    assert_eq!(node.run("CLIENT KILL USER default SKIPME no"), "(integer) 1");
    assert!(node.session(1).closing);
}

#[test]
fn replies_can_be_turned_off_and_skipped() {
    check(
        r#"
        > CLIENT REPLY SKIP
        > PING
        > PING
        PONG
        > CLIENT REPLY OFF
        > PING
        > NOSUCH
        > CLIENT REPLY SKIP
        > PING
        > CLIENT REPLY ON
        OK
        > PING
        PONG
        > CLIENT REPLY SKIP
        > CLIENT REPLY SKIP
        > PING
        > PING
        PONG
        > CLIENT REPLY SKIP
        > CLIENT REPLY ON
        OK
        > CLIENT REPLY MAYBE
        (error) ERR syntax error
        "#,
    );
}

#[test]
fn a_pause_names_its_end_and_its_scope() {
    let mut node = TestNode::default();
    let start = node.env.now.0;
    assert_eq!(node.run("CLIENT PAUSE 100 WRITE"), "OK");
    let pause = node.host.paused.expect("paused");
    assert_eq!((pause.until.0, pause.scope), (start + 100, PauseScope::Writes));
    check_on(
        &mut node,
        r#"
        > CLIENT UNPAUSE
        OK
        > CLIENT PAUSE x
        (error) ERR timeout is not an integer or out of range
        > CLIENT PAUSE -1
        (error) ERR timeout is negative
        > CLIENT PAUSE 1 SOME
        (error) ERR CLIENT PAUSE mode must be WRITE or ALL
        > CLIENT PAUSE 1 WRITE more
        (error) ERR unknown subcommand or wrong number of arguments for 'PAUSE'. Try CLIENT HELP.
        "#,
    );
    assert_eq!(node.host.paused, None);
}

#[test]
fn what_is_not_tracked_is_said_to_be_off() {
    check(
        r#"
        > CLIENT TRACKING off
        OK
        > CLIENT TRACKING on
        (error) ERR client tracking is not supported
        > CLIENT GETREDIR
        (integer) -1
        > CLIENT CACHING yes
        (error) ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled
        > CLIENT UNBLOCK 5
        (integer) 0
        > CLIENT UNBLOCK 5 now
        (error) ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR
        > CLIENT UNBLOCK 5 error more
        (error) ERR unknown subcommand or wrong number of arguments for 'UNBLOCK'. Try CLIENT HELP.
        "#,
    );
}

#[test]
fn help_lists_every_subcommand() {
    let mut node = TestNode::default();
    let told = node.run("CLIENT HELP");
    assert!(told.contains("CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    assert!(told.contains("PAUSE timeout [WRITE | ALL]"), "{told}");
}

#[test]
fn the_texts_of_a_client_are_short() {
    let mut node = TestNode::default();
    let (long, longest) = ("x".repeat(257), "x".repeat(256));
    for command in
        ["CLIENT SETNAME", "CLIENT SETINFO lib-name", "CLIENT SETINFO lib-ver", "HELLO 2 SETNAME"]
    {
        let reply = node.run(&format!("{command} {long}"));
        assert!(reply.contains("cannot be longer than 256 bytes."), "{command}: {reply}");
        let reply = node.run(&format!("{command} {longest}"));
        assert!(!reply.contains("(error)"), "{command}: {reply}");
    }
}

//! Tests of pub/sub as scripts; the replies are those of redis-server 7.0.15.

use resp::Protocol;
use settings::{NotifyClasses, Settings};

use crate::testing::{TestNode, check, check_on};
use crate::{Announcement, Event, Post, Space};

#[test]
fn subscriptions_are_confirmed_one_by_one_with_their_number() {
    check(
        r#"
        > SUBSCRIBE a b a
        1) "subscribe"
        2) "a"
        3) (integer) 1
        1) "subscribe"
        2) "b"
        3) (integer) 2
        1) "subscribe"
        2) "a"
        3) (integer) 2
        > PSUBSCRIBE a*
        1) "psubscribe"
        2) "a*"
        3) (integer) 3
        > SSUBSCRIBE s
        1) "ssubscribe"
        2) "s"
        3) (integer) 1
        > UNSUBSCRIBE a zz
        1) "unsubscribe"
        2) "a"
        3) (integer) 2
        1) "unsubscribe"
        2) "zz"
        3) (integer) 2
        > SUNSUBSCRIBE
        1) "sunsubscribe"
        2) "s"
        3) (integer) 0
        > SUBSCRIBE
        (error) ERR wrong number of arguments for 'subscribe' command
        "#,
    );
}

#[test]
fn unsubscribing_from_all_names_them_in_the_order_they_came() {
    check(
        r#"
        > UNSUBSCRIBE
        1) "unsubscribe"
        2) (nil)
        3) (integer) 0
        > PSUBSCRIBE b* a*
        1) "psubscribe"
        2) "b*"
        3) (integer) 1
        1) "psubscribe"
        2) "a*"
        3) (integer) 2
        > PUNSUBSCRIBE
        1) "punsubscribe"
        2) "b*"
        3) (integer) 1
        1) "punsubscribe"
        2) "a*"
        3) (integer) 0
        > GET k
        (nil)
        "#,
    );
}

#[test]
fn a_subscribed_connection_of_the_old_protocol_takes_few_commands() {
    check(
        r#"
        > SSUBSCRIBE s
        1) "ssubscribe"
        2) "s"
        3) (integer) 1
        > GET k
        (error) ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
        > PUBSUB NUMPAT
        (error) ERR Can't execute 'pubsub|numpat': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
        > PING
        1) "pong"
        2) ""
        > PING hi
        1) "pong"
        2) "hi"
        > SUNSUBSCRIBE s
        1) "sunsubscribe"
        2) "s"
        3) (integer) 0
        > PING
        PONG
        "#,
    );
}

#[test]
fn in_the_new_protocol_a_subscribed_connection_does_what_it_likes() {
    let mut node = TestNode::default();
    node.session(1).protocol = Protocol::Resp3;
    node.run("SUBSCRIBE a");
    check_on(
        &mut node,
        r#"
        > PING
        PONG
        > GET k
        (nil)
        > PUBLISH a hi
        (integer) 1
        "#,
    );
    assert_eq!(node.heard(1), ["message a hi"]);
}

#[test]
fn subscriptions_are_confirmed_even_to_who_wants_no_replies() {
    check(
        r#"
        > CLIENT REPLY OFF

        > SUBSCRIBE a
        1) "subscribe"
        2) "a"
        3) (integer) 1
        > PING

        > SUBSCRIBE

        > UNSUBSCRIBE
        1) "unsubscribe"
        2) "a"
        3) (integer) 0
        "#,
    );
}

#[test]
fn reset_ends_all_subscriptions_without_a_word() {
    let mut node = TestNode::default();
    node.run("SUBSCRIBE a");
    node.run("PSUBSCRIBE a*");
    node.run("SSUBSCRIBE a");
    check_on(
        &mut node,
        r#"
        > RESET
        RESET
        > PUBLISH a x
        (integer) 0
        > SPUBLISH a x
        (integer) 0
        > PUBSUB NUMPAT
        (integer) 0
        "#,
    );
}

#[test]
fn a_message_of_a_transaction_leaves_behind_the_events_before_it() {
    let mut node = TestNode::default();
    node.env.notify = NotifyClasses::KEYEVENT.union(NotifyClasses::STRING);
    node.on(2, "PSUBSCRIBE *");
    node.on(2, "SUBSCRIBE news");
    node.run("MULTI");
    node.run("PUBLISH news first");
    node.run("SET k v");
    node.run("PUBLISH news now");
    let answer = node.run("EXEC");
    assert_eq!(answer, "1) (integer) 2\n2) OK\n3) (integer) 2", "both count their receivers");
    assert_eq!(node.heard(2), ["message news first", "pmessage * news first"]);
    let event = Event {
        class: NotifyClasses::STRING,
        name: "set",
        database: store::Database::ZERO,
        key: b"k".to_vec(),
    };
    let post = Post { space: Space::Global, channel: b"news", payload: b"now" };
    let behind = [Announcement::Event(event), Announcement::of_message(post)];
    assert_eq!(node.announcements(), behind, "they wait until the write is safe");
}

#[test]
fn a_message_reaches_channels_and_matching_patterns_and_is_counted_for_each() {
    let mut node = TestNode::default();
    node.on(1, "SUBSCRIBE news");
    node.on(1, "PSUBSCRIBE n* [mn]ews x*");
    node.on(2, "PSUBSCRIBE n*");
    node.on(3, "SSUBSCRIBE news");
    check_on(
        &mut node,
        r#"
        9> PUBLISH news hello
        (integer) 4
        9> SPUBLISH news split
        (integer) 1
        9> PUBLISH new! x
        (integer) 2
        9> PUBLISH other x
        (integer) 0
        9> PUBLISH news
        (error) ERR wrong number of arguments for 'publish' command
        "#,
    );
    let hello = ["message news hello", "pmessage [mn]ews news hello", "pmessage n* news hello"];
    assert_eq!(node.heard(1), [hello.as_slice(), &["pmessage n* new! x"]].concat());
    assert_eq!(node.heard(2), ["pmessage n* news hello", "pmessage n* new! x"]);
    assert_eq!(node.heard(3), ["smessage news split"]);
}

#[test]
fn pubsub_tells_who_listens_to_what() {
    let mut node = TestNode::default();
    node.on(1, "SUBSCRIBE a b");
    node.on(2, "SUBSCRIBE a");
    node.on(2, "PSUBSCRIBE p* q*");
    node.on(3, "PSUBSCRIBE p*");
    node.on(3, "SSUBSCRIBE s");
    check_on(
        &mut node,
        r#"
        9> PUBSUB CHANNELS
        1) "a"
        2) "b"
        9> pubsub channels [a]
        1) "a"
        9> PUBSUB NUMSUB a b c
        1) "a"
        2) (integer) 2
        3) "b"
        4) (integer) 1
        5) "c"
        6) (integer) 0
        9> PUBSUB NUMSUB
        (empty array)
        9> PUBSUB NUMPAT
        (integer) 2
        9> PUBSUB SHARDCHANNELS
        1) "s"
        9> PUBSUB SHARDNUMSUB s a
        1) "s"
        2) (integer) 1
        3) "a"
        4) (integer) 0
        9> PUBSUB
        (error) ERR wrong number of arguments for 'pubsub' command
        9> PUBSUB CHANNELS a b
        (error) ERR unknown subcommand or wrong number of arguments for 'CHANNELS'. Try PUBSUB HELP.
        9> PUBSUB NUMPAT x
        (error) ERR wrong number of arguments for 'pubsub|numpat' command
        9> PUBSUB FOO
        (error) ERR unknown subcommand 'FOO'. Try PUBSUB HELP.
        "#,
    );
    assert_eq!(node.on(9, "PUBSUB HELP").lines().count(), 13);
}

#[test]
fn an_event_is_told_on_the_channel_of_its_key_and_then_on_its_own() {
    let classes = |letters: &str| {
        let mut settings = Settings::default();
        settings.set("notify-keyspace-events", letters).expect("letters");
        settings.notify_keyspace_events
    };
    let told = |letters: &str| {
        let mut node = TestNode::default();
        node.env.notify = classes(letters);
        node.run("SET k v");
        node.run("GET missing");
        let mut told = Vec::new();
        for event in node.events() {
            event.announce(node.env.notify, |post| {
                let parts = [post.channel, post.payload].map(String::from_utf8_lossy);
                told.push(parts.join(" "));
            });
        }
        told
    };
    assert_eq!(told("K$"), ["__keyspace@0__:k set"]);
    assert_eq!(told("E$"), ["__keyevent@0__:set k"]);
    assert_eq!(told("AKE"), ["__keyspace@0__:k set", "__keyevent@0__:set k"]);
    assert_eq!(told("Enm"), ["__keyevent@0__:new k", "__keyevent@0__:keymiss missing"]);
    assert_eq!(told("$"), [""; 0]);
    assert_eq!(classes(""), NotifyClasses::NONE);
}

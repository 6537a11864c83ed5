//! Tests of the stream commands as scripts. Those in files are replies of redis-server 7.0.15, except for a few texts
//! that Valkey has changed since.

use settings::NotifyClasses;

use crate::testing::{TestNode, check, check_on};

#[test]
fn entries_are_added_found_and_removed() {
    check(include_str!("tests/entries.txt"));
}

#[test]
fn streams_are_trimmed_and_their_heads_set() {
    check(include_str!("tests/trim.txt"));
}

#[test]
fn groups_deliver_each_entry_to_one_consumer() {
    check(include_str!("tests/groups.txt"));
}

#[test]
fn info_describes_groups() {
    check(include_str!("tests/info.txt"));
}

#[test]
fn ids_follow_the_time_and_never_go_back() {
    check(
        r#"
        > XADD s * a 1
        "1700000000000-0"
        > XADD s * a 1
        "1700000000000-1"
        +5ms
        > XADD s * a 1
        "1700000000005-0"
        > XADD s 1700000009000-7 a 1
        "1700000009000-7"
        > XADD s * a 1
        "1700000009000-8"
        > XADD s 1700000009001-* a 1
        "1700000009001-0"
        > XREAD STREAMS s 1700000009000-7
        1) 1) "s"
           2) 1) 1) "1700000009000-8"
                 2) 1) "a"
                    2) "1"
              2) 1) "1700000009001-0"
                 2) 1) "a"
                    2) "1"
        > XREAD STREAMS s +
        1) 1) "s"
           2) 1) 1) "1700000009001-0"
                 2) 1) "a"
                    2) "1"
        > XREAD STREAMS missing +
        (nil)
        "#,
    );
}

#[test]
fn an_approximate_trim_removes_whole_blocks() {
    let mut node = TestNode::default();
    for number in 1..=250 {
        node.run(&format!("XADD s {number}-0 field value"));
    }
    check_on(
        &mut node,
        "
        > XTRIM s MAXLEN ~ 200
        (integer) 0
        > XTRIM s MAXLEN ~ 130
        (integer) 100
        > XTRIM s MINID ~ 150
        (integer) 0
        > XTRIM s MINID ~ 201
        (integer) 100
        > XTRIM s MAXLEN ~ 0 LIMIT 20
        (integer) 0
        > XTRIM s MAXLEN ~ 0 LIMIT 0
        (integer) 50
        ",
    );
    assert_eq!(node.slots.digest(), node.replayed().digest());
}

#[test]
fn consumers_are_created_by_what_they_ask_and_their_times_kept() {
    check(
        r#"
        > XGROUP CREATE s g $ MKSTREAM
        OK
        > XREADGROUP GROUP g alice STREAMS s >
        (nil)
        +100ms
        > XCLAIM s g bob 0 1-1
        (empty array)
        > XAUTOCLAIM s g carol 0 0
        1) "0-0"
        2) (empty array)
        3) (empty array)
        +50ms
        > XADD s 5-5 a 1
        "5-5"
        > XREADGROUP GROUP g bob STREAMS s >
        1) 1) "s"
           2) 1) 1) "5-5"
                 2) 1) "a"
                    2) "1"
        +10ms
        > XINFO CONSUMERS s g
        1) 1) "name"
           2) "alice"
           3) "pending"
           4) (integer) 0
           5) "idle"
           6) (integer) 160
           7) "inactive"
           8) (integer) -1
        2) 1) "name"
           2) "bob"
           3) "pending"
           4) (integer) 1
           5) "idle"
           6) (integer) 10
           7) "inactive"
           8) (integer) 10
        3) 1) "name"
           2) "carol"
           3) "pending"
           4) (integer) 0
           5) "idle"
           6) (integer) 60
           7) "inactive"
           8) (integer) -1
        > XPENDING s g IDLE 11 - + 5
        (empty array)
        > XPENDING s g IDLE 10 - + 5
        1) 1) "5-5"
           2) "bob"
           3) (integer) 10
           4) (integer) 1
        > XCLAIM s g alice 10 5-5 5-5 IDLE 3
        1) 1) "5-5"
           2) 1) "a"
              2) "1"
        > XPENDING s g - + 5
        1) 1) "5-5"
           2) "alice"
           3) (integer) 3
           4) (integer) 2
        "#,
    );
}

#[test]
fn full_info_shows_entries_pending_ones_and_consumers() {
    check(
        r#"
        > XADD s 1-1 a 1
        "1-1"
        > XGROUP CREATE s g 0
        OK
        > XREADGROUP GROUP g c STREAMS s >
        1) 1) "s"
           2) 1) 1) "1-1"
                 2) 1) "a"
                    2) "1"
        > XINFO STREAM s FULL COUNT 1
         1) "length"
         2) (integer) 1
         3) "radix-tree-keys"
         4) (integer) 1
         5) "radix-tree-nodes"
         6) (integer) 2
         7) "last-generated-id"
         8) "1-1"
         9) "max-deleted-entry-id"
        10) "0-0"
        11) "entries-added"
        12) (integer) 1
        13) "recorded-first-entry-id"
        14) "1-1"
        15) "entries"
        16) 1) 1) "1-1"
               2) 1) "a"
                  2) "1"
        17) "groups"
        18) 1)  1) "name"
                2) "g"
                3) "last-delivered-id"
                4) "1-1"
                5) "entries-read"
                6) (integer) 1
                7) "lag"
                8) (integer) 0
                9) "pel-count"
               10) (integer) 1
               11) "pending"
               12) 1) 1) "1-1"
                      2) "c"
                      3) (integer) 1700000000000
                      4) (integer) 1
               13) "consumers"
               14) 1)  1) "name"
                       2) "c"
                       3) "seen-time"
                       4) (integer) 1700000000000
                       5) "active-time"
                       6) (integer) 1700000000000
                       7) "pel-count"
                       8) (integer) 1
                       9) "pending"
                      10) 1) 1) "1-1"
                             2) (integer) 1700000000000
                             3) (integer) 1
        "#,
    );
}

#[test]
fn an_idle_consumer_that_asks_again_writes_nothing_for_a_while() {
    let mut node = TestNode::default();
    node.run("XGROUP CREATE s g $ MKSTREAM");
    node.run("XREADGROUP GROUP g c STREAMS s >");
    let (written, question) = (node.log.len(), "XREADGROUP GROUP g c STREAMS s >");
    for _ in 0..5 {
        node.advance(100);
        assert_eq!(node.run(question), "(nil)");
    }
    assert_eq!(node.log.len(), written);
    node.advance(1_000);
    node.run(question);
    assert!(node.log.len() > written, "after a second it is seen again");
}

#[test]
fn copies_and_renamed_streams_keep_their_groups() {
    check(
        r#"
        > XADD s 1-1 a 1
        "1-1"
        > XGROUP CREATE s g 0
        OK
        > XREADGROUP GROUP g c STREAMS s >
        1) 1) "s"
           2) 1) 1) "1-1"
                 2) 1) "a"
                    2) "1"
        > COPY s t
        (integer) 1
        > RENAME s u
        OK
        > XACK t g 1-1
        (integer) 1
        > XPENDING u g
        1) (integer) 1
        2) "1-1"
        3) "1-1"
        4) 1) 1) "c"
              2) "1"
        > XPENDING t g
        1) (integer) 0
        2) (nil)
        3) (nil)
        4) (nil)
        > SCAN 0 TYPE stream
        1) "0"
        2) 1) "u"
           2) "t"
        > MULTI
        OK
        > XADD u 2-2 a 2
        QUEUED
        > XREADGROUP GROUP g c BLOCK 0 STREAMS u >
        QUEUED
        > XREADGROUP GROUP g c BLOCK 0 STREAMS u >
        QUEUED
        > EXEC
        1) "2-2"
        2) 1) 1) "u"
              2) 1) 1) "2-2"
                    2) 1) "a"
                       2) "2"
        3) (nil)
        "#,
    );
}

#[test]
fn events_name_what_happened() {
    let mut node = TestNode::default();
    let all = NotifyClasses::ALL.union(NotifyClasses::NEW);
    node.env.notify = all.union(NotifyClasses::KEYEVENT);
    for line in [
        "XADD s 1-1 a 1",
        "XADD s MAXLEN 1 2-2 a 1",
        "XADD s MAXLEN 5 3-3 a 1",
        "XTRIM s MAXLEN 1",
        "XTRIM s MAXLEN 1",
        "XDEL s 3-3 3-3",
        "XDEL s 3-3",
        "XSETID s 9-9",
        "XGROUP CREATE s g 0",
        "XGROUP SETID s g 1",
        "XGROUP CREATECONSUMER s g a",
        "XREADGROUP GROUP g b STREAMS s >",
        "XREADGROUP GROUP g b STREAMS s >",
        "XCLAIM s g c 0 1-1",
        "XAUTOCLAIM s g d 0 0",
        "XGROUP DELCONSUMER s g a",
        "XGROUP DELCONSUMER s g a",
        "XGROUP DESTROY s g",
        "XGROUP CREATE new g 0 MKSTREAM",
    ] {
        node.run(line);
    }
    let events: Vec<&str> = node.events().into_iter().map(|event| event.name).collect();
    let expected = "new xadd xadd xtrim xadd xtrim xdel xsetid xgroup-create xgroup-setid \
        xgroup-createconsumer xgroup-createconsumer xgroup-createconsumer xgroup-createconsumer \
        xgroup-delconsumer xgroup-destroy new xgroup-create";
    assert_eq!(events.join(" "), expected);
}

#[test]
fn replies_are_maps_in_resp3() {
    let mut node = TestNode::default();
    node.run("HELLO 3");
    check_on(
        &mut node,
        r#"
        > XADD s 1-1 a 1
        "1-1"
        > XREAD STREAMS s s 0 0
        1# "s" => 1) 1) "1-1"
              2) 1) "a"
                 2) "1"
        2# "s" => 1) 1) "1-1"
              2) 1) "a"
                 2) "1"
        > XREAD STREAMS s 9
        (nil)
        "#,
    );
}

#[test]
fn readers_wait_for_entries_and_all_of_them_get_each() {
    check(
        r#"
        2> XREAD BLOCK 0 STREAMS s t $ 0
        3> XREAD BLOCK 100 COUNT 1 STREAMS s 0
        > XADD other 1-1 a 1
        "1-1"
        > XADD s 5-5 a 1
        "5-5"
        2< 1) 1) "s"
        2<    2) 1) 1) "5-5"
        2<          2) 1) "a"
        2<             2) "1"
        3< 1) 1) "s"
        3<    2) 1) 1) "5-5"
        3<          2) 1) "a"
        3<             2) "1"
        3> XREAD BLOCK 50 STREAMS s $
        > XDEL s 5-5
        (integer) 1
        > XADD s NOMKSTREAM MAXLEN 0 6-6 a 1
        "6-6"
        +50ms
        3< (nil)
        2> XREAD BLOCK 0 STREAMS s 7-1
        > XADD s 7-1 a 1
        "7-1"
        > XADD s 7-2 a 2
        "7-2"
        2< 1) 1) "s"
        2<    2) 1) 1) "7-2"
        2<          2) 1) "a"
        2<             2) "2"
        2> XREAD BLOCK 0 STREAMS s $
        > DEL s
        (integer) 1
        > XADD s 8-1 a 1
        "8-1"
        2< 1) 1) "s"
        2<    2) 1) 1) "8-1"
        2<          2) 1) "a"
        2<             2) "1"
        > XADD s 9-1 a 1
        "9-1"
        "#,
    );
}

#[test]
fn consumers_of_a_group_are_served_in_turn_and_each_group_for_itself() {
    check(
        r#"
        > XGROUP CREATE s g $ MKSTREAM
        OK
        > XGROUP CREATE s h $
        OK
        2> XREADGROUP GROUP g alice BLOCK 0 COUNT 1 STREAMS s >
        3> XREADGROUP GROUP g bob BLOCK 0 COUNT 1 STREAMS s >
        4> XREADGROUP GROUP g carol BLOCK 0 STREAMS s >
        5> XREADGROUP GROUP h dave BLOCK 0 STREAMS s >
        > XADD s 1-1 a 1
        "1-1"
        2< 1) 1) "s"
        2<    2) 1) 1) "1-1"
        2<          2) 1) "a"
        2<             2) "1"
        5< 1) 1) "s"
        5<    2) 1) 1) "1-1"
        5<          2) 1) "a"
        5<             2) "1"
        2> XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
        > XADD s 2-1 a 2
        "2-1"
        3< 1) 1) "s"
        3<    2) 1) 1) "2-1"
        3<          2) 1) "a"
        3<             2) "2"
        > XADD s 3-1 a 3
        "3-1"
        4< 1) 1) "s"
        4<    2) 1) 1) "3-1"
        4<          2) 1) "a"
        4<             2) "3"
        3> XREADGROUP GROUP g bob BLOCK 10 STREAMS s 0
        1) 1) "s"
           2) 1) 1) "2-1"
                 2) 1) "a"
                    2) "2"
        > XPENDING s g
        1) (integer) 3
        2) "1-1"
        3) "3-1"
        4) 1) 1) "alice"
              2) "1"
           2) 1) "bob"
              2) "1"
           3) 1) "carol"
              2) "1"
        > XGROUP SETID s g 2-1
        OK
        2< 1) 1) "s"
        2<    2) 1) 1) "3-1"
        2<          2) 1) "a"
        2<             2) "3"
        "#,
    );
}

#[test]
fn a_consumer_that_waits_learns_that_its_group_or_its_stream_is_gone() {
    for (ending, error) in [
        ("XGROUP DESTROY s g", "NOGROUP"),
        ("DEL s", "NOGROUP"),
        ("RENAME s t", "NOGROUP"),
        ("FLUSHALL", "NOGROUP"),
        ("SET s text", "WRONGTYPE"),
        ("SADD t x\r\nRENAME t s", "WRONGTYPE"),
    ] {
        let mut node = TestNode::default();
        node.run("XGROUP CREATE s g $ MKSTREAM");
        for connection in 2..5 {
            let line = format!("XREADGROUP GROUP g c{connection} BLOCK 0 STREAMS s >");
            assert_eq!(node.on(connection, &line), "");
        }
        let told = node.run(ending);
        let errors: Vec<&str> = told.lines().filter(|line| line.contains(error)).collect();
        assert_eq!(errors.len(), 3, "after {ending}: {told}");
    }
}

#[test]
fn whoever_could_wait_lets_those_who_have_waited_go_first() {
    check(
        r#"
        > XGROUP CREATE s g $ MKSTREAM
        OK
        2> XREADGROUP GROUP g alice BLOCK 0 STREAMS s >
        > MULTI
        OK
        > XADD s 1-1 a 1
        QUEUED
        > XREADGROUP GROUP g eve BLOCK 0 STREAMS s >
        QUEUED
        > XADD s 2-1 a 1
        QUEUED
        > EXEC
        1) "1-1"
        2) 1) 1) "s"
              2) 1) 1) "1-1"
                    2) 1) "a"
                       2) "1"
        3) "2-1"
        2< 1) 1) "s"
        2<    2) 1) 1) "2-1"
        2<          2) 1) "a"
        2<             2) "1"
        "#,
    );
}

#[test]
fn entries_are_deleted_with_regard_to_groups() {
    check(
        r#"
        > XGROUP CREATE s g 0 MKSTREAM
        OK
        > XGROUP CREATE s h 0
        OK
        > XADD s 1-1 a 1
        "1-1"
        > XADD s 2-2 a 2
        "2-2"
        > XADD s 3-3 a 3
        "3-3"
        > XREADGROUP GROUP g c COUNT 2 STREAMS s >
        1) 1) "s"
           2) 1) 1) "1-1"
                 2) 1) "a"
                    2) "1"
              2) 1) "2-2"
                 2) 1) "a"
                    2) "2"
        > XDELEX s ACKED IDS 3 1-1 3-3 9-9
        1) (integer) 2
        2) (integer) 2
        3) (integer) -1
        > XACKDEL s g ACKED IDS 2 1-1 3-3
        1) (integer) 2
        2) (integer) -1
        > XREADGROUP GROUP h c COUNT 1 NOACK STREAMS s >
        1) 1) "s"
           2) 1) 1) "1-1"
                 2) 1) "a"
                    2) "1"
        > XDELEX s ACKED IDS 1 1-1
        1) (integer) 1
        > XDELEX s DELREF IDS 2 2-2 2-2
        1) (integer) 1
        2) (integer) -1
        > XPENDING s g
        1) (integer) 0
        2) (nil)
        3) (nil)
        4) (nil)
        > XREADGROUP GROUP g c STREAMS s >
        1) 1) "s"
           2) 1) 1) "3-3"
                 2) 1) "a"
                    2) "3"
        > XACKDEL s g IDS 1 3-3
        1) (integer) 1
        > XLEN s
        (integer) 0
        > XACKDEL s nope IDS 1 3-3
        1) (integer) -1
        > XDELEX missing IDS 1 1
        1) (integer) -1
        > XDELEX s IDS 0 1
        (error) ERR Number of IDs must be a positive integer
        > XDELEX s IDS 2 1
        (error) ERR The `numids` parameter must match the number of arguments
        > XDELEX s KEEPREF ACKED 1
        (error) ERR syntax error
        > XDELEX s IDS 1 1 2
        (error) ERR syntax error
        > XDELEX s IDS 1 x
        (error) ERR Invalid stream ID specified as stream command argument
        "#,
    );
}

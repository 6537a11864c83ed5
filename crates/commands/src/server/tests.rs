//! Tests of the commands about the node as scripts.

use std::time::Duration;

use crate::testing::{TestNode, check, check_on};
use crate::{LatencyEvent, LatencySample, OwnedArgs, SlowCommand};

#[test]
fn a_node_alone_is_a_master_without_replicas() {
    check(
        r#"
        > ROLE
        1) "master"
        2) (integer) 0
        3) (empty array)
        "#,
    );
}

#[test]
fn the_time_has_microseconds() {
    let mut node = TestNode::default();
    assert_eq!(node.run("TIME"), "1) \"1700000000\"\n2) \"0\"");
}

#[test]
fn shutdown_is_refused_when_it_would_have_to_save() {
    let mut node = TestNode::default();
    check_on(
        &mut node,
        r#"
        > SHUTDOWN SAVE NOSAVE
        (error) ERR syntax error
        > SHUTDOWN ABORT NOW
        (error) ERR syntax error
        > SHUTDOWN ABORT
        (error) ERR No shutdown in progress.
        > SHUTDOWN SAVE
        (error) ERR Errors trying to SHUTDOWN: data is in memory only and cannot be saved; SHUTDOWN NOSAVE stops the node without it
        "#,
    );
    assert!(!node.host.is_shut_down);
    assert_eq!(node.run("SHUTDOWN NOSAVE NOW"), "");
    assert!(node.host.is_shut_down);
    assert!(node.session(1).closing);
}

#[test]
fn monitor_marks_the_connection() {
    let mut node = TestNode::default();
    assert_eq!(node.run("MONITOR"), "OK");
    assert!(node.session(1).is_monitor);
}

#[test]
fn slow_commands_are_listed_newest_first() {
    let mut node = TestNode::default();
    node.host.slow_commands = (0..12)
        .map(|id| SlowCommand {
            id,
            unix_seconds: 100 + id,
            micros: 20_000,
            args: OwnedArgs::new([b"KEYS".as_slice(), b"*"]),
            client_address: "1.2.3.4:5".to_owned(),
            client_name: b"me".to_vec(),
        })
        .collect();
    check_on(
        &mut node,
        r#"
        > SLOWLOG GET 1
        1) 1) (integer) 11
           2) (integer) 111
           3) (integer) 20000
           4) 1) "KEYS"
              2) "*"
           5) "1.2.3.4:5"
           6) "me"
        > SLOWLOG LEN
        (integer) 12
        > SLOWLOG GET -2
        (error) ERR count should be greater than or equal to -1
        > SLOWLOG GET x
        (error) ERR count should be greater than or equal to -1
        > SLOWLOG GET 1 2
        (error) ERR unknown subcommand or wrong number of arguments for 'GET'. Try SLOWLOG HELP.
        > SLOWLOG RESET
        OK
        > SLOWLOG GET -1
        (empty array)
        "#,
    );
}

#[test]
fn latency_events_are_told_drawn_and_forgotten() {
    let mut node = TestNode::default();
    assert!(node.run("LATENCY DOCTOR").contains("The latency monitor is off."));
    node.host.settings.latency_monitor_threshold = Duration::from_millis(5);
    assert!(node.run("LATENCY DOCTOR").contains("Nothing has taken 5 ms or more."));
    let sample = |unix_seconds, millis| LatencySample { unix_seconds, millis };
    node.host.latency_events = vec![LatencyEvent {
        name: "command",
        millis_max: 40,
        samples: vec![sample(100, 10), sample(101, 20)],
    }];
    assert!(
        node.run("LATENCY GRAPH command")
            .contains("command - high 20 ms, low 10 ms (all time high 40 ms)")
    );
    check_on(
        &mut node,
        r#"
        > LATENCY LATEST
        1) 1) "command"
           2) (integer) 101
           3) (integer) 20
           4) (integer) 40
        > LATENCY HISTORY command
        1) 1) (integer) 100
           2) (integer) 10
        2) 1) (integer) 101
           2) (integer) 20
        > LATENCY HISTORY nosuch
        (empty array)
        > LATENCY GRAPH nosuch
        (error) ERR No samples available for event 'nosuch'
        > LATENCY RESET nosuch
        (integer) 0
        > LATENCY RESET
        (integer) 1
        > LATENCY LATEST
        (empty array)
        "#,
    );
}

#[test]
fn lolwut_draws_each_bucket() {
    let mut node = TestNode::default();
    node.run("SET a 1");
    let picture = node.args(1, &[b"LOLWUT"]).remove(0);
    let text = String::from_utf8(picture.text().unwrap().to_vec()).unwrap();
    assert_eq!(text.matches('·').count(), 255, "{text}");
    assert!(text.contains("1 keys in 256 buckets"), "{text}");
}

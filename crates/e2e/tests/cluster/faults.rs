//! Nodes that die and nodes that are paused, under load.
use std::thread;
use std::time::Duration;

use e2e::{Cluster, Effort};
use resp::Value;

use crate::load::{Load, client};
use crate::steady::Steady;

#[test]
fn a_killed_node_costs_nothing_that_was_acknowledged() {
    let mut cluster = Cluster::of(3, &[]);
    let kills = Effort::of_this_run().of_normally(3).max(1);
    for _ in 0..kills {
        let load = Load::start(&cluster.urls());
        load.go_on_for(1_000);
        cluster.kill(2);
        load.go_on_for(2_000);
        load.end_with_nothing_acknowledged_lost(&cluster.urls());
        cluster.wait_until_even();
        cluster.join();
        cluster.wait_until_even();
    }
}

#[test]
fn a_node_that_slept_serves_nothing_old_and_comes_back() {
    let cluster = Cluster::of(3, &[]);
    let load = Steady::start(&cluster);
    thread::sleep(Duration::from_secs(1));
    cluster.nodes[0].stop();
    thread::sleep(Duration::from_secs(5));
    cluster.nodes[0].go_on();
    thread::sleep(Duration::from_secs(2));
    load.end();
    cluster.wait_until_even();
}

#[test]
fn with_two_backups_a_death_is_reconciled_before_anybody_is_answered() {
    let mut cluster = Cluster::of(4, &["--backups", "2"]);
    let load = Steady::start(&cluster);
    thread::sleep(Duration::from_secs(1));
    cluster.kill(3);
    thread::sleep(Duration::from_secs(4));
    load.end();
    cluster.wait_until_even();
}

#[test]
fn the_survivor_of_two_takes_over_when_a_client_turns_to_it() {
    let mut cluster = Cluster::of(2, &[]);
    let mut connection = client(&cluster.urls()).get_connection().unwrap();
    for number in 0..200 {
        redis::cmd("SET").arg(number).arg(number).query::<()>(&mut connection).unwrap();
    }
    cluster.kill(0);
    let survivor = &cluster.nodes[0];
    let mut asked = survivor.client();
    let has_taken_over = (0..200).any(|_| {
        thread::sleep(Duration::from_millis(100));
        // The data plane follows the decided takeover a moment later.
        let answered = asked.run("GET 7") == Value::Bulk(b"7".to_vec());
        answered && survivor.client().status()["generation"] == 2
    });
    assert!(has_taken_over, "it takes over");
    for number in 0..200 {
        let expected = Value::Bulk(number.to_string().into_bytes());
        assert_eq!(survivor.client().call(&["GET", &number.to_string()]).value, expected);
    }
    cluster.join();
    cluster.wait_until_even();
}

#[test]
fn without_takeover_the_survivor_of_two_says_that_it_may_not_serve() {
    let mut cluster = Cluster::of(2, &[]);
    let answer = cluster.nodes[0].client().run("CLUSTER SETTINGS two-node-takeover false");
    assert!(!matches!(answer, Value::Error(_)), "{answer:?}");
    thread::sleep(Duration::from_millis(500));
    cluster.kill(0);
    thread::sleep(Duration::from_secs(4));
    let answer = cluster.nodes[0].client().run("GET 7");
    let down = matches!(&answer, Value::Error(text) if text.starts_with(b"CLUSTERDOWN"));
    assert!(
        down || matches!(&answer, Value::Error(text) if text.starts_with(b"MOVED")),
        "{answer:?}"
    );
}

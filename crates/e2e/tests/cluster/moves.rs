//! Large data moves in pieces while it is being written to; and clients that know nothing of clusters.
use std::net::TcpListener;

use e2e::Cluster;
use resp::Value;

use crate::load::client;

#[test]
fn a_large_value_and_a_large_slot_move_whole_while_they_are_written_to() {
    let mut cluster = Cluster::of(1, &[]);
    let mut connection = client(&cluster.urls()).get_connection().unwrap();
    let large = "x".repeat(20_000_000);
    redis::cmd("SET").arg("large").arg(&large).query::<()>(&mut connection).unwrap();
    for number in 0..20_000 {
        let key = format!("{{one}}{number}");
        redis::cmd("SET").arg(&key).arg("y".repeat(200)).query::<()>(&mut connection).unwrap();
    }
    let urls = cluster.urls();
    let writer = std::thread::spawn(move || {
        let mut connection = client(&urls).get_connection().unwrap();
        for number in 0..5_000 {
            let key = format!("{{one}}{}", number * 3);
            redis::cmd("APPEND").arg(&key).arg("z").query::<()>(&mut connection).unwrap();
            redis::cmd("INCR").arg("{one}count").query::<()>(&mut connection).unwrap();
        }
    });
    cluster.join();
    cluster.join();
    cluster.wait_until_even();
    writer.join().unwrap();
    // The first node leaves: everything is read from copies.
    let rest = cluster.nodes.split_off(1);
    cluster.leave(0);
    cluster.nodes = rest;
    cluster.wait_until_even();
    let mut connection = client(&cluster.urls()).get_connection().unwrap();
    let length: usize = redis::cmd("STRLEN").arg("large").query(&mut connection).unwrap();
    assert_eq!(length, large.len());
    let count: u64 = redis::cmd("GET").arg("{one}count").query(&mut connection).unwrap();
    assert_eq!(count, 5_000, "a counter is exact");
    for number in (0..20_000).step_by(97) {
        let key = format!("{{one}}{number}");
        let length: usize = redis::cmd("STRLEN").arg(&key).query(&mut connection).unwrap();
        let appended = usize::from(number % 3 == 0 && number / 3 < 5_000);
        assert_eq!(length, 200 + appended, "{key}");
    }
}

#[test]
fn a_large_hash_moves_whole_while_its_fields_are_written() {
    const FIELDS: usize = 100_000;
    let mut cluster = Cluster::of(1, &[]);
    let mut connection = client(&cluster.urls()).get_connection().unwrap();
    for first in (0..FIELDS).step_by(1_000) {
        let mut command = redis::cmd("HSET");
        command.arg("large");
        for number in first..first + 1_000 {
            command.arg(format!("f{number}")).arg("old");
        }
        command.query::<usize>(&mut connection).unwrap();
    }
    let urls = cluster.urls();
    let writer = std::thread::spawn(move || {
        let mut connection = client(&urls).get_connection().unwrap();
        for number in 0..10_000 {
            let field = format!("f{}", number * 7);
            redis::cmd("HSET").arg("large").arg(field).arg(number).exec(&mut connection).unwrap();
            redis::cmd("HINCRBY").arg("large").arg("count").arg(1).exec(&mut connection).unwrap();
            let field = format!("f{}", number * 7 + 1);
            redis::cmd("HDEL").arg("large").arg(field).exec(&mut connection).unwrap();
        }
    });
    cluster.join();
    cluster.join();
    cluster.wait_until_even();
    writer.join().unwrap();
    // The first node leaves: everything is read from copies.
    let rest = cluster.nodes.split_off(1);
    cluster.leave(0);
    cluster.nodes = rest;
    cluster.wait_until_even();
    let mut connection = client(&cluster.urls()).get_connection().unwrap();
    let fields: std::collections::HashMap<String, String> =
        redis::cmd("HGETALL").arg("large").query(&mut connection).unwrap();
    assert_eq!(fields.len(), FIELDS - 10_000 + 1);
    assert_eq!(fields["count"], "10000", "a counter is exact");
    for number in 0..FIELDS {
        let value = fields.get(&format!("f{number}")).map(String::as_str);
        let written = (number / 7).to_string();
        let expected = match number % 7 {
            _ if number / 7 >= 10_000 => Some("old"),
            0 => Some(written.as_str()),
            1 => None,
            _ => Some("old"),
        };
        assert_eq!(value, expected, "f{number}");
    }
}

#[test]
fn a_client_that_knows_nothing_of_clusters_uses_the_any_port() {
    let mut cluster = Cluster::of(3, &[]);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let join = format!("127.0.0.1:{}", cluster.nodes[0].port());
    let flags = ["--any-port", &port.to_string(), "--join", &join];
    cluster.nodes.push(e2e::Server::node_with(&flags));
    cluster.wait_until_even();
    let mut plain = e2e::Client::try_connect(port).unwrap();
    let ok = Value::Simple(b"OK".to_vec());
    let bulk = |text: &str| Value::Bulk(text.as_bytes().to_vec());
    assert_eq!(plain.run("MSET a 1 b 2 c 3 d 4"), ok);
    let values = Value::Array(vec![bulk("1"), Value::Null, bulk("4"), bulk("2")]);
    assert_eq!(plain.run("MGET a nosuch d b"), values);
    assert_eq!(plain.run("EXISTS a b c nosuch"), Value::Integer(3));
    assert_eq!(plain.run("DEL a b nosuch"), Value::Integer(2));
    assert_eq!(plain.run("INCR c"), Value::Integer(4));
    assert_eq!(plain.run("MULTI"), ok);
    assert_eq!(plain.run("SET {t}x 1"), Value::Simple(b"QUEUED".to_vec()));
    assert_eq!(plain.run("INCR {t}x"), Value::Simple(b"QUEUED".to_vec()));
    assert_eq!(plain.run("EXEC"), Value::Array(vec![ok, Value::Integer(2)]));
    let refused = plain.run("RENAME c d");
    assert!(
        matches!(&refused, Value::Error(text) if text.starts_with(b"CROSSSLOT")),
        "{refused:?}"
    );
}

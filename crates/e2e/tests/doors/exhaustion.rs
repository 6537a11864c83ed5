//! Descriptors, threads and places of the HTTP port that strangers use up: others are served.
use std::net::TcpStream;

use e2e::http::ask;
use e2e::{Client, Server};
use resp::Value;

use crate::Scratch;

/// Limit of open files in these tests.
const FILES: u64 = 200;

#[test]
fn more_connections_than_descriptors_end_nothing() {
    let dir = Scratch::new("descriptors");
    let limit = format!("ulimit -n {FILES}");
    let node = Server::node_under(&limit, &["--data-dir", dir.path(), "--io-threads", "2"]);
    let mut client = node.client();
    let Value::Array(told) = client.run("CONFIG GET maxclients") else { panic!("no settings") };
    let most: u64 =
        String::from_utf8_lossy(told[1].text().expect("a number")).parse().expect("one");
    assert!((16..FILES / 2).contains(&most), "{most} clients");
    assert!(node.log().contains("ulimit -n"), "{}", node.log());
    let held: Vec<TcpStream> = [node.port(), node.http_port(), node.peer_port()]
        .into_iter()
        .cycle()
        .take(600)
        .filter_map(|port| TcpStream::connect(("127.0.0.1", port)).ok())
        .collect();
    // Changes of the map are written to the log, which needs its file; so does a snapshot.
    for round in 0..20 {
        let backups = 1 + round % 3;
        let told = client.run(&format!("CLUSTER SETTINGS backups {backups}")).to_string();
        assert!(told.contains("OK"), "{told}");
    }
    assert_eq!(ask(node.http_port(), "GET", "/healthz", "").status, 200);
    drop(held);
    let mut another = Client::try_connect(node.port()).expect("it lives");
    assert_eq!(another.run("PING"), Value::Simple(b"PONG".to_vec()));
}

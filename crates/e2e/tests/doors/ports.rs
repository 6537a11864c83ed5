//! Ports that answer web pages, and nodes without a secret.
use e2e::{Client, Cluster, Server, free_ports};
use resp::Value;

use crate::node_with_password;

/// Sends an HTTP request with commands in its body, as a web page can, and waits until the connection is closed.
fn post(port: u16, commands: &str) {
    let mut page = Client::try_connect(port).expect("it listens");
    let length = commands.len();
    let head =
        format!("POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {length}\r\n\r\n");
    page.send_raw(format!("{head}{commands}").as_bytes()).expect("it listens");
    while page.receive().is_ok() {}
}

#[test]
fn no_port_runs_the_body_of_an_http_request() {
    let [any_port] = free_ports();
    let mut cluster = Cluster::of(1, &[]);
    let join = format!("127.0.0.1:{}", cluster.nodes[0].port());
    let flags = ["--any-port", &any_port.to_string(), "--join", &join];
    cluster.nodes.push(Server::node_with(&flags));
    cluster.wait_until_even();
    let sets: String = (0..20).map(|number| format!("SET page:{number} 1\r\n")).collect();
    for port in [cluster.nodes[0].port(), any_port] {
        post(port, &sets);
    }
    let keys: Vec<Value> = cluster.nodes.iter().map(|node| node.client().run("DBSIZE")).collect();
    assert_eq!(keys, [Value::Integer(0), Value::Integer(0)]);
}

#[test]
fn before_auth_the_any_port_takes_small_requests_only() {
    let [any_port] = free_ports();
    let node = node_with_password("small", &["--any-port", &any_port.to_string()]);
    let mut stranger = Client::try_connect(any_port).expect("it listens");
    stranger.send_raw(b"*2\r\n$4\r\nECHO\r\n$100000000\r\n").expect("it listens");
    let before = node.rss_bytes();
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..100 {
        if stranger.send_raw(&chunk).is_err() {
            break;
        }
    }
    let reply = stranger.receive().map(|reply| reply.value.to_string());
    assert!(reply.as_ref().map_or(true, |reply| reply.contains("unauthenticated")), "{reply:?}");
    assert!(node.rss_bytes() < before + (20 << 20), "nothing is kept for a stranger");
}

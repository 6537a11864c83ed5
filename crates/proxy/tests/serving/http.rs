//! Tests of the HTTP interface.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use resp::Value;

use crate::support::{Fleet, bulk};

/// Sends a request, and returns the status and the body.
fn ask(address: SocketAddr, head: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let request = format!(
        "{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    (status, body.to_owned())
}

#[test]
fn operators_tools_are_told_how_the_proxy_and_its_fleet_are() {
    let fleet = Fleet::with(2, |options| {
        options.http = Some(([127, 0, 0, 1], 0).into());
        options.password = Some("secret".to_owned());
    });
    let http = fleet.proxy.http_address().unwrap();
    assert_eq!(ask(http, "GET /healthz", ""), (200, "ok\n".to_owned()));
    assert_eq!(ask(http, "GET /readyz", ""), (200, "ready\n".to_owned()));
    assert_eq!(ask(http, "GET /metrics", "").0, 401, "numbers are for those with the password");
    let head = "GET /metrics HTTP/1.1\r\nAuthorization: Bearer secret\r\nX:";
    let (status, page) = ask(http, head, "");
    assert_eq!(status, 200, "{page}");
    for line in [
        "opencluster_fleet_epoch 1",
        "opencluster_fleet_migration_status 0",
        "opencluster_fleet_ready 1",
        "opencluster_fleet_moving_requests_total{kind=\"write\"} 0",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in {page}");
    }
    assert_eq!(page.matches("server_weight{map=\"current\"").count(), 2, "{page}");
    fleet.servers[0].client().run("DEL server.config.current");
    let begun = std::time::Instant::now();
    while ask(http, "GET /readyz", "").0 != 503 {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "it never notices");
    }
}

#[test]
fn keys_are_put_got_and_deleted_where_they_live() {
    let fleet = Fleet::with(3, |options| options.http = Some(([127, 0, 0, 1], 0).into()));
    let http = fleet.proxy.http_address().unwrap();
    let mut client = fleet.client();
    for number in 0..20 {
        let path = format!("/keys/a%20key/{number}");
        assert_eq!(ask(http, &format!("PUT {path}?ttl=100"), "value"), (204, String::new()));
        assert_eq!(client.call(&["GET", &format!("a key/{number}")]).value, bulk("value"));
        let left = client.call(&["TTL", &format!("a key/{number}")]).value;
        assert!(matches!(left, Value::Integer(98..=100)), "{left:?}");
        assert_eq!(ask(http, &format!("GET {path}"), ""), (200, "value".to_owned()));
        assert_eq!(ask(http, &format!("DELETE {path}"), "").0, 204);
        assert_eq!(ask(http, &format!("GET {path}"), "").0, 404);
        assert_eq!(ask(http, &format!("DELETE {path}"), "").0, 404);
    }
    client.run("RPUSH list a");
    for (head, status) in [
        ("GET /keys/list", 409),
        ("GET /keys/", 404),
        ("GET /elsewhere", 404),
        ("POST /keys/k", 405),
        ("PUT /keys/k?ttl=soon", 400),
        ("GET /keys/%zz", 400),
        ("PUT /keys/server.config.current", 400),
    ] {
        assert_eq!(ask(http, head, "").0, status, "{head}");
    }
}

#[test]
fn a_password_counts_here_too() {
    let fleet = Fleet::with(1, |options| {
        options.http = Some(([127, 0, 0, 1], 0).into());
        options.password = Some("secret".to_owned());
    });
    let http = fleet.proxy.http_address().unwrap();
    assert_eq!(ask(http, "PUT /keys/k", "v").0, 401);
    let with = |header: &str| {
        let mut stream = TcpStream::connect(http).unwrap();
        write!(
            stream,
            "GET /keys/k HTTP/1.1\r\nHost: any\r\n{header}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    };
    assert_eq!(with("Authorization: Bearer wrong"), "401");
    assert_eq!(with("Authorization: Bearer secret"), "404");
    assert_eq!(with("Authorization: Bearer secret\r\nOrigin: http://evil"), "403");
}

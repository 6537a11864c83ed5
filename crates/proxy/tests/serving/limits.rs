//! Tests with servers that die, hang or are unsuitable, and with clients that exceed limits.

use std::time::{Duration, Instant};

use e2e::Server;
use proxy::{Credentials, Limits, Proxy};
use resp::Value;

use crate::support::{Fleet, bulk, error, options};

#[test]
fn a_dead_server_is_an_error_for_its_keys_and_never_a_miss() {
    let mut fleet = Fleet::of(2);
    let mut client = fleet.client();
    for number in 0..50 {
        client.run(&format!("SET k:{number} v"));
    }
    let dead = fleet.servers.pop().unwrap();
    drop(dead);
    let (mut alive, mut away) = (0, 0);
    for number in 0..50 {
        let answer = client.run(&format!("GET k:{number}"));
        let is_away = matches!(answer, Value::Error(_));
        assert!(is_away || matches!(answer, Value::Bulk(_)), "{answer:?}");
        *(if is_away { &mut away } else { &mut alive }) += 1;
    }
    assert!(alive > 10 && away > 10, "{alive} alive, {away} away");
    let keys: Vec<String> = (0..50).map(|number| format!("k:{number}")).collect();
    let mget = [vec!["MGET".to_owned()], keys].concat();
    assert!(error(client.call(&mget).value).contains("is unreachable"));
}

#[test]
fn a_server_that_hangs_is_given_up_after_a_while_and_found_again() {
    let limits = Limits { server_silence_max: Duration::from_millis(300), ..Limits::default() };
    let fleet = Fleet::with(1, |options| options.limits = limits);
    let mut client = fleet.client();
    assert!(client.run("SET k v").is_ok());
    let mut direct = fleet.servers[0].client();
    direct.send(&["DEBUG", "SLEEP", "3"]).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let text = error(client.run("GET k"));
    assert!(text.contains("was lost before it answered (it did not answer in time)"), "{text}");
    let begun = Instant::now();
    while client.run("GET k") != bulk("v") {
        assert!(begun.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_client_that_never_reads_is_not_served_on() {
    let fleet = Fleet::of(1);
    let mut client = fleet.client();
    assert!(client.call(&["SET", "k", &"x".repeat(100_000)]).value.is_ok());
    client.stream().set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut sent = 0;
    let get = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n".repeat(1_000);
    while client.send_raw(&get).is_ok() {
        sent += get.len();
        assert!(sent < 100_000_000, "the proxy reads on and on");
    }
    assert!(fleet.client().run("PING") == Value::Simple(b"PONG".to_vec()));
}

#[test]
fn there_is_a_limit_on_clients() {
    let limits = Limits { clients_max: 2, ..Limits::default() };
    let fleet = Fleet::with(1, |options| options.limits = limits);
    let (mut first, mut second) = (fleet.client(), fleet.client());
    first.run("PING");
    second.run("PING");
    let refused = fleet.client().receive().unwrap().value;
    assert_eq!(error(refused), "ERR max number of clients reached");
    drop(first);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(fleet.client().run("PING"), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn servers_that_do_not_fit_are_named_with_the_reason() {
    let start = |servers: &[Server]| Proxy::start(options(servers)).err().unwrap().to_string();
    let secret = Server::redis_with(&["--requirepass", "secret"]);
    assert!(start(&[secret]).ends_with("it requires a password, and none was given"));
    let plain = Server::redis();
    let port = plain.port().to_string();
    let replica = Server::redis_with(&["--replicaof", "127.0.0.1", &port]);
    assert!(start(&[replica]).contains("it is a replica of 127.0.0.1"));
    let cluster = Server::redis_with(&["--cluster-enabled", "yes"]);
    assert!(start(&[cluster]).contains("cluster mode"));
    assert!(plain.client().run("KEYS *") == Value::Array(Vec::new()), "nothing was written");
}

#[test]
fn servers_that_disagree_are_named_with_the_difference() {
    let fleet = Fleet::of(2);
    fleet.servers[1].client().run("SET server.config.current 1.1");
    let text = Proxy::start(options(&fleet.servers)).err().unwrap().to_string();
    assert!(
        text.starts_with("the servers disagree: server.config.current is \"4.4\" on"),
        "{text}"
    );
    let mut other = options(&fleet.servers);
    other.servers.reverse();
    let text = Proxy::start(other).err().unwrap().to_string();
    assert!(text.starts_with("the servers belong to a fleet of"), "{text}");
}

#[test]
fn servers_with_a_password_are_served_with_it() {
    let server = Server::redis_with(&["--requirepass", "secret"]);
    let mut options = options(std::slice::from_ref(&server));
    let password = "secret".to_owned();
    options.access.credentials = Some(Credentials { user: None, password: password.clone() });
    let proxy = Proxy::start(options.clone()).unwrap();
    let mut client = e2e::Client::try_connect(proxy.address().port()).unwrap();
    assert!(client.run("SET k v").is_ok());
    options.access.credentials = Some(Credentials { user: None, password: "wrong".to_owned() });
    assert!(Proxy::start(options).err().unwrap().to_string().contains("WRONGPASS"));
}

#[test]
fn the_body_of_an_http_request_is_never_run() {
    let fleet = Fleet::of(2);
    assert!(fleet.client().run("SET kept 1").is_ok());
    for head in ["POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n", "GET / HTTP/1.1\r\nhOST: 127.0.0.1\r\n"]
    {
        let mut page = fleet.client();
        let sets: String = (0..50).map(|number| format!("SET page:{number} 1\r\n")).collect();
        let body = format!("FLUSHALL\r\n{sets}");
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        page.send_raw(request.as_bytes()).unwrap();
        while page.receive().is_ok() {} // Until it is closed.
    }
    let mut client = fleet.client();
    assert_eq!(client.run("DBSIZE"), Value::Integer(1));
    assert_eq!(client.run("GET kept"), bulk("1"));
}

#[test]
fn guesses_are_not_even_judged_after_many_wrong_ones() {
    let fleet = Fleet::with(1, |options| options.password = Some("secret".to_owned()));
    let mut client = fleet.client();
    let refused = (0..1_000)
        .map(|_| error(client.run("AUTH wrong")))
        .find(|text| !text.starts_with("WRONGPASS"));
    assert_eq!(
        refused.as_deref(),
        Some("ERR too many wrong passwords from this address, wait ten seconds")
    );
    assert!(client.receive().is_err(), "the connection is closed");
    assert!(error(fleet.client().run("AUTH secret")).starts_with("ERR too many"));
}

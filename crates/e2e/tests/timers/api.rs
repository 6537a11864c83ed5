//! What each request is answered with, on a cluster of three.

use std::time::{Duration, Instant};

use e2e::{Cluster, Server};
use serde_json::{Value, json};

use crate::http::{ask, try_ask};
use crate::sink::Sink;

fn timer(interval: f64, callback: &Value) -> String {
    json!({ "timing": { "interval": interval }, "callback": callback }).to_string()
}

fn http(uri: &str) -> Value {
    json!({ "http": { "uri": uri, "opaque": "hello" } })
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_timer_is_made_seen_changed_and_deleted_through_any_node() {
    let cluster = Cluster::of(3, &[]);
    let ports: Vec<u16> = cluster.nodes.iter().map(Server::http_port).collect();
    let sink = Sink::start();
    let made = ask(ports[0], "POST", "/timers", &timer(60.0, &http(&sink.uri())));
    assert_eq!(made.status, 200, "{}", made.body);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(id.len(), 18);
    assert!(made.header("Location").unwrap().ends_with(&format!("/timers/{id}")));
    for port in &ports {
        let seen = ask(*port, "GET", &format!("/timers/{id}"), "").json();
        assert_eq!(seen["callback"]["http"]["opaque"], "hello");
        assert_eq!(seen["timing"]["interval"], 60);
        let listed = ask(*port, "GET", "/timers?limit=10", "").json();
        assert_eq!(listed["timers"][0]["id"], json!(id));
        let stats = ask(*port, "GET", "/timers/stats", "").json();
        assert_eq!((&stats["timers"], &stats["copies"]), (&json!(1), &json!(2)));
    }
    let path = format!("/timers/{id}");
    let changed = ask(ports[1], "PUT", &path, &timer(0.3, &http(&sink.uri())));
    assert_eq!(changed.status, 200, "{}", changed.body);
    wait_until("it pops", || !sink.pops().is_empty());
    let pop = &sink.pops()[0];
    assert_eq!((&pop.id, pop.sequence, pop.body.as_str()), (&id, 0, "hello"));
    assert_eq!(ask(ports[2], "GET", &path, "").status, 404);
    assert_eq!(ask(ports[2], "DELETE", &path, "").status, 200);
    assert_eq!(ask(ports[0], "DELETE", &path, "").status, 200);
}

#[test]
fn a_deleted_timer_does_not_pop() {
    let cluster = Cluster::of(2, &[]);
    let sink = Sink::start();
    let port = cluster.nodes[0].http_port();
    let made = ask(port, "POST", "/timers", &timer(1.0, &http(&sink.uri())));
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let other = cluster.nodes[1].http_port();
    assert_eq!(ask(other, "DELETE", &format!("/timers/{id}"), "").status, 200);
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(sink.pops().len(), 0);
}

#[test]
fn a_callback_without_words_says_that_it_has_none() {
    let node = Server::node();
    let sink = Sink::start(); // It hangs up on whoever does not say how long a body is.
    let callback = json!({ "http": { "uri": sink.uri() } });
    assert_eq!(ask(node.http_port(), "POST", "/timers", &timer(0.1, &callback)).status, 200);
    wait_until("it pops", || !sink.pops().is_empty());
    assert_eq!(sink.pops()[0].body, "");
}

#[test]
fn what_is_wrong_is_refused_with_a_reason_and_nothing_is_stored() {
    let node = Server::node();
    let port = node.http_port();
    let own = format!("http://127.0.0.1:{}/", node.port());
    let wrong = [
        ("{".to_owned(), 400, "not JSON"),
        (timer(-1.0, &http("http://127.0.0.1/")), 400, "seconds"),
        (timer(1.0, &json!({})), 400, "callback"),
        (timer(1.0, &http("ftp://127.0.0.1/")), 400, "http://"),
        (timer(1.0, &http("http://8.8.8.8/")), 400, "allow-callbacks"),
        (timer(1.0, &http("http://169.254.169.254/")), 400, "allow-callbacks"),
        (timer(1.0, &http(&own)), 400, "own ports"),
        (timer(1.0, &http(&own.replace("127.0.0.1", "localhost"))), 400, "address, not a name"),
    ];
    for (body, status, word) in wrong {
        let reply = ask(port, "POST", "/timers", &body);
        assert_eq!(reply.status, status, "{body}: {}", reply.body);
        assert!(reply.header("Reason").unwrap().contains(word), "{body}: {}", reply.head);
        assert!(reply.json()["error"].as_str().unwrap().contains(word));
    }
    let long = timer(1.0, &http(&format!("http://127.0.0.1/{}", "x".repeat(70_000))));
    assert!(try_ask(port, "POST", "/timers", &long).is_none_or(|reply| reply.status == 413));
    assert_eq!(ask(port, "PUT", "/timers/nonsense", "{}").status, 400);
    assert_eq!(ask(port, "GET", "/timers/00000000000000aa-2", "").status, 404);
    assert_eq!(ask(port, "GET", "/timers/stats", "").json()["timers"], 0);
}

#[test]
fn a_callback_can_be_a_command_or_a_message() {
    let cluster = Cluster::of(2, &[]);
    let port = cluster.nodes[0].http_port();
    for key in ["a", "b", "c"] {
        let command = json!({ "command": ["SET", key, "{sequence}"] });
        assert_eq!(ask(port, "POST", "/timers", &timer(0.2, &command)).status, 200);
    }
    let message = json!({ "publish": { "channel": "news", "message": "now" } });
    assert_eq!(ask(port, "POST", "/timers", &timer(0.2, &message)).status, 200);
    wait_until("all have popped", || ask(port, "GET", "/timers/stats", "").json()["popped"] == 4);
    assert_eq!(ask(port, "GET", "/timers/dead", "").json()["dead"], json!([]));
}

#[test]
fn what_fails_at_every_replica_is_a_dead_letter() {
    let node = Server::node();
    let port = node.http_port();
    // Nobody listens there.
    let body = timer(0.1, &http("http://127.0.0.1:1/"));
    assert_eq!(ask(port, "POST", "/timers", &body).status, 200);
    wait_until("it is given up", || {
        ask(port, "GET", "/timers/dead", "").json()["dead"][0]["destination"] == "127.0.0.1:1"
    });
}

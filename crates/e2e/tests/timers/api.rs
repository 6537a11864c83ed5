//! The answer to each request, on a cluster of three.

use std::time::Duration;

use e2e::{Cluster, Server};
use serde_json::{Value, json};

use crate::sink::Sink;
use crate::wait_until;
use e2e::http::ask;

pub(crate) fn timer(interval: f64, callback: &Value) -> String {
    json!({ "timing": { "interval": interval }, "callback": callback }).to_string()
}

pub(crate) fn http(uri: &str) -> Value {
    json!({ "http": { "uri": uri, "opaque": "hello" } })
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
    let sink = Sink::start(); // It closes a connection whose request has no Content-Length.
    let callback = json!({ "http": { "uri": sink.uri() } });
    assert_eq!(ask(node.http_port(), "POST", "/timers", &timer(0.1, &callback)).status, 200);
    wait_until("it pops", || !sink.pops().is_empty());
    assert_eq!(sink.pops()[0].body, "");
}

#[test]
fn a_callback_can_be_a_command_or_a_message() {
    let cluster = Cluster::of(2, &[]);
    let port = cluster.nodes[0].http_port();
    let mut listener = cluster.nodes[1].client();
    listener.run("SUBSCRIBE news");
    // Some of these keys are on one node, some on the other.
    let keys: Vec<String> = (0..8).map(|number| format!("key{number}")).collect();
    for key in &keys {
        let command = json!({ "command": ["SET", key, "{id} {sequence}"] });
        assert_eq!(ask(port, "POST", "/timers", &timer(0.2, &command)).status, 200);
    }
    let message = json!({ "publish": { "channel": "news", "message": "now {sequence}" } });
    assert_eq!(ask(port, "POST", "/timers", &timer(0.2, &message)).status, 200);
    let heard = listener.receive().expect("a message").value.to_string();
    assert!(heard.contains("news") && heard.contains("now 0"), "{heard}");
    wait_until("all have popped", || ask(port, "GET", "/timers/stats", "").json()["popped"] == 9);
    for key in &keys {
        let value = (0..2).map(|node| cluster.nodes[node].client().run(&format!("GET {key}")));
        let values: Vec<String> = value.map(|value| value.to_string()).collect();
        assert!(values.iter().any(|value| value.ends_with("-2 0\"")), "{key}: {values:?}");
    }
    assert_eq!(ask(port, "GET", "/timers/dead", "").json()["dead"], json!([]));
}

#[test]
fn what_fails_at_every_replica_is_a_dead_letter() {
    let node = Server::node();
    let port = node.http_port();
    // Nobody listens at this address.
    let body = timer(0.1, &http("http://127.0.0.1:1/"));
    assert_eq!(ask(port, "POST", "/timers", &body).status, 200);
    wait_until("it is given up", || {
        ask(port, "GET", "/timers/dead", "").json()["dead"][0]["destination"] == "127.0.0.1:1"
    });
}

#[test]
fn a_list_is_whole_page_by_page_however_long_the_words_are() {
    let cluster = Cluster::of(3, &[]);
    let port = cluster.nodes[0].http_port();
    let mut made = std::collections::BTreeSet::new();
    // A page of these is more than a node sends at once.
    let words = "x".repeat(50_000);
    for number in 0..90 {
        let opaque = if number % 3 == 0 { "short" } else { words.as_str() };
        let callback = json!({ "http": { "uri": "http://127.0.0.1:9/", "opaque": opaque } });
        let reply = ask(port, "POST", "/timers", &timer(600.0, &callback));
        made.insert(reply.json()["id"].as_str().expect("an id").to_owned());
    }
    let (mut seen, mut path) = (Vec::new(), "/timers?limit=80".to_owned());
    loop {
        let page = ask(cluster.nodes[seen.len() % 3].http_port(), "GET", &path, "").json();
        let timers = page["timers"].as_array().expect("a list");
        assert!(timers.len() <= 80 && !timers.is_empty());
        seen.extend(timers.iter().map(|timer| timer["id"].as_str().expect("an id").to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/timers?limit=80&after={next}");
    }
    assert!(seen.is_sorted());
    assert_eq!(seen.into_iter().collect::<std::collections::BTreeSet<_>>(), made);
}

#[test]
fn one_hanging_host_delays_nobody_else_and_what_fails_is_tried_again() {
    let node = Server::node();
    let port = node.http_port();
    // It accepts connections and never answers.
    let hanging = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let mut callback = http(&format!("http://{}/", hanging.local_addr().expect("bound")));
    callback["http"]["timeout"] = json!(30);
    for _ in 0..300 {
        assert_eq!(ask(port, "POST", "/timers", &timer(0.1, &callback)).status, 200);
    }
    wait_until("as many calls as one host may have", || {
        ask(port, "GET", "/timers/stats", "").json()["calls-in-flight"] == 256
    });
    let sink = Sink::start();
    assert_eq!(ask(port, "POST", "/timers", &timer(0.1, &http(&sink.uri()))).status, 200);
    wait_until("another host is called", || !sink.pops().is_empty());
    let stats = ask(port, "GET", "/timers/stats", "").json();
    assert!(stats["calls-waiting"].as_u64() > Some(0), "they were still waiting: {stats}");
    // Nobody listens at first; the retries succeed later.
    let later = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = later.local_addr().expect("bound");
    drop(later);
    let mut body: Value = serde_json::from_str(&timer(0.1, &http(&format!("http://{address}/"))))
        .expect("our own JSON");
    body["retry"] = json!({ "attempts": 20, "backoff": 0.2 });
    assert_eq!(ask(port, "POST", "/timers", &body.to_string()).status, 200);
    wait_until("a call has failed", || {
        ask(port, "GET", "/timers/stats", "").json()["failed"].as_u64() > Some(0)
    });
    let sink = Sink::at(address);
    wait_until("it is tried again", || !sink.pops().is_empty());
}

#[test]
fn the_numbers_of_timers_are_in_the_metrics() {
    let node = Server::node();
    let port = node.http_port();
    let sink = Sink::start();
    ask(port, "POST", "/timers", &timer(0.1, &http(&sink.uri())));
    ask(port, "POST", "/timers", &timer(600.0, &http(&sink.uri())));
    wait_until("one has popped", || {
        let page = ask(port, "GET", "/metrics", "").body;
        let has = |line: &str| page.lines().any(|found| found == line);
        has("opencluster_timers_popped_total 1")
            && has("opencluster_timers_pending 1")
            && has("opencluster_timers_lateness_seconds_count 1")
            && has("opencluster_timers_dead_letters_total 0")
    });
}

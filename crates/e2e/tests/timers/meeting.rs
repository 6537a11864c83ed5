//! Two nodes that each continued alone meet again: both nodes then have the timers of both sides.
//! The test separates them by stopping their processes in turn, so that neither reaches the other.

use e2e::http::{ask, try_ask};
use e2e::{Cluster, Server};
use serde_json::{Value, json};

use crate::api::{http, timer};
use crate::sink::Sink;
use crate::wait_until;

/// Interval longer than the test runs.
const LONG: f64 = 3600.0;
const EACH: usize = 20;

fn make(node: &Server, sink: &Sink) -> Vec<String> {
    let body = timer(LONG, &http(&sink.uri()));
    let make = |_| {
        let reply = ask(node.http_port(), "POST", "/timers", &body);
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()["id"].as_str().expect("an id").to_owned()
    };
    (0..EACH).map(make).collect()
}

/// Returns a node's counts of all timers, if it answers: a node that yields starts anew.
fn counted(node: &Server) -> Value {
    let reply = try_ask(node.http_port(), "GET", "/timers/stats", "");
    let stats = reply.filter(|reply| reply.status == 200).map(|reply| reply.json());
    stats.map_or(Value::Null, |stats| json!([stats["timers"], stats["copies"]]))
}

/// Makes the node take over alone: a request for a timer triggers that, and waits for the answer.
fn goes_on_alone(node: &Server) {
    let (path, body) = ("/timers/00000000000000aa-2", timer(LONG, &http("http://127.0.0.1:9/")));
    let reply = ask(node.http_port(), "PUT", path, &body);
    assert_eq!(reply.status, 200, "it takes timers, alone: {}", reply.body);
    assert_eq!(ask(node.http_port(), "DELETE", path, "").status, 200);
}

#[test]
fn when_two_nodes_that_went_on_alone_meet_again_the_timers_of_both_are_there() {
    let sink = Sink::start();
    let cluster = Cluster::of(2, &[]);
    let [one, two] = [&cluster.nodes[0], &cluster.nodes[1]];
    let before = make(one, &sink);
    // 1) The first continues alone, then the second.
    two.stop();
    goes_on_alone(one);
    let of_one = make(one, &sink);
    let deleted = &before[0];
    assert_eq!(ask(one.http_port(), "DELETE", &format!("/timers/{deleted}"), "").status, 200);
    one.stop();
    two.go_on();
    goes_on_alone(two);
    let of_two = make(two, &sink);
    // 2) They meet.
    one.go_on();
    let all = 3 * EACH - 1;
    wait_until("both have all of them", || {
        [one, two].iter().all(|node| counted(node) == json!([all, 2 * all]))
    });
    for node in [one, two] {
        let gone = ask(node.http_port(), "GET", &format!("/timers/{deleted}"), "");
        assert_eq!(gone.status, 404, "it was deleted on one side: {}", gone.body);
    }
    // 3) Each timer can be set again, through either node, and pops once.
    let soon = timer(0.2, &http(&sink.uri()));
    let rest = before[1..].iter().chain(&of_one).chain(&of_two);
    for (number, id) in rest.enumerate() {
        let port = [one, two][number % 2].http_port();
        let reply = ask(port, "PUT", &format!("/timers/{id}"), &soon);
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    wait_until("all pop", || sink.counts().len() == all);
    assert_eq!(sink.counts().values().max(), Some(&1), "none came twice");
}

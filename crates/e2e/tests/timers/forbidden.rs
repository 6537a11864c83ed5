//! Callbacks that were accepted, but whose target is forbidden when they pop. `malformed.rs` has
//! those that are refused at once.

use e2e::Server;
use e2e::http::ask;
use serde_json::Value;

use crate::api::{http, timer};
use crate::restarts::DataDir;
use crate::sink::Sink;
use crate::wait_until;

/// Allows callbacks to other machines, but not to this one.
const ELSEWHERE: [&str; 2] = ["--timers.allow-callbacks", "192.0.2.0/24"];

/// Waits for the first dead letter, and returns its reason.
fn given_up(node: &Server) -> String {
    let dead = || ask(node.http_port(), "GET", "/timers/dead", "").json()["dead"].clone();
    wait_until("it is given up", || dead()[0]["why"] != Value::Null);
    dead()[0]["why"].as_str().expect("a text").to_owned()
}

#[test]
fn a_name_is_judged_when_its_timer_pops_by_the_addresses_it_then_has() {
    let sink = Sink::start();
    let set = format!("TIMER.SET * 0.1 HTTP {} hello", sink.uri_by_name());
    // A command does not resolve names: it is accepted, and refused once the name is resolved.
    let guarded = Server::node_with(&ELSEWHERE);
    guarded.client().run(&set);
    let why = given_up(&guarded);
    assert!(why.contains("timers.allow-callbacks"), "{why}");
    assert_eq!(sink.pops().len(), 0);
    // Only the address was forbidden.
    let open = Server::node();
    open.client().run(&set);
    wait_until("it pops", || sink.pops().len() == 1);
}

#[test]
fn what_was_accepted_by_looser_rules_is_refused_by_stricter_ones_when_it_pops() {
    let sink = Sink::start();
    let dir = DataDir::new("stricter");
    let node = dir.start_with(&[]);
    // Enough time to stop the node before it is due.
    let body = timer(20.0, &http(&sink.uri()));
    assert_eq!(ask(node.http_port(), "POST", "/timers", &body).status, 200);
    node.terminate();
    let node = dir.start_with(&ELSEWHERE);
    let why = given_up(&node);
    assert!(why.contains("timers.allow-callbacks"), "{why}");
    assert_eq!(sink.pops().len(), 0);
}

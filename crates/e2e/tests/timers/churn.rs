//! A cluster that grows, shrinks and loses a node while timers pop: none is lost, few pop twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use e2e::{Cluster, Effort, Server};
use serde_json::json;

use crate::sink::Sink;
use e2e::http::try_ask;

const INTERVAL: Duration = Duration::from_secs(5);

/// Changes the cluster: 1 -> 3 -> 5 -> 2 nodes, with one of them killed.
fn change(cluster: &mut Cluster, step: usize) {
    match step {
        1..=4 => {
            cluster.join();
        }
        5 => cluster.kill(4),
        6 | 7 => cluster.leave(cluster.nodes.len() - 1),
        _ => {}
    }
}

#[test]
fn no_timer_is_lost_while_nodes_come_leave_and_die() {
    let (timers, over) = match Effort::of_this_run() {
        Effort::Quick => (400, Duration::from_secs(16)),
        Effort::Normal => (2000, Duration::from_secs(40)),
        Effort::Nightly => (10_000, Duration::from_secs(80)),
    };
    let sink = Sink::start();
    let mut cluster = Cluster::of(1, &[]);
    let begun = Instant::now();
    // Each timer with the step after which it was made, and the index of the node that was asked.
    let mut made: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let body = json!({
        "timing": { "interval": INTERVAL.as_secs() },
        "callback": { "http": { "uri": sink.uri() } },
    });
    let body = body.to_string();
    let mut step = 0;
    for number in 0..timers {
        let due = over * number / timers;
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
        if step < (number * 8 / timers) as usize {
            step += 1;
            change(&mut cluster, step);
        }
        let place = number as usize % cluster.nodes.len();
        let port = cluster.nodes[place].http_port();
        // A timer whose creation is not acknowledged is requested again, as a client would.
        let reply = try_ask(port, "POST", "/timers", &body);
        if let Some(reply) = reply.filter(|reply| reply.status == 200) {
            made.insert(reply.json()["id"].as_str().expect("an id").to_owned(), (step, place));
        }
    }
    assert!(made.len() * 100 >= timers as usize * 95, "only {} were accepted", made.len());
    wait_for_all(&sink, &made, &cluster);
    let counts = sink.counts();
    let ours = counts.iter().filter(|((id, _), _)| made.contains_key(id));
    let duplicates: usize = ours.map(|(_, count)| count - 1).sum();
    println!("{} timers, {duplicates} popped twice", made.len());
    assert!(duplicates * 100 < made.len(), "{duplicates} of {} popped twice", made.len());
}

fn wait_for_all(sink: &Sink, made: &BTreeMap<String, (usize, usize)>, cluster: &Cluster) {
    let until = Instant::now() + INTERVAL + Duration::from_secs(30);
    loop {
        let popped: BTreeSet<String> = sink.pops().into_iter().map(|pop| pop.id).collect();
        let lost: Vec<_> = made.iter().filter(|(id, _)| !popped.contains(*id)).collect();
        if lost.is_empty() {
            return;
        }
        if Instant::now() > until {
            let known = lost.iter().map(|(id, _)| known_of(cluster, id)).collect::<Vec<_>>();
            panic!(
                "{} of {} were lost: {lost:?}; of them is known: {known:?}",
                lost.len(),
                made.len()
            );
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Returns what the remaining nodes report about a timer: which of them has it, and when it is due.
fn known_of(cluster: &Cluster, id: &str) -> Vec<String> {
    let ports = cluster.nodes.iter().map(Server::http_port);
    let seen = ports.filter_map(|port| try_ask(port, "GET", &format!("/timers/{id}"), ""));
    seen.map(|reply| reply.body).collect()
}

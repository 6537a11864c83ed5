//! TIMER.SET, TIMER.DEL, TIMER.GET and TIMER.LIST on a cluster of three, as a Redis client sends them.

use std::time::{Duration, Instant};

use e2e::{Client, Cluster, Server};
use resp::Value;

use crate::sink::Sink;
use crate::wait_until;
use e2e::http::ask;

fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.text().expect("a text")).into_owned()
}

/// Returns the ids of all timers, listed page by page.
fn listed(client: &mut Client) -> Vec<String> {
    let mut ids = Vec::new();
    let mut line = "TIMER.LIST LIMIT 7".to_owned();
    loop {
        let Value::Array(page) = client.run(&line) else { panic!("no page") };
        let Value::Array(found) = &page[1] else { panic!("no ids") };
        ids.extend(found.iter().map(text));
        if page[0] == Value::Null {
            return ids;
        }
        line = format!("TIMER.LIST LIMIT 7 AFTER {}", text(&page[0]));
    }
}

#[test]
fn a_timer_is_set_seen_and_deleted_by_commands_on_any_node() {
    let cluster = Cluster::of(3, &[]);
    let mut clients: Vec<Client> = cluster.nodes.iter().map(Server::client).collect();
    let sink = Sink::start();
    let uri = sink.uri();
    let id = text(&clients[0].run(&format!("TIMER.SET * 60 HTTP {uri} hello")));
    for client in &mut clients {
        let shown = client.run(&format!("TIMER.GET {id}")).to_string();
        assert!(shown.contains(&id) && shown.contains(&uri) && shown.contains("hello"), "{shown}");
        assert_eq!(listed(client), std::slice::from_ref(&id));
    }
    let seen = ask(cluster.nodes[1].http_port(), "GET", &format!("/timers/{id}"), "").json();
    assert_eq!(seen["callback"]["http"]["opaque"], "hello");
    // The timer is set again through another node; it pops.
    clients[1].run(&format!("TIMER.SET {id} 0.2 HTTP {uri} again"));
    wait_until("it pops", || !sink.pops().is_empty());
    assert_eq!((&sink.pops()[0].id, sink.pops()[0].body.as_str()), (&id, "again"));
    wait_until("it is over", || {
        cluster.nodes[2].client().run(&format!("TIMER.GET {id}")) == Value::Null
    });
    // A deleted timer does not pop.
    let other = text(&clients[2].run(&format!("TIMER.SET * 1 HTTP {uri} never")));
    for client in &mut clients {
        assert_eq!(client.run(&format!("TIMER.DEL {other}")), Value::Simple(b"OK".to_vec()));
    }
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(sink.pops().len(), 1);
}

#[test]
fn replies_come_in_the_order_of_the_requests_though_timers_take_longer() {
    let cluster = Cluster::of(3, &[]);
    let mut client = cluster.nodes[0].client();
    let begun = Instant::now();
    for number in 0..50 {
        client.send(&["ECHO", &number.to_string()]).unwrap();
        client.send(&["TIMER.SET", "*", "600", "PUBLISH", "c", "m"]).unwrap();
    }
    client.send(&["PING"]).unwrap();
    for number in 0..50 {
        assert_eq!(text(&client.receive().unwrap().value), number.to_string());
        assert_eq!(text(&client.receive().unwrap().value).len(), 18);
    }
    assert_eq!(client.receive().unwrap().value, Value::Simple(b"PONG".to_vec()));
    println!("50 timers in {:?}", begun.elapsed());
    let mut ids = listed(&mut cluster.nodes[1].client());
    assert_eq!(ids.len(), 50);
    assert!(ids.is_sorted());
    ids.dedup();
    assert_eq!(ids.len(), 50);
}

#[test]
fn a_cluster_with_a_password_takes_commands_for_callbacks_from_who_knows_it() {
    let file = std::env::temp_dir().join(format!("opencluster-e2e-pass-{}", std::process::id()));
    std::fs::write(&file, "hush").expect("the temporary directory can be written");
    let file_name = file.to_str().expect("plain letters");
    let node = Server::node_with(&["--requirepass-file", file_name, "--secret-file", file_name]);
    std::fs::remove_file(&file).expect("written above");
    let mut client = node.client();
    assert!(client.run("TIMER.LIST").to_string().contains("NOAUTH"));
    client.run("AUTH hush");
    client.run("TIMER.SET * 0.1 COMMAND SET popped {sequence}");
    wait_until("the command has run", || {
        let mut client = node.client();
        client.run("AUTH hush");
        client.run("GET popped") != Value::Null
    });
    assert_eq!(text(&client.run("GET popped")), "0");
}

//! Timers and callbacks behind a password.
use e2e::http::{ask, ask_as};
use e2e::{Client, Server};
use resp::Value;

use crate::{PASSWORD, node_with_password};

const KEYS: u64 = 2_000;

/// Returns a timer of 64 KB that pops in a hundred years.
fn large_timer() -> String {
    let opaque = "x".repeat(64_000);
    format!(
        "{{\"timing\":{{\"interval\":3000000000}},\
         \"callback\":{{\"publish\":{{\"channel\":\"c\",\"message\":\"{opaque}\"}}}}}}"
    )
}

fn authenticated(node: &Server) -> Client {
    let mut client = node.client();
    client.send(&["AUTH", PASSWORD]).expect("it listens");
    assert_eq!(client.receive().expect("a reply").value, Value::Simple(b"OK".to_vec()));
    client
}

#[test]
fn timers_push_no_keys_out() {
    let memory = ["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
    let node = node_with_password("push", &memory);
    let mut client = authenticated(&node);
    for number in 0..KEYS {
        client.run(&format!("SET key:{number} {number}"));
    }
    let timer = large_timer();
    // A stranger gets nowhere.
    for (method, path) in
        [("POST", "/timers"), ("GET", "/timers"), ("DELETE", "/timers/00000000000000aa-2")]
    {
        assert_eq!(ask(node.http_port(), method, path, &timer).status, 401, "{method} {path}");
    }
    // One who knows the password meets the limit of timers: a tenth of maxmemory.
    let statuses =
        (0..2_500).map(|_| ask_as(node.http_port(), PASSWORD, "POST", "/timers", &timer).status);
    let mut taken = 0;
    for status in statuses {
        match status {
            200 => taken += 1,
            507 => break,
            other => panic!("status {other}"),
        }
    }
    assert!((100..400).contains(&taken), "{taken} timers of 64 KB");
    for number in 0..KEYS {
        client.run(&format!("SET key:{number} again"));
    }
    assert_eq!(client.run("DBSIZE"), Value::Integer(KEYS.cast_signed()));
    let stats = client.run("INFO stats").to_string();
    assert!(stats.contains("evicted_keys:0"), "{stats}");
}

#[test]
fn a_timer_set_by_a_client_is_not_shown_to_strangers() {
    let node = node_with_password("shown", &[]);
    let mut client = authenticated(&node);
    let id = client.run("TIMER.SET * 600 COMMAND SET session:42 top-secret-value");
    let id = String::from_utf8_lossy(id.text().expect("an id")).into_owned();
    let path = format!("/timers/{id}");
    for (method, path) in [("GET", "/timers"), ("GET", &path), ("PUT", &path), ("DELETE", &path)] {
        let reply = ask(node.http_port(), method, path, "{}");
        assert_eq!(reply.status, 401, "{method} {path}");
        assert!(!reply.body.contains("top-secret"), "{}", reply.body);
    }
    let seen = ask_as(node.http_port(), PASSWORD, "GET", &path, "");
    assert!(seen.body.contains("top-secret-value"), "{}", seen.body);
}

#[test]
fn a_node_that_others_reach_calls_no_local_address_unless_told_to() {
    let call = |node: &Server| {
        let body = "{\"timing\":{\"interval\":60},\
                    \"callback\":{\"http\":{\"uri\":\"http://127.0.0.1:9/\",\"opaque\":\"\"}}}";
        ask_as(node.http_port(), PASSWORD, "POST", "/timers", body)
    };
    let node = node_with_password("reached", &["--http-bind", "0.0.0.0"]);
    let refused = call(&node);
    assert_eq!(refused.status, 400, "{}", refused.body);
    assert!(refused.body.contains("timers.allow-callbacks"), "{}", refused.body);
    let flags = ["--http-bind", "0.0.0.0", "--timers.allow-callbacks", "local"];
    assert_eq!(call(&node_with_password("told", &flags)).status, 200);
}

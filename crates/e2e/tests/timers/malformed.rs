//! A malformed request is refused with a reason in words, and nothing is stored: more than thirty cases.

use e2e::Server;
use serde_json::{Value, json};

use e2e::http::ask;

/// Returns a request that is valid except for the `wrong` value at `path`.
fn with(path: &str, wrong: Value) -> String {
    let mut body = json!({
        "timing": { "interval": 60, "repeat-for": 120 },
        "callback": { "http": { "uri": "http://127.0.0.1:9/", "opaque": "o", "timeout": 1 } },
        "reliability": { "replication-factor": 2 },
        "retry": { "attempts": 1, "backoff": 1 },
        "statistics": { "tag-info": [{ "type": "CALL", "count": 1 }] },
    });
    *body.pointer_mut(path).expect("a part of the body") = wrong;
    body.to_string()
}

/// Returns bodies, each with a word of the reason for its refusal.
fn bodies() -> Vec<(String, &'static str)> {
    let callback = |callback: Value| with("/callback", callback);
    let uri = |uri: &str| with("/callback/http/uri", json!(uri));
    vec![
        (String::new(), "not JSON"),
        ("{".to_owned(), "not JSON"),
        ("{} {}".to_owned(), "not JSON"),
        ("[]".to_owned(), "JSON object"),
        ("{}".to_owned(), "timing.interval is missing"),
        ("\u{0}".to_owned(), "not JSON"),
        (with("/timing", json!({})), "timing.interval is missing"),
        (with("/timing", json!("soon")), "timing must be an object"),
        (with("/timing/interval", json!("60")), "timing.interval must be a number"),
        (with("/timing/interval", json!(-1)), "timing.interval must be a number"),
        (with("/timing/interval", json!(null)), "timing.interval must be a number"),
        (with("/timing/interval", json!(1e300)), "timing.interval must be at most"),
        (with("/timing/interval", json!(0)), "needs an interval"),
        (with("/timing/interval", json!(0.001)), "at least 0.01 seconds"),
        (with("/timing/repeat-for", json!("forever")), "timing.repeat-for"),
        (with("/timing/repeat-for", json!(-2.5)), "timing.repeat-for"),
        (callback(json!(null)), "callback must be an object"),
        (callback(json!({})), "http, publish or command"),
        (callback(json!({ "smtp": {} })), "http, publish or command"),
        (callback(json!({ "command": ["PING"], "http": {} })), "not several"),
        (callback(json!({ "http": {} })), "callback.http.uri is missing"),
        (callback(json!({ "command": [] })), "1 to 128 strings"),
        (callback(json!({ "command": ["SET", 1] })), "1 to 128 strings"),
        (callback(json!({ "command": "PING" })), "1 to 128 strings"),
        (callback(json!({ "publish": { "message": "m" } })), "callback.publish.channel"),
        (callback(json!({ "publish": { "channel": "c", "message": 7 } })), "must be a string"),
        (uri("ftp://127.0.0.1/"), "http://"),
        (uri("https://127.0.0.1/"), "http://"),
        (uri("http://"), "callback.http.uri"),
        (uri("http://127.0.0.1:0/"), "callback.http.uri"),
        (uri("http://127.0.0.1:99999/"), "callback.http.uri"),
        (uri("http://user@127.0.0.1/"), "callback.http.uri"),
        (uri("http://127.0.0.1/#part"), "fragment"),
        (uri("http://127.0.0.1/ x"), "spaces"),
        (uri("http://127.0.0.1/\r\nX-Evil: 1"), "control characters"),
        (uri(&format!("http://127.0.0.1/{}", "x".repeat(2048))), "2048"),
        (uri("http://8.8.8.8/"), "timers.allow-callbacks"),
        (uri("http://169.254.169.254/"), "timers.allow-callbacks"),
        (uri("http://[fe80::1]/"), "timers.allow-callbacks"),
        (uri("http://[::ffff:8.8.8.8]/"), "timers.allow-callbacks"),
        (with("/callback/http/opaque", json!(["o"])), "callback.http.opaque"),
        (with("/callback/http/timeout", json!(0)), "callback.http.timeout"),
        (with("/callback/http/timeout", json!(31)), "at most 30 seconds"),
        (with("/reliability/replication-factor", json!(0)), "1 to 255"),
        (with("/reliability/replication-factor", json!(256)), "1 to 255"),
        (with("/reliability/replication-factor", json!(1.5)), "1 to 255"),
        (with("/retry/attempts", json!(101)), "retry.attempts"),
        (with("/retry/backoff", json!(3601)), "retry.backoff"),
        (with("/retry/backoff", json!(0)), "retry.backoff"),
        (with("/statistics/tag-info", json!({})), "must be a list"),
        (with("/statistics/tag-info", json!([{ "type": "call" }])), "A to Z"),
        (with("/statistics/tag-info", json!([{ "type": "CALL", "count": -1 }])), "count"),
    ]
}

#[test]
fn a_malformed_timer_is_refused_with_its_reason() {
    let node = Server::node();
    let port = node.http_port();
    let bodies = bodies();
    assert!(bodies.len() >= 30);
    for (body, word) in &bodies {
        for (method, path) in [("POST", "/timers"), ("PUT", "/timers/00000000000000aa-2")] {
            let reply = ask(port, method, path, body);
            assert_eq!(reply.status, 400, "{method} {body}: {}", reply.body);
            assert!(reply.header("Reason").is_some_and(|it| it.contains(word)), "{}", reply.head);
            assert!(reply.json()["error"].as_str().is_some_and(|it| it.contains(word)));
        }
    }
    // Without the wrong value, the request is valid.
    assert_eq!(ask(port, "POST", "/timers", &with("/retry/attempts", json!(1))).status, 200);
    assert_eq!(ask(port, "GET", "/timers/stats", "").json()["timers"], 1);
}

#[test]
fn a_malformed_path_is_refused_with_its_reason() {
    let node = Server::node();
    let port = node.http_port();
    let right = with("/retry/attempts", json!(1));
    let wrong = [
        ("PUT", "/timers/nonsense", 400, "16 hexadecimal digits"),
        ("PUT", "/timers/00000000000000aa", 400, "16 hexadecimal digits"),
        ("PUT", "/timers/00000000000000aa-0", 400, "16 hexadecimal digits"),
        ("PUT", "/timers/00000000000000aa-3", 400, "cannot change"),
        ("PUT", "/timers/%ff", 400, "16 hexadecimal digits"),
        ("DELETE", "/timers/%ff", 400, "16 hexadecimal digits"),
        ("GET", "/timers/%ff", 400, "16 hexadecimal digits"),
        ("DELETE", "/timers/xyz", 400, "16 hexadecimal digits"),
        ("GET", "/timers/xyz", 400, "16 hexadecimal digits"),
        ("GET", "/timers/00000000000000aa-2", 404, "no such timer"),
        ("GET", "/timers?limit=0", 400, "limit"),
        ("GET", "/timers?limit=many", 400, "limit"),
        ("GET", "/timers?after=1", 400, "after"),
        ("GET", "/timers?page=2", 400, "limit and after"),
    ];
    for (method, path, status, word) in wrong {
        let reply = ask(port, method, path, if method == "PUT" { &right } else { "" });
        assert_eq!(reply.status, status, "{method} {path}: {}", reply.body);
        assert!(reply.json()["error"].as_str().is_some_and(|it| it.contains(word)), "{path}");
    }
    assert_eq!(ask(port, "GET", "/timers/stats", "").json()["timers"], 0);
}

#[test]
fn a_body_of_more_than_64_kib_is_refused_and_one_of_64_is_not() {
    let node = Server::node();
    let port = node.http_port();
    let empty = with("/callback/http/opaque", json!("")).len();
    let sized = |bytes: usize| with("/callback/http/opaque", json!("x".repeat(bytes - empty)));
    let full = sized(64 * 1024);
    assert_eq!(full.len(), 64 * 1024);
    assert_eq!(ask(port, "POST", "/timers", &full).status, 200);
    for bytes in [64 * 1024 + 1, 64 * 1024 + 2, 1 << 20] {
        let reply = ask(port, "POST", "/timers", &sized(bytes));
        assert_eq!(reply.status, 413, "{bytes}");
        assert!(reply.header("Reason").is_some_and(|it| it.contains("65536")), "{}", reply.head);
    }
    assert_eq!(ask(port, "GET", "/timers/stats", "").json()["timers"], 1);
}

#[test]
fn the_ports_of_the_cluster_itself_are_never_called() {
    let node = Server::node_with(&["--timers.allow-callbacks", "any"]);
    let port = node.http_port();
    for own in [node.port(), node.http_port()] {
        for (host, word) in [
            ("127.0.0.1", "own ports"),
            ("127.1.2.3", "own ports"),
            ("0.0.0.0", "own ports"),
            ("[::1]", "own ports"),
            ("localhost", "an address, not a name"),
        ] {
            let uri = json!(format!("http://{host}:{own}/"));
            let reply = ask(port, "POST", "/timers", &with("/callback/http/uri", uri));
            assert_eq!(reply.status, 400, "{host}: {}", reply.body);
            assert!(reply.header("Reason").is_some_and(|it| it.contains(word)), "{}", reply.head);
        }
    }
    assert_eq!(ask(port, "GET", "/timers/stats", "").json()["timers"], 0);
}

#[test]
fn where_callbacks_may_go_is_a_setting() {
    let uri = |host: &str| with("/callback/http/uri", json!(format!("http://{host}:9/")));
    let anywhere = Server::node_with(&["--timers.allow-callbacks", "any"]);
    assert_eq!(ask(anywhere.http_port(), "POST", "/timers", &uri("192.0.2.1")).status, 200);
    let nowhere = Server::node_with(&["--timers.allow-callbacks", ""]);
    assert_eq!(ask(nowhere.http_port(), "POST", "/timers", &uri("127.0.0.1")).status, 400);
    let some = Server::node_with(&["--timers.allow-callbacks", "192.0.2.0/24, ::1"]);
    assert_eq!(ask(some.http_port(), "POST", "/timers", &uri("192.0.2.7")).status, 200);
    assert_eq!(ask(some.http_port(), "POST", "/timers", &uri("[::1]")).status, 200);
    assert_eq!(ask(some.http_port(), "POST", "/timers", &uri("127.0.0.1")).status, 400);
}

//! Tests valid input, and thirty-odd invalid ones, each with the reason its sender gets.

use super::*;

fn accepted(body: &Value) -> Described {
    parse(body.to_string().as_bytes()).expect("a good request")
}

fn http() -> Value {
    json!({ "http": { "uri": "http://10.0.0.1:80/pop", "opaque": "stuff" } })
}

fn with_timing(timing: &Value) -> Value {
    json!({ "timing": timing, "callback": http() })
}

fn with_callback(callback: &Value) -> Value {
    json!({ "timing": { "interval": 5 }, "callback": callback })
}

fn with(member: &str, value: &Value) -> Value {
    let mut root = with_callback(&http());
    root[member] = value.clone();
    root
}

#[test]
fn the_least_that_makes_a_timer() {
    let described = accepted(&with_timing(&json!({ "interval": 20 })));
    assert_eq!(described.factor, None);
    let spec = described.spec;
    assert_eq!((spec.interval, spec.repeat_for), (TimeSpan(20_000), TimeSpan(20_000)));
    assert_eq!((spec.retry, spec.tags.len(), spec.pops()), (Retry::NONE, 0, 1));
    assert_eq!(spec.callback.timeout(), CALL_TIMEOUT_DEFAULT);
}

#[test]
fn fractions_of_a_second_round_up_to_a_millisecond_and_never_further() {
    let interval = |secs: f64| accepted(&with_timing(&json!({ "interval": secs }))).spec.interval;
    assert_eq!(interval(1.1), TimeSpan(1100));
    assert_eq!(interval(0.0001), TimeSpan(1));
    assert_eq!(interval(0.3), TimeSpan(300));
    assert_eq!(interval(2.0004), TimeSpan(2001));
}

#[test]
fn all_of_a_description_comes_back_as_it_was_sent() {
    let bodies = [
        json!({
            "timing": { "interval": 1.5, "repeat-for": 60 },
            "callback": { "http": { "uri": "http://a.b/c", "opaque": "\u{e9}", "timeout": 30 } },
            "reliability": { "replication-factor": 3 },
            "retry": { "attempts": 5, "backoff": 0.25 },
            "statistics": { "tag-info": [{ "type": "CALL", "count": 2 }] },
        }),
        json!({
            "timing": { "interval": 0, "repeat-for": 0 },
            "callback": { "publish": { "channel": "news", "message": "now" } },
            "reliability": { "replication-factor": 1 },
        }),
        json!({
            "timing": { "interval": 10, "repeat-for": 5 },
            "callback": { "command": ["INCR", "popped"] },
            "reliability": { "replication-factor": 255 },
        }),
    ];
    for body in bodies {
        let described = accepted(&body);
        assert_eq!(spec_to_json(&described.spec, described.factor.unwrap()), body);
    }
}

#[test]
fn what_we_do_not_know_is_passed_over() {
    let mut body = with_callback(&http());
    body["later"] = json!({ "version": 2 });
    body["reliability"] = json!({});
    body["statistics"] = json!({});
    assert_eq!(accepted(&body).factor, None);
}

#[test]
fn the_replication_factor_of_an_id_cannot_be_changed() {
    let id: TimerId = "00000000000000aa-2".parse().unwrap();
    let with_factor = |factor: u64| {
        accepted(&with("reliability", &json!({ "replication-factor": factor }))).fits(id)
    };
    assert_eq!(with_factor(2), Ok(()));
    assert!(with_factor(3).unwrap_err().0.contains("cannot change"));
    assert_eq!(accepted(&with_callback(&http())).fits(id), Ok(()));
}

/// Returns every kind of invalid input that we could think of: the input, and a word of the reason.
fn malformed() -> Vec<(String, &'static str)> {
    let long_tags: Vec<Value> = (0..17).map(|_| json!({ "type": "T" })).collect();
    let words: Vec<&str> = vec!["x"; 129];
    let uri = |uri: &str| with_callback(&json!({ "http": { "uri": uri } })).to_string();
    let timing = |timing: Value| with_timing(&timing).to_string();
    let callback = |callback: Value| with_callback(&callback).to_string();
    let other = |member: &str, value: Value| with(member, &value).to_string();
    vec![
        (String::new(), "not JSON"),
        ("{".into(), "not JSON"),
        ("{} {}".into(), "not JSON"),
        ("[".repeat(1000), "not JSON"),
        ("[]".into(), "must be a JSON object"),
        ("null".into(), "must be a JSON object"),
        ("x".repeat(BODY_BYTES_MAX + 1), "longer than 65536"),
        ("{}".into(), "timing.interval is missing"),
        (timing(json!(5)), "timing must be an object"),
        (timing(json!({ "repeat-for": 5 })), "timing.interval is missing"),
        (timing(json!({ "interval": "5" })), "must be a number of seconds"),
        (timing(json!({ "interval": -1 })), "must be a number of seconds"),
        (timing(json!({ "interval": null })), "must be a number of seconds"),
        (timing(json!({ "interval": 1e300 })), "must be at most"),
        (timing(json!({ "interval": 1, "repeat-for": 1e10 })), "repeat-for must be at most"),
        (timing(json!({ "interval": 0, "repeat-for": 5 })), "needs an interval"),
        (timing(json!({ "interval": 0.001, "repeat-for": 5 })), "at least 0.01"),
        (r#"{"timing":{"interval":1}}"#.into(), "callback is missing"),
        (callback(json!("http://a/")), "callback must be an object"),
        (callback(json!({})), "must hold http, publish or command"),
        (callback(json!({ "http": {}, "command": [] })), "not several"),
        (callback(json!({ "http": "http://a/" })), "callback.http must be an object"),
        (callback(json!({ "http": {} })), "callback.http.uri is missing"),
        (callback(json!({ "http": { "uri": 5 } })), "uri must be a string"),
        (uri("https://a/"), "must begin with http://"),
        (uri("http://u:p@a/"), "contains a user name"),
        (uri("http://a:99999/"), "port"),
        (uri("http://a/\r\nX-Evil: 1"), "control characters"),
        (
            callback(json!({ "http": { "uri": "http://a", "opaque": {} } })),
            "opaque must be a string",
        ),
        (callback(json!({ "http": { "uri": "http://a", "timeout": 31 } })), "at most 30"),
        (callback(json!({ "http": { "uri": "http://a", "timeout": 0 } })), "more than 0"),
        (callback(json!({ "publish": { "message": "m" } })), "channel is missing"),
        (callback(json!({ "command": [] })), "1 to 128 strings"),
        (callback(json!({ "command": ["SET", 5] })), "1 to 128 strings"),
        (callback(json!({ "command": words })), "1 to 128 strings"),
        (other("reliability", json!({ "replication-factor": 0 })), "from 1 to 255"),
        (other("reliability", json!({ "replication-factor": 2.5 })), "from 1 to 255"),
        (other("reliability", json!(2)), "reliability must be an object"),
        (other("retry", json!({ "attempts": 101 })), "up to 100"),
        (other("retry", json!({ "backoff": 4000 })), "at most 3600"),
        (other("retry", json!({ "backoff": 0 })), "at least 0.1"),
        (other("statistics", json!({ "tag-info": {} })), "must be a list"),
        (other("statistics", json!({ "tag-info": long_tags })), "more than 16"),
        (other("statistics", json!({ "tag-info": [{ "type": "lower" }] })), "A to Z"),
        (
            other("statistics", json!({ "tag-info": [{ "type": "T", "count": -1 }] })),
            "whole number",
        ),
    ]
}

#[test]
fn malformed_requests_are_refused_with_a_reason() {
    let malformed = malformed();
    assert!(malformed.len() >= 30);
    for (body, word) in malformed {
        let start: String = body.chars().take(100).collect();
        match parse(body.as_bytes()) {
            Ok(_) => panic!("accepted: {start}"),
            Err(BadTimer(why)) => assert!(why.contains(word), "{start}\n  {why}, not {word}"),
        }
    }
}

#[test]
fn a_body_that_is_not_text_is_refused() {
    assert!(parse(b"{\"timing\":\"\xFF\"}").is_err());
}

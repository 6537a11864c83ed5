//! A proxy in front of real Redis servers: every kind of command gets the answer a single server
//! would give, or a clear refusal.
#![allow(clippy::unwrap_used, reason = "a test may fail by it")]

mod support;
mod http;
mod limits;
mod pubsub;
mod sessions;
mod tls;

use e2e::Client;
use resp::Value;
use support::{Fleet, bulk, error};

#[test]
fn single_keys_of_all_types_live_on_their_own_servers() {
    let fleet = Fleet::of(3);
    let mut client = fleet.client();
    for number in 0..100 {
        assert!(client.run(&format!("SET string:{number} {number}")).is_ok());
        assert_eq!(client.run(&format!("RPUSH list:{number} a b")), Value::Integer(2));
        assert_eq!(client.run(&format!("HSET hash:{number} f v")), Value::Integer(1));
    }
    for number in 0..100 {
        assert_eq!(client.run(&format!("GET string:{number}")), bulk(&number.to_string()));
        assert_eq!(client.run(&format!("LLEN list:{number}")), Value::Integer(2));
    }
    assert_eq!(client.run("DBSIZE"), Value::Integer(300));
    for server in &fleet.servers {
        let Value::Integer(keys) = server.client().run("DBSIZE") else { panic!() };
        assert!((60..150).contains(&keys), "{keys}");
    }
}

#[test]
fn a_pipeline_over_many_servers_is_answered_in_its_order() {
    let fleet = Fleet::of(4);
    let mut client = fleet.client();
    for round in 0..20 {
        for number in 0..500 {
            client.send(&["SET", &format!("k:{number}"), &format!("{round}:{number}")]).unwrap();
            client.send(&["GET", &format!("k:{number}")]).unwrap();
        }
        for number in 0..500 {
            assert!(client.receive().unwrap().value.is_ok());
            assert_eq!(client.receive().unwrap().value, bulk(&format!("{round}:{number}")));
        }
    }
}

#[test]
fn commands_on_several_keys_are_scattered_and_gathered() {
    let fleet = Fleet::of(3);
    let mut client = fleet.client();
    let keys: Vec<String> = (0..50).map(|number| format!("key:{number}")).collect();
    let mut mset = vec!["MSET".to_owned()];
    mset.extend(keys.iter().flat_map(|key| [key.clone(), format!("value of {key}")]));
    assert!(client.call(&mset).value.is_ok());

    let with =
        |name: &str| [vec![name.to_owned()], keys.clone(), vec!["nothing".to_owned()]].concat();
    let Value::Array(values) = client.call(&with("MGET")).value else { panic!() };
    for (key, value) in keys.iter().zip(&values) {
        assert_eq!(*value, bulk(&format!("value of {key}")));
    }
    assert_eq!((values.len(), &values[50]), (51, &Value::Null));
    assert_eq!(client.call(&with("EXISTS")).value, Value::Integer(50));
    assert_eq!(client.call(&with("TOUCH")).value, Value::Integer(50));
    assert_eq!(client.run("DEL key:0 key:1 key:2 nothing"), Value::Integer(3));
    assert_eq!(client.call(&with("UNLINK")).value, Value::Integer(47));
    assert_eq!(error(client.run("MSET a 1 b")), "ERR wrong number of arguments for 'mset' command");
    assert_eq!(client.run("MGET k k"), Value::Array(vec![Value::Null, Value::Null]));
}

#[test]
fn the_whole_fleet_is_listed_without_its_own_keys() {
    let fleet = Fleet::of(3);
    let mut client = fleet.client();
    let keys: std::collections::BTreeSet<String> = (0..300).map(|n| format!("key:{n}")).collect();
    for key in &keys {
        client.call(&["SET", key, "v"]);
    }
    assert_eq!(texts(client.run("KEYS *")), keys);
    assert_eq!(texts(client.run("KEYS server.config*")).len(), 0);
    assert_eq!(scan_all(&mut client, ""), keys);
    assert_eq!(scan_all(&mut client, "COUNT 7").len(), 300);
    assert_eq!(scan_all(&mut client, "MATCH *:1? COUNT 100").len(), 10);
    assert!(keys.contains(std::str::from_utf8(client.run("RANDOMKEY").text().unwrap()).unwrap()));
    assert_eq!(error(client.run("SCAN x")), "ERR invalid cursor");
    assert!(client.run("FLUSHALL").is_ok());
    assert_eq!(client.run("DBSIZE"), Value::Integer(0));
    assert!(client.run("SET k v").is_ok(), "the fleet's own keys are still there");
}

fn scan_all(client: &mut Client, options: &str) -> std::collections::BTreeSet<String> {
    let mut found = std::collections::BTreeSet::new();
    let mut cursor = "0".to_owned();
    loop {
        let Value::Array(parts) = client.run(&format!("SCAN {cursor} {options}")) else { panic!() };
        cursor = String::from_utf8(parts[0].text().unwrap().to_vec()).unwrap();
        for key in texts(parts[1].clone()) {
            assert!(found.insert(key), "a key was listed twice");
        }
        if cursor == "0" {
            return found;
        }
    }
}

fn texts(list: Value) -> std::collections::BTreeSet<String> {
    let Value::Array(items) = list else { panic!("{list:?}") };
    let text = |item: &Value| String::from_utf8(item.text().unwrap().to_vec()).unwrap();
    items.iter().map(text).collect()
}

#[test]
fn both_protocols_get_the_types_they_know() {
    let fleet = Fleet::of(2);
    let mut old = fleet.client();
    let mut new = fleet.client();
    assert!(matches!(new.run("HELLO 3"), Value::Map(_)));
    old.run("HSET h a 1");
    old.run("ZADD z 1.5 m");
    old.run("SADD s m");
    assert_eq!(old.run("HGETALL h"), Value::Array(vec![bulk("a"), bulk("1")]));
    assert_eq!(new.run("HGETALL h"), Value::Map(vec![(bulk("a"), bulk("1"))]));
    assert_eq!(old.run("ZSCORE z m"), bulk("1.5"));
    assert_eq!(new.run("ZSCORE z m"), Value::Double(1.5));
    assert_eq!(new.run("SMEMBERS s"), Value::Set(vec![bulk("m")]));
    assert_eq!(old.call(&["GET", "nothing"]).raw, b"$-1\r\n");
    assert_eq!(new.call(&["GET", "nothing"]).raw, b"_\r\n");
    assert_eq!(new.call(&["MGET", "x", "y", "z1"]).raw, b"*3\r\n_\r\n_\r\n_\r\n");
    assert!(matches!(new.run("HELLO 2"), Value::Array(_)));
    assert_eq!(new.call(&["GET", "nothing"]).raw, b"$-1\r\n");
}

#[test]
fn what_cannot_work_is_refused_in_plain_words() {
    let fleet = Fleet::of(4);
    let mut client = fleet.client();
    for (line, text) in [
        ("SELECT 1", "ERR a fleet has only database 0"),
        (
            "SINTER a b c d e f",
            "CROSSSLOT Keys in request live on different servers; a {hash tag} keeps keys together",
        ),
        (
            "GET server.config.current",
            "ERR keys that begin with 'server.config.' belong to the fleet",
        ),
        ("NOSUCH x", "ERR unknown command 'NOSUCH'"),
        ("GET", "ERR wrong number of arguments for 'get' command"),
        ("CLIENT KILL ID 3", "ERR 'client|kill' is not possible through the fleet's proxy"),
    ] {
        assert_eq!(error(client.run(line)), text);
    }
    assert!(error(client.run("CONFIG GET *")).starts_with("ERR 'config' is not possible"));
    assert!(client.run("SELECT 0").is_ok());
    assert_eq!(client.run("PING"), Value::Simple(b"PONG".to_vec()));
    assert_eq!(client.run("ECHO hi"), bulk("hi"));
}

#[test]
fn scripts_run_where_their_keys_live() {
    let fleet = Fleet::of(3);
    let mut client = fleet.client();
    let script = "redis.call('set', KEYS[1], ARGV[1]); return redis.call('get', KEYS[2])";
    let run = ["EVAL", script, "2", "{a}1", "{a}1", "v"];
    assert_eq!(client.call(&run).value, bulk("v"));
    assert!(
        error(client.call(&["EVAL", script, "2", "a", "b", "v"]).value).starts_with("CROSSSLOT")
    );
    let loaded = client.call(&["SCRIPT", "LOAD", "return 7"]).value;
    let sha = String::from_utf8(loaded.text().unwrap().to_vec()).unwrap();
    for key in ["a", "b", "c", "d"] {
        assert_eq!(client.call(&["EVALSHA", &sha, "1", key]).value, Value::Integer(7));
    }
    let exists = client.call(&["SCRIPT", "EXISTS", &sha, "00"]).value;
    assert_eq!(exists, Value::Array(vec![Value::Integer(1), Value::Integer(0)]));
}

#[test]
fn lines_typed_by_hand_are_understood() {
    let fleet = Fleet::of(2);
    let mut client = fleet.client();
    client.send_raw(b"SET k \"a b\"\r\nGET k\r\n").unwrap();
    assert!(client.receive().unwrap().value.is_ok());
    assert_eq!(client.receive().unwrap().value, bulk("a b"));
}

#[test]
fn large_values_pass_in_both_directions() {
    let fleet = Fleet::of(2);
    let mut client = fleet.client();
    let large = "x".repeat(20_000_000);
    assert!(client.call(&["SET", "large", &large]).value.is_ok());
    assert_eq!(client.call(&["GET", "large"]).value, bulk(&large));
}

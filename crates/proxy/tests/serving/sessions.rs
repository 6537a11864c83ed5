//! Tests of connection state: transactions, watched keys, blocking commands, passwords.

use std::time::Duration;

use resp::Value;

use crate::support::{Fleet, bulk, error};

#[test]
fn a_transaction_runs_where_all_its_keys_live() {
    let fleet = Fleet::of(3);
    let mut client = fleet.client();
    assert!(client.run("MULTI").is_ok());
    assert_eq!(client.run("SET {t}a 1"), Value::Simple(b"QUEUED".to_vec()));
    assert_eq!(client.run("INCR {t}a"), Value::Simple(b"QUEUED".to_vec()));
    assert_eq!(client.run("MGET {t}a {t}b"), Value::Simple(b"QUEUED".to_vec()));
    let values = Value::Array(vec![bulk("2"), Value::Null]);
    let ok = Value::Simple(b"OK".to_vec());
    assert_eq!(client.run("EXEC"), Value::Array(vec![ok, Value::Integer(2), values]));
    assert_eq!(error(client.run("EXEC")), "ERR EXEC without MULTI");

    client.run("MULTI");
    for key in ["a", "b", "c", "d", "e"] {
        client.run(&format!("SET {key} 1"));
    }
    assert!(error(client.run("EXEC")).starts_with("CROSSSLOT"));
    assert_eq!(
        client.run("MGET a b c d e"),
        Value::Array(vec![Value::Null; 5]),
        "nothing was done"
    );

    client.run("MULTI");
    assert!(error(client.run("KEYS *")).contains("not possible in a transaction"));
    assert!(error(client.run("EXEC")).starts_with("EXECABORT"));
    client.run("MULTI");
    assert!(client.run("DISCARD").is_ok());
    assert_eq!(client.run("PING"), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn a_watched_key_that_changed_voids_the_transaction() {
    let fleet = Fleet::of(3);
    let (mut client, mut other) = (fleet.client(), fleet.client());
    for (change, expected) in [
        ("GET k", Value::Array(vec![Value::Simple(b"OK".to_vec())])),
        ("SET k theirs", Value::Null),
    ] {
        assert!(client.run("WATCH k").is_ok());
        other.run(change);
        client.run("MULTI");
        client.run("SET k ours");
        assert_eq!(client.run("EXEC"), expected);
    }
    assert_eq!(client.run("GET k"), bulk("theirs"));
    assert!(client.run("WATCH k").is_ok());
    other.run("SET k again");
    assert!(client.run("UNWATCH").is_ok());
    client.run("MULTI");
    client.run("GET k");
    assert_eq!(client.run("EXEC"), Value::Array(vec![bulk("again")]));
}

#[test]
fn a_waiting_command_holds_up_its_own_client_only() {
    let fleet = Fleet::of(3);
    let (mut waiting, mut other) = (fleet.client(), fleet.client());
    waiting.send(&["BLPOP", "queue", "0"]).unwrap();
    waiting.send(&["PING"]).unwrap();
    assert!(waiting.receive_within(Duration::from_millis(100)).unwrap().is_none());
    assert_eq!(other.run("RPUSH queue job"), Value::Integer(1));
    let popped = Value::Array(vec![bulk("queue"), bulk("job")]);
    assert_eq!(waiting.receive().unwrap().value, popped);
    assert_eq!(waiting.receive().unwrap().value, Value::Simple(b"PONG".to_vec()));
    assert_eq!(waiting.run("BLPOP queue 0.05"), Value::Null);

    waiting.send(&["BLPOP", "queue", "0"]).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    drop(waiting);
    std::thread::sleep(Duration::from_millis(100));
    other.run("RPUSH queue kept");
    assert_eq!(other.run("LLEN queue"), Value::Integer(1), "nobody pops for a client that is gone");
}

#[test]
fn clients_show_who_they_are_if_a_password_is_set() {
    let fleet = Fleet::with(1, |options| options.password = Some("secret".to_owned()));
    let mut client = fleet.client();
    assert_eq!(error(client.run("GET k")), "NOAUTH Authentication required.");
    assert!(error(client.run("AUTH wrong")).starts_with("WRONGPASS"));
    assert!(error(client.run("HELLO 3")).starts_with("NOAUTH"));
    assert!(client.run("AUTH secret").is_ok());
    assert_eq!(client.run("GET k"), Value::Null);
    let mut client = fleet.client();
    assert!(matches!(client.run("HELLO 3 AUTH default secret"), Value::Map(_)));
    assert_eq!(client.run("RESET"), Value::Simple(b"RESET".to_vec()));
    assert_eq!(error(client.run("GET k")), "NOAUTH Authentication required.");
}

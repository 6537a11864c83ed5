//! Tests of channels through the proxy.

use std::time::Duration;

use e2e::Client;
use resp::Value;

use crate::support::{Fleet, bulk, error};

fn next(client: &mut Client) -> Value {
    client.receive().unwrap().value
}

fn message(parts: &[&str]) -> Vec<Value> {
    parts.iter().map(|part| bulk(part)).collect()
}

#[test]
fn channels_of_all_servers_are_heard_in_both_protocols() {
    let fleet = Fleet::of(3);
    let (mut old, mut new, mut speaker) = (fleet.client(), fleet.client(), fleet.client());
    new.run("HELLO 3");
    let channels: Vec<String> = (0..10).map(|number| format!("channel:{number}")).collect();
    for client in [&mut old, &mut new] {
        client.send(&[vec!["SUBSCRIBE".to_owned()], channels.clone()].concat()).unwrap();
        for (number, channel) in channels.iter().enumerate() {
            let count = Value::Integer(number as i64 + 1);
            let expected = vec![bulk("subscribe"), bulk(channel), count];
            let got = next(client);
            assert!(got == Value::Array(expected.clone()) || got == Value::Push(expected));
        }
    }
    for channel in &channels {
        assert_eq!(speaker.call(&["PUBLISH", channel, "hello"]).value, Value::Integer(1));
        let expected = message(&["message", channel, "hello"]);
        assert_eq!(next(&mut old), Value::Array(expected.clone()));
        assert_eq!(next(&mut new), Value::Push(expected));
    }
    assert!(error(old.run("GET k")).starts_with("ERR Can't execute 'get'"));
    assert_eq!(new.run("GET k"), Value::Null);
    assert_eq!(old.run("PING"), Value::Array(vec![bulk("pong"), bulk("")]));
    old.send(&["UNSUBSCRIBE"]).unwrap();
    for _ in &channels {
        next(&mut old);
    }
    assert_eq!(old.run("GET k"), Value::Null);
    speaker.run("PUBLISH channel:1 again");
    assert_eq!(next(&mut new), Value::Push(message(&["message", "channel:1", "again"])));
    assert!(old.receive_within(Duration::from_millis(50)).unwrap().is_none());
}

#[test]
fn a_pattern_is_heard_once_whichever_server_has_the_channel() {
    let fleet = Fleet::of(3);
    let (mut listener, mut speaker) = (fleet.client(), fleet.client());
    listener.run("PSUBSCRIBE news:*");
    for number in 0..10 {
        let channel = format!("news:{number}");
        speaker.call(&["PUBLISH", &channel, "x"]);
        let expected = message(&["pmessage", "news:*", &channel, "x"]);
        assert_eq!(next(&mut listener), Value::Array(expected));
    }
    assert!(listener.receive_within(Duration::from_millis(50)).unwrap().is_none());
}

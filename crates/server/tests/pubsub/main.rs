//! Pub/sub between real connections on several I/O threads.
mod events; //  Keyspace notifications.
mod support;

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use support::{Client, Running, start};

/// Repeats a question until the answer is as expected.
fn eventually(client: &mut Client, question: &str, answer: &str) {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let told = client.ask(question);
        if told == answer {
            return;
        }
        assert!(Instant::now() < end, "{question} is answered {told}, not {answer}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn all_threads_hear_each_publisher_in_its_order() {
    const MESSAGES: usize = 2_000;
    let node = start(3, &[]);
    let subscribers: Vec<Client> = (0..6).map(|_| node.subscriber("SUBSCRIBE news", 1)).collect();
    let publishers: Vec<Client> = (0..3).map(|_| node.connect()).collect();
    thread::scope(|scope| {
        for (name, mut publisher) in publishers.into_iter().enumerate() {
            scope.spawn(move || {
                let lines: Vec<String> =
                    (0..MESSAGES).map(|number| format!("PUBLISH news {name}:{number}")).collect();
                publisher.send(&lines.join("\r\n"));
                for _ in 0..MESSAGES {
                    assert_eq!(publisher.next(), "6");
                }
            });
        }
        for mut subscriber in subscribers {
            scope.spawn(move || {
                let mut next = [0; 3];
                for _ in 0..3 * MESSAGES {
                    let message = subscriber.next();
                    let text = message.strip_prefix("message news ").expect("a message");
                    let (name, number) = text.split_once(':').expect("ours");
                    let name: usize = name.parse().expect("a publisher");
                    assert_eq!(number.parse(), Ok(next[name]));
                    next[name] += 1;
                }
                subscriber.expect_silence();
            });
        }
    });
}

#[test]
fn what_was_published_before_a_subscription_is_not_heard() {
    let node = start(2, &[]);
    // Ensures that every thread has a subscriber to deliver the earlier messages to.
    let _others: Vec<Client> = (0..2).map(|_| node.subscriber("SUBSCRIBE news", 1)).collect();
    let mut publisher = node.connect();
    for round in 0..300 {
        publisher.ask(&format!("PUBLISH news before-{round}"));
        let mut late = node.subscriber("SUBSCRIBE news", 1);
        publisher.ask(&format!("PUBLISH news after-{round}"));
        assert_eq!(late.next(), format!("message news after-{round}"));
    }
}

#[test]
fn nothing_is_heard_after_the_end_of_a_subscription_is_confirmed() {
    let node = start(2, &[]);
    let mut publisher = node.connect();
    let mut listener = node.connect();
    for round in 0..300 {
        assert_eq!(listener.ask("SUBSCRIBE news"), "subscribe news 1");
        let lines: Vec<String> = (0..5).map(|_| format!("PUBLISH news {round}")).collect();
        publisher.send(&lines.join("\r\n"));
        listener.send("UNSUBSCRIBE");
        while listener.next() != "unsubscribe news 0" {}
        for _ in 0..5 {
            publisher.next();
        }
        listener.expect_silence();
    }
}

#[test]
fn patterns_and_shard_channels_are_heard_by_those_who_named_them() {
    let node = start(2, &[]);
    let mut by_pattern = node.subscriber("PSUBSCRIBE n* [mn]ews x*", 3);
    let mut by_name = node.subscriber("SUBSCRIBE news", 1);
    let mut sharded = node.subscriber("SSUBSCRIBE news", 1);
    let mut publisher = node.connect();
    assert_eq!(publisher.ask("PUBLISH news hello"), "3");
    assert_eq!(publisher.ask("SPUBLISH news split"), "1");
    assert_eq!(publisher.ask("PUBLISH nobody x"), "1");
    assert_eq!(publisher.ask("PUBLISH other x"), "0");

    assert_eq!(by_name.next(), "message news hello");
    let mut both = [by_pattern.next(), by_pattern.next()];
    both.sort();
    assert_eq!(both, ["pmessage [mn]ews news hello", "pmessage n* news hello"]);
    assert_eq!(by_pattern.next(), "pmessage n* nobody x");
    assert_eq!(sharded.next(), "smessage news split");
    for client in [&mut by_pattern, &mut by_name, &mut sharded] {
        client.expect_silence();
    }
    assert_eq!(publisher.ask("PUBSUB CHANNELS"), "news");
    assert_eq!(publisher.ask("PUBSUB SHARDNUMSUB news"), "news 1");
    assert_eq!(publisher.ask("PUBSUB NUMPAT"), "3");
}

#[test]
fn a_connection_that_goes_away_listens_no_more() {
    let node = start(2, &[]);
    let mut asking = node.connect();
    for _ in 0..50 {
        let mut listener = node.subscriber("SUBSCRIBE news", 1);
        listener.ask("PSUBSCRIBE n*");
        listener.ask("SSUBSCRIBE news");
    }
    eventually(&mut asking, "PUBSUB NUMSUB news", "news 0");
    eventually(&mut asking, "PUBSUB SHARDNUMSUB news", "news 0");
    eventually(&mut asking, "PUBSUB NUMPAT", "0");
    assert_eq!(asking.ask("PUBLISH news x"), "0");
}

#[test]
fn a_thousand_subscribers_all_hear_all() {
    const SUBSCRIBERS: usize = 1_000;
    let node = start(2, &[]);
    let mut subscribers: Vec<Client> =
        (0..SUBSCRIBERS).map(|_| node.subscriber("SUBSCRIBE news", 1)).collect();
    let mut publisher = node.connect();
    let lines: Vec<String> = (0..20).map(|number| format!("PUBLISH news {number}")).collect();
    publisher.send(&lines.join("\r\n"));
    for _ in 0..20 {
        assert_eq!(publisher.next(), SUBSCRIBERS.to_string());
    }
    for subscriber in &mut subscribers {
        for number in 0..20 {
            assert_eq!(subscriber.next(), format!("message news {number}"));
        }
    }
}

/// Publishes until the slow subscriber is disconnected.
fn publish_until_cut_off(node: &Running, payload: usize, mut heard: Client) {
    let mut publisher = node.connect();
    let payload = "x".repeat(payload);
    assert_eq!(publisher.ask("PUBSUB NUMSUB news"), "news 2");
    let mut published = 0;
    while publisher.ask("PUBSUB NUMSUB news") == "news 2" {
        assert!(published < 512 << 20, "the slow one is never cut off");
        for _ in 0..16 {
            publisher.send_args(&["PUBLISH", "news", &payload]);
        }
        for _ in 0..16 {
            publisher.next();
            assert_eq!(heard.next().len(), "message news ".len() + payload.len());
            published += payload.len();
        }
    }
    assert_eq!(publisher.ask("PUBLISH news bye"), "1");
    assert_eq!(heard.next(), "message news bye");
}

#[test]
fn a_subscriber_that_does_not_read_is_cut_off_and_the_others_go_on() {
    for payload in [1_000, 100_000] {
        let node = start(2, &[("client-output-buffer-limit", "pubsub 1mb 0 0")]);
        let mut slow = node.subscriber("SUBSCRIBE news", 1);
        let quick = node.subscriber("SUBSCRIBE news", 1);
        publish_until_cut_off(&node, payload, quick);
        while slow.try_next().is_some() {}
    }
}

#[test]
fn a_subscriber_that_does_not_read_for_long_is_cut_off_though_nothing_new_comes() {
    let node = start(2, &[("client-output-buffer-limit", "pubsub 0 64kb 1")]);
    let mut slow = node.subscriber("SUBSCRIBE news", 1);
    let mut publisher = node.connect();
    let payload = "x".repeat(1 << 20);
    // More than the system buffers for a connection, and then nothing.
    for _ in 0..32 {
        publisher.send_args(&["PUBLISH", "news", &payload]);
        publisher.next();
    }
    eventually(&mut publisher, "PUBSUB NUMSUB news", "news 0");
    while slow.try_next().is_some() {}
}

#[test]
fn a_publisher_faster_than_delivery_loses_nothing() {
    const MESSAGES: usize = 12_000;
    let node = start(2, &[]);
    let subscribers: Vec<Client> = (0..20).map(|_| node.subscriber("SUBSCRIBE news", 1)).collect();
    let mut publisher = node.connect();
    let mut sending = publisher.stream.try_clone().expect("a socket");
    thread::scope(|scope| {
        scope.spawn(move || {
            let payload = "x".repeat(1_000);
            for number in 0..MESSAGES {
                let line = format!("PUBLISH news {number}-{payload}\r\n");
                sending.write_all(line.as_bytes()).expect("the node reads");
            }
        });
        for mut subscriber in subscribers {
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    let message = subscriber.next();
                    let start = &message["message news ".len()..];
                    assert_eq!(start.split('-').next(), Some(number.to_string().as_str()));
                }
            });
        }
        for _ in 0..MESSAGES {
            assert_eq!(publisher.next(), "20");
        }
    });
}

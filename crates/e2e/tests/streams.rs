//! Streams of real processes: exchanged with redis-server by DUMP and RESTORE, and read by consumers that wait, on several
//! I/O threads.

use std::collections::BTreeSet;
use std::time::Duration;

use e2e::{Client, Server, wait_until};
use resp::Value;

const PATIENCE: Duration = Duration::from_secs(20);

/// Makes a stream with deleted entries, other fields, two groups and pending entries, of which one is deleted.
fn make(client: &mut Client) {
    for number in 1..=260 {
        let id = format!("{}-{}", number / 2 + 1, number * 2);
        let reply = client.run(&format!("XADD s {id} field {number} text value:{number}"));
        assert!(matches!(reply, Value::Bulk(_)), "{reply}");
    }
    for line in [
        "XADD s 1000-1 other \u{e9}",
        "XADD s 1000-18446744073709551615 n -9223372036854775808 empty ,",
        "XDEL s 3-10 1000-1",
        "XGROUP CREATE s g 0",
        "XGROUP CREATE s later $ ENTRIESREAD 7",
        "XGROUP CREATECONSUMER s g idle",
        "XREADGROUP GROUP g one COUNT 120 STREAMS s >",
        "XREADGROUP GROUP g two COUNT 30 STREAMS s >",
        "XCLAIM s g two 0 5-18 JUSTID TIME 1600000000000 RETRYCOUNT 9",
        "XACK s g 4-12 6-20",
        "XDEL s 8-28",
    ] {
        let reply = client.run(line);
        assert!(!matches!(reply, Value::Error(_)), "{line}: {reply}");
    }
}

/// Returns the names and values of XINFO STREAM FULL, without what differs between the servers.
fn described(client: &mut Client, key: &str) -> String {
    let mut lines = Vec::new();
    flatten(&client.run(&format!("XINFO STREAM {key} FULL COUNT 0")), &mut lines);
    let mut kept = Vec::new();
    let mut parts = lines.into_iter();
    while let Some(part) = parts.next() {
        match part.as_str() {
            "radix-tree-keys" | "radix-tree-nodes" | "active-time" | "lag" => drop(parts.next()),
            _ => kept.push(part),
        }
    }
    kept.join("\n")
}

fn flatten(value: &Value, lines: &mut Vec<String>) {
    if let Value::Array(parts) = value {
        parts.iter().for_each(|part| flatten(part, lines));
    } else if let Value::Bulk(text) = value {
        lines.push(text.escape_ascii().to_string());
    } else {
        lines.push(value.to_string());
    }
}

fn carry(from: &mut Client, to: &mut Client, (old, new): (&str, &str)) {
    let Value::Bulk(payload) = from.run(&format!("DUMP {old}")) else { panic!("no payload") };
    let restored = to.call(&[b"RESTORE", new.as_bytes(), b"0", &payload, b"REPLACE"]).value;
    assert_eq!(restored.to_string(), "OK");
}

#[test]
fn a_stream_with_groups_goes_to_redis_and_back() {
    let (redis, node) = (Server::redis(), Server::node());
    let (mut theirs, mut ours) = (redis.client(), node.client());
    make(&mut theirs);
    carry(&mut theirs, &mut ours, ("s", "s"));
    let expected = described(&mut theirs, "s");
    assert!(expected.contains("1600000000000"), "{expected}");
    assert_eq!(described(&mut ours, "s"), expected);
    carry(&mut ours, &mut theirs, ("s", "back"));
    assert_eq!(described(&mut theirs, "back"), expected);
    // Both go on in the same way.
    for line in ["XREADGROUP GROUP g two COUNT 3 STREAMS {} >", "XACK {} g 5-18", "XLEN {}"] {
        let (at_home, away) = (line.replace("{}", "s"), line.replace("{}", "back"));
        let reply = theirs.run(&away).to_string().replace("back", "s");
        assert_eq!(ours.run(&at_home).to_string(), reply);
    }
}

#[test]
fn a_stream_made_here_is_the_same_at_redis() {
    let (redis, node) = (Server::redis(), Server::node());
    let (mut theirs, mut ours) = (redis.client(), node.client());
    make(&mut ours);
    carry(&mut ours, &mut theirs, ("s", "s"));
    assert_eq!(described(&mut theirs, "s"), described(&mut ours, "s"));
}

#[test]
fn consumers_that_wait_on_two_threads_share_the_entries() {
    const CONSUMERS: usize = 6;
    let node = Server::node_with(&["--io-threads", "2"]);
    let mut producer = node.client();
    producer.run("XGROUP CREATE s g $ MKSTREAM");
    let ask = |client: &mut Client, number: usize| {
        let name = format!("c{number}");
        let request =
            ["XREADGROUP", "GROUP", "g", &name, "COUNT", "1", "BLOCK", "0", "STREAMS", "s", ">"];
        client.send(&request).expect("the node reads");
    };
    let mut consumers: Vec<Client> = (0..CONSUMERS).map(|_| node.client()).collect();
    let blocked = |count: usize| {
        let line = format!("blocked_clients:{count}\r\n");
        let mut admin = node.client();
        wait_until(&line, PATIENCE, || {
            let Value::Bulk(text) = admin.run("INFO clients") else { panic!("a bulk string") };
            String::from_utf8_lossy(&text).contains(&line)
        });
    };
    for (number, consumer) in consumers.iter_mut().enumerate() {
        ask(consumer, number);
        blocked(number + 1);
    }
    let mut seen = BTreeSet::new();
    for round in 1..=60_usize {
        producer.run(&format!("XADD s {round}-1 job {round}"));
        // They are served in turn, and each stands at the end of the line again.
        let number = (round - 1) % CONSUMERS;
        let reply = consumers[number].receive().expect("its turn").value.to_string();
        assert!(reply.contains(&format!("\"{round}-1\"")), "{reply}");
        assert!(seen.insert(reply), "an entry came twice");
        ask(&mut consumers[number], number);
        blocked(CONSUMERS);
    }
    producer.run("XGROUP DESTROY s g");
    for consumer in &mut consumers {
        let reply = consumer.receive().expect("the group is gone").value.to_string();
        assert!(reply.starts_with("(error) NOGROUP"), "{reply}");
    }
    blocked(0);
}

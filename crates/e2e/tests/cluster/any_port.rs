//! The any-port answers a batch just like single requests, even while buckets move.
use e2e::{Client, Cluster, Server, free_ports};
use resp::Value;

/// Returns a cluster of three, one of which has an any-port, and that port.
fn three_with_any_port() -> (Cluster, u16) {
    let mut cluster = Cluster::of(2, &["--buckets", "16"]);
    let [port] = free_ports();
    let join = format!("127.0.0.1:{}", cluster.nodes[0].port());
    let flags = ["--any-port", &port.to_string(), "--join", &join];
    cluster.nodes.push(Server::node_with(&flags));
    cluster.wait_until_even();
    (cluster, port)
}

/// Sends all requests in one packet, and returns their answers.
fn in_one_packet(client: &mut Client, requests: &[&str]) -> Vec<Value> {
    let mut bytes = Vec::new();
    for request in requests {
        let words: Vec<&[u8]> = request.split_whitespace().map(str::as_bytes).collect();
        resp::encode_command(&mut bytes, &words);
    }
    client.send_raw(&bytes).expect("it reads");
    requests
        .iter()
        .map(|request| client.receive().unwrap_or_else(|error| panic!("{request}: {error}")).value)
        .collect()
}

fn bulk(text: &str) -> Value {
    Value::Bulk(text.as_bytes().to_vec())
}

#[test]
fn a_transaction_in_a_batch_takes_no_answer_of_another_command() {
    let (_cluster, port) = three_with_any_port();
    let mut client = Client::try_connect(port).expect("it listens");
    let ok = Value::Simple(b"OK".to_vec());
    // The keys are spread over all nodes.
    for key in ["a", "b", "c", "d", "e", "f"] {
        assert_eq!(client.run(&format!("SET {key} old")), ok);
        let (get, set) = (format!("GET {key}"), format!("SET {key} 1"));
        let answers = in_one_packet(&mut client, &[&get, "MULTI", &set, "EXEC", &get]);
        let queued = Value::Simple(b"QUEUED".to_vec());
        let ran = Value::Array(vec![ok.clone()]);
        assert_eq!(answers, [bulk("old"), ok.clone(), queued, ran, bulk("1")], "{key}");
    }
}

#[test]
fn a_name_in_a_batch_loses_no_answer() {
    let (_cluster, port) = three_with_any_port();
    let mut batched = Client::try_connect(port).expect("it listens");
    let mut single = Client::try_connect(port).expect("it listens");
    let requests = [
        "MSET a 1 b 2 c 3 d 4 e 5 f 6",
        "GET a",
        "GET b",
        "GET c",
        "CLIENT SETNAME me",
        "GET d",
        "GET e",
        "GET f",
        "CLIENT GETNAME",
        "HELLO 2",
        "INCR a",
        "INCR a",
        "RENAME a b",
        "MGET f e d c b a nosuch",
        "DEL a b c d e f nosuch",
        "PING",
    ];
    let hides_id = |answers: Vec<Value>| -> Vec<Value> {
        // HELLO contains the connection's id.
        answers.into_iter().enumerate().filter(|(at, _)| *at != 9).map(|(_, value)| value).collect()
    };
    let one_by_one = requests.iter().map(|request| single.run(request)).collect();
    let at_once = in_one_packet(&mut batched, &requests);
    assert_eq!(hides_id(at_once), hides_id(one_by_one));
}

#[test]
fn the_order_of_a_key_survives_moves() {
    const KEYS: usize = 40;
    let (mut cluster, port) = three_with_any_port();
    let mut client = Client::try_connect(port).expect("it listens");
    let mut expected = vec![String::new(); KEYS];
    let mut number = 0;
    for step in 0..60 {
        if step == 5 || step == 20 {
            cluster.join(); // Buckets move from now on.
        }
        let mut requests = Vec::new();
        for _ in 0..4 {
            for (key, expected) in expected.iter_mut().enumerate() {
                number += 1;
                requests.push(format!("APPEND key:{key} {number},"));
                expected.push_str(&format!("{number},"));
            }
        }
        let requests: Vec<&str> = requests.iter().map(String::as_str).collect();
        let answers = in_one_packet(&mut client, &requests);
        let refused = answers.iter().find(|answer| !matches!(answer, Value::Integer(_)));
        assert_eq!(refused, None, "step {step}");
    }
    cluster.wait_until_even();
    for (key, expected) in expected.iter().enumerate() {
        assert_eq!(client.run(&format!("GET key:{key}")), bulk(expected), "key {key}");
    }
}

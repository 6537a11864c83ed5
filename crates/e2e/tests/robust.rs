//! Strangers, crowds and clients that never read: a node stays up, its memory stays bounded, and other clients are
//! served. Tests assert counts; they only print durations, because the machine may be busy.
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use e2e::{Client, Cluster, Effort, Rng, Server, free_ports, raise_fd_limit};
use resp::Value;

const MIB: u64 = 1024 * 1024;
const SEED: u64 = 20_261_115;

/// Returns a cluster of two, whose first node has an any-port, and that port.
fn two_with_any_port() -> (Cluster, u16) {
    let mut cluster = Cluster::of(1, &["--buckets", "16"]);
    let [any_port] = free_ports();
    let first = format!("127.0.0.1:{}", cluster.nodes[0].port());
    let flags = ["--join", &first, "--any-port", &any_port.to_string()];
    cluster.nodes.insert(0, Server::node_with(&flags));
    cluster.wait_until_even();
    (cluster, any_port)
}

#[test]
fn random_bytes_at_every_port_harm_nobody() {
    let count = Effort::of_this_run().of_normally(5_000);
    let (cluster, any_port) = two_with_any_port();
    let node = &cluster.nodes[0];
    let status = node.client().status();
    let members = status["members"].as_array().expect("members");
    let own = members.iter().find(|member| member["client_port"] == node.port());
    let peer_port = own.and_then(|own| own["peer_port"].as_u64()).expect("a peer port");
    let peer_port = u16::try_from(peer_port).expect("a port");
    let mut kept = Client::try_connect(any_port).expect("it listens");
    assert!(kept.run("SET kept safe").is_ok());
    let before = node.rss_bytes();
    let mut rng = Rng::new(SEED);
    println!("seed {SEED}");
    for port in [node.port(), any_port, peer_port] {
        for number in 0..count {
            knock(port, &noise(&mut rng), &mut rng);
            if number % 500 == 0 {
                let answer = kept.run("GET kept");
                assert_eq!(answer, Value::Bulk(b"safe".to_vec()), "port {port}, {number}");
            }
        }
    }
    let after = node.rss_bytes();
    println!("{} MiB before, {} MiB after", before / MIB, after / MIB);
    assert!(after < before + 64 * MIB, "{before} bytes before, {after} after");
    assert_eq!(kept.run("GET kept"), Value::Bulk(b"safe".to_vec()));
    assert_eq!(node.client().status()["generation"], status["generation"]);
    cluster.wait_until_even();
}

/// Sends some bytes, and sometimes reads the answer.
fn knock(port: u16, bytes: &[u8], rng: &mut Rng) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it still listens");
    // The node may close the connection at any byte.
    let _ = stream.write_all(bytes);
    if rng.one_in(20) {
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.set_read_timeout(Some(Duration::from_millis(50)));
        let _ = stream.read(&mut [0; 256]);
    }
}

/// Returns random bytes, or a damaged request.
fn noise(rng: &mut Rng) -> Vec<u8> {
    const REQUESTS: [&[u8]; 8] = [
        b"*3\r\n$3\r\nSET\r\n$5\r\nstray\r\n$5\r\nvalue\r\n",
        b"*2\r\n$3\r\nGET\r\n$5\r\nstray\r\n",
        b"*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n",
        b"*1\r\n$5\r\nMULTI\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$4\r\nEXEC\r\n",
        b"*2\r\n$9\r\nSUBSCRIBE\r\n$4\r\nnews\r\n",
        b"*1000000000\r\n$1000000000\r\n",
        b"OPENCLUS\x01\x00\x00\x00\x40",
        b"PING inline words\r\n",
    ];
    if rng.one_in(3) {
        return (0..rng.below(200)).map(|_| rng.draw().to_le_bytes()[0]).collect();
    }
    let mut bytes = REQUESTS[rng.index(REQUESTS.len())].to_vec();
    for _ in 0..=rng.below(4) {
        let place = rng.index(bytes.len());
        match rng.below(3) {
            0 => bytes[place] = rng.draw().to_le_bytes()[0],
            1 => bytes.truncate(place.max(1)),
            _ => bytes.insert(place, b"*$-:0\r\n9"[rng.index(8)]),
        }
    }
    bytes
}

#[test]
fn a_crowd_is_served_and_costs_little() {
    raise_fd_limit();
    let effort = Effort::of_this_run();
    let (idle, busy) = (effort.of_normally(1_000), effort.of_normally(100));
    let node = Server::node_with(&["--maxclients", "20000"]);
    let mut measured = node.client();
    let before = p99(&mut measured);
    let mut crowd: Vec<Client> = (0..idle).map(|_| node.client()).collect();
    let (during, served) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|number| {
                let node = &node;
                scope.spawn(move || work(node, busy.div_ceil(4), number))
            })
            .collect();
        let during = p99(&mut measured);
        let served: usize = threads.into_iter().map(|it| it.join().expect("no panic")).sum();
        (during, served)
    });
    assert_eq!(served, busy.div_ceil(4) * 4 * ROUNDS * PIPELINE);
    for client in &mut crowd {
        assert_eq!(client.run("PING"), Value::Simple(b"PONG".to_vec()));
    }
    let rss = node.rss_bytes();
    println!(
        "{idle} idle and {busy} busy: {} MiB, p99 {:.1} times that of a quiet node",
        rss / MIB,
        during.as_secs_f64() / before.as_secs_f64()
    );
    let allowed = 60 * MIB + (idle + busy) as u64 * 16 * 1024;
    assert!(rss < allowed, "{rss} bytes, {allowed} are allowed");
}

const ROUNDS: usize = 50;
const PIPELINE: usize = 16;

/// Sends requests on many busy connections; returns the number of good answers.
fn work(node: &Server, connections: usize, number: usize) -> usize {
    let mut clients: Vec<Client> = (0..connections).map(|_| node.client()).collect();
    let mut served = 0;
    for round in 0..ROUNDS {
        for (place, client) in clients.iter_mut().enumerate() {
            for step in 0..PIPELINE {
                let key = format!("{number}:{place}:{step}");
                client.send(&["SET", &key, &round.to_string()]).expect("it reads");
            }
        }
        for client in &mut clients {
            for _ in 0..PIPELINE {
                served += usize::from(client.receive().expect("an answer").value.is_ok());
            }
        }
    }
    served
}

fn p99(client: &mut Client) -> Duration {
    let once = |client: &mut Client| {
        let begun = Instant::now();
        client.run("GET nothing");
        begun.elapsed()
    };
    let mut took: Vec<Duration> = (0..1_000).map(|_| once(client)).collect();
    took.sort_unstable();
    took[990]
}

#[test]
fn who_never_reads_at_the_any_port_cannot_eat_the_memory() {
    let (cluster, any_port) = two_with_any_port();
    let node = &cluster.nodes[0];
    let mut client = Client::try_connect(any_port).expect("it listens");
    // Spread over both nodes, so that answers come from this node and from the other.
    let keys: Vec<String> = (0..8).map(|number| format!("big:{number}")).collect();
    for key in &keys {
        let answer = client.call(&["SET".as_bytes(), key.as_bytes(), &vec![b'x'; 512 * 1024]]);
        assert!(answer.value.is_ok(), "{:?}", answer.value);
    }
    let mut greedy = TcpStream::connect(("127.0.0.1", any_port)).expect("it listens");
    greedy.set_write_timeout(Some(Duration::from_secs(1))).expect("a timeout");
    let mut requests = Vec::new();
    for key in &keys {
        resp::encode_command(&mut requests, &[b"GET", key.as_bytes()]);
    }
    let (mut highest, mut served, mut refused) = (0, 0, 0);
    // The node stops reading once it buffers too much for us; a few more writes verify that it stays so.
    for _ in 0..300 {
        refused += usize::from(greedy.write_all(&requests).is_err());
        highest = highest.max(node.rss_bytes());
        served += usize::from(client.run("PING") == Value::Simple(b"PONG".to_vec()));
        if refused == 5 {
            break;
        }
    }
    println!("{} MiB at most, {served} answers to another client", highest / MIB);
    assert!(served > 0, "others are served");
    assert!(highest < 300 * MIB, "{highest} bytes");
    assert_eq!(node.client().run("PING"), Value::Simple(b"PONG".to_vec()));
}

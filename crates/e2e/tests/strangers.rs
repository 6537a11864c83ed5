//! Attacks on the peer port of a running cluster: bytes recorded from a real link are sent again, whole, truncated,
//! reordered, changed, too long; strangers connect without the secret. Neither the map nor an item changes.
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use e2e::{Cluster, Rng, Server, opencluster};
use resp::Value;

const KEYS: u64 = 200;
const ATTACKS: usize = 60;
/// The address that the first node advertises, so that the bytes sent to it can be recorded.
const RECORDER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// Length of a frame that is longer than any between two nodes.
const TOO_LONG: u32 = 0x7FFF_FFFF;

/// Everything sent to a node on its connections, one after the other.
type Recorded = Arc<Mutex<Vec<Vec<u8>>>>;

/// Forwards connections, and records the bytes sent to the node.
fn record(port: u16) -> Recorded {
    let recorded = Recorded::default();
    let listener = TcpListener::bind((RECORDER, port)).expect("a free port");
    let all = Arc::clone(&recorded);
    thread::spawn(move || {
        for outside in listener.incoming().map_while(Result::ok) {
            let Ok(inside) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { continue };
            let mut back =
                (inside.try_clone().expect("a socket"), outside.try_clone().expect("one"));
            thread::spawn(move || std::io::copy(&mut back.0, &mut back.1));
            let all = Arc::clone(&all);
            thread::spawn(move || pass_on(outside, inside, &all));
        }
    });
    recorded
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, all: &Recorded) {
    let place = {
        let mut all = all.lock().expect("nobody panics with it");
        all.push(Vec::new());
        all.len() - 1
    };
    let mut chunk = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        all.lock().expect("nobody panics with it")[place].extend_from_slice(&chunk[..count]);
        if to.write_all(&chunk[..count]).is_err() {
            return;
        }
    }
}

/// Sends bytes to a peer port, reads the answer if any, and closes the connection.
fn say(port: u16, bytes: &[u8]) {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect(at).expect("the port is open");
    stream.set_read_timeout(Some(Duration::from_millis(200))).expect("a time to wait");
    // The node may close the connection before everything is sent.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = stream.read_to_end(&mut Vec::new());
}

/// Returns the recorded bytes, damaged in a random way.
fn worsened(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let place = rng.index(bytes.len());
    match rng.below(5) {
        0 => {}
        1 => bytes.truncate(place),
        2 => bytes.rotate_left(place),
        3 => bytes[place] ^= 1 << rng.below(8),
        _ => {
            let place = place.min(bytes.len().saturating_sub(4));
            let end = bytes.len().min(place + 4);
            bytes[place..end].copy_from_slice(&TOO_LONG.to_le_bytes()[..end - place]);
        }
    }
    bytes
}

/// Returns the map and every item, as the node reports them.
fn picture(node: &Server) -> (Vec<serde_json::Value>, Vec<Value>) {
    let mut client = node.client();
    let status = client.status();
    let map = ["generation", "epoch", "buckets", "settings"].map(|part| status[part].clone());
    let names = status["members"].as_array().cloned().unwrap_or_default();
    let names = names.iter().map(|member| member["id"].clone()).collect();
    let items = (0..KEYS).map(|number| client.run(&format!("GET {number}")));
    ([map.to_vec(), names].concat(), items.collect())
}

#[test]
fn nothing_that_is_said_to_a_peer_port_without_the_secret_changes_anything() {
    let dir = std::env::temp_dir().join(format!("opencluster-e2e-secret-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("the temporary directory can be written");
    let file = |name: &str, secret: &str| {
        let path = dir.join(name);
        std::fs::write(&path, secret).expect("our own directory");
        path.display().to_string()
    };
    let (secret, other) = (file("secret", "open sesame"), file("other", "let me in"));
    let host = RECORDER.to_string();
    let mut cluster = Cluster::of(1, &["--secret-file", &secret, "--advertise", &host]);
    let recorded = record(cluster.nodes[0].peer_port());
    let join = format!("127.0.0.1:{}", cluster.nodes[0].port());
    cluster.nodes.push(Server::node_with(&["--secret-file", &secret, "--join", &join]));
    cluster.wait_until_even();
    for number in 0..KEYS {
        // One of the two serves the key.
        let set = format!("SET {number} {number}");
        let answers = cluster.nodes.iter().map(|node| node.client().run(&set));
        let done = answers.filter(|answer| *answer == Value::Simple(b"OK".to_vec())).count();
        assert_eq!(done, 1);
    }
    thread::sleep(Duration::from_secs(1));
    let before: Vec<_> = cluster.nodes.iter().map(picture).collect();

    let streams = recorded.lock().expect("nobody panics with it").clone();
    let said: usize = streams.iter().map(Vec::len).sum();
    assert!(streams.len() >= 2 && said > 1_000, "control and data were recorded: {said} bytes");
    let mut rng = Rng::new(5);
    for _ in 0..ATTACKS {
        let stream = &streams[rng.index(streams.len())];
        let bytes = worsened(if stream.is_empty() { b"OPENCLUS" } else { stream }, &mut rng);
        cluster.nodes.iter().for_each(|node| say(node.peer_port(), &bytes));
    }
    say(cluster.nodes[0].peer_port(), b"GET / HTTP/1.1\r\n\r\n");
    say(cluster.nodes[0].peer_port(), &[0xFF; 100_000]);
    let refused = opencluster(&[
        "--port",
        "0",
        "--http-port",
        "off",
        "--secret-file",
        &other,
        "--join",
        &join,
    ]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("wrong cluster secret"), "{told}");

    let after: Vec<_> = cluster.nodes.iter().map(picture).collect();
    assert_eq!(before, after);
    assert_eq!(cluster.nodes[0].client().run("PING"), Value::Simple(b"PONG".to_vec()));
    let _ = std::fs::remove_dir_all(dir);
}

//! Robustness of the HTTP port: malformed requests and slow clients.
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use e2e::{Effort, Rng, Server, raise_fd_limit};

/// Timeout: a connection that is neither answered nor closed by then never will be.
const PATIENCE: Duration = Duration::from_secs(60);
/// Fixed seed: every run sends the same requests, so that a failure repeats.
const SEED: u64 = 8;
/// Number of slow clients: more than a node serves at a time.
const SLOW_CLIENTS: usize = 600;

fn connect(node: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", node.http_port())).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
    stream
}

/// Returns everything received until the connection is closed.
fn ended(mut stream: TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            panic!("the connection is never closed; so far {}", answer.escape_ascii())
        }
        // A reset counts as closed.
        Ok(_) | Err(_) => answer,
    }
}

fn is_healthy(node: &Server) -> bool {
    let mut stream = connect(node);
    stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").expect("it reads");
    ended(stream).starts_with(b"HTTP/1.0 200")
}

/// Returns a request that is partly or completely malformed.
fn broken(rng: &mut Rng) -> Vec<u8> {
    const WHOLE: &[&str] = &[
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /api/history HTTP/1.1\r\nHost: localhost\r\nRange: bytes=-\r\n\r\n",
        "POST /timers HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{\"timing\":{",
        "POST /api/leave HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        "GET /api/map HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET http://evil.example/ HTTP/1.1\r\n\r\n",
        "CONNECT localhost:6379 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "\x16\x03\x01\x02\x01\x01",
        "*1\r\n$4\r\nPING\r\n",
    ];
    let mut bytes = rng.pick(WHOLE).as_bytes().to_vec();
    for _ in 0..1 + rng.below(6) {
        let place = rng.index(bytes.len() + 1);
        match rng.below(5) {
            0 => bytes.truncate(place),
            1 => bytes.insert(place, any_byte(rng)),
            2 if place < bytes.len() => bytes[place] = any_byte(rng),
            3 => drop(bytes.splice(place..place, vec![b'a'; rng.index(40_000)])),
            _ => bytes.extend(vec![0; rng.index(60)]),
        }
    }
    bytes
}

fn any_byte(rng: &mut Rng) -> u8 {
    u8::try_from(rng.below(256)).expect("below 256")
}

#[test]
fn broken_requests_and_slow_clients_stop_nobody() {
    raise_fd_limit();
    let node = Server::node();
    let mut client = node.client();
    assert!(is_healthy(&node));
    let (fds, memory) = (node.fds(), node.rss_bytes());

    let mut rng = Rng::new(SEED);
    let requests = Effort::of_this_run().of_normally(500).max(100);
    for number in 0..requests {
        let mut stream = connect(&node);
        let bytes = broken(&mut rng);
        // The node may close the connection before all is written.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        ended(stream);
        if number % 50 == 0 {
            assert!(is_healthy(&node), "after {}", bytes.escape_ascii());
            assert_eq!(client.run("PING").to_string(), "PONG");
        }
    }

    let slow: Vec<TcpStream> = (0..SLOW_CLIENTS)
        .map(|number| {
            let mut stream = connect(&node);
            stream
                .write_all(&b"GET /healthz HTTP/1.1\r\nHost: loc"[..1 + number % 30])
                .expect("a byte or two");
            stream
        })
        .collect();
    for number in 0..1_000 {
        assert_eq!(client.run(&format!("SET key:{number} x")).to_string(), "OK");
    }
    assert!(is_healthy(&node), "it is answered behind all of them");
    for stream in slow {
        ended(stream);
    }
    assert!(is_healthy(&node));
    let left = (0..200).find(|_| {
        std::thread::sleep(Duration::from_millis(50));
        node.fds() <= fds + 8
    });
    assert!(left.is_some(), "{fds} file descriptors before, {} after", node.fds());
    let grown = node.rss_bytes().saturating_sub(memory);
    assert!(grown < 64 << 20, "{grown} bytes more are held");
}

//! Tests with processes of every kind on the port, on real sockets.

use std::thread::JoinHandle;

use super::*;

/// Answers one connection with `answer` and closes it.
fn neighbour(answer: &'static str) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let addr = listener.local_addr().expect("it is bound");
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("it is asked");
        let _ = stream.read(&mut [0; 256]);
        let _ = stream.write_all(answer.as_bytes());
    });
    (addr, thread)
}

#[test]
fn whoever_answers_is_called_by_its_name() {
    let cases = [
        (
            "+PONG\r\n$40\r\n# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\r\n",
            "a Redis 7.0.15 answers there",
        ),
        (
            "+PONG\r\n$9\r\n# Server\r\nredis_version:7.2.4\r\nvalkey_version:9.1.0\r\n\r\n",
            "a Valkey 9.1.0 answers there",
        ),
        (
            "+PONG\r\n$9\r\n# Server\r\nredis_version:7.0.0\r\nopencluster_version:0.1.0\r\n\r\n",
            "an OpenCluster node (0.1.0) answers there",
        ),
        (
            "-NOAUTH Authentication required.\r\n-NOAUTH Authentication required.\r\n",
            "something that speaks RESP and wants a password answers there",
        ),
        ("+PONG\r\n-ERR unknown command 'INFO'\r\n", "something that speaks RESP answers there"),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "a web server answers there"),
        ("SSH-2.0-OpenSSH_9.2\r\n", "something that does not speak RESP answers there"),
        ("", "a process that does not answer listens there"),
    ];
    for (answer, expected) in cases {
        let (addr, thread) = neighbour(answer);
        assert_eq!(who_answers(addr).to_string(), expected);
        thread.join().expect("the neighbour answered");
    }
}

#[test]
fn a_neighbour_that_never_answers_costs_little_time() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let began = Instant::now();
    let addr = listener.local_addr().expect("it is bound");
    assert_eq!(who_answers(addr), Neighbour::Silent);
    assert!(began.elapsed() < ANSWER_WITHIN * 4);
}

#[test]
fn a_suggested_port_is_free() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let addr = taken.local_addr().expect("it is bound");
    let port = free_port_after(addr, &[]).expect("one of a hundred is free");
    assert!(port > addr.port());
    TcpListener::bind((addr.ip(), port)).expect("it was suggested because it is free");
    let last = SocketAddr::new(addr.ip(), u16::MAX);
    assert_eq!(free_port_after(last, &[]), None);
}

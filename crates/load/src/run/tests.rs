//! The loops against a small server of our own: a thread that counts the requests.
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::keys::{KeySpace, Popularity};
use crate::request::Operation;

/// Answers every `GET` with `reply`, in pieces of `piece` bytes; counts the GETs.
fn server(reply: &'static [u8], piece: usize) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let counter = Arc::clone(&counter);
            std::thread::spawn(move || answer(stream.unwrap(), reply, piece, &counter));
        }
    });
    (address, asked)
}

fn answer(mut stream: TcpStream, reply: &[u8], piece: usize, asked: &AtomicU64) {
    const GET_BYTES: usize = "*2\r\n$3\r\nGET\r\n$16\r\nkey:000000000000\r\n".len();
    stream.set_nodelay(true).unwrap();
    let mut request = [0; GET_BYTES];
    while stream.read_exact(&mut request).is_ok() {
        assert!(request.starts_with(b"*2\r\n$3\r\nGET\r\n$16\r\nkey:0"));
        asked.fetch_add(1, Ordering::Relaxed);
        for piece in reply.chunks(piece) {
            if stream.write_all(piece).is_err() {
                return;
            }
        }
    }
}

fn plan(address: SocketAddr, style: Loop) -> Plan {
    let keys = KeySpace { keys: 1000, popularity: Popularity::Uniform };
    let requests = Requests { operation: Operation::Get, keys, value_bytes: 3 };
    Plan { address, connections: 3, requests, style, seed: 1 }
}

#[test]
fn a_closed_loop_sends_exactly_what_it_was_asked_to() {
    let (address, asked) = server(b"$3\r\nabc\r\n", 64);
    let plan = plan(address, Loop::Closed { pipeline: 16 });
    let tally = Load::connect(plan).unwrap().run(Until::Requests(1003)).unwrap();
    assert_eq!((tally.answered, tally.errors, tally.misses), (1003, 0, 0));
    assert_eq!(asked.load(Ordering::Relaxed), 1003);
    assert!(tally.per_second() > 0.0 && tally.percentile(50.0) > Duration::ZERO);
}

#[test]
fn replies_that_come_in_pieces_are_counted_once() {
    let (address, asked) = server(b"$3\r\nabc\r\n", 2);
    let plan = plan(address, Loop::Closed { pipeline: 4 });
    let tally = Load::connect(plan).unwrap().run(Until::Requests(200)).unwrap();
    assert_eq!((tally.answered, asked.load(Ordering::Relaxed)), (200, 200));
}

#[test]
fn errors_and_misses_are_not_taken_for_work() {
    let (address, _) = server(b"-ERR busy\r\n", 64);
    let requests = Until::Requests(10);
    let tally = Load::connect(plan(address, Loop::Closed { pipeline: 1 })).unwrap().run(requests);
    let tally = tally.unwrap();
    assert_eq!((tally.answered, tally.errors), (10, 10));
    assert_eq!(tally.first_error.as_deref(), Some("ERR busy"));
    let (address, _) = server(b"$-1\r\n", 64);
    let tally = Load::connect(plan(address, Loop::Closed { pipeline: 1 })).unwrap().run(requests);
    assert_eq!(tally.unwrap().misses, 10);
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let (address, asked) = server(b"$3\r\nabc\r\n", 64);
    let time = Until::Elapsed(Duration::from_millis(300));
    let tally = Load::connect(plan(address, Loop::Open { per_second: 1000 })).unwrap().run(time);
    let tally = tally.unwrap();
    assert_eq!((tally.answered, asked.load(Ordering::Relaxed)), (300, 300));
    assert!(tally.elapsed >= Duration::from_millis(299));
}

#[test]
fn a_server_that_hangs_up_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            drop(stream);
        }
    });
    let plan = plan(address, Loop::Closed { pipeline: 1 });
    assert!(Load::connect(plan).and_then(|mut load| load.run(Until::Requests(10))).is_err());
}

#[test]
fn loads_on_two_threads_are_one_tally() {
    let (address, asked) = server(b"$3\r\nabc\r\n", 64);
    let plan = plan(address, Loop::Closed { pipeline: 8 });
    let loads = vec![
        (Load::connect(plan).unwrap(), Core(0)),
        (Load::connect(Plan { seed: 2, ..plan }).unwrap(), Core(0)),
    ];
    assert_eq!(run_together(loads, Until::Requests(500)).unwrap().answered, 1000);
    assert_eq!(asked.load(Ordering::Relaxed), 1000);
}

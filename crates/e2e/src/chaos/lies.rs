//! Lies: false entries, one for each class of anomaly. A run with a false entry must detect it.
use std::net::TcpListener;
use std::time::{Duration, Instant};

use super::anomalies::Class;
use super::book::Key;
use super::clients::judge_transaction;
use super::courier::Fate;
use super::history::Act;
use super::holds::Hold;
use super::load::Desk;
use super::silences::Silence;
use crate::Client;

/// Makes false entries that let the book and the other checkers find one anomaly of this class.
///
/// # Panics
/// Panics if nothing was written before.
pub fn tell(class: Class, desk: &Desk) {
    match class {
        Class::Lost => acknowledge(desk, key(desk, 0), Act::Set),
        Class::Stale => {
            let key = key(desk, 1);
            let number = desk.book.issue(key, Act::Set);
            desk.book.judge(key, Some(number), number);
        }
        Class::Resurrected => acknowledge(desk, key(desk, 2), Act::Delete),
        Class::Hung => hang(desk),
        Class::TwoHolders => hold_twice(desk),
        Class::Partial => {
            let class = judge_transaction(&Fate::Unknown, Some(1), 2);
            desk.book.note(class.expect("one of two is partial"), "a lie".to_owned());
        }
        Class::Phantom => desk.book.judge(key(desk, 3), Some(u32::MAX), 0),
    }
}

/// Returns an existing key, a different one for each lie.
fn key(desk: &Desk, index: usize) -> Key {
    let mut keys = desk.book.keys().into_iter().filter(|key| desk.book.is_set(*key));
    keys.nth(index).expect("the load has written several keys")
}

fn acknowledge(desk: &Desk, key: Key, act: Act) {
    let number = desk.book.issue(key, act);
    desk.book.acknowledge(key, number);
}

/// Registers a wait for a reply that never comes, from an address that counts as that of a running node.
fn hang(desk: &Desk) {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let connected = silent.local_addr().and_then(|at| Client::connect(at, Duration::from_secs(1)));
    let line = connected.expect("a listener takes connections");
    let at = desk.town.addresses()[0];
    let (request, sent, deadline) = ("a lie".to_owned(), Instant::now(), Duration::ZERO);
    desk.silences.watch(Silence { line, at, replies_due: 1, request, sent, deadline });
    desk.silences.look();
}

fn hold_twice(desk: &Desk) {
    let from = Instant::now();
    for token in ["a", "lie"] {
        let (lock, until) = ("lock".to_owned(), from + Duration::from_secs(1));
        desk.holds.add(Hold { lock, token: token.to_owned(), from, until });
    }
}

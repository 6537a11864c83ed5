//! A client of commands that walk over all keys of a node, or wait for its backups. They must end
//! with a reply or an error, whatever has happened to other nodes.
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use resp::Value;

use crate::chaos::anomalies::Class;
use crate::chaos::courier::is_timeout;
use crate::chaos::load::Desk;
use crate::chaos::silences::Silence;
use crate::{Client, Rng};

/// Time after which the walker moves on; the silent connection remains watched.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// A walk counts as hung after this long in calm time with neither a reply nor the end of its connection.
const HUNG_AFTER: Duration = Duration::from_secs(10);
/// Maximum number of steps of a SCAN; one that takes more does not end.
const SCAN_STEPS_MAX: usize = 100_000;

pub struct Walker {
    desk: Desk,
    rng: Rng,
}

/// A connection to one node.
struct Walk<'d> {
    desk: &'d Desk,
    at: SocketAddr,
    /// None once the connection has closed or fallen silent.
    line: Option<Client>,
}

impl Walker {
    pub fn new(desk: &Desk, rng: Rng) -> Walker {
        Walker { desk: desk.clone(), rng }
    }
}

impl super::Client for Walker {
    fn step(&mut self) {
        let drawn = self.rng.draw();
        let addresses = self.desk.town.addresses();
        if addresses.is_empty() {
            return;
        }
        let at = addresses[Rng::new(drawn).index(addresses.len())];
        let Ok(line) = Client::connect(at, ANSWER_WITHIN) else { return };
        let mut walk = Walk { desk: &self.desk, at, line: Some(line) };
        let pattern = format!("c?:{}*:0", 1 + drawn % 9);
        walk.ask(&["DBSIZE"]);
        walk.ask(&["KEYS", &pattern]);
        walk.ask(&["RANDOMKEY"]);
        walk.ask(&["WAIT", "1", "500"]);
        walk.scan();
    }

    fn pause(&mut self) -> Duration {
        Duration::from_millis(100)
    }
}

impl Walk<'_> {
    fn scan(&mut self) {
        let mut cursor = "0".to_owned();
        for _ in 0..SCAN_STEPS_MAX {
            let Some(reply) = self.ask(&["SCAN", &cursor, "COUNT", "200"]) else { return };
            match next_cursor(&reply) {
                Some(next) if next != "0" => cursor = next,
                _ => return,
            }
        }
        let details = format!("SCAN at {}: no end after {SCAN_STEPS_MAX} steps", self.at);
        self.desk.book.note(Class::Hung, details);
    }

    /// Returns the reply, or None if the connection is closed or silent.
    fn ask(&mut self, words: &[&str]) -> Option<Value> {
        let mut line = self.line.take()?;
        let sent = Instant::now();
        match line.send(words).and_then(|()| line.receive()) {
            Ok(reply) => {
                self.line = Some(line);
                self.desk.book.walks.fetch_add(1, Ordering::Relaxed);
                Some(reply.value)
            }
            Err(error) => {
                self.watch_if_silent(line, &error, words[0], sent);
                None
            }
        }
    }

    fn watch_if_silent(&self, line: Client, error: &io::Error, command: &str, sent: Instant) {
        if is_timeout(error) {
            let (at, request, deadline) = (self.at, command.to_owned(), HUNG_AFTER);
            let silence = Silence { line, at, replies_due: 1, request, sent, deadline };
            self.desk.silences.watch(silence);
        }
    }
}

fn next_cursor(reply: &Value) -> Option<String> {
    let Value::Array(parts) = reply else { return None };
    let Some(Value::Bulk(cursor)) = parts.first() else { return None };
    Some(String::from_utf8_lossy(cursor).into_owned())
}

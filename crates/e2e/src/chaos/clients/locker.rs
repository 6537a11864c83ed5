//! A client of locks: takes one with `SET NX PX`, keeps it for a while, and releases it or lets it expire.
//! `holds.rs` looks for two holders at once.
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use resp::Value;

use super::Client;
use crate::Rng;
use crate::chaos::anomalies::Class;
use crate::chaos::courier::{Courier, Fate};
use crate::chaos::holds::Hold;
use crate::chaos::load::Desk;

const LOCKS: usize = 4;
const TTL: Duration = Duration::from_millis(2_000);
/// The holder stops relying on the lock this long before it expires.
const MARGIN: Duration = Duration::from_millis(200);
/// Limit for retries of commands on a lock: a late `DEL` would release another client's lock.
const RETRY_FOR: Duration = Duration::from_millis(300);

/// The locks that all clients compete for. A lock gets a new name after a release of unknown fate.
#[derive(Debug)]
pub struct Locks([AtomicU32; LOCKS]);

impl Default for Locks {
    fn default() -> Locks {
        Locks(std::array::from_fn(|_| AtomicU32::new(0)))
    }
}

pub struct Locker {
    number: usize,
    locks: Arc<Locks>,
    courier: Courier,
    desk: Desk,
    rng: Rng,
    tokens: u64,
}

impl Locker {
    pub fn new(number: usize, desk: &Desk, locks: Arc<Locks>, mut rng: Rng) -> Locker {
        let courier = Courier::new(desk, Rng::new(rng.draw())).retrying_for(RETRY_FOR);
        Locker { number, locks, courier, desk: desk.clone(), rng, tokens: 0 }
    }

    fn acquire(&mut self, lock: &str) -> Option<Hold> {
        self.tokens += 1;
        let token = format!("{}-{}", self.number, self.tokens);
        let ttl = TTL.as_millis().to_string();
        let words = [b"SET", lock.as_bytes(), token.as_bytes(), b"NX", b"PX", ttl.as_bytes()];
        let sent = Instant::now();
        let Fate::Answered(reply) = self.courier.send(lock, &words) else { return None };
        let (from, until) = (Instant::now(), sent + TTL - MARGIN);
        (reply.is_ok() && from < until).then(|| Hold { lock: lock.to_owned(), token, from, until })
    }

    /// Reads the lock, which must show the holder's token while the hold is certain.
    fn check(&mut self, hold: &Hold) {
        let words: [&[u8]; 2] = [b"GET", hold.lock.as_bytes()];
        let Fate::Answered(found) = self.courier.send(&hold.lock, &words) else { return };
        if Instant::now() >= hold.until || found == Value::Bulk(hold.token.clone().into_bytes()) {
            return;
        }
        let class = if found == Value::Null { Class::Lost } else { Class::TwoHolders };
        let details = format!("{}: {found:?} instead of {}", hold.lock, hold.token);
        self.desk.book.note(class, details);
    }

    /// Sends the `DEL`; the hold ends as it is sent. Returns false if its fate is unknown, or known too late.
    fn release(&mut self, hold: &mut Hold) -> bool {
        let sent = Instant::now();
        let expires = hold.until;
        hold.until = sent;
        let fate = self.courier.send(&hold.lock, &[b"DEL", hold.lock.as_bytes()]);
        fate != Fate::Unknown && Instant::now() < expires
    }
}

impl Client for Locker {
    fn step(&mut self) {
        let mut rng = Rng::new(self.rng.draw());
        let (index, keeps_for) = (rng.index(LOCKS), Duration::from_millis(rng.below(1_200)));
        let lock = format!("lock:{index}:{}", self.locks.0[index].load(Ordering::Relaxed));
        let Some(mut hold) = self.acquire(&lock) else { return };
        thread::sleep(keeps_for);
        self.check(&hold);
        let has_time = Instant::now() + RETRY_FOR < hold.until;
        if rng.one_in(2) && has_time && !self.release(&mut hold) {
            self.desk.holds.doubt(&lock, hold.until);
            self.locks.0[index].fetch_add(1, Ordering::Relaxed);
        }
        self.desk.holds.add(hold);
    }

    fn pause(&mut self) -> Duration {
        Duration::from_millis(20)
    }
}

//! Slows down the guessing of passwords and tokens: an address that has presented many wrong ones is refused for
//! a while without being judged, so that further guesses teach it nothing.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Wrong guesses an address may make at once: enough for a fleet of clients with an old password behind one
/// address.
pub const GUESSES_AT_ONCE: u32 = 100;
/// Time after which an address may make one more guess: ten in a second.
const GUESS_EVERY: Duration = Duration::from_millis(100);
/// Maximum number of addresses remembered. Further ones share one entry.
const ADDRESSES_MAX: usize = 10_000;
/// Minimum time between two lines in the log.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// The wrong guesses of all addresses.
#[derive(Default)]
pub struct Guesses {
    wrong: AtomicU64,
    state: Mutex<GuessState>,
}

#[derive(Default)]
struct GuessState {
    /// The time at which an address will have no wrong guess on its account. Each adds [`GUESS_EVERY`].
    accounts: HashMap<IpAddr, Instant>,
    last_line: Option<Instant>,
    /// Wrong guesses since that line.
    unlogged: u64,
}

impl Guesses {
    /// Returns whether a password from this address may be judged now.
    pub fn may_try(&self, from: IpAddr, now: Instant) -> bool {
        if self.wrong.load(Relaxed) == 0 {
            return true;
        }
        let state = self.state.lock();
        let account = state.accounts.get(&account_of(from));
        let shared = state.accounts.get(&SHARED).filter(|_| state.is_full());
        let debt = |until: &Instant| until.saturating_duration_since(now);
        account.or(shared).map_or(Duration::ZERO, debt) < GUESS_EVERY * GUESSES_AT_ONCE
    }

    /// Records a wrong guess. Returns the number of wrong guesses to log, if a line is due.
    pub fn note_wrong(&self, from: IpAddr, now: Instant) -> Option<u64> {
        self.wrong.fetch_add(1, Relaxed);
        let mut state = self.state.lock();
        let mut account = account_of(from);
        if state.is_full() && !state.accounts.contains_key(&account) {
            state.accounts.retain(|_, until| *until > now);
            account = if state.is_full() { SHARED } else { account };
        }
        let until = state.accounts.entry(account).or_insert(now);
        *until = (*until).max(now) + GUESS_EVERY;
        state.unlogged += 1;
        if state.last_line.is_some_and(|last| now.saturating_duration_since(last) < LINE_EVERY) {
            return None;
        }
        state.last_line = Some(now);
        Some(std::mem::take(&mut state.unlogged))
    }

    /// Returns the number of wrong guesses so far.
    pub fn wrong(&self) -> u64 {
        self.wrong.load(Relaxed)
    }
}

impl GuessState {
    fn is_full(&self) -> bool {
        self.accounts.len() >= ADDRESSES_MAX
    }
}

/// The account of all addresses for which there is no room.
const SHARED: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// Returns the address under which guesses are counted: one machine mostly has a whole IPv6 network of 64 bits.
fn account_of(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) => IpAddr::V4(ip),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64 | 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn an_address_with_many_wrong_guesses_waits_and_others_do_not() {
        let guesses = Guesses::default();
        let now = Instant::now();
        let judged = (0..1_000).filter(|_| {
            let may = guesses.may_try(ip("192.0.2.1"), now);
            if may {
                guesses.note_wrong(ip("192.0.2.1"), now);
            }
            may
        });
        assert_eq!(judged.count(), GUESSES_AT_ONCE as usize);
        assert!(guesses.may_try(ip("192.0.2.2"), now));
        assert!(!guesses.may_try(ip("::ffff:192.0.2.1"), now), "the same address");
        assert!(guesses.may_try(ip("192.0.2.1"), now + GUESS_EVERY), "one more");
        guesses.note_wrong(ip("192.0.2.1"), now + GUESS_EVERY);
        assert!(!guesses.may_try(ip("192.0.2.1"), now + GUESS_EVERY));
    }

    #[test]
    fn a_network_of_one_machine_is_one_address() {
        let guesses = Guesses::default();
        let now = Instant::now();
        for number in 0..GUESSES_AT_ONCE {
            guesses.note_wrong(ip(&format!("2001:db8::{number:x}")), now);
        }
        assert!(!guesses.may_try(ip("2001:db8::ffff"), now));
        assert!(guesses.may_try(ip("2001:db8:0:1::1"), now));
    }

    #[test]
    fn a_line_a_second_counts_all_guesses() {
        let guesses = Guesses::default();
        let now = Instant::now();
        assert_eq!(guesses.note_wrong(ip("192.0.2.1"), now), Some(1));
        assert_eq!(guesses.note_wrong(ip("192.0.2.1"), now), None);
        assert_eq!(guesses.note_wrong(ip("192.0.2.2"), now), None);
        assert_eq!(guesses.note_wrong(ip("192.0.2.2"), now + LINE_EVERY), Some(3));
        assert_eq!(guesses.wrong(), 4);
    }

    #[test]
    fn the_table_of_addresses_has_an_end() {
        let guesses = Guesses::default();
        let now = Instant::now();
        for number in 0..20_000_u32 {
            guesses.note_wrong(IpAddr::V4(number.into()), now);
        }
        assert!(guesses.state.lock().accounts.len() <= ADDRESSES_MAX + 1);
        assert!(
            !guesses.may_try(ip("203.0.113.9"), now),
            "no room for it, and the shared account is full"
        );
        assert!(guesses.may_try(IpAddr::V4(5_u32.into()), now), "one guess");
    }
}

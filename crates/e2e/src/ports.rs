//! Ports for the servers of tests. If the system chooses a port and it is closed again, the system
//! may give it to another process before the server binds it: then another test's server answers.
//! So ports are counted up, each given once, in a range below those that the system chooses from.
use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports below those that Linux assigns to outgoing connections and to port 0; so are the followers.
const RANGE: Range<u32> = 11_000..21_000;
/// Redis in cluster mode also binds the port this much higher. It is outside the range.
const FOLLOWER: u32 = 10_000;
/// Distance between the first ports of processes with consecutive ids; coprime to the size of the range.
const APART: u32 = 1_009;

/// Returns ports that nobody listens on; this process never gives a port twice.
pub fn free_ports<const N: usize>() -> [u16; N] {
    [(); N].map(|()| free_port())
}

fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let count = RANGE.end - RANGE.start;
    loop {
        let given = GIVEN.fetch_add(1, Ordering::Relaxed);
        assert!(given < count, "all ports between {} and {} were given", RANGE.start, RANGE.end);
        let place = (std::process::id() % count * APART + given) % count;
        let port = RANGE.start + place;
        if is_free(port) && is_free(port + FOLLOWER) {
            return number(port);
        }
    }
}

fn is_free(port: u32) -> bool {
    TcpListener::bind(("127.0.0.1", number(port))).is_ok()
}

fn number(port: u32) -> u16 {
    u16::try_from(port).expect("ports end at 65,535")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;

    #[test]
    fn no_port_is_given_that_somebody_has_or_was_given() {
        let [port] = free_ports();
        // Taken itself, or through its follower.
        let somebody =
            [port + 5, port + 7 + number(FOLLOWER)].map(|it| TcpListener::bind(("127.0.0.1", it)));
        let mut given: Vec<u16> = free_ports::<10>().into();
        assert!(somebody[0].is_err() || !given.contains(&(port + 5)), "{given:?}");
        assert!(somebody[1].is_err() || !given.contains(&(port + 7)), "{given:?}");
        // Nobody has taken any of the others.
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(free_ports::<500>)).collect();
        given.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap()));
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), given.len());
        assert!(given.iter().all(|port| RANGE.contains(&u32::from(*port))));
        assert!(!RANGE.contains(&(RANGE.start + FOLLOWER)), "a follower is never given");
    }
}

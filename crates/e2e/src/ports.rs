//! Ports for servers of one's own. A port that the system chooses and that is let go again may be chosen
//! for somebody else before the server has it: another test's server then answers in its place. So they are
//! counted up, each given once, from below those that the system chooses by itself.
use std::net::TcpListener;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below what Linux gives to connections and to whoever asks for any port.
const RANGE: Range<u32> = 10_000..32_000;
/// Processes whose numbers follow one another begin so far apart; it has no factor in common with the range.
const APART: u32 = 1_009;

/// Ports nobody listens on; none of them was or will be given again in this process.
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
        let port = u16::try_from(RANGE.start + place).expect("ports end at 65,535");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::thread;

    use super::*;

    #[test]
    fn no_port_is_given_that_somebody_has_or_was_given() {
        let [port] = free_ports();
        let somebody = TcpListener::bind(("127.0.0.1", port + 5));
        let mut given: Vec<u16> = free_ports::<10>().into();
        assert!(somebody.is_err() || !given.contains(&(port + 5)), "{given:?}");
        // Nobody has taken any of the others.
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(free_ports::<500>)).collect();
        given.extend(threads.into_iter().flat_map(|thread| thread.join().unwrap()));
        assert_eq!(given.iter().collect::<HashSet<_>>().len(), given.len());
        assert!(given.iter().all(|port| RANGE.contains(&u32::from(*port))));
    }
}

//! Options of a connection's socket.

use std::io;
use std::time::Duration;

use mio::net::TcpStream;
use socket2::{SockRef, TcpKeepalive};

/// Lost probes after which the system closes a connection.
const PROBES_MAX: u32 = 3;
/// The shortest time that the system accepts.
const SECOND: Duration = Duration::from_secs(1);

/// Probes of an idle connection, which detect that the other end has vanished.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keepalive {
    Off,
    /// As the system is configured.
    System,
    /// The first probe after this time without data, the next ones after a third of it each.
    After(Duration),
}

impl Keepalive {
    /// Returns the keepalive with this time to the first probe; zero stands for none.
    pub fn after(time: Duration) -> Keepalive {
        if time.is_zero() { Keepalive::Off } else { Keepalive::After(time) }
    }
}

/// Sets the options of a connection: no delay for small writes, and keepalive. A system that does not take these
/// times uses its own: that is no reason to refuse a client.
pub fn configure(stream: &TcpStream, keepalive: Keepalive) -> io::Result<()> {
    let socket = SockRef::from(stream);
    socket.set_tcp_nodelay(true)?;
    match keepalive {
        Keepalive::Off => Ok(()),
        Keepalive::System => socket.set_keepalive(true),
        Keepalive::After(time) => {
            let time = time.max(SECOND);
            let keepalive = TcpKeepalive::new()
                .with_time(time)
                .with_interval((time / 3).max(SECOND))
                .with_retries(PROBES_MAX);
            socket.set_tcp_keepalive(&keepalive).or_else(|_| socket.set_keepalive(true))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::pair;

    #[test]
    fn small_writes_are_not_delayed_and_probes_are_sent_as_asked() {
        for (keepalive, expected) in [
            (Keepalive::Off, None),
            (Keepalive::after(Duration::ZERO), None),
            (Keepalive::after(Duration::from_secs(300)), Some((300, 100))),
            (Keepalive::after(Duration::from_millis(10)), Some((1, 1))),
        ] {
            let (stream, _other) = pair();
            configure(&stream, keepalive).unwrap();
            let socket = SockRef::from(&stream);
            assert!(socket.tcp_nodelay().unwrap());
            assert_eq!(socket.keepalive().unwrap(), expected.is_some(), "{keepalive:?}");
            if let Some((time, interval)) = expected {
                assert_eq!(socket.tcp_keepalive_time().unwrap().as_secs(), time);
                assert_eq!(socket.tcp_keepalive_interval().unwrap().as_secs(), interval);
                assert_eq!(socket.tcp_keepalive_retries().unwrap(), PROBES_MAX);
            }
        }
    }

    #[test]
    fn a_time_that_the_system_does_not_take_is_no_reason_to_refuse() {
        let (stream, _other) = pair();
        configure(&stream, Keepalive::after(Duration::from_secs(40_000))).unwrap();
        assert!(SockRef::from(&stream).keepalive().unwrap());
    }

    #[test]
    fn the_systems_keepalive_is_switched_on_unchanged() {
        let (stream, _other) = pair();
        let before = SockRef::from(&stream).tcp_keepalive_time().unwrap();
        configure(&stream, Keepalive::System).unwrap();
        assert!(SockRef::from(&stream).keepalive().unwrap());
        assert_eq!(SockRef::from(&stream).tcp_keepalive_time().unwrap(), before);
    }
}

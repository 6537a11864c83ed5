//! SCAN over a whole fleet: the cursor encodes the current server, and one server follows another. The caller
//! filters out the fleet's own keys (`names::is_reserved`).

use crate::config::{Epoch, Server};
use crate::view::View;

/// Position of a scan: a server's own cursor, the server, and the last bits of the epoch in which the scan
/// began that server. The client sees it as one number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor {
    pub server: Server,
    /// The server's own cursor; 0 is the beginning.
    pub inner: u64,
}

const EPOCH_BITS: u32 = 2;
const SERVER_BITS: u32 = 10;
const _: () = assert!(placement::SERVERS_MAX <= 1 << SERVER_BITS);

impl Cursor {
    /// Decodes the client's number. After a change of maps the scan restarts: keys it has not seen yet may be
    /// on a server it has already passed. Returns `None` for a number that is not one of our cursors.
    pub fn read(view: &View, text: &[u8]) -> Option<Cursor> {
        let number = std::str::from_utf8(text).ok()?.parse::<u64>().ok()?;
        let walk = view.walk();
        let first = Cursor { server: *walk.first()?, inner: 0 };
        if number == 0 {
            return Some(first);
        }
        let bits = |shift: u32, count: u32| (number >> shift) & ((1 << count) - 1);
        let server = Server(usize::try_from(bits(EPOCH_BITS, SERVER_BITS)).ok()?);
        let same_map = bits(0, EPOCH_BITS) == epoch_bits(view.epoch());
        if !same_map || !walk.contains(&server) {
            return Some(first);
        }
        Some(Cursor { server, inner: number >> (EPOCH_BITS + SERVER_BITS) })
    }

    /// Returns the number for the client after the server answered with its cursor `inner`.
    pub fn following(self, view: &View, inner: u64) -> u64 {
        if inner != 0 {
            return Cursor { inner, ..self }.number(view.epoch());
        }
        let walk = view.walk();
        let mut rest = walk.into_iter().skip_while(|server| *server != self.server).skip(1);
        let next = rest.next().map(|server| Cursor { server, inner: 0 });
        next.map_or(0, |next| next.number(view.epoch()))
    }

    fn number(self, epoch: Epoch) -> u64 {
        let server = (self.server.0 as u64) << EPOCH_BITS;
        self.inner << (EPOCH_BITS + SERVER_BITS) | server | epoch_bits(epoch)
    }
}

/// Encodes the epoch. Never 0, so that only the end of a scan is cursor 0.
fn epoch_bits(epoch: Epoch) -> u64 {
    1 + epoch.number() % 3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Address, Config};

    fn config() -> Config {
        let servers = Address::list("a:1,b:1,c:1").unwrap();
        Config::first(servers, "1.0.1".parse().unwrap())
    }

    #[test]
    fn a_scan_goes_from_server_to_server_and_ends() {
        let view = View::of(&config());
        let text = |number: u64| number.to_string().into_bytes();
        let begin = Cursor::read(&view, b"0").unwrap();
        assert_eq!(begin, Cursor { server: Server(0), inner: 0 });
        let middle = Cursor::read(&view, &text(begin.following(&view, 77))).unwrap();
        assert_eq!(middle, Cursor { server: Server(0), inner: 77 });
        let second = Cursor::read(&view, &text(middle.following(&view, 0))).unwrap();
        assert_eq!(second, Cursor { server: Server(2), inner: 0 });
        assert_eq!(second.following(&view, 0), 0);
    }

    #[test]
    fn a_scan_begins_anew_when_the_maps_have_changed() {
        let mut config = config();
        let before = View::of(&config);
        let number = Cursor { server: Server(2), inner: 5 }.following(&before, 9);
        config.epoch = config.epoch.next();
        let cursor = Cursor::read(&View::of(&config), number.to_string().as_bytes());
        assert_eq!(cursor, Some(Cursor { server: Server(0), inner: 0 }));
    }

    #[test]
    fn a_wrong_number_is_no_cursor() {
        let view = View::of(&config());
        assert_eq!(Cursor::read(&view, b"x"), None);
        assert_eq!(Cursor::read(&view, b"-1"), None);
        assert_eq!(Cursor::read(&view, b"99999999999999999999999"), None);
    }
}

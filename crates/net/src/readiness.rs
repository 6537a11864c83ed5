//! A socket's readiness in an edge-triggered poll: what epoll has reported once and will not report again.

use std::io::{self, ErrorKind, Read};

use mio::event::Event;

use crate::stream::Stream;

/// The readiness of one socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Readiness {
    /// True if the socket may hold more input. Its owner reads on without waiting for an event.
    pub readable: bool,
    /// True if the other end sends no more: once all is read, the stream is at its end. epoll reports this only
    /// once, and perhaps together with the last bytes.
    pub hung_up: bool,
}

impl Readiness {
    /// Returns the readiness of a socket about which nothing is known.
    pub fn unknown() -> Readiness {
        Readiness { readable: true, hung_up: false }
    }

    /// Notes an event of the socket.
    #[inline]
    pub fn note(&mut self, event: &Event) {
        self.hung_up |= event.is_read_closed();
        self.readable = true;
    }

    /// Notes that a read has filled `filled` of `room` bytes. A read that was not full has taken everything,
    /// if `short_is_all`.
    #[inline]
    pub fn note_read(&mut self, filled: usize, room: usize, short_is_all: bool) {
        self.readable = filled == room || self.hung_up || !short_is_all;
    }
}

impl Stream {
    /// Reads what fits, and notes whether there may be more. Nothing to read is no error; the end of the stream
    /// is.
    #[inline]
    pub fn read_noting(&mut self, into: &mut [u8], readiness: &mut Readiness) -> io::Result<usize> {
        match self.read(into) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(filled) => {
                readiness.note_read(filled, into.len(), self.short_read_is_all());
                Ok(filled)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                readiness.note_read(0, into.len(), true);
                Ok(0)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Duration;

    use mio::{Events, Token};

    use super::*;
    use crate::poller::Poller;
    use crate::testing::{pair, tls_pair};

    #[test]
    fn only_a_full_read_of_a_plain_socket_leaves_it_readable() {
        let (here, mut there) = pair();
        let mut here = Stream::from(here);
        let mut readiness = Readiness::unknown();
        there.write_all(b"0123456789").unwrap();
        let mut buffer = [0; 4];
        let mut seen = Vec::new();
        while seen.iter().map(|(count, _)| count).sum::<usize>() < 10 {
            let count = here.read_noting(&mut buffer, &mut readiness).unwrap();
            if count > 0 {
                seen.push((count, readiness.readable));
            }
        }
        assert_eq!(seen, [(4, true), (4, true), (2, false)]);
        readiness.readable = true;
        assert_eq!(here.read_noting(&mut buffer, &mut readiness).unwrap(), 0);
        assert!(!readiness.readable, "there was nothing to read");
    }

    #[test]
    fn a_socket_whose_other_end_hung_up_is_read_to_its_end() {
        let (mut poller, _waker) = Poller::new().unwrap();
        let (here, mut there) = pair();
        let mut here = Stream::from(here);
        here.register(poller.registry(), Token(1)).unwrap();
        there.write_all(b"bye").unwrap();
        drop(there);
        let mut readiness = Readiness { readable: false, hung_up: false };
        let mut events = Events::with_capacity(4);
        while !readiness.hung_up {
            poller.wait(&mut events, Some(Duration::from_secs(30)));
            assert!(!events.is_empty(), "the end is not reported");
            events.iter().for_each(|event| readiness.note(event));
        }
        assert!(readiness.readable);
        let mut buffer = [0; 100];
        assert_eq!(here.read_noting(&mut buffer, &mut readiness).unwrap(), 3);
        assert!(readiness.readable, "its end is not read yet, and nothing will report it");
        let end = here.read_noting(&mut buffer, &mut readiness).unwrap_err();
        assert_eq!(end.kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_tls_stream_is_readable_until_it_has_nothing() {
        let (mut client, mut server) = tls_pair();
        let mut readiness = Readiness::unknown();
        let mut buffer = [0; 100];
        assert_eq!(client.write(b"hello").unwrap(), 5);
        let mut got = 0;
        while got == 0 {
            // The client takes part in the handshake when it reads.
            assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
            got = server.read_noting(&mut buffer, &mut readiness).unwrap();
            assert_eq!(readiness.readable, got > 0, "after {got} bytes");
        }
        assert_eq!(&buffer[..got], b"hello");
    }
}

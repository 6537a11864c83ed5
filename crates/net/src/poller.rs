//! The epoll instance of a thread, and the tokens that every event loop has.
//!
//! Sockets are registered edge-triggered: epoll reports each change once. A thread that leaves input unread
//! therefore has to remember it (see [`crate::Readiness`]).

use std::io;
use std::time::Duration;

use mio::{Events, Poll, Registry, Token, Waker};

/// The token of the waker. Tokens of connections count up from zero and do not come near.
pub const WAKER: Token = Token(usize::MAX);
/// The token of the listening socket.
pub const LISTENER: Token = Token(usize::MAX - 1);
/// The token of a second listening socket.
pub const SECOND_LISTENER: Token = Token(usize::MAX - 2);

/// A thread's poll, which other threads can wake.
pub struct Poller(Poll);

impl Poller {
    /// Creates a poll, and the waker through which other threads reach it.
    pub fn new() -> io::Result<(Poller, Waker)> {
        let poll = Poll::new()?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        Ok((Poller(poll), waker))
    }

    pub fn registry(&self) -> &Registry {
        self.0.registry()
    }

    /// Waits for events, or until the time is up. A signal ends the wait without an event.
    pub fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) {
        if let Err(error) = self.0.poll(events, timeout) {
            assert_eq!(error.kind(), io::ErrorKind::Interrupted, "epoll failed: {error}");
            events.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::stream::Stream;
    use crate::testing::pair;

    fn tokens(events: &Events) -> Vec<Token> {
        events.iter().map(mio::event::Event::token).collect()
    }

    #[test]
    fn a_wait_ends_with_the_wakers_token_or_with_nothing() {
        let (mut poller, waker) = Poller::new().unwrap();
        let mut events = Events::with_capacity(4);
        poller.wait(&mut events, Some(Duration::ZERO));
        assert!(events.is_empty());
        waker.wake().unwrap();
        poller.wait(&mut events, Some(Duration::from_secs(30)));
        assert_eq!(tokens(&events), [WAKER]);
        poller.wait(&mut events, Some(Duration::ZERO));
        assert!(events.is_empty(), "a wake-up is reported once");
    }

    #[test]
    fn unread_input_is_reported_once() {
        let (mut poller, _waker) = Poller::new().unwrap();
        let (here, mut there) = pair();
        let mut here = Stream::from(here);
        there.write_all(b"hello").unwrap();
        here.register(poller.registry(), Token(7)).unwrap();
        let mut events = Events::with_capacity(4);
        let mut readable = false;
        while !readable {
            poller.wait(&mut events, Some(Duration::from_secs(30)));
            assert_eq!(tokens(&events), [Token(7)]);
            readable = events.iter().any(mio::event::Event::is_readable);
        }
        poller.wait(&mut events, Some(Duration::ZERO));
        assert!(events.is_empty(), "the poll is edge-triggered");
        here.deregister(poller.registry());
        there.write_all(b"more").unwrap();
        poller.wait(&mut events, Some(Duration::from_millis(50)));
        assert!(events.is_empty(), "the socket is not registered any more");
    }
}

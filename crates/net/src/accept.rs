//! Accepting connections: the listening socket, and the choice of the worker for a new connection.

use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, Socket, Type};

/// Opens a listening socket. `backlog` is the number of connections that may wait to be accepted.
pub fn listen(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // After a restart, connections in TIME_WAIT may still occupy the port.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(TcpListener::from_std(socket.into()))
}

/// A worker's listening socket, if it has one.
#[derive(Default)]
pub struct Acceptor {
    listener: Option<TcpListener>,
    /// True if connections may wait to be accepted; epoll will not report them again.
    is_ready: bool,
}

impl Acceptor {
    /// Starts to listen. Epoll reports the socket with this token.
    pub fn listen(&mut self, mut listener: TcpListener, token: Token, registry: &Registry) {
        let registered = registry.register(&mut listener, token, Interest::READABLE);
        registered.expect("a listening socket can be polled");
        self.listener = Some(listener);
        // Connections that came before are not reported again.
        self.is_ready = true;
    }

    /// Notes that epoll has reported the listening socket.
    pub fn note_ready(&mut self) {
        self.is_ready = true;
    }

    /// Accepts the next connection. None means that no more wait, or that accepting failed: then the next call
    /// tries again.
    pub fn accept(&mut self) -> Option<(TcpStream, SocketAddr)> {
        if !self.is_ready {
            return None;
        }
        match self.listener.as_ref()?.accept() {
            Ok(accepted) => Some(accepted),
            Err(error) => {
                // Otherwise file descriptors have run out, mostly.
                self.is_ready = error.kind() != ErrorKind::WouldBlock;
                None
            }
        }
    }
}

/// Chooses the worker with the fewest connections, and counts one more for it.
///
/// # Panics
///
/// If there is no worker.
pub fn take_least_loaded(loads: &[AtomicUsize]) -> usize {
    let least =
        loads.iter().map(|load| load.load(Relaxed)).enumerate().min_by_key(|(_, load)| *load);
    let (worker, _) = least.expect("there are workers");
    loads[worker].fetch_add(1, Relaxed);
    worker
}

/// Refuses a client because there are too many; the error is sent as far as the socket takes it at once.
pub fn refuse(mut stream: TcpStream) {
    let _ = stream.write(b"-ERR max number of clients reached\r\n");
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::time::Duration;

    use mio::Events;
    use socket2::SockRef;

    use super::*;
    use crate::poller::{LISTENER, Poller};

    fn local() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    #[test]
    fn a_port_can_be_used_again_after_a_restart_but_not_twice() {
        let listener = listen(local(), u32::MAX).unwrap();
        assert!(SockRef::from(&listener).reuse_address().unwrap());
        let twice = listen(listener.local_addr().unwrap(), 10);
        assert_eq!(twice.unwrap_err().kind(), ErrorKind::AddrInUse);
    }

    #[test]
    fn connections_from_before_and_after_the_first_poll_are_accepted() {
        let (mut poller, _waker) = Poller::new().unwrap();
        let listener = listen(local(), 10).unwrap();
        let address = listener.local_addr().unwrap();
        let early = std::net::TcpStream::connect(address).unwrap();
        let mut acceptor = Acceptor::default();
        assert!(acceptor.accept().is_none());
        acceptor.listen(listener, LISTENER, poller.registry());
        let (_stream, from) = acceptor.accept().expect("it has connected before");
        assert_eq!(from, early.local_addr().unwrap());
        assert!(acceptor.accept().is_none());

        let mut events = Events::with_capacity(4);
        poller.wait(&mut events, Some(Duration::ZERO)); // The early one, reported as well.
        let late = std::net::TcpStream::connect(address).unwrap();
        assert!(acceptor.accept().is_none(), "epoll has not reported it yet");
        poller.wait(&mut events, Some(Duration::from_secs(30)));
        assert!(events.iter().any(|event| event.token() == LISTENER));
        acceptor.note_ready();
        let (_stream, from) = acceptor.accept().expect("it was reported");
        assert_eq!(from, late.local_addr().unwrap());
    }

    #[test]
    fn after_a_failure_the_next_call_tries_again() {
        // A connected socket is none that accepts: every call fails, and not with WouldBlock.
        let (connected, _other) = crate::testing::pair();
        let socket: std::os::fd::OwnedFd = std::net::TcpStream::from(connected).into();
        let listener = TcpListener::from_std(std::net::TcpListener::from(socket));
        let mut acceptor = Acceptor { listener: Some(listener), is_ready: true };
        for _ in 0..2 {
            assert!(acceptor.accept().is_none());
            assert!(acceptor.is_ready);
        }
    }

    #[test]
    fn a_new_connection_goes_to_the_worker_with_the_fewest() {
        let loads = [2, 0, 1].map(AtomicUsize::new);
        let chosen: Vec<usize> = (0..5).map(|_| take_least_loaded(&loads)).collect();
        assert_eq!(chosen, [1, 1, 2, 0, 1]);
        assert_eq!(loads.map(AtomicUsize::into_inner), [3, 3, 2]);
    }

    #[test]
    fn a_refused_client_is_told_why() {
        let (here, there) = crate::testing::pair();
        refuse(here);
        let mut there = std::net::TcpStream::from(there);
        there.set_nonblocking(false).unwrap();
        let mut text = String::new();
        there.read_to_string(&mut text).unwrap();
        assert_eq!(text, "-ERR max number of clients reached\r\n");
    }
}

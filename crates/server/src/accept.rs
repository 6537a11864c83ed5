//! Listening, and distributing new connections among the workers. The first worker does both.

use std::io;
use std::net::SocketAddr;

use mio::net::{TcpListener, TcpStream};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use settings::Settings;

/// A connection on its way to its worker.
pub(crate) struct Accepted {
    pub id: u64,
    pub stream: TcpStream,
    pub address: SocketAddr,
}

/// Opens the listening socket for clients.
pub(crate) fn listen(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // After a restart, connections in TIME_WAIT may still occupy the port.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok(TcpListener::from_std(socket.into()))
}

/// Configures a client's socket: no delay for small writes, keepalive to detect a vanished client.
pub(crate) fn configure(stream: &TcpStream, settings: &Settings) -> io::Result<()> {
    let socket = SockRef::from(stream);
    socket.set_tcp_nodelay(true)?;
    if !settings.tcp_keepalive.is_zero() {
        let probe = settings.tcp_keepalive.max(std::time::Duration::from_secs(1));
        let interval = (probe / 3).max(std::time::Duration::from_secs(1));
        let keepalive =
            TcpKeepalive::new().with_time(probe).with_interval(interval).with_retries(3);
        socket.set_tcp_keepalive(&keepalive)?;
    }
    Ok(())
}

//! Makes links. Each attempt runs on a thread of its own, because name lookups may be slow and machines
//! that are gone only time out. `dials.rs` decides which node is dialed when.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use settings::Secret;
use socket2::SockRef;

use super::dials::DialTarget;
use super::handle::{ControlEvent, ControlHandle};
use super::handshake;
use super::hello::{AcceptorState, Hello, HelloError, Purpose};
use super::roster::Roster;

const CONNECT_MAX: Duration = Duration::from_secs(2);
/// Time without a TCP acknowledgement from the other machine after which the system closes a link.
const UNACKED_MAX: Duration = Duration::from_secs(5);

/// The result of an attempt.
pub(super) type Dialed = Result<(AcceptorState, TcpStream), HelloError>;

/// Dials, and sends the result to the control thread.
pub(super) fn dial(
    target: DialTarget,
    roster: &Arc<Roster>,
    secret: &Secret,
    line: &ControlHandle,
) {
    let (roster, secret, to) = (Arc::clone(roster), secret.clone(), line.clone());
    let told = target.clone();
    let attempt = move || {
        let hello = roster.hello(target.purpose, target.to.peer.id);
        let at = &target.to.at;
        let dialed = connect(&at.host, at.peer)
            .map_err(HelloError::Io)
            .and_then(|stream| introduce(stream, &secret, hello));
        to.send(ControlEvent::Dialed { target, dialed });
    };
    let name = match told.purpose {
        Purpose::Control => "dial-control",
        Purpose::Data => "dial-data",
        Purpose::Timers => "dial-timers",
        Purpose::Join => "dial-join",
        Purpose::Meet => "dial-meet",
        Purpose::Merge => "dial-merge",
    };
    if let Err(error) = thread::Builder::new().name(name.to_owned()).spawn(attempt) {
        line.send(ControlEvent::Dialed { target: told, dialed: Err(HelloError::Io(error)) });
    }
}

/// Does the handshake on a fresh connection.
pub(super) fn introduce(stream: TcpStream, secret: &Secret, hello: Hello) -> Dialed {
    let standing = handshake::introduce(&stream, secret, hello)?;
    Ok((standing, stream))
}

/// Connects to the first address of a host that answers.
pub(super) fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host name resolves to no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_MAX) {
            Ok(stream) => {
                configure(&stream)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Sets socket options: small messages go out at once, and a machine that is gone is noticed.
pub(super) fn configure(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_user_timeout(Some(UNACKED_MAX))
}

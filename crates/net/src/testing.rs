//! Pairs of connected sockets for the tests of this crate.

use std::io::{self, Read};
use std::sync::Arc;
use std::time::Duration;

use mio::net::TcpStream;
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

use crate::stream::{Stream, must_wait};

const HOST: &str = "node.example";

/// Returns both ends of a connection on this machine.
pub(crate) fn pair() -> (TcpStream, TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let here = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (there, _) = listener.accept().unwrap();
    [&here, &there].into_iter().for_each(|end| end.set_nonblocking(true).unwrap());
    (TcpStream::from_std(here), TcpStream::from_std(there))
}

/// Returns both ends of a connection with TLS: first the client's, then the server's.
pub(crate) fn tls_pair() -> (Stream, Stream) {
    let (here, there) = pair();
    let (client, server) = connections();
    (Stream::tls(here, client), Stream::tls(there, server))
}

/// Returns the server's end of a connection that has not begun.
pub(crate) fn server_tls() -> ServerConnection {
    connections().1
}

fn connections() -> (ClientConnection, ServerConnection) {
    let made = rcgen::generate_simple_self_signed(vec![HOST.to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())
        .unwrap();
    let name = ServerName::try_from(HOST).unwrap();
    (
        ClientConnection::new(Arc::new(client), name).unwrap(),
        ServerConnection::new(Arc::new(server)).unwrap(),
    )
}

/// Reads once the other end's bytes have arrived.
pub(crate) fn await_read(stream: &mut Stream, into: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(into) {
            Err(error) if must_wait(&error) => std::thread::sleep(Duration::from_millis(1)),
            read => return read,
        }
    }
}

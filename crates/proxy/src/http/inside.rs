//! Commands to our own port, for the HTTP interface: a few connections, kept for the next request.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use resp::{ReplyParser, Value};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::shared::Shared;

/// Maximum number of idle connections kept.
const KEPT_MAX: usize = 32;
/// Timeout, longer than the proxy lets a request wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);
const READ_BYTES: usize = 64 * 1024;

pub(super) struct Inside {
    address: SocketAddr,
    pub(super) shared: Arc<Shared>,
    kept: Mutex<Vec<TcpStream>>,
}

impl Inside {
    pub(super) fn new(address: SocketAddr, shared: Arc<Shared>) -> Inside {
        Inside { address, shared, kept: Mutex::new(Vec::new()) }
    }

    pub(super) fn password(&self) -> Option<&str> {
        self.shared.options.password.as_deref()
    }

    /// Runs one command. A failed connection is not kept.
    pub(super) async fn call(&self, args: &[&[u8]]) -> io::Result<Value> {
        let kept = self.kept.lock().expect("nobody panics with it").pop();
        let mut stream = match kept {
            Some(stream) => stream,
            None => self.connect().await?,
        };
        let value = exchange(&mut stream, args).await?;
        let mut kept = self.kept.lock().expect("nobody panics with it");
        if kept.len() < KEPT_MAX {
            kept.push(stream);
        }
        Ok(value)
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        if let Some(password) = self.password() {
            exchange(&mut stream, &[b"AUTH", password.as_bytes()]).await?;
        }
        Ok(stream)
    }
}

async fn exchange(stream: &mut TcpStream, args: &[&[u8]]) -> io::Result<Value> {
    let mut request = Vec::new();
    resp::encode_command(&mut request, args);
    let exchanged = timeout(PATIENCE, async {
        stream.write_all(&request).await?;
        receive(stream).await
    });
    exchanged.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
}

async fn receive(stream: &mut TcpStream) -> io::Result<Value> {
    let mut parser = ReplyParser::default();
    let mut input = Vec::with_capacity(READ_BYTES);
    loop {
        if stream.read_buf(&mut input).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let parsed = parser.next(&input, 0).map_err(io::Error::other)?;
        if let Some((value, _)) = parsed {
            return Ok(value);
        }
    }
}

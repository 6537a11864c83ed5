//! Making callbacks. HTTP uses pooled connections; the target is checked again here, after its name was
//! resolved. A message or a command goes to this node's own client port, and from there to the node that the
//! map names.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{Method, Request, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use std::time::Duration;
use timers::{Call, Callback, HttpTarget, Sequence, TimerId, TimerInput};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tower_service::Service;

use super::hub::Hub;
use super::judge::{check_address, check_target};

/// Maximum bytes read of a response, so that its connection can be reused. A longer one closes the connection.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
const IDLE_MAX: Duration = Duration::from_secs(30);
/// Maximum number of nodes to try in turn, because a key may be moving.
const HOPS_MAX: usize = 5;

type CallResult = Result<(), String>;

pub(super) struct Caller {
    hub: Arc<Hub>,
    client: Client<HttpConnector<Guarded>, Body>,
    commands: Commands,
}

impl Caller {
    pub(super) fn new(hub: Arc<Hub>, client_addr: SocketAddr) -> Caller {
        let mut connector = HttpConnector::new_with_resolver(Guarded(Arc::clone(&hub)));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_timer(TokioTimer::new())
            .build(connector);
        let commands = Commands { at: reachable(client_addr), hub: Arc::clone(&hub) };
        Caller { hub, client, commands }
    }

    /// Begins a callback; the core gets the result.
    pub(super) fn call(&self, call: Call) {
        let hub = Arc::clone(&self.hub);
        let (client, commands) = (self.client.clone(), self.commands.clone());
        tokio::spawn(async move {
            let within = Duration::from_millis(call.callback.timeout().0);
            let Call { call: number, id, sequence, callback } = call;
            let made = async {
                match &callback {
                    Callback::Http { target, opaque, .. } => {
                        check_target(&hub.rules.read(), target)
                            .map_err(|forbidden| forbidden.to_string())?;
                        post(&client, target, opaque, id, sequence).await
                    }
                    Callback::Publish { channel, message } => {
                        let words = ["PUBLISH", channel, message].map(str::to_owned);
                        commands.run(words.to_vec(), id, sequence).await
                    }
                    Callback::Command(words) => commands.run(words.clone(), id, sequence).await,
                }
            };
            let result = timeout(within, made).await.unwrap_or_else(|_| Err("timed out".into()));
            hub.input(TimerInput::CallEnded { call: number, result });
        });
    }
}

async fn post(
    client: &Client<HttpConnector<Guarded>, Body>,
    target: &HttpTarget,
    opaque: &str,
    id: TimerId,
    sequence: Sequence,
) -> CallResult {
    let request = Request::builder()
        .method(Method::POST)
        .uri(target.uri())
        .header(header::CONTENT_TYPE, "text/plain; charset=utf-8")
        // hyper sends no length for an empty body, and many receivers then wait for a body or disconnect.
        .header(header::CONTENT_LENGTH, opaque.len())
        .header("X-Sequence-Number", sequence.0)
        .header("X-Timer-Id", id.to_string())
        .body(Body::from(opaque.to_owned()))
        .map_err(|error| error.to_string())?;
    let response = client.request(request).await.map_err(|error| words_of(&error))?;
    let status = response.status();
    // Read the body to its end; otherwise the connection could not be reused.
    let _ = axum::body::to_bytes(Body::new(response.into_body()), ANSWER_BYTES_MAX).await;
    if status.is_success() { Ok(()) } else { Err(format!("the callback target answered {status}")) }
}

/// Returns an error with its causes, which are mostly what matters.
fn words_of(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        words = format!("{words}: {inner}");
        cause = inner.source();
    }
    words
}

/// Resolves names, and passes only allowed addresses: a name may resolve to another address than when its timer
/// was accepted.
#[derive(Clone)]
struct Guarded(Arc<Hub>);

impl Service<Name> for Guarded {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let hub = Arc::clone(&self.0);
        Box::pin(async move {
            let addresses: Vec<SocketAddr> = lookup_host((name.as_str(), 0)).await?.collect();
            let rules = hub.rules.read();
            match addresses.iter().find_map(|address| check_address(&rules, *address).err()) {
                Some(forbidden) => Err(std::io::Error::other(forbidden.to_string())),
                None => Ok(addresses.into_iter()),
            }
        })
    }
}

/// Runs commands on the node's own client port.
#[derive(Clone)]
struct Commands {
    at: SocketAddr,
    hub: Arc<Hub>,
}

/// Returns an address that can be connected to: localhost for a node that listens on all addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        return SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), address.port());
    }
    address
}

impl Commands {
    /// Runs a command as a client would, and follows redirects.
    async fn run(&self, words: Vec<String>, id: TimerId, sequence: Sequence) -> CallResult {
        let fill = |word: String| {
            word.replace("{sequence}", &sequence.0.to_string()).replace("{id}", &id.to_string())
        };
        let words: Vec<String> = words.into_iter().map(fill).collect();
        let mut at = self.at.to_string();
        for _ in 0..HOPS_MAX {
            let reply = self.run_at(&at, &words).await.map_err(|error| error.to_string())?;
            match reply.strip_prefix("-MOVED ").and_then(|moved| moved.split_once(' ')) {
                Some((_, there)) => at = there.to_owned(),
                None if reply.starts_with('-') => return Err(reply[1..].to_owned()),
                None => return Ok(()),
            }
        }
        Err("too many redirects; the slot is moving".to_owned())
    }

    /// Returns the first line of the reply: enough to tell whether it is an error.
    async fn run_at(&self, at: &str, words: &[String]) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(at).await?;
        let password = self.hub.password();
        if !password.is_empty() {
            stream.write_all(&command(&["AUTH", password.expose()])).await?;
            let reply = first_line(&mut stream).await?;
            if reply.starts_with('-') {
                return Ok(reply);
            }
        }
        stream.write_all(&command(words)).await?;
        first_line(&mut stream).await
    }
}

fn command<Word: AsRef<str>>(words: &[Word]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words.iter().map(AsRef::as_ref) {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    bytes
}

async fn first_line(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") && line.len() < 1024 {
        line.push(stream.read_u8().await?);
    }
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_written_as_a_client_writes_it() {
        assert_eq!(
            command(&["SET", "k", "é"]),
            "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\né\r\n".as_bytes()
        );
    }
}

//! Requests to a running node: RESP on its client port, as any client does, so that its password protects
//! these requests too. Used by `status`, `top`, `leave`, `split`, `settings` and `demo`.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use resp::{ReplyParser, Value};

use crate::Failure;

const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// Timeout of an answer. A node with 16,384 buckets writes its status in a tenth of a second.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const ENV_PASSWORD: &str = "OPENCLUSTER_REQUIREPASS";
const ENV_PASSWORD_FILE: &str = "OPENCLUSTER_REQUIREPASS_FILE";

/// The node to talk to.
#[derive(Args, Clone, Debug)]
pub(crate) struct NodeArgs {
    /// Client address of the node to ask
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:6379")]
    pub(crate) node: String,
    /// A file with the node's password (or OPENCLUSTER_REQUIREPASS, OPENCLUSTER_REQUIREPASS_FILE)
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Timeout of an answer.
    #[arg(skip = ANSWER_WITHIN)]
    patience: Duration,
    /// Source of the password, if there is one.
    #[arg(skip)]
    access: Access,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Access {
    /// The password that the user has given, in a file or the environment.
    #[default]
    AsGiven,
    /// No password: a node that this process has started, whatever the user's own nodes require.
    Open,
}

impl NodeArgs {
    /// Returns the same for another node.
    pub(crate) fn at(&self, node: String) -> NodeArgs {
        NodeArgs { node, ..self.clone() }
    }

    /// Returns the arguments for a node that this process has started, without a password.
    pub(crate) fn own(node: String) -> NodeArgs {
        NodeArgs { node, password_file: None, patience: ANSWER_WITHIN, access: Access::Open }
    }

    /// Returns the same with another timeout.
    pub(crate) fn within(self, patience: Duration) -> NodeArgs {
        NodeArgs { patience, ..self }
    }

    fn password(&self) -> Result<Option<String>, Failure> {
        if self.access == Access::Open {
            return Ok(None);
        }
        let named = std::env::var_os(ENV_PASSWORD_FILE).map(PathBuf::from);
        if let Some(path) = self.password_file.clone().or(named) {
            let text = std::fs::read_to_string(&path).map_err(|error| {
                Failure::BadInput(format!(
                    "cannot read the password in {}: {error}",
                    path.display()
                ))
            })?;
            return Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()));
        }
        Ok(std::env::var(ENV_PASSWORD).ok().filter(|password| !password.is_empty()))
    }
}

/// A connection to a node.
pub(crate) struct Talk {
    node: String,
    stream: TcpStream,
    parser: ReplyParser,
    input: Vec<u8>,
}

impl Talk {
    pub(crate) fn to(args: &NodeArgs) -> Result<Talk, Failure> {
        let password = args.password()?;
        let nobody = |error: io::Error| {
            Failure::Refused(format!("no node answers at {}: {error}", args.node))
        };
        let mut addresses = args.node.to_socket_addrs().map_err(|error| {
            Failure::BadInput(format!("--node {}: {error}; it is written HOST:PORT", args.node))
        })?;
        let address = addresses.next().ok_or_else(|| {
            Failure::Refused(format!("--node {}: there is no such host", args.node))
        })?;
        let connect_within = args.patience.min(CONNECT_WITHIN);
        let stream = TcpStream::connect_timeout(&address, connect_within).map_err(nobody)?;
        stream.set_nodelay(true).map_err(nobody)?;
        stream.set_read_timeout(Some(args.patience)).map_err(nobody)?;
        stream.set_write_timeout(Some(args.patience)).map_err(nobody)?;
        let (parser, input) = (ReplyParser::default(), Vec::new());
        let mut talk = Talk { node: args.node.clone(), stream, parser, input };
        if let Some(password) = password {
            talk.ask(&["AUTH", &password])?;
        }
        Ok(talk)
    }

    /// Sends one command and waits for its answer. An error reply becomes a failure with the node's text.
    pub(crate) fn ask(&mut self, words: &[&str]) -> Result<Value, Failure> {
        match self.exchange(words) {
            Ok(Value::Error(text)) => Err(self.refused(&String::from_utf8_lossy(&text))),
            Ok(value) => Ok(value),
            Err(error) => {
                Err(Failure::Refused(format!("{} does not answer any more: {error}", self.node)))
            }
        }
    }

    /// Sends one command and waits for its answer, which may be an error reply. After a failure the
    /// connection must not be used again: the answer may still come.
    pub(crate) fn exchange(&mut self, words: &[&str]) -> io::Result<Value> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let mut request = Vec::new();
        resp::encode_command(&mut request, &words);
        self.stream.write_all(&request)?;
        self.answer()
    }

    fn answer(&mut self) -> io::Result<Value> {
        let other = |error: resp::ProtocolError| {
            io::Error::other(format!("it does not speak RESP ({error:?})"))
        };
        let mut chunk = [0; 64 * 1024];
        loop {
            if let Some((value, end)) = self.parser.next(&self.input, 0).map_err(other)? {
                self.input.drain(..end);
                return Ok(value);
            }
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.input.extend_from_slice(&chunk[..count]),
            }
        }
    }

    fn refused(&self, text: &str) -> Failure {
        let node = &self.node;
        if text.starts_with("NOAUTH") {
            return Failure::Refused(format!(
                "{node} wants a password: name a file with --password-file, or set {ENV_PASSWORD}"
            ));
        }
        if ["ERR unknown command", "ERR unknown subcommand"].iter().any(|it| text.starts_with(it)) {
            return Failure::Refused(format!("the server at {node} is not an OpenCluster node"));
        }
        Failure::Refused(format!("{node}: {}", text.trim_start_matches("ERR ")))
    }
}

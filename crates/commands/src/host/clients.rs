//! The connections of a node, as CLIENT queries and controls them.

use resp::Protocol;
use store::UnixMillis;

use crate::{Kind, Session};

/// Access to the connections of the node.
pub trait Clients {
    /// Returns the connection that runs this command.
    fn this_client(&self, session: &Session) -> ClientFacts;

    /// Returns all connections, the oldest first. This one is described by its session, since the shared records
    /// may be slightly stale.
    fn clients(&self, session: &Session) -> Vec<ClientFacts>;

    /// Closes another connection. Returns false if it is already gone.
    fn kill_client(&mut self, id: u64) -> bool;

    /// Pauses commands until the given time. A second pause only lengthens and widens the first.
    fn pause(&mut self, pause: Pause);

    fn unpause(&mut self);

    /// Ends the wait of a connection that is blocked in a command. Returns false if it is not blocked.
    fn unblock(&mut self, id: u64, how: Unblock) -> bool;

    /// Makes this connection a monitor, which receives every command that runs.
    fn start_monitor(&mut self, session: &mut Session);
}

/// A pause: its end, and the commands it affects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pause {
    pub until: UnixMillis,
    pub scope: PauseScope,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum PauseScope {
    Writes,
    All,
}

/// The way a blocked command ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unblock {
    AsTimeout,
    WithError,
}

/// One connection, as `CLIENT LIST` shows it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ClientFacts {
    pub id: u64,
    pub address: String,
    pub local_address: String,
    pub descriptor: i64,
    pub name: Vec<u8>,
    pub age_seconds: u64,
    pub idle_seconds: u64,
    pub is_monitor: bool,
    pub is_closing: bool,
    pub no_evict: bool,
    pub no_touch: bool,
    pub channels: usize,
    pub patterns: usize,
    pub sharded_channels: usize,
    /// Commands queued since MULTI.
    pub queued: Option<usize>,
    pub queued_bytes: usize,
    /// Bytes of incomplete requests.
    pub input_bytes: usize,
    /// Unsent replies, and the memory they take.
    pub output_bytes: usize,
    pub output_capacity: usize,
    pub total_bytes: usize,
    /// The full name of the last command.
    pub last_command: Option<&'static str>,
    pub is_resp3: bool,
    pub library_name: Vec<u8>,
    pub library_version: Vec<u8>,
}

impl ClientFacts {
    /// Returns the facts known from a connection's own state.
    pub fn of_session(session: &Session) -> ClientFacts {
        ClientFacts {
            id: session.id,
            name: session.name.clone(),
            is_monitor: session.is_monitor,
            is_closing: session.closing,
            no_evict: session.no_evict,
            no_touch: session.no_touch,
            channels: session.subscriptions.count(Kind::Channel),
            patterns: session.subscriptions.count(Kind::Pattern),
            sharded_channels: session.subscriptions.count(Kind::ShardChannel),
            queued: session.queue.as_ref().map(|queue| queue.commands.len()),
            queued_bytes: session.queue.as_ref().map_or(0, |queue| queue.bytes),
            is_resp3: session.protocol == Protocol::Resp3,
            library_name: session.library_name.clone(),
            library_version: session.library_version.clone(),
            ..ClientFacts::default()
        }
    }
}

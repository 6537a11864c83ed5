//! The connections of a node, as CLIENT asks for them.

use resp::Protocol;
use store::UnixMillis;

use crate::{Kind, Session};

/// Whoever keeps the connections.
pub trait Clients {
    /// The connection that runs this command.
    fn this_client(&self, session: &Session) -> ClientFacts;

    /// All connections, the oldest first. This one is described by its session: what the others
    /// know of it may be a moment old.
    fn clients(&self, session: &Session) -> Vec<ClientFacts>;

    /// Closes another connection. False if it is gone already.
    fn kill_client(&mut self, id: u64) -> bool;

    /// Stops running commands until then. A second pause only ever lengthens and widens the first.
    fn pause(&mut self, pause: Pause);

    fn unpause(&mut self);

    /// Ends the wait of a connection that is blocked in a command. False if it is not.
    fn unblock(&mut self, id: u64, how: Unblock) -> bool;

    /// From now on this connection is shown every command that runs.
    fn start_monitor(&mut self, session: &mut Session);
}

/// For how long commands wait, and which.
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

/// How a blocked command ends.
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
    /// Unfinished requests.
    pub input_bytes: usize,
    /// Replies not taken yet, and the memory they are in.
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
    /// What a connection's own state tells.
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

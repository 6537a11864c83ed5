//! The settings of a node: one table, one typed struct, and their parsing and formatting.
//!
//! This is the only definition of a node's settings (those of `opencluster settings` are in
//! `cluster/src/map/settings.rs`; `backups`, `ack` and `buckets` here are only a new cluster's first values), for the command line, the environment, the configuration file,
//! `CONFIG GET`, `SET` and `REWRITE`, and `docs/configuration.md`. To add a setting, add a field of [`Settings`],
//! its default, and a row of [`TABLE`]; all of the above follow. This crate reads no environment and no files: the
//! binary does, in `opencluster/src/config`.

mod table; //         Start here: every setting, as data.
mod kind; //          Parses and formats the values of each kind of setting.
mod choices; //       Values with one word each: policies, levels, formats.
mod addresses; //     Ports and addresses.
mod notify; //        Classes of keyspace events.
mod output_limits; // Limits on unread replies.
mod secret; //        Passwords and keys.
mod changes; //       Changes at run time, validated once.
mod refusal; //       The reason why a setting was refused, in our words and in Redis's.
mod file; //          The configuration file: text to settings, and CONFIG REWRITE back.
mod document; //      Generates docs/configuration.md.
mod suggest; //       Suggests the intended name for an unknown one.

use core::net::{IpAddr, Ipv4Addr};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

pub use addresses::{
    Advertise, AllowedCallbacks, ExtraPort, HostNames, JoinAddress, JoinAddresses, SidePort,
};
pub use changes::ValidChanges;
pub use choices::{
    Buckets, DebugClients, EvictionPolicy, HttpOpen, InitialAck, LogFormat, LogLevel,
    NodeCrossSlot, NotifyScope,
};
pub use document::document;
pub use file::{FileEntry, FileError, parse_file, rewrite_file};
pub use kind::{SettingKind, SettingUnit};
pub use notify::NotifyClasses;
pub use output_limits::{OutputLimit, OutputLimits};
pub use refusal::{ChangeError, SettingRefusal};
pub use secret::Secret;
pub use suggest::nearest;
pub use table::{Mutability, SettingSection, SettingSpec, TABLE, find};

/// The settings of a node, typed. The names are those of [`TABLE`] with `_` for `-` and for the dot.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The address on which clients connect. Loopback by default.
    pub bind: IpAddr,
    /// 0 lets the system choose a free port.
    pub port: u16,
    pub http_port: SidePort,
    /// `None`: the same address as `bind`.
    pub http_bind: Option<IpAddr>,
    pub http_allowed_hosts: HostNames,
    pub http_open: HttpOpen,
    pub peer_port: SidePort,
    pub replica_port: SidePort,
    pub any_port: ExtraPort,
    /// The address announced to clients, if it differs from `bind` and `port`.
    pub advertise: Option<Advertise>,
    /// Empty until the binary has filled in the host's name.
    pub name: String,
    pub tcp_backlog: u32,
    /// Zero: no keepalive probes.
    pub tcp_keepalive: Duration,
    /// Zero: idle clients are not disconnected.
    pub timeout: Duration,
    /// 0: one per core, at most eight.
    pub io_threads: u16,
    pub cross_slot: NodeCrossSlot,

    /// Empty: this node starts a new cluster.
    pub join: JoinAddresses,
    pub data_dir: Option<PathBuf>,
    pub weight: u32,
    /// `None`: the common zone of all nodes without a configured zone.
    pub zone: Option<String>,
    /// The first node's values of these three apply to the whole cluster; `None` accepts the cluster's values.
    pub buckets: Option<Buckets>,
    pub backups: Option<u8>,
    pub ack: Option<InitialAck>,

    /// In bytes; 0 for no limit.
    pub maxmemory: u64,
    pub maxmemory_policy: EvictionPolicy,
    pub maxmemory_samples: u32,
    pub lfu_log_factor: u32,
    /// Minutes after which a key's counter is decremented by one.
    pub lfu_decay_time: u32,

    /// In bytes; 0 for a part of `maxmemory`: see [`Settings::timer_bytes_max`].
    pub timers_maxmemory: u64,

    pub maxclients: u32,
    /// Each of them has a thread.
    pub any_maxclients: u32,
    /// Number of databases, at most 10,000 (`store::Database`).
    pub databases: u16,
    /// Maximum bytes of one client's unprocessed requests.
    pub client_query_buffer_limit: u64,
    pub client_output_buffer_limit: OutputLimits,
    /// Maximum bytes of one argument.
    pub proto_max_bulk_len: u64,

    /// Empty: clients need no password.
    pub requirepass: Secret,
    pub requirepass_file: Option<PathBuf>,
    pub secret_file: Option<PathBuf>,
    /// The content of `secret_file`. Not in the table, so that nothing ever shows it.
    pub secret: Secret,
    pub admin_token_file: Option<PathBuf>,
    /// The content of `admin_token_file`; empty if operating the cluster over HTTP is disabled. Not in the table.
    pub admin_token: Secret,
    pub insecure: bool,
    pub enable_debug_command: DebugClients,
    pub timers_allow_callbacks: AllowedCallbacks,

    pub log_level: LogLevel,
    pub log_format: LogFormat,
    pub notify_keyspace_events: NotifyClasses,
    pub notify_scope: NotifyScope,
    pub busy_reply_threshold: Duration,
    /// `None`: the slow log is off. Zero: it records every command.
    pub slowlog_log_slower_than: Option<Duration>,
    pub slowlog_max_len: u64,
    /// Zero: the latency monitor is off.
    pub latency_monitor_threshold: Duration,

    /// The names of the settings that were given at start, by file, environment or flag. The others have their
    /// default values.
    pub given: BTreeSet<&'static str>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 6379,
            http_port: SidePort::Offset,
            http_bind: None,
            http_allowed_hosts: HostNames::default(),
            http_open: HttpOpen::Health,
            peer_port: SidePort::Offset,
            replica_port: SidePort::Off,
            any_port: ExtraPort::Off,
            advertise: None,
            name: String::new(),
            tcp_backlog: 511,
            tcp_keepalive: Duration::from_secs(300),
            timeout: Duration::ZERO,
            io_threads: 0,
            cross_slot: NodeCrossSlot::Allowed,
            join: JoinAddresses::default(),
            data_dir: None,
            weight: 1,
            zone: None,
            buckets: None,
            backups: None,
            ack: None,
            maxmemory: 0,
            maxmemory_policy: EvictionPolicy::NoEviction,
            maxmemory_samples: 5,
            lfu_log_factor: 10,
            lfu_decay_time: 1,
            timers_maxmemory: 0,
            maxclients: 10_000,
            any_maxclients: 1_000,
            databases: 16,
            client_query_buffer_limit: 1 << 30,
            client_output_buffer_limit: OutputLimits::default(),
            proto_max_bulk_len: 512 << 20,
            requirepass: Secret::default(),
            requirepass_file: None,
            secret_file: None,
            secret: Secret::default(),
            admin_token_file: None,
            admin_token: Secret::default(),
            insecure: false,
            enable_debug_command: DebugClients::Nobody,
            timers_allow_callbacks: AllowedCallbacks::default(),
            log_level: LogLevel::Info,
            log_format: LogFormat::Text,
            notify_keyspace_events: NotifyClasses::NONE,
            notify_scope: NotifyScope::Node,
            busy_reply_threshold: Duration::from_secs(5),
            slowlog_log_slower_than: Some(Duration::from_millis(10)),
            slowlog_max_len: 128,
            latency_monitor_threshold: Duration::ZERO,
            given: BTreeSet::new(),
        }
    }
}

impl Settings {
    /// Returns the port for HTTP: `None` if it is off or the derived port would be out of range. If the system
    /// chooses the client port, it also chooses this one.
    pub fn effective_http_port(&self) -> Option<u16> {
        self.http_port.beside(self.port, SidePort::HTTP_OFFSET)
    }

    /// Returns the address on which the HTTP port listens.
    pub fn effective_http_bind(&self) -> IpAddr {
        self.http_bind.unwrap_or(self.bind)
    }

    /// Returns whether only processes on this machine can connect.
    pub fn is_local(&self) -> bool {
        let http_is_local =
            self.effective_http_port().is_none() || self.effective_http_bind().is_loopback();
        self.bind.is_loopback() && http_is_local
    }

    /// Returns whether clients need a password while nodes join without a secret.
    pub fn has_open_peer_port(&self) -> bool {
        let has_peer_port = self.effective_peer_port().is_some();
        has_peer_port && !self.requirepass.is_empty() && self.secret.is_empty()
    }

    /// Returns the addresses that timers of this node may call.
    pub fn callback_rules(&self) -> timers::AllowRules {
        self.timers_allow_callbacks.rules(self.is_local())
    }

    /// Returns the maximum memory of timers.
    pub fn timer_bytes_max(&self) -> u64 {
        const WITHOUT_MAXMEMORY: u64 = 1 << 30;
        const MIN: u64 = 1 << 20;
        match (self.timers_maxmemory, self.maxmemory) {
            (0, 0) => WITHOUT_MAXMEMORY,
            (0, maxmemory) => (maxmemory / 10).max(MIN),
            (bytes, _) => bytes,
        }
    }

    /// Returns the port announced to other nodes. See [`Settings::effective_http_port`].
    pub fn effective_peer_port(&self) -> Option<u16> {
        self.peer_port.beside(self.port, SidePort::PEER_OFFSET)
    }

    /// Returns the read-only port for clients. See [`Settings::effective_http_port`].
    pub fn effective_replica_port(&self) -> Option<u16> {
        self.replica_port.beside(self.port, SidePort::REPLICA_OFFSET)
    }

    /// Returns the value of a setting as `CONFIG GET` shows it; `None` if there is no such setting.
    pub fn get(&self, name: &str) -> Option<String> {
        Some(find(name)?.read(self))
    }

    /// Returns the value of a setting as a text from which another node reads the same value; `None` if there is no
    /// such setting. `CONFIG GET` shows what Redis would show, which leaves out a letter of the event classes.
    pub fn exact_text(&self, name: &str) -> Option<String> {
        let setting = find(name)?;
        let is_classes = setting.kind == SettingKind::NotifyClasses;
        Some(if is_classes { self.notify_keyspace_events.exact() } else { setting.read(self) })
    }

    /// Sets a setting from a text, at start. An error changes nothing.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SettingRefusal> {
        let setting = known(name)?;
        setting.write(self, text)?;
        self.given.insert(setting.name);
        Ok(())
    }

    /// Changes a setting while the node runs, as `CONFIG SET` does: refuses settings that need a restart.
    pub fn change(&mut self, name: &str, text: &str) -> Result<(), SettingRefusal> {
        let setting = known(name)?;
        match setting.mutability() {
            Mutability::AtStart => Err(SettingRefusal::NeedsRestart { name: setting.name }),
            Mutability::AtRunTime | Mutability::Never => setting.write(self, text),
        }
    }

    /// Refuses an empty password of a node that others reach, as at start.
    fn check_password(&self) -> Result<(), SettingRefusal> {
        if !self.requirepass.is_empty() || self.is_local() || self.insecure {
            return Ok(());
        }
        let why = "a node that is reachable from the network needs a password";
        Err(SettingRefusal::Invalid {
            name: "requirepass",
            value: String::new(),
            allowed: "a password: the node is reachable from the network".to_owned(),
            redis: why.to_owned(),
        })
    }

    /// Returns the settings after several changes at run time; if one is refused, none is made.
    pub fn with_changes(&self, changes: &[(&str, &str)]) -> Result<Settings, ChangeError> {
        let mut changed = self.clone();
        for (index, (name, text)) in changes.iter().enumerate() {
            changed.change(name, text).map_err(|error| ChangeError { index, error })?;
            if name.eq_ignore_ascii_case("requirepass") {
                changed.check_password().map_err(|error| ChangeError { index, error })?;
            }
        }
        Ok(changed)
    }
}

/// Returns the setting with this name, or an error that suggests another name.
fn known(name: &str) -> Result<&'static SettingSpec, SettingRefusal> {
    find(name).ok_or_else(|| {
        let suggestion = nearest(name, TABLE.iter().map(|setting| setting.name));
        SettingRefusal::Unknown { name: name.to_owned(), suggestion }
    })
}

/// Returns the settings whose value is the same on all nodes of a cluster.
pub fn cluster_wide() -> impl Iterator<Item = &'static SettingSpec> {
    TABLE.iter().filter(|setting| setting.is_cluster_wide())
}

#[cfg(test)]
mod tests;

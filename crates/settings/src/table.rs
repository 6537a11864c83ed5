//! Every setting of a node, as data. Used by `Settings::get` and `set`, and by all code that lists settings: flags,
//! `CONFIG GET` patterns, the documentation.

use super::addresses::SidePort;
use super::choices::{
    Buckets, DebugClients, EvictionPolicy, HttpOpen, InitialAck, LogFormat, LogLevel,
    NodeCrossSlot, NotifyScope,
};
use super::kind::{SettingKind, SettingUnit, SettingValue};
use super::{SettingRefusal, Settings};

/// One row: the setting's name, its valid values, and its field.
pub struct SettingSpec {
    pub name: &'static str,
    pub section: SettingSection,
    pub kind: SettingKind,
    /// One line for people, without a full stop.
    pub help: &'static str,
    storage: Storage,
}

/// The section of the documentation, and of `--help`, that contains a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SettingSection {
    Network,
    Cluster,
    Memory,
    Limits,
    Security,
    Watching,
    /// Settings of Redis with a fixed value: present because clients and tools read them.
    Compatibility,
}

impl SettingSection {
    pub const ALL: [SettingSection; 7] = [
        SettingSection::Network,
        SettingSection::Cluster,
        SettingSection::Memory,
        SettingSection::Limits,
        SettingSection::Security,
        SettingSection::Watching,
        SettingSection::Compatibility,
    ];

    pub fn title(self) -> &'static str {
        match self {
            SettingSection::Network => "Network",
            SettingSection::Cluster => "Cluster",
            SettingSection::Memory => "Memory",
            SettingSection::Limits => "Limits",
            SettingSection::Security => "Security",
            SettingSection::Watching => "Logging and monitoring",
            SettingSection::Compatibility => "Read-only, for Redis clients",
        }
    }
}

/// The time at which a setting can be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutability {
    /// At start, and by `CONFIG SET` while the node runs.
    AtRunTime,
    /// Only at start: file, environment, flags.
    AtStart,
    /// Never: it has a fixed value.
    Never,
}

/// The storage of a setting's value.
enum Storage {
    RunTime(Field),
    Start(Field),
    /// Changed at run time, for all nodes of the cluster together.
    Shared(Field),
    Fixed(&'static str),
}

/// A field of [`Settings`], accessed as text.
struct Field {
    read: fn(&Settings, &SettingKind) -> String,
    write: fn(&mut Settings, &str, &SettingKind) -> Result<(), String>,
}

impl SettingSpec {
    pub fn mutability(&self) -> Mutability {
        match self.storage {
            Storage::RunTime(_) | Storage::Shared(_) => Mutability::AtRunTime,
            Storage::Start(_) => Mutability::AtStart,
            Storage::Fixed(_) => Mutability::Never,
        }
    }

    /// Returns whether all nodes of a cluster have the same value: that of the first node, until `CONFIG SET` on any
    /// node changes it for all.
    pub fn is_cluster_wide(&self) -> bool {
        matches!(self.storage, Storage::Shared(_))
    }

    /// Returns whether the setting is a secret: read from a file or the environment, never from an argument, and
    /// never repeated in messages.
    pub fn is_secret(&self) -> bool {
        self.kind == SettingKind::Secret
    }

    /// Returns the name of the setting's environment variable.
    pub fn env_name(&self) -> String {
        format!("OPENCLUSTER_{}", self.name.replace(['-', '.'], "_").to_ascii_uppercase())
    }

    /// Returns the default value, as `CONFIG GET` shows it.
    pub fn default_text(&self) -> String {
        self.read(&Settings::default())
    }

    pub(super) fn read(&self, settings: &Settings) -> String {
        match &self.storage {
            Storage::RunTime(field) | Storage::Start(field) | Storage::Shared(field) => {
                (field.read)(settings, &self.kind)
            }
            Storage::Fixed(value) => (*value).to_owned(),
        }
    }

    pub(super) fn write(&self, settings: &mut Settings, text: &str) -> Result<(), SettingRefusal> {
        match &self.storage {
            Storage::RunTime(field) | Storage::Start(field) | Storage::Shared(field) => {
                (field.write)(settings, text, &self.kind).map_err(|redis| self.invalid(text, redis))
            }
            // Many scripts send `CONFIG SET save ""`: setting the present value is allowed.
            Storage::Fixed(value) if text.eq_ignore_ascii_case(value) => Ok(()),
            Storage::Fixed(value) => Err(SettingRefusal::Fixed { name: self.name, value }),
        }
    }

    fn invalid(&self, text: &str, redis: String) -> SettingRefusal {
        let value = if self.is_secret() { "***" } else { text }.to_owned();
        SettingRefusal::Invalid { name: self.name, value, allowed: self.kind.allowed(), redis }
    }
}

/// Returns the setting with this name, case-insensitively.
pub fn find(name: &str) -> Option<&'static SettingSpec> {
    TABLE.iter().find(|setting| setting.name.eq_ignore_ascii_case(name))
}

macro_rules! field {
    ($field:ident) => {
        Field {
            read: |settings, kind| settings.$field.show(kind),
            write: |settings, text, kind| settings.$field.assign(text, kind),
        }
    };
}

/// One row of the table: `name, when it can change and its field, kind, "help"`.
macro_rules! row {
    ($section:ident $name:literal RunTime $field:ident, $kind:expr, $help:literal) => {
        row!(@ $section $name $kind, $help, Storage::RunTime(field!($field)))
    };
    ($section:ident $name:literal Start $field:ident, $kind:expr, $help:literal) => {
        row!(@ $section $name $kind, $help, Storage::Start(field!($field)))
    };
    ($section:ident $name:literal Shared $field:ident, $kind:expr, $help:literal) => {
        row!(@ $section $name $kind, $help, Storage::Shared(field!($field)))
    };
    ($section:ident $name:literal Fixed $value:literal, $kind:expr, $help:literal) => {
        row!(@ $section $name $kind, $help, Storage::Fixed($value))
    };
    (@ $section:ident $name:literal $kind:expr, $help:literal, $storage:expr) => {
        SettingSpec { name: $name, section: SettingSection::$section, kind: $kind, help: $help, storage: $storage }
    };
}

const INT_MAX: i64 = i32::MAX as i64;
const COUNT: SettingKind = SettingKind::Integer { min: 0, max: INT_MAX };
const PORT: SettingKind = SettingKind::Integer { min: 0, max: u16::MAX as i64 };
const SECONDS: SettingKind =
    SettingKind::Duration { unit: SettingUnit::Seconds, min: 0, max: INT_MAX };
/// The longest time to the first probe that Linux takes is 32,767 s.
const KEEPALIVE: SettingKind =
    SettingKind::Duration { unit: SettingUnit::Seconds, min: 0, max: i16::MAX as i64 };
const MILLISECONDS: SettingKind =
    SettingKind::Duration { unit: SettingUnit::Milliseconds, min: 0, max: i64::MAX };
/// Sizes of arguments. Minimum: smaller buffers could not hold the requests that Redis's own tools send. Maximum: a
/// longer string could not be sent to a backup as one effect.
const BULK: SettingKind = SettingKind::Bytes { min: 1 << 20, max: 512 << 20 };
const BUFFER: SettingKind = SettingKind::Bytes { min: 1 << 20, max: i64::MAX as u64 };
const ANY_SIZE: SettingKind = SettingKind::Bytes { min: 0, max: u64::MAX };

/// All settings, grouped by section.
#[rustfmt::skip] // One row per line or two, so that the table reads in columns.
pub static TABLE: &[SettingSpec] = &[
    row!(Network "bind" Start bind, SettingKind::Address,
        "The address to listen on; anything but loopback needs a password and a secret"),
    row!(Network "port" Start port, PORT,
        "The port for clients; 0 for any free port"),
    row!(Network "http-port" Start http_port, SettingKind::SidePort { offset: SidePort::HTTP_OFFSET },
        "The port for the console, metrics, health checks and timers"),
    row!(Network "http-bind" Start http_bind, SettingKind::Address,
        "The address the HTTP port listens on; empty for the same as bind"),
    row!(Network "http-allowed-hosts" Start http_allowed_hosts, SettingKind::HostNames,
        "Names under which the HTTP port answers, besides addresses, localhost and the name in advertise"),
    row!(Network "peer-port" Start peer_port, SettingKind::SidePort { offset: SidePort::PEER_OFFSET },
        "The port for other nodes; off for a node that stays alone"),
    row!(Network "replica-port" Start replica_port, SettingKind::SidePort { offset: SidePort::REPLICA_OFFSET },
        "A second port for clients, read-only: with it, CLUSTER SLOTS, SHARDS and NODES name this node's backups as replicas"),
    row!(Network "any-port" Start any_port, SettingKind::ExtraPort,
        "A port for clients without cluster support: it serves any key"),
    row!(Network "advertise" Start advertise, SettingKind::HostPort,
        "The address of this node for others, if it differs from the one it listens on"),
    row!(Network "name" Start name, SettingKind::Name,
        "Name of this node in listings; by default the host's name and the port"),
    row!(Network "io-threads" Start io_threads, SettingKind::Integer { min: 0, max: 128 },
        "Threads that serve clients; 0 for one per core, at most 8"),
    row!(Network "tcp-backlog" Start tcp_backlog, COUNT,
        "Connections that may wait to be accepted"),
    row!(Network "tcp-keepalive" RunTime tcp_keepalive, KEEPALIVE,
        "Interval of probes on a silent connection; 0 for none"),
    row!(Network "timeout" RunTime timeout, SECONDS,
        "Time after which an idle client is disconnected; 0 for never"),
    row!(Network "cross-slot" RunTime cross_slot, SettingKind::OneOf(NodeCrossSlot::WORDS),
        "Whether one command or MULTI may access several slots; never refuses it, as a cluster of several nodes does"),

    row!(Cluster "join" Start join, SettingKind::HostPorts,
        "Client addresses of nodes of the cluster to join; empty to start a new cluster"),
    row!(Cluster "data-dir" Start data_dir, SettingKind::Path,
        "Directory for the node's identity, log and last snapshot; empty for none"),
    row!(Cluster "weight" Start weight, SettingKind::Integer { min: 0, max: 1_000 },
        "This node's share of the data relative to the other nodes; 0 for none"),
    row!(Cluster "zone" Start zone, SettingKind::Name,
        "The rack or room of this node; copies of a bucket are kept in different zones"),
    row!(Cluster "buckets" Start buckets, SettingKind::OneOf(Buckets::WORDS),
        "Initial number of buckets of a new cluster, 256 by default; optional for a joining node"),
    row!(Cluster "backups" Start backups, SettingKind::Integer { min: 0, max: 3 },
        "Number of backups in a new cluster, 1 by default; optional for a joining node"),
    row!(Cluster "ack" Start ack, SettingKind::OneOf(InitialAck::WORDS),
        "When a new cluster acknowledges writes, backup by default; optional for a joining node"),

    row!(Memory "maxmemory" RunTime maxmemory, ANY_SIZE,
        "Memory for data before keys are evicted or writes refused; 0 for no limit"),
    row!(Memory "maxmemory-policy" Shared maxmemory_policy, SettingKind::OneOf(EvictionPolicy::WORDS),
        "Policy that chooses the keys to evict when maxmemory is reached"),
    row!(Memory "maxmemory-samples" Shared maxmemory_samples, SettingKind::Integer { min: 1, max: INT_MAX },
        "Keys sampled to find one to evict; more is more exact and slower"),
    row!(Memory "lfu-log-factor" Shared lfu_log_factor, COUNT,
        "Factor that slows the growth of the access counter under an lfu policy"),
    row!(Memory "lfu-decay-time" Shared lfu_decay_time, COUNT,
        "Minutes after which the access counter is decremented by one; 0 for never"),
    row!(Memory "timers.maxmemory" RunTime timers_maxmemory, ANY_SIZE,
        "Memory for timers, which maxmemory does not include; 0 for a tenth of maxmemory, or 1gb without one"),

    row!(Limits "maxclients" RunTime maxclients, SettingKind::Integer { min: 1, max: u32::MAX as i64 },
        "Clients that may be connected at a time"),
    row!(Limits "any-maxclients" Start any_maxclients, SettingKind::Integer { min: 1, max: 100_000 },
        "Clients that may be connected to the any-port at a time; each has a thread"),
    row!(Limits "databases" Start databases, SettingKind::Integer { min: 1, max: 10_000 },
        "Number of databases that SELECT offers, the same on all nodes of a cluster"),
    row!(Limits "client-query-buffer-limit" RunTime client_query_buffer_limit, BUFFER,
        "Unfinished requests of one client before it is disconnected"),
    row!(Limits "client-output-buffer-limit" RunTime client_output_buffer_limit, SettingKind::OutputLimits,
        "Unread replies of one client before it is disconnected: at once above the hard limit, after some seconds above the soft one"),
    row!(Limits "proto-max-bulk-len" Shared proto_max_bulk_len, BULK,
        "The largest single argument, and so the largest string"),

    row!(Security "requirepass" RunTime requirepass, SettingKind::Secret,
        "The password for clients; empty for none"),
    row!(Security "requirepass-file" Start requirepass_file, SettingKind::Path,
        "A file that holds the password for clients"),
    row!(Security "secret-file" Start secret_file, SettingKind::Path,
        "A file that holds the secret shared by the nodes of a cluster"),
    row!(Security "http-open" Start http_open, SettingKind::OneOf(HttpOpen::WORDS),
        "HTTP paths that need no credentials although there is a password: health for /healthz and /readyz, metrics for these and /metrics"),
    row!(Security "timers.allow-callbacks" Start timers_allow_callbacks, SettingKind::Networks,
        "Allowed destinations of timer callbacks: local for loopback and private networks, any, or networks; never the cluster's own ports"),
    row!(Security "admin-token-file" Start admin_token_file, SettingKind::Path,
        "A file with the token for operating the cluster from the console; without it the console is read-only"),
    row!(Security "enable-debug-command" Start enable_debug_command, SettingKind::OneOf(DebugClients::WORDS),
        "Clients that may use DEBUG, which can stop a thread for as long as they like: no, local for those on this machine, or yes"),
    row!(Security "insecure" Start insecure, SettingKind::YesNo,
        "Start even if anyone on the network could read and change everything"),

    row!(Watching "log-level" Start log_level, SettingKind::OneOf(LogLevel::WORDS),
        "Minimum level of messages written to standard error"),
    row!(Watching "log-format" Start log_format, SettingKind::OneOf(LogFormat::WORDS),
        "Lines of the log as text, or as JSON"),
    row!(Watching "notify-keyspace-events" Shared notify_keyspace_events, SettingKind::NotifyClasses,
        "Events about keys to publish: K or E for the channel, then classes, A for all"),
    row!(Watching "notify-scope" Shared notify_scope, SettingKind::OneOf(NotifyScope::WORDS),
        "Events that subscribers of a node hear: of the keys that it serves, as in Redis Cluster, or of all keys"),
    row!(Watching "busy-reply-threshold" RunTime busy_reply_threshold, MILLISECONDS,
        "A script slower than this is busy: commands on the slots that it holds get BUSY instead of waiting"),
    row!(Watching "slowlog-log-slower-than" RunTime slowlog_log_slower_than,
        SettingKind::Duration { unit: SettingUnit::Microseconds, min: -1, max: i64::MAX },
        "Commands slower than this go to the slow log; 0 for all, -1 for none"),
    row!(Watching "slowlog-max-len" RunTime slowlog_max_len, SettingKind::Integer { min: 0, max: i64::MAX },
        "Entries the slow log keeps"),
    row!(Watching "latency-monitor-threshold" RunTime latency_monitor_threshold, MILLISECONDS,
        "Events slower than this are recorded for LATENCY; 0 for none"),

    row!(Compatibility "save" Fixed "", SettingKind::Path, "Data is in memory only"),
    row!(Compatibility "appendonly" Fixed "no", SettingKind::YesNo, "Data is in memory only"),
    row!(Compatibility "loglevel" Fixed "notice", SettingKind::Name, "log-level sets what is logged"),
    row!(Compatibility "hz" Fixed "10", COUNT, "There are no periodic background tasks at a fixed rate"),
    row!(Compatibility "active-expire-effort" Fixed "1", COUNT, "Keys expire when they are due, without searching for them"),
    row!(Compatibility "activedefrag" Fixed "no", SettingKind::YesNo, "Memory is not defragmented"),
    row!(Compatibility "lazyfree-lazy-eviction" Fixed "yes", SettingKind::YesNo, "Large values are freed in the background"),
    row!(Compatibility "lazyfree-lazy-expire" Fixed "yes", SettingKind::YesNo, "Large values are freed in the background"),
    row!(Compatibility "lazyfree-lazy-server-del" Fixed "yes", SettingKind::YesNo, "Large values are freed in the background"),
    row!(Compatibility "lazyfree-lazy-user-del" Fixed "yes", SettingKind::YesNo, "Large values are freed in the background"),
    row!(Compatibility "lazyfree-lazy-user-flush" Fixed "yes", SettingKind::YesNo, "Large values are freed in the background"),
];

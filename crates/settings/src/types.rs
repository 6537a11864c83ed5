//! Values of settings that are not plain numbers: choices, classes of events, buffer limits, addresses and secrets.
//! Each parses and formats the text that Redis uses, through `kind::SettingValue`.

use std::fmt;
use std::time::Duration;

use super::kind::{SettingKind, SettingValue, parse_bytes};

/// Defines a type with one word for each of its values.
macro_rules! choice {
    ($(#[$doc:meta])* $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $type { $($(#[$variant_doc])* $variant,)+ }

        impl $type {
            /// The words of all values, in Redis's order.
            pub const WORDS: &'static [&'static str] = &[$($word,)+];

            pub fn word(self) -> &'static str {
                match self { $($type::$variant => $word,)+ }
            }
        }

        impl SettingValue for $type {
            fn assign(&mut self, text: &str, _: &SettingKind) -> Result<(), String> {
                *self = match text.to_ascii_lowercase().as_str() {
                    $($word => $type::$variant,)+
                    _ => {
                        let words = Self::WORDS.join(", ");
                        return Err(format!("argument(s) must be one of the following: {words}"));
                    }
                };
                Ok(())
            }
            fn show(&self, _: &SettingKind) -> String {
                self.word().to_owned()
            }
        }
    };
}

/// Makes a setting optional: the empty text means `None`.
macro_rules! unsaid {
    ($($type:ty = $first:expr;)+) => {$(
        impl SettingValue for Option<$type> {
            fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
                *self = if text.is_empty() {
                    None
                } else {
                    let mut value: $type = $first;
                    value.assign(text, kind)?;
                    Some(value)
                };
                Ok(())
            }
            fn show(&self, kind: &SettingKind) -> String {
                self.as_ref().map(|value| value.show(kind)).unwrap_or_default()
            }
        }
    )+};
}
unsaid! {
    u8 = 0;
    String = String::new();
    InitialAck = InitialAck::Backup;
    Buckets = Buckets::B256;
}

/// The allowed callback targets of timers, with the configured text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedCallbacks {
    text: String,
    rules: timers::AllowRules,
}

impl AllowedCallbacks {
    pub fn rules(&self) -> &timers::AllowRules {
        &self.rules
    }
}

impl Default for AllowedCallbacks {
    fn default() -> AllowedCallbacks {
        AllowedCallbacks { text: "local".to_owned(), rules: timers::AllowRules::local() }
    }
}

impl SettingValue for AllowedCallbacks {
    fn assign(&mut self, text: &str, _: &SettingKind) -> Result<(), String> {
        let rules = timers::AllowRules::parse(text)
            .map_err(|wrong| format!("'{}' is neither a network nor an address", wrong.0))?;
        *self = AllowedCallbacks { text: text.to_owned(), rules };
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        self.text.clone()
    }
}

choice! {
    /// The keys to evict when `maxmemory` is reached.
    EvictionPolicy {
        VolatileLru = "volatile-lru",
        VolatileLfu = "volatile-lfu",
        VolatileRandom = "volatile-random",
        VolatileTtl = "volatile-ttl",
        AllKeysLru = "allkeys-lru",
        AllKeysLfu = "allkeys-lfu",
        AllKeysRandom = "allkeys-random",
        NoEviction = "noeviction",
    }
}

choice! {
    /// This node's permission for one command, or one MULTI, to access several slots; the cluster's own setting
    /// must allow it as well.
    NodeCrossSlot {
        /// Allowed while one node holds them all.
        Allowed = "allowed",
        /// Refused as in a cluster of several nodes, to find such commands early.
        Never = "never",
    }
}

choice! {
    /// The point at which a new cluster acknowledges writes.
    InitialAck {
        /// After every backup has it.
        Backup = "backup",
        /// After the primary has it: the write can be lost.
        Primary = "primary",
    }
}

choice! {
    /// The verbosity of the log.
    LogLevel {
        /// Failures on this node.
        Error = "error",
        /// Problems elsewhere, or possible problems.
        Warn = "warn",
        /// Members that join and leave.
        Info = "info",
        /// Every change of the map.
        Debug = "debug",
    }
}

choice! {
    /// The format of a log line.
    LogFormat {
        /// Text for people.
        Text = "text",
        /// One JSON object per line, for programs.
        Json = "json",
    }
}

choice! {
    /// The initial number of buckets of a new cluster. Buckets are split when there are too few of them.
    Buckets {
        B16 = "16",
        B256 = "256",
        B4096 = "4096",
        B16384 = "16384",
    }
}

/// The classes of keyspace events that are published: the letters of `notify-keyspace-events`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotifyClasses(u16);

impl NotifyClasses {
    pub const NONE: NotifyClasses = NotifyClasses(0);
    /// Publishes on `__keyspace@0__:KEY`.
    pub const KEYSPACE: NotifyClasses = NotifyClasses(1 << 0);
    /// Publishes on `__keyevent@0__:EVENT`.
    pub const KEYEVENT: NotifyClasses = NotifyClasses(1 << 1);
    pub const GENERIC: NotifyClasses = NotifyClasses(1 << 2);
    pub const STRING: NotifyClasses = NotifyClasses(1 << 3);
    pub const LIST: NotifyClasses = NotifyClasses(1 << 4);
    pub const SET: NotifyClasses = NotifyClasses(1 << 5);
    pub const HASH: NotifyClasses = NotifyClasses(1 << 6);
    pub const ZSET: NotifyClasses = NotifyClasses(1 << 7);
    pub const EXPIRED: NotifyClasses = NotifyClasses(1 << 8);
    pub const EVICTED: NotifyClasses = NotifyClasses(1 << 9);
    pub const STREAM: NotifyClasses = NotifyClasses(1 << 10);
    pub const MODULE: NotifyClasses = NotifyClasses(1 << 11);
    pub const KEY_MISS: NotifyClasses = NotifyClasses(1 << 12);
    pub const NEW: NotifyClasses = NotifyClasses(1 << 13);
    /// The meaning of `A`: every class except key misses and new keys.
    pub const ALL: NotifyClasses = NotifyClasses(0b1111_1111_1100);

    /// The letters in the order in which Redis writes them.
    const LETTERS: [(char, NotifyClasses); 11] = [
        ('g', Self::GENERIC),
        ('$', Self::STRING),
        ('l', Self::LIST),
        ('s', Self::SET),
        ('h', Self::HASH),
        ('z', Self::ZSET),
        ('x', Self::EXPIRED),
        ('e', Self::EVICTED),
        ('t', Self::STREAM),
        ('d', Self::MODULE),
        ('n', Self::NEW),
    ];
    const LAST_LETTERS: [(char, NotifyClasses); 3] =
        [('K', Self::KEYSPACE), ('E', Self::KEYEVENT), ('m', Self::KEY_MISS)];

    /// Returns whether all classes of `other` are included.
    #[must_use]
    pub fn contains(self, other: NotifyClasses) -> bool {
        self.0 & other.0 == other.0
    }

    #[must_use]
    pub fn union(self, other: NotifyClasses) -> NotifyClasses {
        NotifyClasses(self.0 | other.0)
    }

    /// Returns whether events of `class` are published: the class is on, and so is a channel.
    #[must_use]
    pub fn publishes(self, class: NotifyClasses) -> bool {
        self.contains(class) && (self.contains(Self::KEYSPACE) || self.contains(Self::KEYEVENT))
    }

    fn of_letter(letter: char) -> Option<NotifyClasses> {
        if letter == 'A' {
            return Some(Self::ALL);
        }
        let mut letters = Self::LETTERS.iter().chain(&Self::LAST_LETTERS);
        letters.find(|(known, _)| *known == letter).map(|(_, class)| *class)
    }
}

impl SettingValue for NotifyClasses {
    fn assign(&mut self, text: &str, _: &SettingKind) -> Result<(), String> {
        let classes = text.chars().map(NotifyClasses::of_letter);
        let all: Option<NotifyClasses> = classes
            .into_iter()
            .try_fold(NotifyClasses::NONE, |sum, class| class.map(|class| sum.union(class)));
        *self = all.ok_or("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.")?;
        Ok(())
    }

    fn show(&self, _: &SettingKind) -> String {
        // Redis omits `n` after an `A`, although it is on; we show the same.
        let letters: &[_] =
            if self.contains(Self::ALL) { &[('A', Self::ALL)] } else { &Self::LETTERS };
        let on = |(letter, class): &(char, NotifyClasses)| self.contains(*class).then_some(*letter);
        letters.iter().chain(&Self::LAST_LETTERS).filter_map(on).collect()
    }
}

/// Limits on a client's unread output before it is disconnected. 0 means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputLimit {
    /// Above this size the client is disconnected at once.
    pub hard_bytes: u64,
    /// Above this size the client is disconnected after `soft_for` without interruption.
    pub soft_bytes: u64,
    pub soft_for: Duration,
}

/// The output limits of the three classes of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLimits {
    pub normal: OutputLimit,
    pub replica: OutputLimit,
    pub pubsub: OutputLimit,
}

impl Default for OutputLimits {
    fn default() -> OutputLimits {
        let soft_for = Duration::from_secs(60);
        OutputLimits {
            normal: OutputLimit::default(),
            replica: OutputLimit { hard_bytes: 256 << 20, soft_bytes: 64 << 20, soft_for },
            pubsub: OutputLimit { hard_bytes: 32 << 20, soft_bytes: 8 << 20, soft_for },
        }
    }
}

impl SettingValue for OutputLimits {
    /// Sets the limits of the named classes; the others keep theirs.
    fn assign(&mut self, text: &str, _: &SettingKind) -> Result<(), String> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        if words.is_empty() || !words.len().is_multiple_of(4) {
            return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
        }
        let mut limits = *self;
        for quad in words.chunks_exact(4) {
            let limit = match quad[0].to_ascii_lowercase().as_str() {
                "normal" => &mut limits.normal,
                "replica" | "slave" => &mut limits.replica,
                "pubsub" => &mut limits.pubsub,
                _ => {
                    let reason = "Invalid client class specified in buffer limit configuration.";
                    return Err(reason.to_owned());
                }
            };
            *limit = OutputLimit::parse(quad[1], quad[2], quad[3]).ok_or(
                "Error in hard, soft or soft_seconds setting in buffer limit configuration.",
            )?;
        }
        *self = limits;
        Ok(())
    }

    fn show(&self, _: &SettingKind) -> String {
        format!("normal {} slave {} pubsub {}", self.normal, self.replica, self.pubsub)
    }
}

impl OutputLimit {
    fn parse(hard: &str, soft: &str, seconds: &str) -> Option<OutputLimit> {
        Some(OutputLimit {
            hard_bytes: parse_bytes(hard)?,
            soft_bytes: parse_bytes(soft)?,
            soft_for: Duration::from_secs(seconds.parse().ok()?),
        })
    }
}

impl fmt::Display for OutputLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.hard_bytes, self.soft_bytes, self.soft_for.as_secs())
    }
}

/// A second port of the node: for HTTP, or for other nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SidePort {
    /// The client port plus a fixed offset.
    Offset,
    Off,
    /// This port; 0 lets the system choose.
    At(u16),
}

impl SidePort {
    pub const HTTP_OFFSET: u16 = 1_000;
    pub const PEER_OFFSET: u16 = 10_000;

    pub(super) fn beside(self, port: u16, offset: u16) -> Option<u16> {
        match self {
            SidePort::Offset if port == 0 => Some(0),
            SidePort::Offset => port.checked_add(offset),
            SidePort::Off => None,
            SidePort::At(port) => Some(port),
        }
    }
}

impl SettingValue for SidePort {
    fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
        *self = match text {
            "auto" => SidePort::Offset,
            "off" => SidePort::Off,
            _ => {
                let port = text.parse();
                SidePort::At(port.map_err(|_| format!("argument must be {}", kind.allowed()))?)
            }
        };
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        match self {
            SidePort::Offset => "auto".to_owned(),
            SidePort::Off => "off".to_owned(),
            SidePort::At(port) => port.to_string(),
        }
    }
}

/// A port that is opened only if it is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtraPort {
    Off,
    /// This port; 0 lets the system choose.
    At(u16),
}

impl SettingValue for ExtraPort {
    fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
        let wrong = |_| format!("argument must be {}", kind.allowed());
        *self = match text {
            "off" => ExtraPort::Off,
            _ => ExtraPort::At(text.parse().map_err(wrong)?),
        };
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        match self {
            ExtraPort::Off => "off".to_owned(),
            ExtraPort::At(port) => port.to_string(),
        }
    }
}

/// The address under which clients and other nodes reach this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advertise {
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    /// `None`: the port on which the node listens.
    pub port: Option<u16>,
}

impl Advertise {
    fn parse(text: &str) -> Option<Advertise> {
        let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, rest)) => (host, Some(rest.strip_prefix(':')?)),
            None if text.matches(':').count() > 1 => (text, None),
            None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        let port: Option<u16> = port.map(str::parse).transpose().ok()?;
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
        let host_fits = !host.is_empty() && host.bytes().all(fits);
        (host_fits && port != Some(0)).then(|| Advertise { host: host.to_owned(), port })
    }
}

impl fmt::Display for Advertise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.port, self.host.contains(':')) {
            (Some(port), true) => write!(f, "[{}]:{port}", self.host),
            (Some(port), false) => write!(f, "{}:{port}", self.host),
            (None, _) => f.write_str(&self.host),
        }
    }
}

impl SettingValue for Option<Advertise> {
    fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
        if text.is_empty() {
            *self = None;
            return Ok(());
        }
        let parsed = Advertise::parse(text);
        *self = Some(parsed.ok_or_else(|| format!("argument must be {}", kind.allowed()))?);
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        self.as_ref().map(ToString::to_string).unwrap_or_default()
    }
}

/// The client addresses at which a node asks to join, in the order in which it tries them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JoinAddresses(pub Vec<JoinAddress>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinAddress {
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    pub port: u16,
}

impl JoinAddress {
    fn parse(text: &str) -> Option<JoinAddress> {
        let Advertise { host, port } = Advertise::parse(text.trim())?;
        Some(JoinAddress { host, port: port? })
    }
}

impl fmt::Display for JoinAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Advertise { host: self.host.clone(), port: Some(self.port) }.fmt(f)
    }
}

impl SettingValue for JoinAddresses {
    fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
        let words = text.split(',').filter(|_| !text.is_empty());
        let all: Option<Vec<JoinAddress>> = words.map(JoinAddress::parse).collect();
        *self = JoinAddresses(all.ok_or_else(|| format!("argument must be {}", kind.allowed()))?);
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    }
}

/// A password or a key. Formatting does not reveal it in logs; `expose` returns it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub const BYTES_MAX: usize = 512;

    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "none" } else { "***" })
    }
}

impl SettingValue for Secret {
    fn assign(&mut self, text: &str, kind: &SettingKind) -> Result<(), String> {
        if text.len() > Self::BYTES_MAX {
            return Err(format!("argument must be {}", kind.allowed()));
        }
        *self = Secret::new(text);
        Ok(())
    }
    fn show(&self, _: &SettingKind) -> String {
        self.0.clone()
    }
}

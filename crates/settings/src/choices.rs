//! Values of settings with one word each: policies, levels, formats.

use super::kind::{SettingKind, SettingValue};

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
    /// The events about keys that subscribers of a node hear.
    NotifyScope {
        /// Those of the keys that this node serves, as in Redis Cluster: clients subscribe on every node.
        Node = "node",
        /// Those of all keys: one subscription on any node suffices.
        Cluster = "cluster",
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
    /// The clients that may use DEBUG.
    DebugClients {
        Nobody = "no",
        /// Those on this machine.
        Local = "local",
        All = "yes",
    }
}

choice! {
    /// The HTTP paths that need no credentials although clients need a password.
    HttpOpen {
        Nothing = "nothing",
        /// `/healthz` and `/readyz`.
        Health = "health",
        /// These two and `/metrics`, under any host name.
        Metrics = "metrics",
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

/// Makes a setting optional: the empty text means `None`.
macro_rules! optional {
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
optional! {
    core::net::IpAddr = core::net::IpAddr::V4(core::net::Ipv4Addr::LOCALHOST);
    u8 = 0;
    String = String::new();
    InitialAck = InitialAck::Backup;
    Buckets = Buckets::B256;
}

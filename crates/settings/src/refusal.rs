//! The reason why a setting was refused: for people at start, in Redis's words for `CONFIG SET`.

use std::fmt;

/// The reason why a setting was refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingRefusal {
    Unknown {
        name: String,
        suggestion: Option<&'static str>,
    },
    Invalid {
        name: &'static str,
        /// The value as it was given; a secret is not repeated.
        value: String,
        /// The valid values for people, "must be ...".
        allowed: String,
        /// Redis's reply to `CONFIG SET` for the same mistake.
        redis: String,
    },
    /// The setting is read only at start: `CONFIG SET` cannot change it.
    NeedsRestart {
        name: &'static str,
    },
    /// A setting of Redis that has a fixed value here.
    Fixed {
        name: &'static str,
        value: &'static str,
    },
}

impl SettingRefusal {
    /// Returns the error line of `CONFIG SET` in Redis's words, with the name as the client wrote it.
    pub fn redis_error(&self, name: &str) -> String {
        let reason = match self {
            SettingRefusal::Unknown { .. } => {
                return format!(
                    "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
                );
            }
            SettingRefusal::Invalid { redis, .. } => redis.clone(),
            SettingRefusal::NeedsRestart { .. } => "can't set immutable config".to_owned(),
            SettingRefusal::Fixed { value, .. } => format!("only '{value}' is supported here"),
        };
        format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}")
    }
}

impl fmt::Display for SettingRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingRefusal::Unknown { name, suggestion: Some(near) } => {
                write!(f, "there is no setting '{name}'; did you mean '{near}'?")
            }
            SettingRefusal::Unknown { name, suggestion: None } => {
                write!(f, "there is no setting '{name}'; docs/configuration.md lists them all")
            }
            SettingRefusal::Invalid { name, value, allowed, .. } => {
                write!(f, "{name} = '{value}': must be {allowed}")
            }
            SettingRefusal::NeedsRestart { name } => {
                write!(f, "{name} can only be set when the node starts")
            }
            SettingRefusal::Fixed { name, value } => {
                write!(f, "{name} is always '{value}' here; it is there for Redis clients to read")
            }
        }
    }
}

impl std::error::Error for SettingRefusal {}

/// A refused change; the other changes of the same call were not made either.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeError {
    /// The index of the refused change.
    pub index: usize,
    pub error: SettingRefusal,
}

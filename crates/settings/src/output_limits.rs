//! The limits on a client's unread replies: the value of `client-output-buffer-limit`.

use std::fmt;
use std::time::Duration;

use super::kind::{SettingKind, SettingValue, parse_bytes};

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

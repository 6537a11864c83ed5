//! Passwords and keys, which no log and no message shows.

use std::fmt;

use super::kind::{SettingKind, SettingValue};

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

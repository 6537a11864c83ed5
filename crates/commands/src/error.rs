//! Error replies. An error means that the command did not run and nothing was changed.

use std::borrow::Cow;

/// The text of an error reply, its code first, in Redis's own words where Redis has a text for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error(Cow<'static, str>);

impl Error {
    pub const SYNTAX: Error = Error::fixed("ERR syntax error");
    pub const NOT_AN_INTEGER: Error = Error::fixed("ERR value is not an integer or out of range");
    pub const NOT_AN_I32: Error =
        Error::fixed("ERR value is out of range, value must between -2147483648 and 2147483647");
    pub const NOT_A_FLOAT: Error = Error::fixed("ERR value is not a valid float");
    pub const OUT_OF_RANGE: Error = Error::fixed("ERR value is out of range");
    pub const NO_SUCH_KEY: Error = Error::fixed("ERR no such key");
    pub const OVERFLOW: Error = Error::fixed("ERR increment or decrement would overflow");
    pub const STRING_TOO_LONG: Error =
        Error::fixed("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    pub const WRONG_TYPE: Error =
        Error::fixed("WRONGTYPE Operation against a key holding the wrong kind of value");
    pub const OUT_OF_MEMORY: Error =
        Error::fixed("OOM command not allowed when used memory > 'maxmemory'.");
    pub const NO_AUTH: Error = Error::fixed("NOAUTH Authentication required.");
    pub const READ_ONLY_PORT: Error =
        Error::fixed("READONLY You can't write against a read only replica.");
    pub const CROSS_SLOT: Error =
        Error::fixed("CROSSSLOT Keys in request don't hash to the same slot");

    /// No reply: the command has not run, and waits for keys (`blocking.rs`).
    pub(crate) const WAITING: Error = Error::fixed("");

    pub const fn fixed(text: &'static str) -> Error {
        Error(Cow::Borrowed(text))
    }

    pub fn new(text: String) -> Error {
        Error(Cow::Owned(text))
    }

    pub fn wrong_arity(full_name: &str) -> Error {
        Error::new(format!("ERR wrong number of arguments for '{full_name}' command"))
    }

    /// Returns the error for a subcommand with too many arguments, whose arity is only a minimum.
    pub fn wrong_subcommand_arity(container: &str, given: &[u8]) -> Error {
        let given = repeated(given, 128);
        Error::new(format!(
            "ERR unknown subcommand or wrong number of arguments for '{given}'. Try {container} HELP."
        ))
    }

    pub fn invalid_expire(full_name: &str) -> Error {
        Error::new(format!("ERR invalid expire time in '{full_name}' command"))
    }

    /// Returns whether the error redirects the client to another node, or reports that no node serves the slot.
    pub fn is_redirection(&self) -> bool {
        self.0.starts_with("MOVED ") || self.0.starts_with("CLUSTERDOWN ")
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.0.is_empty()
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

/// Returns the beginning of an argument for an error text: like Redis, up to the first zero byte.
pub(crate) fn repeated(argument: &[u8], bytes_max: usize) -> String {
    let text = argument.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(&text[..text.len().min(bytes_max)]).into_owned()
}

//! Errors that our functions raise in a script: a text with the script's line, as Lua's own functions raise, or a
//! table with the field `err`, as `redis.call` raises. A stop passes through `pcall`.

use core::fmt;

use mlua::{Error, IntoLua, Lua, Value};

/// An error on its way through Lua.
#[derive(Clone, Debug)]
pub(crate) enum Raised {
    Text(Vec<u8>),
    /// Becomes a table whose field `err` is this.
    Table(Vec<u8>),
    /// The script ends; it cannot catch this.
    Stop,
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raised::Text(text) | Raised::Table(text) => f.write_str(&String::from_utf8_lossy(text)),
            Raised::Stop => f.write_str("the script was stopped"),
        }
    }
}

impl std::error::Error for Raised {}

impl From<Raised> for Error {
    fn from(raised: Raised) -> Error {
        Error::external(raised)
    }
}

/// Returns an error text with the position of the script's code that has called the running function.
pub(crate) fn raise(lua: &Lua, text: impl AsRef<[u8]>) -> Error {
    let mut full = position(lua, 1);
    full.extend_from_slice(text.as_ref());
    Raised::Text(full).into()
}

/// Returns the error for a wrong argument of the running function.
pub(crate) fn bad_argument(lua: &Lua, number: usize, function: &str, what: &str) -> Error {
    raise(lua, format!("bad argument #{number} to '{function}' ({what})"))
}

/// Returns the position of the function at this level as `luaL_where` gives it: `user_script:1: `.
pub(crate) fn position(lua: &Lua, level: usize) -> Vec<u8> {
    let found = lua.inspect_stack(level, |debug| {
        let line = debug.current_line()?;
        let source = debug.source().short_src?.into_owned();
        Some(format!("{source}:{line}: ").into_bytes())
    });
    found.flatten().unwrap_or_default()
}

/// Returns the error that was raised, from inside the layers that Lua has put around it.
pub(crate) fn raised(error: &Error) -> Option<&Raised> {
    match error {
        Error::CallbackError { cause, .. } | Error::WithContext { cause, .. } => raised(cause),
        Error::ExternalError(inner) => inner.downcast_ref(),
        _ => None,
    }
}

/// Returns an error value as the script sees it.
pub(crate) fn visible(lua: &Lua, value: Value) -> mlua::Result<Value> {
    let Value::Error(error) = value else { return Ok(value) };
    match raised(&error) {
        Some(Raised::Text(text)) => lua.create_string(text)?.into_lua(lua),
        Some(Raised::Table(text)) => error_table(lua, text),
        Some(Raised::Stop) => Err(Raised::Stop.into()),
        None => lua.create_string(plain_text(&error))?.into_lua(lua),
    }
}

/// Returns the text of an error of Lua or of `mlua` without a traceback.
pub(crate) fn plain_text(error: &Error) -> String {
    let text = match error {
        Error::CallbackError { cause, .. } => return plain_text(cause),
        Error::SyntaxError { message, .. } => message.clone(),
        Error::RuntimeError(text) | Error::MemoryError(text) => text.clone(),
        other => other.to_string(),
    };
    text.split("\nstack traceback:").next().unwrap_or_default().to_owned()
}

/// Creates a table whose field `err` is this text.
pub(crate) fn error_table(lua: &Lua, text: &[u8]) -> mlua::Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set("err", lua.create_string(text)?)?;
    Ok(Value::Table(table))
}

/// Returns an error with its code: of `-CODE text` without the hyphen, of a text without a space with `ERR`.
pub(crate) fn with_code(text: &[u8]) -> Vec<u8> {
    let (code, rest) = match text.strip_prefix(b"-") {
        Some(text) => match text.iter().position(|byte| *byte == b' ') {
            Some(space) => (&text[..space], &text[space + 1..]),
            None => (&b"ERR"[..], text),
        },
        None => (&b"ERR"[..], text),
    };
    let end = rest.iter().rposition(|byte| !matches!(byte, b'\r' | b'\n')).map_or(0, |at| at + 1);
    let begin = rest.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(0);
    [code, b" ", &rest[begin.min(end)..end]].concat()
}

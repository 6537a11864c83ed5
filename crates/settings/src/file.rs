//! The configuration file: TOML, one `name = value` per line, and back for `CONFIG REWRITE`.
//!
//! Called by `opencluster/src/config` at start and by `CONFIG REWRITE`. This module handles only text; the caller
//! reads and writes the file.

use std::fmt;

use toml_edit::{Document, DocumentMut, Item, Value};

use super::{SettingSpec, Settings, TABLE, find};

/// One `name = value` of a file, with its line number, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    pub name: String,
    pub text: String,
    pub line: usize,
}

/// An error in a configuration file, with its line number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    pub line: usize,
    pub reason: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// Parses a file's entries, in order. Does not yet check names and values.
pub fn parse_file(text: &str) -> Result<Vec<FileEntry>, FileError> {
    let document = parse(text)?;
    let mut entries = Vec::new();
    for (name, item) in document.iter() {
        match item.as_table_like().filter(|_| is_group(name)) {
            // `timers.allow-callbacks = ...`, or the same under `[timers]`.
            Some(table) => {
                for (rest, item) in table.iter() {
                    entries.push(entry(text, format!("{name}.{rest}"), item)?);
                }
            }
            None => entries.push(entry(text, name.to_owned(), item)?),
        }
    }
    entries.sort_by_key(|entry| entry.line);
    Ok(entries)
}

/// Returns whether there are settings whose names begin with `name` and a dot.
fn is_group(name: &str) -> bool {
    let rest =
        |setting: &SettingSpec| setting.name.strip_prefix(name).map(|rest| rest.starts_with('.'));
    TABLE.iter().filter_map(rest).any(|is_dotted| is_dotted)
}

fn entry(text: &str, name: String, item: &Item) -> Result<FileEntry, FileError> {
    let line = item.span().map_or(1, |span| line_of(text, span.start));
    match plain_text(item) {
        Some(text) => Ok(FileEntry { name, text, line }),
        None => {
            let reason = format!("{name}: must be one value, such as {name} = \"...\"");
            Err(FileError { line, reason })
        }
    }
}

/// Returns the file with the settings in `changed` set to their present values. Everything else stays as it was
/// written: order, comments, and settings that flags or the environment override.
pub fn rewrite_file<'a>(
    text: &str,
    settings: &Settings,
    changed: impl IntoIterator<Item = &'a str>,
) -> Result<String, FileError> {
    let mut document = parse(text)?.into_mut();
    for name in changed {
        let setting = find(name).expect("only settings of the table can be changed");
        let value = setting.read(settings);
        put(&mut document, setting.name, &setting.kind.friendly(&value));
    }
    Ok(document.to_string())
}

fn put(document: &mut DocumentMut, name: &str, text: &str) {
    let mut value = match text.parse::<i64>() {
        // Not for a password such as 007, which would lose its zeros.
        Ok(number) if number.to_string() == text => Value::from(number),
        Ok(_) | Err(_) => Value::from(text),
    };
    let group = name.split_once('.');
    if let Some((table, rest)) =
        group.and_then(|(group, rest)| Some((document.get_mut(group)?.as_table_like_mut()?, rest)))
    {
        table.insert(rest, Item::Value(value));
        return;
    }
    match document.get_mut(name).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => {
            document.insert(name, Item::Value(value));
        }
    }
}

fn parse(text: &str) -> Result<Document<String>, FileError> {
    Document::parse(text.to_owned()).map_err(|error| FileError {
        line: error.span().map_or(1, |span| line_of(text, span.start)),
        reason: error.message().lines().collect::<Vec<_>>().join(", "),
    })
}

/// Returns the text of a value in the form that flags and the environment use.
fn plain_text(item: &Item) -> Option<String> {
    match item.as_value()? {
        Value::String(text) => Some(text.value().clone()),
        Value::Integer(number) => Some(number.value().to_string()),
        Value::Boolean(flag) => Some(if *flag.value() { "yes" } else { "no" }.to_owned()),
        Value::Float(number) => Some(number.value().to_string()),
        Value::Datetime(_) | Value::Array(_) | Value::InlineTable(_) => None,
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}

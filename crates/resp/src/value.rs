//! A reply as a client holds it. Built by `reply_parser.rs`; used by the command line, the load generator's checks
//! and tests.

use std::fmt;

/// A reply. Texts are bytes: a server may quote in an error anything a client has sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Simple(Vec<u8>),
    /// The text with its code, without the `-`.
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    /// RESP3's null, and both of RESP2's: `$-1` and `*-1`.
    Null,
    Array(Vec<Value>),
    /// Pairs in the order the server sent them, so that the order can be compared.
    Map(Vec<(Value, Value)>),
    Set(Vec<Value>),
    /// A push message.
    Push(Vec<Value>),
    Double(f64),
    Boolean(bool),
    BigNumber(Vec<u8>),
    Verbatim {
        format: [u8; 3],
        text: Vec<u8>,
    },
    /// A reply with an attribute.
    Attribute {
        about: Vec<(Value, Value)>,
        value: Box<Value>,
    },
}

impl Value {
    pub fn is_ok(&self) -> bool {
        matches!(self, Value::Simple(text) if text == b"OK")
    }

    /// Returns the bytes of any type of text except an error.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Value::Simple(text)
            | Value::Bulk(text)
            | Value::BigNumber(text)
            | Value::Verbatim { text, .. } => Some(text),
            Value::Attribute { value, .. } => value.text(),
            Value::Error(_)
            | Value::Integer(_)
            | Value::Null
            | Value::Array(_)
            | Value::Map(_)
            | Value::Set(_)
            | Value::Push(_)
            | Value::Double(_)
            | Value::Boolean(_) => None,
        }
    }
}

/// Formats a reply as redis-cli shows it to a person.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt_indented(self, f, 0)
    }
}

fn fmt_indented(value: &Value, f: &mut fmt::Formatter<'_>, indent: usize) -> fmt::Result {
    match value {
        Value::Simple(text) => f.write_str(&String::from_utf8_lossy(text)),
        Value::Error(text) => write!(f, "(error) {}", String::from_utf8_lossy(text)),
        Value::Integer(number) => write!(f, "(integer) {number}"),
        Value::Bulk(bytes) => fmt_quoted(bytes, f),
        Value::Null => f.write_str("(nil)"),
        Value::Double(number) => {
            let mut text = Vec::new();
            crate::write_double(&mut text, *number);
            write!(f, "(double) {}", String::from_utf8_lossy(&text))
        }
        Value::Boolean(truth) => f.write_str(if *truth { "(true)" } else { "(false)" }),
        Value::BigNumber(digits) => f.write_str(&String::from_utf8_lossy(digits)),
        Value::Verbatim { text, .. } => f.write_str(&String::from_utf8_lossy(text)),
        Value::Array(items) => fmt_items(items, f, Numbering { mark: ')', empty: "array", indent }),
        Value::Set(items) => fmt_items(items, f, Numbering { mark: '~', empty: "set", indent }),
        Value::Push(items) => fmt_items(items, f, Numbering { mark: '>', empty: "push", indent }),
        Value::Map(pairs) => fmt_pairs(pairs, f, Numbering { mark: '#', empty: "hash", indent }),
        Value::Attribute { about, value } => {
            fmt_pairs(about, f, Numbering { mark: '|', empty: "attribute", indent })?;
            write!(f, "\n{:indent$}", "")?;
            fmt_indented(value, f, indent)
        }
    }
}

#[derive(Clone, Copy)]
struct Numbering {
    /// The character after each number; it shows the type.
    mark: char,
    /// The type's name in the text for an empty one.
    empty: &'static str,
    indent: usize,
}

impl Numbering {
    /// Writes a line's number; returns the indentation of its content.
    fn begin(
        self,
        f: &mut fmt::Formatter<'_>,
        index: usize,
        len: usize,
    ) -> Result<usize, fmt::Error> {
        let width = len.to_string().len();
        if index > 0 {
            write!(f, "\n{:1$}", "", self.indent)?;
        }
        write!(f, "{:>width$}{} ", index + 1, self.mark)?;
        Ok(self.indent + width + 2)
    }
}

fn fmt_items(items: &[Value], f: &mut fmt::Formatter<'_>, numbering: Numbering) -> fmt::Result {
    if items.is_empty() {
        return write!(f, "(empty {})", numbering.empty);
    }
    for (index, item) in items.iter().enumerate() {
        let indent = numbering.begin(f, index, items.len())?;
        fmt_indented(item, f, indent)?;
    }
    Ok(())
}

fn fmt_pairs(
    pairs: &[(Value, Value)],
    f: &mut fmt::Formatter<'_>,
    numbering: Numbering,
) -> fmt::Result {
    if pairs.is_empty() {
        return write!(f, "(empty {})", numbering.empty);
    }
    for (index, (key, value)) in pairs.iter().enumerate() {
        let indent = numbering.begin(f, index, pairs.len())?;
        fmt_indented(key, f, indent)?;
        f.write_str(" => ")?;
        fmt_indented(value, f, indent)?;
    }
    Ok(())
}

fn fmt_quoted(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => write!(f, "\\{}", char::from(byte)),
            b'\n' => f.write_str("\\n"),
            b'\r' => f.write_str("\\r"),
            b'\t' => f.write_str("\\t"),
            0x07 => f.write_str("\\a"),
            0x08 => f.write_str("\\b"),
            b' '..=b'~' => write!(f, "{}", char::from(byte)),
            _ => write!(f, "\\x{byte:02x}"),
        }?;
    }
    f.write_str("\"")
}

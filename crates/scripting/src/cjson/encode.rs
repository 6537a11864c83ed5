//! Values to JSON.

use mlua::{Lua, LuaString, MultiValue, Result, Table, Value};

use super::{DEPTH_MAX, InvalidNumbers, Options};
use crate::args::name_of;
use crate::number::format_general;
use crate::raise::{bad_argument, raise};

/// Maximum length of a text: a table that contains another one twice can be written as a text much larger than itself.
const TEXT_BYTES_MAX: usize = 32 << 20;

pub(super) fn encode(lua: &Lua, args: &MultiValue, options: &Options) -> Result<LuaString> {
    if args.len() != 1 {
        return Err(bad_argument(lua, 1, "encode", "expected 1 argument"));
    }
    let mut encoder = Encoder { lua, options, text: Vec::new() };
    encoder.value(&args[0], 0)?;
    lua.create_string(&encoder.text)
}

struct Encoder<'a> {
    lua: &'a Lua,
    options: &'a Options,
    text: Vec<u8>,
}

impl Encoder<'_> {
    fn refused(&self, value: &Value, why: &str) -> mlua::Error {
        raise(self.lua, format!("Cannot serialise {}: {why}", name_of(value)))
    }

    fn value(&mut self, value: &Value, depth: usize) -> Result<()> {
        if self.text.len() > TEXT_BYTES_MAX {
            return Err(raise(self.lua, "Cannot serialise, the text is too long"));
        }
        match value {
            Value::Nil => self.text.extend(b"null"),
            Value::Boolean(true) => self.text.extend(b"true"),
            Value::Boolean(false) => self.text.extend(b"false"),
            Value::LightUserData(data) if data.0.is_null() => self.text.extend(b"null"),
            Value::Integer(number) => self.number(*number as f64, value)?,
            Value::Number(number) => self.number(*number, value)?,
            Value::String(text) => self.string(&text.as_bytes()),
            Value::Table(table) => self.table(table, value, depth + 1)?,
            other => return Err(self.refused(other, "type not supported")),
        }
        Ok(())
    }

    fn number(&mut self, number: f64, value: &Value) -> Result<()> {
        if !number.is_finite() {
            match self.options.encode_invalid {
                InvalidNumbers::Refused => {
                    return Err(self.refused(value, "must not be NaN or Inf"));
                }
                InvalidNumbers::Null => {
                    self.text.extend(b"null");
                    return Ok(());
                }
                InvalidNumbers::Allowed => {}
            }
        }
        let precision = usize::try_from(self.options.precision).unwrap_or(14);
        self.text.extend(format_general(number, precision).as_bytes());
        Ok(())
    }

    fn string(&mut self, bytes: &[u8]) {
        self.text.push(b'"');
        for byte in bytes {
            match byte {
                b'"' => self.text.extend(b"\\\""),
                b'\\' => self.text.extend(b"\\\\"),
                b'/' => self.text.extend(b"\\/"),
                8 => self.text.extend(b"\\b"),
                b'\t' => self.text.extend(b"\\t"),
                b'\n' => self.text.extend(b"\\n"),
                12 => self.text.extend(b"\\f"),
                b'\r' => self.text.extend(b"\\r"),
                0..32 | 127 => self.text.extend(format!("\\u{byte:04x}").as_bytes()),
                _ => self.text.push(*byte),
            }
        }
        self.text.push(b'"');
    }

    fn table(&mut self, table: &Table, value: &Value, depth: usize) -> Result<()> {
        let allowed = usize::try_from(self.options.encode_depth).unwrap_or(DEPTH_MAX);
        if depth > allowed.min(DEPTH_MAX) {
            let what = format!("Cannot serialise, excessive nesting ({depth})");
            return Err(raise(self.lua, what));
        }
        match self.array_length(table, value)? {
            Some(length) if length > 0 => self.array(table, length, depth),
            _ => self.object(table, depth),
        }
    }

    /// Returns the greatest index if all keys are indices and not too sparse.
    fn array_length(&self, table: &Table, value: &Value) -> Result<Option<usize>> {
        let (mut max, mut items) = (0.0_f64, 0_i64);
        for pair in table.pairs::<Value, Value>() {
            let index = match pair?.0 {
                Value::Integer(index) => index as f64,
                Value::Number(index) => index,
                _ => return Ok(None),
            };
            if index < 1.0 || index.floor() != index {
                return Ok(None);
            }
            max = max.max(index);
            items += 1;
        }
        let Options { sparse_ratio, sparse_safe, sparse_convert, .. } = self.options;
        let ratio = *sparse_ratio as f64;
        if *sparse_ratio > 0 && max > items as f64 * ratio && max > *sparse_safe as f64 {
            if !sparse_convert {
                return Err(self.refused(value, "excessively sparse array"));
            }
            return Ok(None);
        }
        // The bound on the text's length ends any loop that is too long.
        Ok(Some(max as usize))
    }

    fn array(&mut self, table: &Table, length: usize, depth: usize) -> Result<()> {
        self.text.push(b'[');
        for index in 1..=length {
            if index > 1 {
                self.text.push(b',');
            }
            let element: Value = table.raw_get(index)?;
            self.value(&element, depth)?;
        }
        self.text.push(b']');
        Ok(())
    }

    fn object(&mut self, table: &Table, depth: usize) -> Result<()> {
        self.text.push(b'{');
        let mut is_first = true;
        for pair in table.pairs::<Value, Value>() {
            let (key, element) = pair?;
            if !is_first {
                self.text.push(b',');
            }
            is_first = false;
            match &key {
                Value::String(text) => self.string(&text.as_bytes()),
                Value::Integer(number) => self.number_key(*number as f64, &key)?,
                Value::Number(number) => self.number_key(*number, &key)?,
                _ => return Err(self.refused(&key, "table key must be a number or string")),
            }
            self.text.push(b':');
            self.value(&element, depth)?;
        }
        self.text.push(b'}');
        Ok(())
    }

    fn number_key(&mut self, number: f64, key: &Value) -> Result<()> {
        self.text.push(b'"');
        self.number(number, key)?;
        self.text.push(b'"');
        Ok(())
    }
}

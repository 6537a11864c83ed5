//! Replies of commands as Lua values, and Lua values as the script's reply, by Redis's rules for both.

use mlua::{Error, Lua, Result, Table, Value};
use resp::{Output, Protocol, Reply, ReplyLimits, ReplyParser, Value as Resp};

use crate::number::to_integer;
use crate::raise::error_table;

/// Greatest depth of a script's reply.
const DEPTH_MAX: usize = 200;
/// Maximum length of a script's reply: a table may contain another one many times.
const REPLY_BYTES_MAX: usize = 128 << 20;

/// Returns a command's reply as the script gets it, and empties the output.
pub(crate) fn to_lua(lua: &Lua, output: &mut Output, protocol: Protocol) -> Result<Value> {
    let end = output.mark();
    let mut chunks = output.chunks(end);
    let first = chunks.next().unwrap_or_default();
    let value = match chunks.next() {
        None => parse(lua, first, protocol),
        Some(second) => {
            let mut whole = [first, second].concat();
            chunks.for_each(|chunk| whole.extend_from_slice(chunk));
            parse(lua, &whole, protocol)
        }
    };
    output.clear();
    value
}

fn parse(lua: &Lua, bytes: &[u8], protocol: Protocol) -> Result<Value> {
    if let Some(value) = short(lua, bytes)? {
        return Ok(value);
    }
    let limits = ReplyLimits { depth_max: 64, items_max: u64::MAX };
    let parsed = ReplyParser::with_limits(limits).next(bytes, 0);
    match parsed {
        Ok(Some((value, _))) => convert(lua, value, protocol),
        Ok(None) | Err(_) => Ok(Value::Nil),
    }
}

/// Converts the most frequent replies at once: a bulk string and a small integer.
fn short(lua: &Lua, bytes: &[u8]) -> Result<Option<Value>> {
    let Some((kind, rest)) = bytes.split_first() else { return Ok(Some(Value::Nil)) };
    let Some(end) = rest.iter().take(20).position(|byte| *byte == b'\r') else { return Ok(None) };
    let Some(number) = resp::parse_integer(&rest[..end]) else { return Ok(None) };
    match kind {
        b':' => Ok(Some(number_value(number))),
        b'$' => match usize::try_from(number) {
            Ok(length) => {
                let text = rest.get(end + 2..end + 2 + length).unwrap_or_default();
                Ok(Some(Value::String(lua.create_string(text)?)))
            }
            Err(_) => Ok(Some(Value::Boolean(false))),
        },
        _ => Ok(None),
    }
}

fn number_value(number: i64) -> Value {
    Value::Number(number as f64)
}

fn single(lua: &Lua, field: &str, value: Value) -> Result<Value> {
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set(field, value)?;
    Ok(Value::Table(table))
}

fn convert(lua: &Lua, reply: Resp, protocol: Protocol) -> Result<Value> {
    let text = |text: &[u8]| lua.create_string(text).map(Value::String);
    Ok(match reply {
        Resp::Simple(status) => single(lua, "ok", text(&status)?)?,
        Resp::Error(error) => {
            error_table(lua, &crate::raise::with_code(&[b"-", &error[..]].concat()))?
        }
        Resp::Integer(number) => number_value(number),
        Resp::Bulk(bytes) => text(&bytes)?,
        // RESP3 has a null of its own, which is nil.
        Resp::Null if protocol == Protocol::Resp3 => Value::Nil,
        Resp::Null => Value::Boolean(false),
        Resp::Array(items) | Resp::Push(items) => {
            let table = lua.create_table_with_capacity(items.len(), 0)?;
            for (index, item) in items.into_iter().enumerate() {
                table.raw_set(index + 1, convert(lua, item, protocol)?)?;
            }
            Value::Table(table)
        }
        Resp::Map(pairs) => {
            let map = lua.create_table_with_capacity(0, pairs.len())?;
            for (key, value) in pairs {
                map.raw_set(convert(lua, key, protocol)?, convert(lua, value, protocol)?)?;
            }
            single(lua, "map", Value::Table(map))?
        }
        Resp::Set(items) => {
            let set = lua.create_table_with_capacity(0, items.len())?;
            for item in items {
                set.raw_set(convert(lua, item, protocol)?, true)?;
            }
            single(lua, "set", Value::Table(set))?
        }
        Resp::Double(number) => single(lua, "double", Value::Number(number))?,
        Resp::Boolean(truth) => Value::Boolean(truth),
        Resp::BigNumber(digits) => single(lua, "big_number", text(&digits)?)?,
        Resp::Verbatim { format, text: bytes } => {
            let parts = lua.create_table_with_capacity(0, 2)?;
            parts.raw_set("format", text(&format)?)?;
            parts.raw_set("string", text(&bytes)?)?;
            single(lua, "verbatim_string", Value::Table(parts))?
        }
        Resp::Attribute { value, .. } => convert(lua, *value, protocol)?,
    })
}

/// Writes a value as the script's reply.
pub(crate) struct Writer<'r, 'o> {
    reply: &'r mut Reply<'o>,
    /// The protocol that the script has chosen: with RESP3, `true` and `false` are booleans.
    protocol: Protocol,
    length_max: usize,
}

impl<'r, 'o> Writer<'r, 'o> {
    pub(crate) fn new(reply: &'r mut Reply<'o>, protocol: Protocol) -> Writer<'r, 'o> {
        let length_max = reply.output().len() + REPLY_BYTES_MAX;
        Writer { reply, protocol, length_max }
    }

    pub(crate) fn write(&mut self, value: &Value, depth: usize) -> Result<()> {
        if depth > DEPTH_MAX {
            self.reply.error("ERR reached lua stack limit");
            return Ok(());
        }
        // A table that holds itself many times would go on for ever.
        if self.reply.output().len() > self.length_max {
            return Err(Error::runtime("ERR the reply of the script is too long"));
        }
        match value {
            Value::String(text) => self.reply.bulk(&text.as_bytes()),
            Value::Integer(number) => self.reply.integer(*number),
            Value::Number(number) => self.reply.integer(to_integer(*number)),
            Value::Boolean(truth) if self.protocol == Protocol::Resp3 => self.reply.boolean(*truth),
            Value::Boolean(true) => self.reply.integer(1),
            Value::Table(table) => self.table(table, depth)?,
            _ => self.reply.null(),
        }
        Ok(())
    }

    fn table(&mut self, table: &Table, depth: usize) -> Result<()> {
        if let Value::String(error) = table.raw_get("err")? {
            self.reply.error(&*error.as_bytes());
            return Ok(());
        }
        if let Value::String(status) = table.raw_get("ok")? {
            self.reply.simple(&String::from_utf8_lossy(&status.as_bytes()));
            return Ok(());
        }
        match table.raw_get("double")? {
            Value::Number(number) => return self.double(number),
            Value::Integer(number) => return self.double(number as f64),
            _ => {}
        }
        if let Value::Table(map) = table.raw_get("map")? {
            return self.map(&map, depth);
        }
        if let Value::Table(set) = table.raw_get("set")? {
            return self.set(&set, depth);
        }
        if let Value::String(digits) = table.raw_get("big_number")? {
            self.reply.big_number(&digits.to_string_lossy().replace(['\r', '\n'], " "));
            return Ok(());
        }
        if let Value::Table(parts) = table.raw_get("verbatim_string")? {
            let (format, text) = (parts.raw_get("format")?, parts.raw_get("string")?);
            if let (Value::String(format), Value::String(text)) = (format, text)
                && let Ok(format) = format.to_str()
                && format.len() == 3
            {
                self.reply.verbatim(&format, &text.as_bytes());
                return Ok(());
            }
        }
        self.array(table, depth)
    }

    fn double(&mut self, number: f64) -> Result<()> {
        self.reply.double(number);
        Ok(())
    }

    fn array(&mut self, table: &Table, depth: usize) -> Result<()> {
        let mut length = 0;
        while !table.raw_get::<Value>(length + 1)?.is_nil() {
            length += 1;
        }
        self.reply.array(length);
        for index in 1..=length {
            let element: Value = table.raw_get(index)?;
            self.write(&element, depth + 1)?;
        }
        Ok(())
    }

    fn map(&mut self, map: &Table, depth: usize) -> Result<()> {
        let mut pairs = Vec::new();
        for pair in map.pairs::<Value, Value>() {
            pairs.push(pair?);
        }
        self.reply.map(pairs.len());
        for (key, value) in &pairs {
            self.write(key, depth + 1)?;
            self.write(value, depth + 1)?;
        }
        Ok(())
    }

    fn set(&mut self, set: &Table, depth: usize) -> Result<()> {
        let mut members = Vec::new();
        for pair in set.pairs::<Value, Value>() {
            members.push(pair?.0);
        }
        self.reply.set(members.len());
        members.iter().try_for_each(|member| self.write(member, depth + 1))
    }
}

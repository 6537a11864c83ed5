//! The library `cmsgpack`: MessagePack as lua-cmsgpack 0.4.0 reads and writes it.

use mlua::{IntoLua, Lua, LuaString, MultiValue, Result, Table, Value};

use crate::args::{integer, string};
use crate::raise::{Raised, bad_argument, raise};

/// Deeper tables are packed as nil.
const PACK_DEPTH_MAX: usize = 16;
/// Greatest depth of unpacked tables: unpacking is recursive.
const UNPACK_DEPTH_MAX: usize = 1000;
/// Maximum length of a packed string: a table may contain another one many times.
const PACKED_BYTES_MAX: usize = 128 << 20;
/// Lua's stack takes a few thousand results of a function.
const RESULTS_MAX: usize = 7000;

fn pack(lua: &Lua, args: &MultiValue) -> Result<LuaString> {
    if args.is_empty() {
        return Err(bad_argument(lua, 0, "pack", "MessagePack pack needs input."));
    }
    let mut packed = Vec::new();
    for value in args {
        put(lua, &mut packed, value, 0)?;
    }
    lua.create_string(packed)
}

fn put(lua: &Lua, packed: &mut Vec<u8>, value: &Value, depth: usize) -> Result<()> {
    if packed.len() > PACKED_BYTES_MAX {
        return Err(raise(lua, "the result is too long"));
    }
    match value {
        Value::String(text) => put_string(packed, &text.as_bytes()),
        Value::Boolean(truth) => packed.push(if *truth { 0xc3 } else { 0xc2 }),
        Value::Integer(number) => put_integer(packed, *number),
        Value::Number(number) => put_number(packed, *number),
        Value::Table(table) if depth < PACK_DEPTH_MAX => put_table(lua, packed, table, depth)?,
        _ => packed.push(0xc0),
    }
    Ok(())
}

/// Appends a length behind the smallest of these tags: (tag, greatest length, bytes of the length).
fn put_length(packed: &mut Vec<u8>, length: usize, forms: &[(u8, usize, usize)]) {
    for (tag, max, bytes) in forms {
        if length <= *max {
            packed.push(*tag);
            packed.extend_from_slice(&length.to_be_bytes()[8 - bytes..]);
            return;
        }
    }
}

fn put_string(packed: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        length @ 0..32 => packed.push(0xa0 | length as u8),
        length => put_length(
            packed,
            length,
            &[(0xd9, 0xff, 1), (0xda, 0xffff, 2), (0xdb, 0xffff_ffff, 4)],
        ),
    }
    packed.extend_from_slice(text);
}

fn put_number(packed: &mut Vec<u8>, number: f64) {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let is_integer = (-LIMIT..LIMIT).contains(&number) && number.trunc() == number;
    if is_integer {
        return put_integer(packed, crate::number::to_integer(number));
    }
    let short = number as f32;
    if f64::from(short) == number {
        packed.push(0xca);
        packed.extend(short.to_be_bytes());
    } else {
        packed.push(0xcb);
        packed.extend(number.to_be_bytes());
    }
}

fn put_integer(packed: &mut Vec<u8>, number: i64) {
    let bytes = number.to_be_bytes();
    let (tag, count) = match number {
        -32..=127 => return packed.push(number as u8),
        128..=0xff => (0xcc, 1),
        0x100..=0xffff => (0xcd, 2),
        0x1_0000..=0xffff_ffff => (0xce, 4),
        0x1_0000_0000.. => (0xcf, 8),
        -0x80..-32 => (0xd0, 1),
        -0x8000..-0x80 => (0xd1, 2),
        -0x8000_0000..-0x8000 => (0xd2, 4),
        _ => (0xd3, 8),
    };
    packed.push(tag);
    packed.extend_from_slice(&bytes[8 - count..]);
}

fn put_table(lua: &Lua, packed: &mut Vec<u8>, table: &Table, depth: usize) -> Result<()> {
    let mut pairs = Vec::new();
    let mut max = 0.0_f64;
    let mut is_array = true;
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        let index = match key {
            Value::Integer(index) => index as f64,
            Value::Number(index) => index,
            _ => 0.0,
        };
        is_array &= index >= 1.0 && index.floor() == index;
        max = max.max(index);
        pairs.push((key, value));
    }
    if is_array && max == pairs.len() as f64 {
        match pairs.len() {
            length @ 0..16 => packed.push(0x90 | length as u8),
            length => put_length(packed, length, &[(0xdc, 0xffff, 2), (0xdd, 0xffff_ffff, 4)]),
        }
        for index in 1..=pairs.len() {
            let element: Value = table.raw_get(index)?;
            put(lua, packed, &element, depth + 1)?;
        }
    } else {
        match pairs.len() {
            length @ 0..16 => packed.push(0x80 | length as u8),
            length => put_length(packed, length, &[(0xde, 0xffff, 2), (0xdf, 0xffff_ffff, 4)]),
        }
        for (key, value) in &pairs {
            put(lua, packed, key, depth + 1)?;
            put(lua, packed, value, depth + 1)?;
        }
    }
    Ok(())
}

/// Reads packed values.
struct Unpacker<'a> {
    lua: &'a Lua,
    rest: &'a [u8],
}

impl<'a> Unpacker<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            return Err(raise(self.lua, "Missing bytes in input."));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// Reads an unsigned number of this many bytes.
    fn unsigned(&mut self, count: usize) -> Result<u64> {
        Ok(self.take(count)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// Reads a signed number of this many bytes.
    fn signed(&mut self, count: usize) -> Result<Value> {
        let shift = 64 - 8 * count;
        let number = (self.unsigned(count)? << shift).cast_signed() >> shift;
        Ok(Value::Number(number as f64))
    }

    fn length(&mut self, bytes: usize) -> Result<usize> {
        Ok(usize::try_from(self.unsigned(bytes)?).unwrap_or(usize::MAX))
    }

    fn text(&mut self, length: usize) -> Result<Value> {
        self.lua.create_string(self.take(length)?)?.into_lua(self.lua)
    }

    fn value(&mut self, depth: usize) -> Result<Value> {
        let tag = self.take(1)?[0];
        Ok(match tag {
            0x00..=0x7f => Value::Number(f64::from(tag)),
            0xe0..=0xff => Value::Number(f64::from(tag.cast_signed())),
            0xc0 => Value::Nil,
            0xc2 | 0xc3 => Value::Boolean(tag == 0xc3),
            0xcc..=0xcf => Value::Number(self.unsigned(1 << (tag - 0xcc))? as f64),
            0xd0..=0xd3 => self.signed(1 << (tag - 0xd0))?,
            0xca => {
                let bytes = self.take(4)?;
                Value::Number(f64::from(f32::from_be_bytes([
                    bytes[0], bytes[1], bytes[2], bytes[3],
                ])))
            }
            0xcb => Value::Number(f64::from_bits(self.unsigned(8)?)),
            0xa0..=0xbf => self.text(usize::from(tag & 31))?,
            0xd9..=0xdb => self.counted_text(1 << (tag - 0xd9))?,
            0x90..=0x9f => self.array(usize::from(tag & 15), depth)?,
            0xdc | 0xdd => {
                let length = self.length(if tag == 0xdc { 2 } else { 4 })?;
                self.array(length, depth)?
            }
            0x80..=0x8f => self.map(usize::from(tag & 15), depth)?,
            0xde | 0xdf => {
                let length = self.length(if tag == 0xde { 2 } else { 4 })?;
                self.map(length, depth)?
            }
            // Also `bin`, which lua-cmsgpack does not know.
            0xc1 | 0xc4..=0xc9 | 0xd4..=0xd8 => {
                return Err(raise(self.lua, "Bad data format in input."));
            }
        })
    }

    fn counted_text(&mut self, bytes: usize) -> Result<Value> {
        let length = self.length(bytes)?;
        self.text(length)
    }

    fn check_depth(&self, depth: usize) -> Result<()> {
        if depth < UNPACK_DEPTH_MAX {
            return Ok(());
        }
        Err(raise(self.lua, "stack overflow (in function mp_decode_to_lua_type)"))
    }

    fn array(&mut self, length: usize, depth: usize) -> Result<Value> {
        self.check_depth(depth)?;
        let table = self.lua.create_table()?;
        for index in 1..=length {
            table.raw_set(index, self.value(depth + 1)?)?;
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, length: usize, depth: usize) -> Result<Value> {
        self.check_depth(depth)?;
        let table = self.lua.create_table()?;
        for _ in 0..length {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            match key {
                Value::Nil => return Err(Raised::Text(b"table index is nil".to_vec()).into()),
                Value::Number(number) if number.is_nan() => {
                    return Err(Raised::Text(b"table index is NaN".to_vec()).into());
                }
                key => table.raw_set(key, value)?,
            }
        }
        Ok(Value::Table(table))
    }
}

/// Unpacks at most `limit` values from `offset` on; without a limit all of them.
fn unpack(
    lua: &Lua,
    args: &MultiValue,
    function: &str,
    limit: Option<i64>,
    offset: i64,
) -> Result<MultiValue> {
    let data = string(lua, args, 0, function)?;
    let data = data.as_bytes();
    let length = data.len();
    let (Ok(from), Ok(count)) = (usize::try_from(offset), usize::try_from(limit.unwrap_or(0)))
    else {
        let what =
            format!("Invalid request to unpack with offset of {offset} and limit of {length}.");
        return Err(raise(lua, what));
    };
    if from > length {
        let what = format!("Start offset {from} greater than input length {length}.");
        return Err(raise(lua, what));
    }
    let mut unpacker = Unpacker { lua, rest: &data[from..] };
    let mut values = Vec::new();
    while !unpacker.rest.is_empty() && limit.is_none_or(|_| values.len() < count) {
        if values.len() >= RESULTS_MAX {
            return Err(raise(lua, "stack overflow (in function mp_unpack_full)"));
        }
        values.push(unpacker.value(0)?);
    }
    if limit.is_some() {
        let rest = unpacker.rest.len();
        let next = if rest == 0 { -1.0 } else { (length - rest) as f64 };
        values.insert(0, Value::Number(next));
    }
    Ok(MultiValue::from_vec(values))
}

/// Returns an optional integer argument.
fn optional(lua: &Lua, args: &MultiValue, index: usize, function: &str) -> Result<i64> {
    match args.get(index) {
        None | Some(Value::Nil) => Ok(0),
        Some(_) => integer(lua, args, index, function),
    }
}

pub(crate) fn library(lua: &Lua) -> Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    table.raw_set("pack", lua.create_function(|lua, args: MultiValue| pack(lua, &args))?)?;
    let all = |lua: &Lua, args: MultiValue| unpack(lua, &args, "unpack", None, 0);
    table.raw_set("unpack", lua.create_function(all)?)?;
    let one = |lua: &Lua, args: MultiValue| {
        let offset = optional(lua, &args, 1, "unpack_one")?;
        unpack(lua, &args, "unpack_one", Some(1), offset)
    };
    table.raw_set("unpack_one", lua.create_function(one)?)?;
    let some = |lua: &Lua, args: MultiValue| {
        let limit = integer(lua, &args, 1, "unpack_limit")?;
        let offset = optional(lua, &args, 2, "unpack_limit")?;
        unpack(lua, &args, "unpack_limit", Some(limit), offset)
    };
    table.raw_set("unpack_limit", lua.create_function(some)?)?;
    Ok(table)
}

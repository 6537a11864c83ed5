//! The library `cjson`: JSON as Lua CJSON 2.1.0 reads and writes it. Its options hold for one script.

mod decode; // Text to values.
mod encode; // Values to text.
mod strtod; // The C library's reading of numbers.

use core::cell::Cell;
use std::rc::Rc;

use mlua::{Lua, MultiValue, Result, Table, Value};

use crate::args::integer;
use crate::raise::bad_argument;

/// Greatest depth of either direction, whatever a script asks for: both are recursive.
const DEPTH_MAX: usize = 1000;

/// The treatment of numbers that JSON does not have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InvalidNumbers {
    Refused,
    Allowed,
    Null,
}

impl InvalidNumbers {
    fn value(self, lua: &Lua) -> Result<Value> {
        Ok(match self {
            InvalidNumbers::Refused => Value::Boolean(false),
            InvalidNumbers::Allowed => Value::Boolean(true),
            InvalidNumbers::Null => Value::String(lua.create_string("null")?),
        })
    }
}

/// The options of a copy of the library.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    encode_depth: i64,
    decode_depth: i64,
    sparse_convert: bool,
    sparse_ratio: i64,
    sparse_safe: i64,
    precision: i64,
    keep_buffer: bool,
    encode_invalid: InvalidNumbers,
    decode_invalid: InvalidNumbers,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            encode_depth: 1000,
            decode_depth: 1000,
            sparse_convert: false,
            sparse_ratio: 2,
            sparse_safe: 10,
            precision: 14,
            keep_buffer: true,
            encode_invalid: InvalidNumbers::Refused,
            decode_invalid: InvalidNumbers::Allowed,
        }
    }
}

/// The options of one copy, shared by its functions.
pub(crate) type Shared = Rc<Cell<Options>>;

/// Creates the library, which begins with these options.
pub(crate) fn library(lua: &Lua, options: &Shared) -> Result<Table> {
    let cjson = lua.create_table()?;
    cjson.raw_set("_NAME", "cjson")?;
    cjson.raw_set("_VERSION", "2.1.0")?;
    cjson.raw_set("null", Value::NULL)?;
    let own = Rc::clone(options);
    let function =
        lua.create_function(move |lua, args: MultiValue| encode::encode(lua, &args, &own.get()))?;
    cjson.raw_set("encode", function)?;
    let own = Rc::clone(options);
    let function =
        lua.create_function(move |lua, args: MultiValue| decode::decode(lua, &args, &own.get()))?;
    cjson.raw_set("decode", function)?;
    numbers(lua, &cjson, options)?;
    invalid_numbers(lua, &cjson, options)?;
    let own = Rc::clone(options);
    let function =
        lua.create_function(move |lua, args: MultiValue| sparse_array(lua, &args, &own))?;
    cjson.raw_set("encode_sparse_array", function)?;
    let own = Rc::clone(options);
    let keep = lua.create_function(move |lua, args: MultiValue| {
        let mut options = own.get();
        if let Some(value) = argument(lua, &args, 1, 0, "encode_keep_buffer")? {
            options.keep_buffer = choice(lua, value, "encode_keep_buffer", 1)?;
        }
        own.set(options);
        Ok(options.keep_buffer)
    })?;
    cjson.raw_set("encode_keep_buffer", keep)?;
    let new = lua.create_function(|lua, _: MultiValue| {
        library(lua, &Rc::new(Cell::new(Options::default())))
    })?;
    cjson.raw_set("new", new)?;
    Ok(cjson)
}

/// Adds the functions that set a number.
fn numbers(lua: &Lua, cjson: &Table, options: &Shared) -> Result<()> {
    type Field = fn(&mut Options) -> &mut i64;
    let fields: [(&'static str, Field, i64, i64); 3] = [
        ("encode_max_depth", |options| &mut options.encode_depth, 1, i64::from(i32::MAX)),
        ("decode_max_depth", |options| &mut options.decode_depth, 1, i64::from(i32::MAX)),
        ("encode_number_precision", |options| &mut options.precision, 1, 14),
    ];
    for (name, field, min, max) in fields {
        let own = Rc::clone(options);
        let function = lua.create_function(move |lua, args: MultiValue| {
            let mut options = own.get();
            if argument(lua, &args, 1, 0, name)?.is_some() {
                *field(&mut options) = within(lua, &args, 0, name, min, max)?;
            }
            own.set(options);
            Ok(*field(&mut options))
        })?;
        cjson.raw_set(name, function)?;
    }
    Ok(())
}

/// Adds the functions about numbers that JSON does not have.
fn invalid_numbers(lua: &Lua, cjson: &Table, options: &Shared) -> Result<()> {
    type Field = fn(&mut Options) -> &mut InvalidNumbers;
    let fields: [(&'static str, Field, bool); 2] = [
        ("encode_invalid_numbers", |options| &mut options.encode_invalid, true),
        ("decode_invalid_numbers", |options| &mut options.decode_invalid, false),
    ];
    for (name, field, knows_null) in fields {
        let own = Rc::clone(options);
        let function = lua.create_function(move |lua, args: MultiValue| {
            let mut options = own.get();
            if let Some(value) = argument(lua, &args, 1, 0, name)? {
                let is_null = matches!(value, Value::String(text) if *text.as_bytes() == *b"null");
                *field(&mut options) = if is_null && knows_null {
                    InvalidNumbers::Null
                } else if choice(lua, value, name, 1)? {
                    InvalidNumbers::Allowed
                } else {
                    InvalidNumbers::Refused
                };
            }
            own.set(options);
            field(&mut options).value(lua)
        })?;
        cjson.raw_set(name, function)?;
    }
    Ok(())
}

fn sparse_array(lua: &Lua, args: &MultiValue, own: &Shared) -> Result<(bool, i64, i64)> {
    const NAME: &str = "encode_sparse_array";
    const MAX: i64 = i32::MAX as i64;
    let mut options = own.get();
    if let Some(value) = argument(lua, args, 3, 0, NAME)? {
        options.sparse_convert = choice(lua, value, NAME, 1)?;
    }
    if argument(lua, args, 3, 1, NAME)?.is_some() {
        options.sparse_ratio = within(lua, args, 1, NAME, 0, MAX)?;
    }
    if argument(lua, args, 3, 2, NAME)?.is_some() {
        options.sparse_safe = within(lua, args, 2, NAME, 0, MAX)?;
    }
    own.set(options);
    Ok((options.sparse_convert, options.sparse_ratio, options.sparse_safe))
}

/// Returns an argument unless it is nil or missing; a call with more than `max` is an error.
fn argument<'a>(
    lua: &Lua,
    args: &'a MultiValue,
    max: usize,
    index: usize,
    name: &str,
) -> Result<Option<&'a Value>> {
    if args.len() > max {
        return Err(bad_argument(lua, max + 1, name, "found too many arguments"));
    }
    Ok(args.get(index).filter(|value| !value.is_nil()))
}

fn within(
    lua: &Lua,
    args: &MultiValue,
    index: usize,
    name: &str,
    min: i64,
    max: i64,
) -> Result<i64> {
    let number = integer(lua, args, index, name)?;
    if (min..=max).contains(&number) {
        return Ok(number);
    }
    let what = format!("expected integer between {min} and {max}");
    Err(bad_argument(lua, index + 1, name, &what))
}

/// Returns a truth value, which may also be written as `on` or `off`.
fn choice(lua: &Lua, value: &Value, name: &str, number: usize) -> Result<bool> {
    match value {
        Value::Boolean(truth) => Ok(*truth),
        Value::String(text) if *text.as_bytes() == *b"on" => Ok(true),
        Value::String(text) if *text.as_bytes() == *b"off" => Ok(false),
        Value::String(text) => {
            let what = format!("invalid option '{}'", text.to_string_lossy());
            Err(bad_argument(lua, number, name, &what))
        }
        other => {
            let got = crate::args::name_of(other);
            Err(bad_argument(lua, number, name, &format!("string expected, got {got}")))
        }
    }
}

//! Arguments of our functions, with the errors that Lua's own functions raise.

use mlua::{Lua, LuaString, MultiValue, Result, Value};

use crate::number::to_integer;
use crate::raise::bad_argument;

fn type_name(args: &MultiValue, index: usize) -> &'static str {
    args.get(index).map_or("no value", name_of)
}

/// Returns the name of a value's type as Lua has it.
pub(crate) fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Nil => "nil",
        Value::Boolean(_) => "boolean",
        Value::LightUserData(_) | Value::UserData(_) | Value::Error(_) => "userdata",
        Value::Integer(_) | Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Table(_) => "table",
        Value::Function(_) => "function",
        Value::Thread(_) => "thread",
        _ => "userdata",
    }
}

fn expected(lua: &Lua, args: &MultiValue, index: usize, function: &str, what: &str) -> mlua::Error {
    let got = type_name(args, index);
    bad_argument(lua, index + 1, function, &format!("{what} expected, got {got}"))
}

/// Returns the argument at `index` as a number, as `luaL_checknumber` does.
pub(crate) fn number(lua: &Lua, args: &MultiValue, index: usize, function: &str) -> Result<f64> {
    let found = match args.get(index) {
        Some(Value::Integer(number)) => Some(*number as f64),
        Some(Value::Number(number)) => Some(*number),
        Some(value @ Value::String(_)) => lua.coerce_number(value.clone())?,
        _ => None,
    };
    found.ok_or_else(|| expected(lua, args, index, function, "number"))
}

/// Returns the argument at `index` as an integer, as `luaL_checkinteger` does.
pub(crate) fn integer(lua: &Lua, args: &MultiValue, index: usize, function: &str) -> Result<i64> {
    number(lua, args, index, function).map(to_integer)
}

/// Returns the argument at `index` as a string, as `luaL_checklstring` does.
pub(crate) fn string(
    lua: &Lua,
    args: &MultiValue,
    index: usize,
    function: &str,
) -> Result<LuaString> {
    let found = match args.get(index) {
        Some(Value::String(string)) => Some(string.clone()),
        Some(value @ (Value::Integer(_) | Value::Number(_))) => lua.coerce_string(value.clone())?,
        _ => None,
    };
    found.ok_or_else(|| expected(lua, args, index, function, "string"))
}

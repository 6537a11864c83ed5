//! The globals of scripts: what stock Lua has, without everything that reaches the process or outlives the script.
//! All tables that scripts share are read-only.

use std::rc::Rc;

use mlua::{Function, IntoLua, Lua, MultiValue, Result, Table, Value};

use crate::args::{integer, name_of, string};
use crate::number::to_integer;
use crate::raise::{Raised, bad_argument, plain_text, position, raise, raised, visible};
use crate::state::State;
use crate::{bit, cjson, cmsgpack, random, redis, structs};

/// Maximum length of a text that a script compiles itself.
const CHUNK_BYTES_MAX: usize = 1 << 20;

/// Globals of stock Lua that scripts do not have.
const REMOVED: [&str; 11] = [
    "dofile", "loadfile", "print", "require", "module", "package", "newproxy", "getfenv",
    "setfenv", "readonly", "io",
];

/// The parts of `pcall` and its like that must be Lua: they pass any number of values on. Errors go through `caught`,
/// which raises again what a script must not catch.
const GUARDS: &str = r#"
local raw_pcall, raw_xpcall, raw_resume, caught, misused = ...
local select, type = select, type
local function settle(ok, ...)
  if ok then return true, ... end
  return false, caught((...))
end
-- Of an error table, pcall returns the text, as in Redis.
local function settle_text(ok, ...)
  if ok then return true, ... end
  local err = caught((...))
  if type(err) == 'table' and type(err.err) == 'string' then err = err.err end
  return false, err
end
local function pcall(...)
  if select('#', ...) == 0 then return false, "bad argument #1 to 'pcall' (value expected)" end
  return settle_text(raw_pcall(...))
end
local function xpcall(...)
  if select('#', ...) < 2 then misused(2, "bad argument #2 to 'xpcall' (value expected)") end
  local f, handler = ...
  return settle(raw_xpcall(f, function(err) return handler(caught(err)) end))
end
local function resume(thread, ...)
  if type(thread) ~= 'thread' then misused(2, "bad argument #1 to 'resume' (coroutine expected)") end
  return settle(raw_resume(thread, ...))
end
return pcall, xpcall, resume
"#;

/// Runs a script: sets its arguments, calls it, and describes its error.
const RUNNER: &str = r#"
local raw_xpcall, readonly, globals, describe = ...
return function(script, keys, argv)
  readonly(globals, false)
  globals.KEYS = keys
  globals.ARGV = argv
  readonly(globals, true)
  return raw_xpcall(script, describe)
end
"#;

/// Makes the globals those of scripts, and returns the function that runs a script.
pub(crate) fn install(lua: &Lua, state: &Rc<State>) -> Result<Function> {
    let globals = lua.globals();
    let readonly: Function = globals.raw_get("readonly")?;
    let raw_xpcall: Function = globals.raw_get("xpcall")?;
    guard_errors(lua, state, &globals)?;
    globals.raw_set("load", lua.create_function(|lua, args| load(lua, &args))?)?;
    globals.raw_set("loadstring", lua.create_function(|lua, args| load_string(lua, &args))?)?;
    globals.raw_set("collectgarbage", lua.create_function(|lua, args| collect(lua, &args))?)?;
    for name in REMOVED {
        globals.raw_set(name, Value::Nil)?;
    }
    let os: Table = globals.raw_get("os")?;
    let clock: Function = os.raw_get("clock")?;
    globals.raw_set("os", lua.create_table_from([("clock", clock)])?)?;
    random::install(lua, &globals.raw_get("math")?)?;
    globals.raw_set("cjson", cjson::library(lua, &state.cjson)?)?;
    globals.raw_set("cmsgpack", cmsgpack::library(lua)?)?;
    globals.raw_set("struct", structs::library(lua)?)?;
    globals.raw_set("bit", bit::library(lua)?)?;
    let redis = redis::library(lua, state)?;
    globals.raw_set("redis", &redis)?;
    globals.raw_set("server", redis)?;
    protect(lua, &globals, &readonly)?;
    let describe = lua.create_function(|lua, error: Value| describe(lua, &error))?;
    let runner = lua.load(RUNNER).set_name("=runner").into_function()?;
    runner.call((raw_xpcall, readonly, globals, describe))
}

fn guard_errors(lua: &Lua, state: &Rc<State>, globals: &Table) -> Result<()> {
    let coroutine: Table = globals.raw_get("coroutine")?;
    let own = Rc::clone(state);
    let caught = lua.create_function(move |lua, error: Value| {
        if own.stop.get().is_some() {
            return Err(Raised::Stop.into());
        }
        visible(lua, error)
    })?;
    let misused = lua.create_function(|lua, (level, text): (usize, String)| -> Result<()> {
        let mut full = position(lua, level);
        full.extend_from_slice(text.as_bytes());
        Err(Raised::Text(full).into())
    })?;
    let raw: (Function, Function, Function) =
        (globals.raw_get("pcall")?, globals.raw_get("xpcall")?, coroutine.raw_get("resume")?);
    let guards = lua.load(GUARDS).set_name("=guards").into_function()?;
    let (pcall, xpcall, resume): (Function, Function, Function) =
        guards.call((raw.0, raw.1, raw.2, caught, misused))?;
    globals.raw_set("pcall", pcall)?;
    globals.raw_set("xpcall", xpcall)?;
    coroutine.raw_set("resume", resume)
}

/// Makes the globals, their tables and the metatable of strings read-only; reading a missing global is an error.
fn protect(lua: &Lua, globals: &Table, readonly: &Function) -> Result<()> {
    let missing = lua.create_function(|lua, (_, name): (Value, Value)| -> Result<()> {
        let name = lua.coerce_string(name)?.map(|name| name.to_string_lossy()).unwrap_or_default();
        let what = format!("Script attempted to access nonexistent global variable '{name}'");
        Err(raise(lua, what))
    })?;
    let metatable = lua.create_table_from([("__index", missing)])?;
    globals.set_metatable(Some(metatable.clone()))?;
    readonly.call::<()>((metatable, true))?;
    for pair in globals.pairs::<Value, Value>() {
        if let (_, Value::Table(table)) = pair?
            && table != *globals
        {
            readonly.call::<()>((table, true))?;
        }
    }
    let metatable_of: Function = globals.raw_get("getmetatable")?;
    let of_strings: Table = metatable_of.call("")?;
    readonly.call::<()>((of_strings, true))?;
    readonly.call::<()>((globals, true))
}

/// Returns an error with its text and its place, as a table: the handler of a script's errors.
fn describe(lua: &Lua, error: &Value) -> Result<Table> {
    let described = lua.create_table_with_capacity(0, 3)?;
    let text = match error {
        Value::Error(error) => match raised(error) {
            Some(Raised::Table(text)) => text.clone(),
            Some(Raised::Text(text)) => [b"ERR ", &text[..]].concat(),
            Some(Raised::Stop) => return Ok(described),
            None => format!("ERR {}", plain_text(error)).into_bytes(),
        },
        Value::Table(table) => match lua.coerce_string(table.raw_get("err")?)? {
            Some(text) => text.as_bytes().to_vec(),
            None => b"ERR unknown error".to_vec(),
        },
        other => {
            let text = match lua.coerce_string(other.clone())? {
                Some(text) => text.as_bytes().to_vec(),
                None => text_of(other),
            };
            [b"ERR ", &text[..]].concat()
        }
    };
    described.raw_set("err", lua.create_string(text)?)?;
    // Level 0 is this function. The functions of C between it and the script do not count.
    for level in 1..16 {
        let place = lua.inspect_stack(level, |debug| {
            let source = debug.source();
            let is_ours = source.source.as_deref() == Some("=guards");
            let is_script = source.what != "C" && !is_ours;
            is_script.then(|| (source.source.map(|it| it.into_owned()), debug.current_line()))
        });
        match place {
            Some(None) => {}
            Some(Some((Some(source), Some(line)))) => {
                described.raw_set("source", source)?;
                described.raw_set("line", line)?;
                break;
            }
            Some(Some(_)) | None => break,
        }
    }
    Ok(described)
}

/// Returns a value as `tostring` does, where it has no text.
fn text_of(value: &Value) -> Vec<u8> {
    match value {
        Value::Boolean(truth) => truth.to_string().into_bytes(),
        Value::Nil => b"nil".to_vec(),
        other => format!("{}: {:p}", name_of(other), other.to_pointer()).into_bytes(),
    }
}

/// Compiles a text of the script. On failure returns nil and the reason, as Lua does.
fn compile(lua: &Lua, text: &[u8], name: &[u8]) -> Result<MultiValue> {
    let failed = |why: String| -> Result<MultiValue> {
        Ok(MultiValue::from_vec(vec![Value::Nil, lua.create_string(why)?.into_lua(lua)?]))
    };
    if text.len() > CHUNK_BYTES_MAX {
        return failed(format!("chunk has more than {CHUNK_BYTES_MAX} bytes"));
    }
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    let name = String::from_utf8_lossy(&name[..end]);
    match lua.load(text).set_name(name).set_mode(mlua::chunk::ChunkMode::Text).into_function() {
        Ok(function) => Ok(MultiValue::from_vec(vec![Value::Function(function)])),
        Err(error) => failed(plain_text(&error)),
    }
}

fn load_string(lua: &Lua, args: &MultiValue) -> Result<MultiValue> {
    let text = string(lua, args, 0, "loadstring")?;
    let name = match args.get(1) {
        None | Some(Value::Nil) => text.clone(),
        Some(_) => string(lua, args, 1, "loadstring")?,
    };
    compile(lua, &text.as_bytes(), &name.as_bytes())
}

/// Compiles the text that a function returns piece by piece.
fn load(lua: &Lua, args: &MultiValue) -> Result<MultiValue> {
    let Some(Value::Function(reader)) = args.front() else {
        let got = args.front().map_or("no value", name_of);
        return Err(bad_argument(lua, 1, "load", &format!("function expected, got {got}")));
    };
    let name = match args.get(1) {
        None | Some(Value::Nil) => lua.create_string("=(load)")?,
        Some(_) => string(lua, args, 1, "load")?,
    };
    let mut text = Vec::new();
    while text.len() <= CHUNK_BYTES_MAX {
        let piece = reader.call::<Value>(())?;
        match lua.coerce_string(piece.clone())? {
            Some(piece) if !piece.as_bytes().is_empty() => {
                text.extend_from_slice(&piece.as_bytes());
            }
            Some(_) => break,
            None if piece.is_nil() => break,
            None => return Err(raise(lua, "reader function must return a string")),
        }
    }
    compile(lua, &text, &name.as_bytes())
}

/// Collects garbage or tells the memory in use. Scripts cannot change how the collector works.
fn collect(lua: &Lua, args: &MultiValue) -> Result<f64> {
    let option = match args.front() {
        None | Some(Value::Nil) => lua.create_string("collect")?,
        Some(_) => string(lua, args, 0, "collectgarbage")?,
    };
    let option = option.to_string_lossy();
    match option.as_str() {
        "collect" => lua.gc_collect()?,
        "count" => return Ok(lua.used_memory() as f64 / 1024.0),
        "step" => {
            if args.len() > 1 {
                to_integer(integer(lua, args, 1, "collectgarbage")? as f64);
            }
            return Ok(f64::from(u8::from(lua.gc_step()?)));
        }
        "stop" | "restart" | "setpause" | "setstepmul" => {}
        other => {
            let what = format!("invalid option '{other}'");
            return Err(bad_argument(lua, 1, "collectgarbage", &what));
        }
    }
    Ok(0.0)
}

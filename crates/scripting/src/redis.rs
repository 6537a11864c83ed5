//! The table `redis`, which is also called `server`.

use std::rc::Rc;

use mlua::{IntoLua, Lua, MultiValue, Result, Table, Value};
use resp::Protocol;

use crate::args::integer;
use crate::number::format_general;
use crate::raise::{Raised, error_table, with_code};
use crate::reply::to_lua;
use crate::sha::ScriptId;
use crate::state::{LogLevel, Request, State};

/// The version of Redis whose scripts run here.
const VERSION: &str = "7.2.4";
const VERSION_NUMBER: i64 = 0x0007_0204;
/// Numbers of the log levels.
const LEVELS: [(&str, LogLevel); 4] = [
    ("LOG_DEBUG", LogLevel::Debug),
    ("LOG_VERBOSE", LogLevel::Verbose),
    ("LOG_NOTICE", LogLevel::Notice),
    ("LOG_WARNING", LogLevel::Warning),
];
/// The choices of `set_repl`.
const REPLICATION: [(&str, i64); 5] =
    [("REPL_NONE", 0), ("REPL_AOF", 1), ("REPL_SLAVE", 2), ("REPL_REPLICA", 2), ("REPL_ALL", 3)];

/// Returns an error table's error: it has no position, `redis` errors are about the call.
fn error(text: &str) -> mlua::Error {
    Raised::Table(with_code(text.as_bytes())).into()
}

/// Creates the table.
pub(crate) fn library(lua: &Lua, state: &Rc<State>) -> Result<Table> {
    let redis = lua.create_table()?;
    let own = Rc::clone(state);
    redis.raw_set("call", lua.create_function(move |lua, args| call(lua, &own, &args, true))?)?;
    let own = Rc::clone(state);
    redis.raw_set("pcall", lua.create_function(move |lua, args| call(lua, &own, &args, false))?)?;
    let own = Rc::clone(state);
    let check = lua.create_function(move |_, args| may_run(&own, &args))?;
    redis.raw_set("acl_check_cmd", check)?;
    redis.raw_set("error_reply", lua.create_function(|lua, args| error_reply(lua, &args))?)?;
    redis.raw_set("status_reply", lua.create_function(|lua, args| status_reply(lua, &args))?)?;
    redis.raw_set("sha1hex", lua.create_function(|lua, args| sha1hex(lua, &args))?)?;
    let own = Rc::clone(state);
    redis.raw_set("log", lua.create_function(move |lua, args| log(lua, &own, &args))?)?;
    let own = Rc::clone(state);
    redis.raw_set("setresp", lua.create_function(move |lua, args| set_resp(lua, &own, &args))?)?;
    redis.raw_set("set_repl", lua.create_function(|lua, args| set_repl(lua, &args))?)?;
    // Effects are replicated, always.
    redis.raw_set("replicate_commands", lua.create_function(|_, _: MultiValue| Ok(true))?)?;
    // There is no debugger: SCRIPT DEBUG is refused.
    redis.raw_set("breakpoint", lua.create_function(|_, _: MultiValue| Ok(false))?)?;
    redis.raw_set("debug", lua.create_function(|_, _: MultiValue| Ok(()))?)?;
    redis.raw_set("REDIS_VERSION", VERSION)?;
    redis.raw_set("REDIS_VERSION_NUM", VERSION_NUMBER)?;
    for (number, (name, _)) in LEVELS.iter().enumerate() {
        redis.raw_set(*name, number)?;
    }
    for (name, number) in REPLICATION {
        redis.raw_set(name, number)?;
    }
    Ok(redis)
}

/// Collects the arguments of a command. An error is a text.
fn collect(state: &State, args: &MultiValue) -> core::result::Result<(), &'static str> {
    const WRONG: &str = "Lua redis lib command arguments must be strings or integers";
    if args.is_empty() {
        return Err("Please specify at least one argument for this redis lib call");
    }
    let mut collected = state.args.borrow_mut();
    collected.clear();
    for arg in args {
        let fits = match arg {
            Value::String(text) => collected.push(&text.as_bytes()),
            Value::Integer(number @ -99_999_999_999_999_999..=99_999_999_999_999_999) => {
                collected.push(itoa::Buffer::new().format(*number).as_bytes())
            }
            Value::Integer(number) => collected.push(format_general(*number as f64, 17).as_bytes()),
            Value::Number(number) => collected.push(format_general(*number, 17).as_bytes()),
            _ => return Err(WRONG),
        };
        if !fits {
            return Err("the arguments of a command are too long");
        }
    }
    Ok(())
}

fn call(lua: &Lua, state: &State, args: &MultiValue, raises: bool) -> Result<Value> {
    let value = match collect(state, args) {
        Ok(()) => run(lua, state)?,
        Err(text) => error_table(lua, &with_code(text.as_bytes()))?,
    };
    if raises
        && let Value::Table(table) = &value
        && let Value::String(text) = table.raw_get("err")?
    {
        return Err(Raised::Table(text.as_bytes().to_vec()).into());
    }
    Ok(value)
}

fn run(lua: &Lua, state: &State) -> Result<Value> {
    if state.stop.get().is_some() {
        return Err(Raised::Stop.into());
    }
    let dispatch = state.dispatch.borrow().clone();
    let Some(dispatch) = dispatch else {
        return Err(error("redis.call/pcall can only be called inside a script invocation"));
    };
    dispatch.call::<()>(Request::Run as i64)?;
    if state.stop.get().is_some() {
        return Err(Raised::Stop.into());
    }
    to_lua(lua, &mut state.reply.borrow_mut(), state.protocol.get())
}

fn may_run(state: &State, args: &MultiValue) -> Result<bool> {
    if args.is_empty() {
        return Err(error(
            "Please specify at least one argument for this redis.acl_check_cmd() call",
        ));
    }
    collect(state, args).map_err(|_| {
        error("redis.acl_check_cmd() command arguments must be strings or integers")
    })?;
    let dispatch = state.dispatch.borrow().clone();
    let Some(dispatch) = dispatch else {
        return Err(error("redis.acl_check_cmd() can only be called inside a script invocation"));
    };
    match dispatch.call::<Option<bool>>(Request::MayRun as i64)? {
        Some(may) => Ok(may),
        None => Err(error("Invalid command passed to redis.acl_check_cmd()")),
    }
}

/// Returns the only argument, if it is a string.
fn only_string(args: &MultiValue) -> Option<mlua::LuaString> {
    match args.front() {
        Some(Value::String(text)) if args.len() == 1 => Some(text.clone()),
        _ => None,
    }
}

const WRONG_TYPE: &[u8] = b"ERR wrong number or type of arguments";

fn error_reply(lua: &Lua, args: &MultiValue) -> Result<Value> {
    let Some(text) = only_string(args) else { return error_table(lua, WRONG_TYPE) };
    let text = text.as_bytes();
    let text = text.strip_prefix(b"-").unwrap_or(&text);
    error_table(lua, &with_code(&[b"-", text].concat()))
}

fn status_reply(lua: &Lua, args: &MultiValue) -> Result<Value> {
    let Some(text) = only_string(args) else { return error_table(lua, WRONG_TYPE) };
    let table = lua.create_table_with_capacity(0, 1)?;
    table.raw_set("ok", text)?;
    Ok(Value::Table(table))
}

fn sha1hex(lua: &Lua, args: &MultiValue) -> Result<Value> {
    if args.len() != 1 {
        return Err(error("wrong number of arguments"));
    }
    let text = lua.coerce_string(args[0].clone())?;
    let id = ScriptId::of(&text.map(|text| text.as_bytes().to_vec()).unwrap_or_default());
    lua.create_string(id.text())?.into_lua(lua)
}

fn log(lua: &Lua, state: &State, args: &MultiValue) -> Result<()> {
    if args.len() < 2 {
        return Err(error("redis.log() requires two arguments or more."));
    }
    if !matches!(args[0], Value::Integer(_) | Value::Number(_)) {
        return Err(error("First argument must be a number (log level)."));
    }
    let level = integer(lua, args, 0, "log")?;
    let level = usize::try_from(level).ok().and_then(|level| LEVELS.get(level));
    let Some((_, level)) = level else { return Err(error("Invalid debug level.")) };
    let mut text = Vec::new();
    for arg in args.iter().skip(1) {
        if let Some(part) = lua.coerce_string(arg.clone())? {
            text.extend_from_slice(if text.is_empty() { b"" } else { b" " });
            text.extend_from_slice(&part.as_bytes());
        }
    }
    // The text travels as the only argument of a command.
    let mut line = state.args.borrow_mut();
    line.clear();
    line.push(&text);
    drop(line);
    let dispatch = state.dispatch.borrow().clone();
    let Some(dispatch) = dispatch else { return Ok(()) };
    dispatch.call::<()>(Request::Log as i64 + *level as i64)
}

fn set_resp(lua: &Lua, state: &State, args: &MultiValue) -> Result<()> {
    if args.len() != 1 {
        return Err(error("redis.setresp() requires one argument."));
    }
    let version = lua.coerce_number(args[0].clone())?.map(crate::number::to_integer);
    state.protocol.set(match version {
        Some(2) => Protocol::Resp2,
        Some(3) => Protocol::Resp3,
        _ => return Err(error("RESP version must be 2 or 3.")),
    });
    Ok(())
}

/// Accepts what Redis accepts, and changes nothing: a script's effects always reach all copies.
fn set_repl(lua: &Lua, args: &MultiValue) -> Result<()> {
    if args.len() != 1 {
        return Err(error("redis.set_repl() requires two arguments."));
    }
    let flags = lua.coerce_number(args[0].clone())?.map_or(0, crate::number::to_integer);
    if !(0..=3).contains(&flags) {
        return Err(error(
            "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
        ));
    }
    Ok(())
}

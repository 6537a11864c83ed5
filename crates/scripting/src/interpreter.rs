//! Runs scripts. Each thread has one interpreter, with the scripts that it has compiled.

use core::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mlua::{Function, HookTriggers, Lua, LuaOptions, StdLib, Table, Value, VmState};
use resp::Reply;

use crate::raise::{plain_text, raised};
use crate::reply::Writer;
use crate::running::{Held, NodeScripts};
use crate::sandbox;
use crate::sha::ScriptId;
use crate::state::{Called, Commands, LogLevel, Request, Run, State, Stop};
use crate::texts::TEXTS_MAX;

/// Maximum length of a script: of a document of the cluster.
pub const SCRIPT_BYTES_MAX: usize = 512 << 10;
/// Maximum memory of an interpreter.
const MEMORY_MAX: usize = 256 << 20;
/// Memory above which garbage is collected after a script.
const MEMORY_KEPT: usize = 16 << 20;
/// Instructions between two looks at the clock and at SCRIPT KILL.
const HOOK_INSTRUCTIONS: u32 = 100_000;

/// A script to run.
pub struct Job<'a> {
    pub id: ScriptId,
    pub text: &'a [u8],
    /// Length of its shebang.
    pub shebang: usize,
    /// The slots whose locks are held.
    pub held: Held,
    /// Time after which it is slow.
    pub threshold: Duration,
    pub keys: Vec<&'a [u8]>,
    pub argv: Vec<&'a [u8]>,
}

/// The reason a script has no reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The error reply, with its code.
    Error(Vec<u8>),
    /// `Commands::call` has ended the script.
    Ended,
}

/// The interpreter of a thread.
pub struct Interpreter {
    lua: Lua,
    state: Rc<State>,
    runner: Function,
    compiled: RefCell<Compiled>,
}

/// Compiled scripts; the one that was not used for longest goes first.
#[derive(Default)]
struct Compiled {
    by_id: BTreeMap<ScriptId, (Function, u64)>,
    by_use: BTreeMap<u64, ScriptId>,
    uses: u64,
}

impl Compiled {
    fn get(&mut self, id: &ScriptId) -> Option<Function> {
        self.uses += 1;
        let (function, used) = self.by_id.get_mut(id)?;
        self.by_use.remove(used);
        *used = self.uses;
        self.by_use.insert(self.uses, *id);
        Some(function.clone())
    }

    fn put(&mut self, id: ScriptId, function: Function) {
        self.by_id.insert(id, (function, self.uses));
        self.by_use.insert(self.uses, id);
        if self.by_id.len() > TEXTS_MAX
            && let Some((_, oldest)) = self.by_use.pop_first()
        {
            self.by_id.remove(&oldest);
        }
    }
}

thread_local! {
    static OF_THIS_THREAD: RefCell<Option<Rc<Interpreter>>> = const { RefCell::new(None) };
}

impl Interpreter {
    /// Returns the interpreter of this thread, created at its first script.
    pub fn of_this_thread() -> Result<Rc<Interpreter>, String> {
        OF_THIS_THREAD.with_borrow_mut(|own| match own {
            Some(interpreter) => Ok(Rc::clone(interpreter)),
            None => {
                let new = Interpreter::new().map_err(|error| plain_text(&error))?;
                Ok(Rc::clone(own.insert(Rc::new(new))))
            }
        })
    }

    fn new() -> mlua::Result<Interpreter> {
        let libraries = StdLib::TABLE | StdLib::STRING | StdLib::MATH | StdLib::OS;
        let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(false))?;
        let state: Rc<State> = Rc::default();
        let runner = sandbox::install(&lua, &state)?;
        let own = Rc::clone(&state);
        let triggers = HookTriggers::new().every_nth_instruction(HOOK_INSTRUCTIONS);
        lua.set_global_hook(triggers, move |_, _| own.on_hook().map(|()| VmState::Continue))?;
        lua.set_memory_limit(MEMORY_MAX)?;
        Ok(Interpreter { lua, state, runner, compiled: RefCell::default() })
    }

    /// Compiles a script, whose shebang has `shebang` bytes, unless this thread has done so before. The error is the
    /// compiler's.
    pub fn compile(&self, id: ScriptId, text: &[u8], shebang: usize) -> Result<(), String> {
        self.compiled(id, text, shebang).map(|_| ())
    }

    fn compiled(&self, id: ScriptId, text: &[u8], shebang: usize) -> Result<Function, String> {
        if let Some(function) = self.compiled.borrow_mut().get(&id) {
            return Ok(function);
        }
        let chunk = self.lua.load(&text[shebang..]).set_name("@user_script");
        let function = chunk.set_mode(mlua::chunk::ChunkMode::Text).into_function();
        let function = function.map_err(|error| plain_text(&error))?;
        self.compiled.borrow_mut().put(id, function.clone());
        Ok(function)
    }

    /// Runs a script and writes its reply.
    pub fn run(
        &self,
        job: &Job<'_>,
        node: &Arc<NodeScripts>,
        commands: &mut dyn Commands,
        reply: &mut Reply<'_>,
    ) -> Result<(), Failure> {
        let Job { id, threshold, .. } = *job;
        let function = self.compiled(id, job.text, job.shebang).map_err(|why| {
            Failure::Error(format!("ERR Error compiling script (new function): {why}").into_bytes())
        })?;
        let held = job.held.clone();
        let (node, name, begun) = (Arc::clone(node), id.text().to_owned(), Instant::now());
        self.state.begin(Run {
            node,
            name,
            held,
            threshold,
            begun,
            running: None,
            has_written: false,
        });
        let ran = self.call(&function, job, commands);
        self.state.end();
        let written = ran.and_then(|(ok, value)| self.conclude(ok, &value, &id, reply));
        let result = written.unwrap_or_else(|error| Err(self.failure(&error)));
        self.tidy_up();
        result
    }

    /// Calls the script. Returns whether it has succeeded, and its result or the description of its error.
    fn call(
        &self,
        function: &Function,
        job: &Job<'_>,
        commands: &mut dyn Commands,
    ) -> mlua::Result<(bool, Value)> {
        let keys = self.strings(&job.keys)?;
        let argv = self.strings(&job.argv)?;
        let state = &self.state;
        self.lua.scope(|scope| {
            let dispatch = scope
                .create_function_mut(|_, request: i64| Ok(dispatch(state, commands, request)))?;
            *state.dispatch.borrow_mut() = Some(dispatch);
            self.runner.call((function, keys, argv))
        })
    }

    fn strings(&self, texts: &[&[u8]]) -> mlua::Result<Table> {
        let table = self.lua.create_table_with_capacity(texts.len(), 0)?;
        for (index, text) in texts.iter().enumerate() {
            table.raw_set(index + 1, self.lua.create_string(text)?)?;
        }
        Ok(table)
    }

    fn conclude(
        &self,
        ok: bool,
        value: &Value,
        id: &ScriptId,
        reply: &mut Reply<'_>,
    ) -> mlua::Result<Result<(), Failure>> {
        match self.state.stop.get() {
            Some(Stop::Ended) => return Ok(Err(Failure::Ended)),
            Some(Stop::Killed) => return Ok(Err(killed(id))),
            None => {}
        }
        if ok {
            return Writer::new(reply, self.state.protocol.get()).write(value, 0).map(Ok);
        }
        let Value::Table(described) = value else {
            let text = self.lua.coerce_string(value.clone())?;
            let text = text.map(|text| text.to_string_lossy()).unwrap_or_default();
            return Ok(Err(without_description(&text, id)));
        };
        let Value::String(text) = described.raw_get::<Value>("err")? else {
            return Ok(Err(without_description("error in error handling", id)));
        };
        let mut error = text.as_bytes().to_vec();
        error.extend_from_slice(format!(" script: {}", id.text()).as_bytes());
        let place: (Option<String>, Option<i64>) =
            (described.raw_get("source")?, described.raw_get("line")?);
        if let (Some(source), Some(line)) = place {
            error.extend_from_slice(format!(", on {source}:{line}.").as_bytes());
        }
        Ok(Err(Failure::Error(error)))
    }

    /// Returns the failure of a call that the script could not have caught.
    fn failure(&self, error: &mlua::Error) -> Failure {
        if raised(error).is_some() {
            return Failure::Error(b"ERR the script was stopped".to_vec());
        }
        let text = plain_text(error);
        if text.contains("not enough memory") {
            return Failure::Error(OUT_OF_MEMORY.as_bytes().to_vec());
        }
        Failure::Error(format!("ERR Error running script: {text}").into_bytes())
    }

    /// Frees what a script has left.
    fn tidy_up(&self) {
        self.lua.gc_restart();
        if self.lua.used_memory() > MEMORY_KEPT {
            // A failure leaves garbage, which the next script's allocations collect.
            let _ = self.lua.gc_collect();
        }
    }
}

const OUT_OF_MEMORY: &str = "ERR script needs too much memory: an interpreter has at most 256 MiB";

fn killed(id: &ScriptId) -> Failure {
    let id = id.text();
    let text = format!("ERR Script killed by user with SCRIPT KILL. script: {id}");
    Failure::Error(text.into_bytes())
}

/// Returns the failure with an error that has no description: of the memory, or in the description itself.
fn without_description(text: &str, id: &ScriptId) -> Failure {
    if text.contains("not enough memory") {
        return Failure::Error(OUT_OF_MEMORY.as_bytes().to_vec());
    }
    let id = id.text();
    Failure::Error(format!("ERR Error running script {id}, {text}").into_bytes())
}

/// Passes a request of the sandbox on. The answer is that of `MayRun`.
fn dispatch(state: &State, commands: &mut dyn Commands, request: i64) -> Option<bool> {
    const RUN: i64 = Request::Run as i64;
    const MAY_RUN: i64 = Request::MayRun as i64;
    const DEBUG: i64 = Request::Log as i64 + LogLevel::Debug as i64;
    const VERBOSE: i64 = Request::Log as i64 + LogLevel::Verbose as i64;
    const NOTICE: i64 = Request::Log as i64 + LogLevel::Notice as i64;
    let args = state.args.borrow();
    let level = match request {
        RUN => {
            let mut reply = state.reply.borrow_mut();
            let mut begin_write = || state.begin_write();
            let called = commands.call(&args, state.protocol.get(), &mut begin_write, &mut reply);
            if called == Called::Ended && state.stop.get().is_none() {
                state.stop.set(Some(Stop::Ended));
            }
            if called == Called::Ended {
                reply.clear();
            }
            return None;
        }
        MAY_RUN => return commands.may_run(&args),
        DEBUG => LogLevel::Debug,
        VERBOSE => LogLevel::Verbose,
        NOTICE => LogLevel::Notice,
        _ => LogLevel::Warning,
    };
    commands.log(level, &args.bytes);
    None
}

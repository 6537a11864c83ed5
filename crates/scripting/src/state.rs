//! The state of a run, as the functions of the sandbox see it.

use core::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mlua::Function;
use resp::{Output, Protocol, Span};

use crate::cjson;
use crate::raise::Raised;
use crate::running::{Held, NodeScripts, Running};

/// The node and its commands, for a running script.
pub trait Commands {
    /// Runs a command and appends its reply. Before it writes it asks `begin_write`, and does nothing if that returns
    /// false.
    fn call(
        &mut self,
        args: &CommandArgs,
        protocol: Protocol,
        begin_write: &mut dyn FnMut() -> bool,
        reply: &mut Output,
    ) -> Called;

    /// Returns whether the client may run this command; `None` if it is unknown.
    fn may_run(&mut self, args: &CommandArgs) -> Option<bool>;

    fn log(&mut self, level: LogLevel, text: &[u8]);
}

/// The outcome of a command that a script has called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Called {
    /// The reply is written; it may be an error.
    Replied,
    /// The script must end: it runs again from its beginning, or was killed. Nothing was replied.
    Ended,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogLevel {
    Debug,
    Verbose,
    Notice,
    Warning,
}

/// The arguments of a command, one behind the other.
#[derive(Debug, Default)]
pub struct CommandArgs {
    pub bytes: Vec<u8>,
    pub spans: Vec<Span>,
}

impl CommandArgs {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// Appends an argument. Returns false if they are too long together.
    pub(crate) fn push(&mut self, arg: &[u8]) -> bool {
        let (Ok(start), Ok(len)) = (u32::try_from(self.bytes.len()), u32::try_from(arg.len()))
        else {
            return false;
        };
        self.spans.push(Span { start, len });
        self.bytes.extend_from_slice(arg);
        true
    }
}

/// The request that a function of the sandbox has to the node; its data is in the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Request {
    Run = 0,
    MayRun = 1,
    /// The first of four, one for each level.
    Log = 2,
}

/// The reason a script ends early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    Killed,
    /// `Commands::call` has ended it.
    Ended,
}

/// The script that runs.
pub(crate) struct Run {
    pub node: Arc<NodeScripts>,
    pub name: String,
    pub held: Held,
    pub threshold: Duration,
    pub begun: Instant,
    /// Known to other threads from the first hook on.
    pub running: Option<Arc<Running>>,
    pub has_written: bool,
}

/// Shared by the functions of an interpreter.
#[derive(Default)]
pub(crate) struct State {
    /// Runs the command in `args`, and writes into `reply`. Exists only while a script runs.
    pub dispatch: RefCell<Option<Function>>,
    pub args: RefCell<CommandArgs>,
    pub reply: RefCell<Output>,
    pub protocol: Cell<Protocol>,
    pub stop: Cell<Option<Stop>>,
    pub run: RefCell<Option<Run>>,
    pub cjson: cjson::Shared,
}

impl State {
    /// Prepares for the next script.
    pub(crate) fn begin(&self, run: Run) {
        self.protocol.set(Protocol::Resp2);
        self.stop.set(None);
        self.cjson.set(cjson::Options::default());
        *self.run.borrow_mut() = Some(run);
    }

    /// Ends a script; other threads do not see it any more.
    pub(crate) fn end(&self) {
        *self.dispatch.borrow_mut() = None;
        if let Some(run) = self.run.borrow_mut().take()
            && let Some(running) = &run.running
        {
            run.node.leave(running);
        }
    }

    /// Records that the script is about to write. Returns false if it was killed.
    pub(crate) fn begin_write(&self) -> bool {
        let mut run = self.run.borrow_mut();
        let Some(run) = run.as_mut() else { return false };
        if run.running.as_ref().is_some_and(|running| !running.begin_write()) {
            self.stop.set(Some(Stop::Killed));
            return false;
        }
        run.has_written = true;
        true
    }

    /// Called every so many instructions: ends a script that was killed.
    pub(crate) fn on_hook(&self) -> mlua::Result<()> {
        if self.stop.get().is_some() {
            return Err(Raised::Stop.into());
        }
        let mut run = self.run.borrow_mut();
        let Some(Run { node, name, held, threshold, begun, running, has_written }) = run.as_mut()
        else {
            return Ok(());
        };
        let running = running.get_or_insert_with(|| node.enter(name, held, *has_written));
        if running.is_killed() {
            self.stop.set(Some(Stop::Killed));
            return Err(Raised::Stop.into());
        }
        node.note_time(running, begun.elapsed(), *threshold);
        Ok(())
    }
}

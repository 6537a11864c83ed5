//! Lua for scripts, in a sandbox: an interpreter for each thread, the libraries that Redis gives to scripts, and what
//! the threads of a node share about scripts. It knows no keys and no commands: `commands` runs those that a script
//! calls (the trait [`Commands`]).
//!
//! Scripts run on stock Lua 5.1.5 with the patches of `third_party/lua-src`. They see read-only tables that all scripts of
//! a thread share, and cannot leave anything behind in the interpreter.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "a value of Lua has one of many types, and each function names those it takes"
)]

mod interpreter; // Start here: runs a script.
mod sandbox; //     The globals of scripts.
mod redis; //       The table `redis`.
mod reply; //       Replies of commands to values, and values to the script's reply.
mod state; //       The state of a run, as the functions of the sandbox see it.
mod raise; //       Errors that our functions raise.
mod args; //        Arguments of our functions.
mod number; //      Numbers as C writes them.
mod random; //      `math.random`.
mod bit; //         The library `bit`.
mod cjson; //       The library `cjson`.
mod cmsgpack; //    The library `cmsgpack`.
mod structs; //     The library `struct`.
mod shebang; //     The first line of a script with its flags.
mod sha; //         Names of scripts.
mod running; //     The scripts that run on a node.
mod texts; //       The texts of scripts that a node remembers.

pub use interpreter::{Failure, Interpreter, Job, SCRIPT_BYTES_MAX};
pub use running::{Held, KillError, NodeScripts, Running};
pub use sha::ScriptId;
pub use shebang::{ScriptFlags, Shebang};
pub use state::{Called, CommandArgs, Commands, LogLevel};
pub use texts::TEXTS_MAX;

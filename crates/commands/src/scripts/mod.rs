//! Scripts: EVAL and its like, SCRIPT. This file has the table and what a connection knows about the script it runs. The
//! interpreter is the crate `scripting`.
//!
//! A script runs as EXEC does: it holds the locks of its slots while it runs, and all its effects in a slot are one unit.
mod eval; //      EVAL, EVALSHA, EVAL_RO, EVALSHA_RO.
mod call; //      The commands that a script calls.
mod documents; // The scripts of the whole cluster.
mod script; //    SCRIPT.
#[cfg(test)]
mod tests;

pub use documents::follow_scripts;

use placement::Slot;
use scripting::ScriptId;

use crate::help::help;
use crate::spec::{BLANK, Flag, Flags, Group, Spec};
use crate::{Args, CommandEnv, Error};

pub use scripting::LogLevel as ScriptLog;

/// The reply to a command on a slot whose lock a script has held for too long.
pub const BUSY: Error = Error::fixed(
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
);

/// The result of [`crate::Host::write_documents`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DocumentsChange {
    Done,
    /// The other nodes have to agree. Nothing is replied; the command runs again when they have.
    Waiting,
    /// The cluster did not decide; the text says why.
    Failed(String),
}

/// The slots that a script needs besides those of its keys.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum ExtraSlots {
    #[default]
    None,
    One(Slot),
    All,
}

/// The script that a connection runs.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct ScriptRun {
    id: Option<ScriptId>,
    extra: ExtraSlots,
    /// True if the script has ended only to run again with other locks.
    restarts: bool,
    /// True if the next script is that one.
    is_again: bool,
}

impl ScriptRun {
    /// Computes the id of the script that a command runs. What it needs is known if the command runs again.
    pub(crate) fn identify(&mut self, spec: &Spec, args: Args<'_>) {
        let id = id_of(spec, args);
        if !core::mem::take(&mut self.is_again) || self.id != id {
            *self = ScriptRun { id, ..ScriptRun::default() };
        }
    }

    pub(crate) fn extra(&self) -> ExtraSlots {
        self.extra
    }

    /// Returns whether the script is known to use no other keys than those it declares.
    pub(crate) fn declares_its_keys(&self, env: &CommandEnv) -> bool {
        self.id.is_some_and(|id| env.scripts.declares_its_keys(&id))
    }

    /// Lets the command run again with these slots.
    fn restart_with(&mut self, extra: ExtraSlots) {
        (self.extra, self.restarts) = (extra, true);
    }

    /// Returns whether the command must run again.
    #[inline]
    pub(crate) fn take_restart(&mut self) -> bool {
        let restarts = core::mem::take(&mut self.restarts);
        self.is_again |= restarts;
        restarts
    }
}

/// Returns the id of the script that a command runs, if it names one.
fn id_of(spec: &Spec, args: Args<'_>) -> Option<ScriptId> {
    let named = args.get(1)?;
    if spec.name.starts_with("evalsha") {
        return ScriptId::parse(named);
    }
    Some(ScriptId::of(named))
}

/// The common part of the commands that run a script.
const RUNS: Spec = Spec {
    group: Group::Scripting,
    since: "2.6.0",
    complexity: "Depends on the script that is executed.",
    arity: -3,
    key_count_at: 2,
    ..BLANK
};

const WRITES: Flags = Flags::of(&[
    Flag::NoScript,
    Flag::Stale,
    Flag::SkipMonitor,
    Flag::MovableKeys,
    Flag::RunsScript,
    Flag::ScriptWrites,
]);

const READS: Flags = Flags::of(&[
    Flag::NoScript,
    Flag::ReadOnly,
    Flag::Stale,
    Flag::SkipMonitor,
    Flag::MovableKeys,
    Flag::RunsScript,
]);

/// The common part of SCRIPT's subcommands.
const SCRIPT: Spec = Spec { group: Group::Scripting, flags: Flags::of(&[Flag::NoScript]), ..BLANK };

pub(crate) const SPECS: &[Spec] = &[
    Spec {
        name: "eval",
        full_name: "eval",
        summary: "Runs a script.",
        syntax: "script numkeys [key [key ...]] [arg [arg ...]]",
        flags: WRITES,
        run: Some(eval::eval),
        ..RUNS
    },
    Spec {
        name: "evalsha",
        full_name: "evalsha",
        summary: "Runs a script by the SHA-1 of its text.",
        syntax: "sha1 numkeys [key [key ...]] [arg [arg ...]]",
        flags: WRITES,
        run: Some(eval::evalsha),
        ..RUNS
    },
    Spec {
        name: "eval_ro",
        full_name: "eval_ro",
        summary: "Runs a script that only reads.",
        syntax: "script numkeys [key [key ...]] [arg [arg ...]]",
        since: "7.0.0",
        flags: READS,
        run: Some(eval::eval),
        ..RUNS
    },
    Spec {
        name: "evalsha_ro",
        full_name: "evalsha_ro",
        summary: "Runs a script that only reads, by the SHA-1 of its text.",
        syntax: "sha1 numkeys [key [key ...]] [arg [arg ...]]",
        since: "7.0.0",
        flags: READS,
        run: Some(eval::evalsha),
        ..RUNS
    },
    Spec {
        name: "script",
        full_name: "script",
        summary: "A container for commands about scripts.",
        since: "2.6.0",
        complexity: "Depends on subcommand.",
        arity: -2,
        subcommands: SUBCOMMANDS,
        ..Spec { flags: Flags::NONE, ..SCRIPT }
    },
];

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "debug",
        full_name: "script|debug",
        summary: "Refused: scripts cannot be debugged here.",
        syntax: "<YES | SYNC | NO>",
        since: "3.2.0",
        arity: 3,
        run: Some(script::debug),
        ..SCRIPT
    },
    Spec {
        name: "exists",
        full_name: "script|exists",
        summary: "Tells for each script whether it is known.",
        syntax: "sha1 [sha1 ...]",
        since: "2.6.0",
        complexity: "O(N) with N being the number of scripts to check (so checking a single script is an O(1) operation).",
        arity: -3,
        run: Some(script::exists),
        ..SCRIPT
    },
    Spec {
        name: "flush",
        full_name: "script|flush",
        summary: "Forgets all scripts, on all nodes.",
        syntax: "[ASYNC | SYNC]",
        since: "2.6.0",
        complexity: "O(N) with N being the number of scripts in cache",
        arity: -2,
        run: Some(script::flush),
        ..SCRIPT
    },
    Spec {
        name: "help",
        full_name: "script|help",
        summary: "Describes the subcommands.",
        since: "5.0.0",
        arity: 2,
        flags: Flags::of(&[Flag::Loading, Flag::Stale]),
        run: Some(help),
        ..SCRIPT
    },
    Spec {
        name: "kill",
        full_name: "script|kill",
        summary: "Ends the running scripts that have not written.",
        since: "2.6.0",
        arity: 2,
        flags: Flags::of(&[Flag::NoScript, Flag::AllowBusy]),
        run: Some(script::kill),
        ..SCRIPT
    },
    Spec {
        name: "load",
        full_name: "script|load",
        summary: "Makes a script known to all nodes, and returns the SHA-1 of its text.",
        syntax: "script",
        since: "2.6.0",
        complexity: "O(N) with N being the length in bytes of the script body.",
        arity: 3,
        flags: Flags::of(&[Flag::NoScript, Flag::Stale]),
        run: Some(script::load),
        ..SCRIPT
    },
    Spec {
        name: "show",
        full_name: "script|show",
        summary: "Returns the text of a script.",
        syntax: "sha1",
        since: "8.0.0",
        arity: 3,
        flags: Flags::of(&[Flag::NoScript]),
        run: Some(script::show),
        ..SCRIPT
    },
];

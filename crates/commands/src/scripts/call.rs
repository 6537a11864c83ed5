//! The commands that a script calls: checks them as Redis does, makes sure that their slots are locked, and runs them.

use std::sync::LazyLock;
use std::time::Duration;

use parking_lot::MutexGuard;
use placement::Slot;
use resp::{Output, Protocol, Reply};
use scripting::{CommandArgs, Commands, LogLevel, ScriptId};
use store::Database;

use super::{BUSY, ExtraSlots};
use crate::context::{Context, run};
use crate::keys::Keys;
use crate::session::{Queue, Queued};
use crate::sort::{DerivedSlots, derived_slots};
use crate::spec::Group;
use crate::transactions::{EFFECT_BYTES_MAX, bound, multiplies};
use crate::{Args, Error, Flag, Flags, Host, OwnedArgs, Request, Session, Spec, Table};

static TABLE: LazyLock<Table> = LazyLock::new(Table::default);

const UNKNOWN: Error = Error::fixed("ERR Unknown Redis command called from script");
const WRONG_COUNT: Error =
    Error::fixed("ERR Wrong number of args calling Redis command from script");
const NOT_ALLOWED: Error = Error::fixed("ERR This Redis command is not allowed from script");
const ONLY_READS: Error =
    Error::fixed("ERR Write commands are not allowed from read-only scripts.");
const OTHER_SLOT: Error =
    Error::fixed("ERR Script attempted to access keys that do not hash to the same slot");
const OTHER_NODE: Error =
    Error::fixed("ERR Script attempted to access a non local key in a cluster node");
const TOO_LARGE: Error =
    Error::fixed("ERR script too large, a script may write at most 1 GiB at once");
const NOT_ALLOWED_NOW: Error =
    Error::fixed("ERR a script can use this command only before it writes, and not inside MULTI");
const TOO_LATE: Error = Error::fixed(
    "ERR Script attempted to access a key that it did not declare, for the first time and after it has written; \
     now this is known, and the script can run again",
);

/// Commands after which a script neither runs again nor is killed.
const LEAVES_TRACES: Flags = Flags::of(&[Flag::Write, Flag::MayReplicate]);

/// The rules under which a script runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub only_reads: bool,
    /// True if its writes are allowed although memory is short.
    pub allow_oom: bool,
}

/// The slots that a script may use.
#[derive(Debug)]
pub(super) enum Reach {
    /// Those whose locks are held.
    These(Vec<Slot>),
    /// Any: each lock is taken when it is needed.
    Growing {
        declared: Vec<Slot>,
        /// True if it has used others than the declared ones.
        has_left: bool,
    },
    /// All locks are held.
    All,
}

/// The node, for a running script.
pub(super) struct Called<'c> {
    keys: Keys<'c>,
    session: &'c mut Session,
    host: &'c mut dyn Host,
    id: ScriptId,
    rules: Rules,
    pub(super) reach: Reach,
    has_written: bool,
    /// Upper bound of the bytes recorded so far.
    recorded: usize,
    /// True if the script runs inside EXEC, so that it cannot run again.
    in_exec: bool,
    /// The client's database: a SELECT of the script ends with it.
    database: Database,
    /// The turn of scripts that take locks while they run.
    turn: Option<MutexGuard<'c, ()>>,
    /// Slots that it needs when it runs again.
    pub(super) restart: Option<ExtraSlots>,
}

/// The reason a command does not run.
enum Refusal {
    /// Its reply.
    Error(Error),
    /// The script must run again with these slots.
    Restart(ExtraSlots),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Error(error)
    }
}

impl<'c> Called<'c> {
    pub(super) fn new(
        keys: Keys<'c>,
        session: &'c mut Session,
        host: &'c mut dyn Host,
        id: ScriptId,
        rules: Rules,
        reach: Reach,
        turn: Option<MutexGuard<'c, ()>>,
    ) -> Called<'c> {
        let (has_written, recorded, restart) = (false, 0, None);
        let in_exec = core::mem::replace(&mut session.in_exec, true);
        let database = session.database;
        Called {
            keys,
            session,
            host,
            id,
            rules,
            reach,
            has_written,
            recorded,
            in_exec,
            database,
            turn,
            restart,
        }
    }

    /// Takes the locks of the declared keys, if none is held yet.
    pub(super) fn take_declared(&mut self) {
        if let Reach::Growing { declared, .. } = &self.reach {
            for slot in declared {
                self.keys.grow(*slot);
            }
        }
    }

    /// Ends the script. Returns what it needs when it runs again, and the slots that it has used.
    pub(super) fn finish(self) -> (Option<ExtraSlots>, Reach) {
        self.session.in_exec = self.in_exec;
        self.session.database = self.database;
        (self.restart, self.reach)
    }

    /// Checks a command; the order of the checks is Redis's.
    fn check(&mut self, request: &Request<'_>) -> Result<&'static Spec, Refusal> {
        self.keys.database = self.session.database; // An earlier call may have been SELECT.
        let spec = request.spec.ok_or(UNKNOWN)?;
        if spec.run.is_none() || !spec.accepts(request.args.len()) {
            return Err(WRONG_COUNT.into());
        }
        // The answers of the timers come later, when the script is over.
        if spec.has(Flag::NoScript) || spec.group == Group::Timers {
            return Err(NOT_ALLOWED.into());
        }
        if spec.has(Flag::Write) && self.rules.only_reads {
            return Err(ONLY_READS.into());
        }
        if spec.has(Flag::Write) && self.session.is_on_replica_port() {
            return Err(Error::READ_ONLY_PORT.into());
        }
        let is_short = self.keys.env().out_of_memory && !self.rules.allow_oom && !self.has_written;
        if is_short && spec.has(Flag::DenyOom) {
            return Err(Error::OUT_OF_MEMORY.into());
        }
        self.reach_keys(spec, request.args)?;
        self.check_size(spec, request.args)?;
        Ok(spec)
    }

    /// Makes sure that the locks of all slots are held that the command needs.
    fn reach_keys(&mut self, spec: &Spec, args: Args<'_>) -> Result<(), Refusal> {
        if spec.has(Flag::WholeKeyspace) {
            return self.reach_all();
        }
        if spec.has(Flag::NotKeys) {
            return Ok(());
        }
        if spec.has(Flag::DerivesKeys) && !self.keys.env().one_slot_only {
            match derived_slots(args) {
                DerivedSlots::Any => return self.reach_all(),
                DerivedSlots::These(slots) => {
                    slots.into_iter().try_for_each(|slot| self.reach_slot(slot))?;
                }
            }
        }
        spec.key_indices(args).try_for_each(|index| self.reach_slot(Slot::of(args.at(index))))
    }

    fn reach_slot(&mut self, slot: Slot) -> Result<(), Refusal> {
        let env = self.keys.env();
        if matches!(self.reach, Reach::All) {
            let is_foreign = env.one_slot_only && !env.cluster.is_mine(slot);
            // The slot may have moved away while its lock was awaited: by a map that is newer than that of `env`.
            if is_foreign || !self.keys.slots.may_change(slot) {
                return Err(OTHER_NODE.into());
            }
            return Ok(());
        }
        let slots = match &mut self.reach {
            Reach::All => return Ok(()),
            Reach::Growing { declared, has_left } => {
                *has_left |= !declared.contains(&slot);
                return self.grow(slot);
            }
            Reach::These(slots) => slots,
        };
        if slots.contains(&slot) {
            return Ok(());
        }
        let may_restart = !self.has_written && !self.in_exec;
        if !env.one_slot_only {
            // It counted as a script that declares its keys.
            env.scripts.note_keys(&self.id, false);
            if may_restart {
                return Err(Refusal::Restart(ExtraSlots::None));
            }
            self.begin_to_grow()?;
            return self.grow(slot);
        }
        let is_served = env.cluster.is_mine(slot)
            || self.session.reads_backups && env.cluster.is_backed_up_here(slot);
        if !is_served {
            return Err(OTHER_NODE.into());
        }
        if slots.is_empty() && may_restart {
            return Err(Refusal::Restart(ExtraSlots::One(slot)));
        }
        Err(OTHER_SLOT.into())
    }

    /// Takes the lock of a further slot.
    fn grow(&mut self, slot: Slot) -> Result<(), Refusal> {
        if self.keys.grow(slot) { Ok(()) } else { Err(BUSY.into()) }
    }

    /// Lets a script that has written take further locks. It holds some, so it does not wait long for its turn: the
    /// script whose turn it is may wait for it.
    fn begin_to_grow(&mut self) -> Result<(), Refusal> {
        const PATIENCE: Duration = Duration::from_millis(20);
        let turn = self.keys.env().scripts.take_turn_within(PATIENCE).ok_or(TOO_LATE)?;
        self.turn = Some(turn);
        if let Reach::These(declared) = &mut self.reach {
            let declared = core::mem::take(declared);
            self.reach = Reach::Growing { declared, has_left: true };
        }
        Ok(())
    }

    fn reach_all(&mut self) -> Result<(), Refusal> {
        let env = self.keys.env();
        let may_restart = !self.has_written && !self.in_exec;
        match &mut self.reach {
            Reach::All => return Ok(()),
            Reach::Growing { has_left, .. } => *has_left = true,
            Reach::These(_) if may_restart => return Err(Refusal::Restart(ExtraSlots::All)),
            Reach::These(_) if env.one_slot_only => return Err(NOT_ALLOWED_NOW.into()),
            Reach::These(_) => self.begin_to_grow()?,
        }
        Slot::all().try_for_each(|slot| self.grow(slot))
    }

    /// Limits the bytes that a script records: they reach every copy as one unit.
    fn check_size(&mut self, spec: &'static Spec, args: Args<'_>) -> Result<(), Refusal> {
        /// Upper bound of an effect's bytes besides the arguments.
        const RECORD_BYTES: usize = 256;
        if !spec.has(Flag::Write) {
            return Ok(());
        }
        let bytes = if multiplies(spec) {
            let args = OwnedArgs::new(args.iter());
            let queue = Queue { commands: vec![Queued { spec, args }], ..Queue::default() };
            bound(&queue, &mut self.keys)
        } else {
            args.extent() + args.len() * 16 + RECORD_BYTES
        };
        self.recorded = self.recorded.saturating_add(bytes);
        if self.recorded > EFFECT_BYTES_MAX { Err(TOO_LARGE.into()) } else { Ok(()) }
    }
}

impl Commands for Called<'_> {
    fn call(
        &mut self,
        args: &CommandArgs,
        protocol: Protocol,
        begin_write: &mut dyn FnMut() -> bool,
        reply: &mut Output,
    ) -> scripting::Called {
        let args = Args::new(&args.bytes, &args.spans);
        let request = Request::prepare(args, &TABLE, &self.keys.env().seed);
        let spec = match self.check(&request) {
            Ok(spec) => spec,
            Err(Refusal::Restart(extra)) => {
                self.restart = Some(extra);
                return scripting::Called::Ended;
            }
            Err(Refusal::Error(error)) => {
                Reply::new(reply, protocol).error(error.text());
                return scripting::Called::Replied;
            }
        };
        // A message of PUBLISH cannot be taken back either.
        if spec.flags.intersects(LEAVES_TRACES) {
            if !begin_write() {
                return scripting::Called::Ended;
            }
            self.has_written = true;
        }
        let ending = run(&mut Context {
            args,
            keys: self.keys.reborrow(),
            reply: Reply::new(reply, protocol),
            session: &mut *self.session,
            host: &mut *self.host,
            spec,
            first_key: request.key.as_ref(),
        });
        self.keys.outcome.ran_in_exec.push((spec, ending));
        scripting::Called::Replied
    }

    fn may_run(&mut self, args: &CommandArgs) -> Option<bool> {
        let args = Args::new(&args.bytes, &args.spans);
        let request = Request::prepare(args, &TABLE, &self.keys.env().seed);
        // Whoever may run scripts may run all commands.
        request.spec.map(|_| true)
    }

    fn log(&mut self, level: LogLevel, text: &[u8]) {
        self.host.log_script(level, &String::from_utf8_lossy(text));
    }
}

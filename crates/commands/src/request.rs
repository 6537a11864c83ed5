//! A request that has found its command and its first key. Preparing depends on nothing but the
//! bytes, so a whole batch is prepared before the first of it runs.

use store::{Key, Seed};

use crate::spec::CommandId;
use crate::{Args, Spec, Table};

/// A request on its way to run.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub args: Args<'a>,
    /// The command, or the subcommand if it has one; `None` if there is no such.
    pub spec: Option<&'static Spec>,
    /// Where that stands in the table.
    pub command: CommandId,
    /// The first key, if the command has keys and enough arguments.
    pub key: Option<Key<'a>>,
}

impl<'a> Request<'a> {
    /// Whether a run of it may take long enough to be worth a look at the clock of its own.
    #[inline]
    pub fn is_timed_alone(&self) -> bool {
        self.spec.is_some_and(Spec::is_timed_alone)
    }

    #[inline]
    pub fn prepare(args: Args<'a>, table: &Table, seed: &Seed) -> Request<'a> {
        let found = table.find_with_id(args.at(0)).and_then(|found| resolve(found, args));
        let (spec, command) = match found {
            Some((spec, id)) => (Some(spec), id),
            None => (None, CommandId::NONE),
        };
        let key = spec.and_then(|spec| {
            let has_key = !spec.keys.is_none() && spec.accepts(args.len());
            if has_key { args.get(spec.keys.first).map(|bytes| seed.key(bytes)) } else { None }
        });
        Request { args, spec, command, key }
    }

    /// True if the command never has more than one key.
    #[inline]
    pub fn has_one_key(&self) -> bool {
        self.spec.is_some_and(|spec| spec.keys.is_one())
    }
}

/// The subcommand if the command is a container and one is named. A container that can run alone
/// (`COMMAND`) stands for itself when nothing follows it.
#[inline]
fn resolve(
    (spec, id): (&'static Spec, CommandId),
    args: Args<'_>,
) -> Option<(&'static Spec, CommandId)> {
    if spec.subcommands.is_empty() {
        return Some((spec, id));
    }
    let Some(name) = args.get(1) else { return Some((spec, id)) };
    let position = spec.subcommand_position(name)?;
    Some((&spec.subcommands[position], id.subcommand(position)))
}

//! A request with its command and its first key. Preparing depends only on the bytes, so a whole batch is prepared
//! before its first request runs.

use store::{Key, Seed};

use crate::spec::CommandId;
use crate::{Args, Spec, Table};

/// A request ready to run.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub args: Args<'a>,
    /// The command, or the subcommand if it has one; `None` if it is unknown.
    pub spec: Option<&'static Spec>,
    /// Its position in the table.
    pub command: CommandId,
    /// The first key, if the command has keys and enough arguments. Always in database 0: an earlier request of the batch
    /// may select another one.
    pub key: Option<Key<'a>>,
}

impl<'a> Request<'a> {
    /// Returns whether a run may take long enough to be timed individually.
    #[inline]
    pub fn is_timed_alone(&self) -> bool {
        self.spec.is_some_and(Spec::is_timed_alone)
    }

    #[inline]
    pub fn prepare(args: Args<'a>, table: &Table, seed: &Seed) -> Request<'a> {
        let found = table.find_with_id(args.at(0), args.followed(0));
        let found = found.and_then(|(spec, id)| resolve(spec, id, args));
        let (spec, command) = match found {
            Some((spec, id)) => (Some(spec), id),
            None => (None, CommandId::NONE),
        };
        let key = spec.and_then(|spec| {
            let index = spec.first_key_index(args).filter(|_| spec.accepts(args.len()))?;
            args.get(index).map(|bytes| seed.key(bytes))
        });
        Request { args, spec, command, key }
    }

    /// Returns whether the command never has more than one key.
    #[inline]
    pub fn has_one_key(&self) -> bool {
        self.spec.is_some_and(Spec::has_one_key)
    }
}

/// Returns the subcommand if the command is a container and a subcommand is named. A container that can run alone
/// (`COMMAND`) is returned itself if no argument follows.
#[inline]
fn resolve(
    spec: &'static Spec,
    id: CommandId,
    args: Args<'_>,
) -> Option<(&'static Spec, CommandId)> {
    if spec.subcommands.is_empty() {
        return Some((spec, id));
    }
    let Some(name) = args.get(1) else { return Some((spec, id)) };
    let position = spec.subcommand_position(name)?;
    Some((&spec.subcommands[position], id.subcommand(position)))
}

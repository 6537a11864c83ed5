//! The context of a running command, and [`run`], which runs it.

use resp::Reply;
use store::Key;

use crate::keys::Keys;
use crate::{Args, Error, Host, Session, Spec};

/// A function that runs a command. `Err` means that nothing was changed and nothing was replied yet; its text is the
/// reply, unless the command waits for keys.
pub type Run = fn(&mut Context<'_>) -> Result<(), Error>;

/// The context of a running command. The fields are separate so that a value borrowed from `keys` can be written to
/// `reply`.
pub struct Context<'a> {
    pub args: Args<'a>,
    pub keys: Keys<'a>,
    pub reply: Reply<'a>,
    pub session: &'a mut Session,
    pub host: &'a mut dyn Host,
    /// The running command, for its name in errors.
    pub spec: &'static Spec,
    /// The first key with its slot and hash, computed when the request was prepared: in database 0, whatever the
    /// connection has selected by now.
    pub first_key: Option<&'a Key<'a>>,
}

impl<'a> Context<'a> {
    /// Returns the argument at `index` as a key.
    #[inline]
    pub fn key(&self, index: usize) -> Key<'a> {
        match self.first_key {
            Some(key) if index == self.spec.keys.first => key.in_database(self.keys.database),
            Some(_) | None => self.keys.key(self.args.at(index)),
        }
    }

    /// Returns the argument at `index` as an integer, as strictly as Redis parses it.
    pub fn integer(&self, index: usize) -> Result<i64, Error> {
        resp::parse_integer(self.args.at(index)).ok_or(Error::NOT_AN_INTEGER)
    }
}

/// The result of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    Done,
    /// The reply was an error.
    Failed,
    /// The command has not run and not replied: its connection waits for keys (`Session::key_wait`).
    Waiting,
}

/// Runs an admitted command whose slots are locked. An error becomes the reply.
#[inline]
pub fn run(context: &mut Context<'_>) -> Ending {
    let run = context.spec.run.expect("a container without a subcommand is not admitted");
    context.keys.no_touch = context.session.no_touch;
    context.keys.database = context.session.database;
    match run(context) {
        Ok(()) => Ending::Done,
        Err(error) => fail(context, error),
    }
}

#[cold]
fn fail(context: &mut Context<'_>, error: Error) -> Ending {
    if error.is_waiting() {
        return Ending::Waiting;
    }
    context.reply.error(error.text());
    context.keys.outcome.errors.push(error);
    Ending::Failed
}

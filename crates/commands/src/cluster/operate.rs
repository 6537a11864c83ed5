//! Operator commands: LEAVE, TAKEOVER, SPLIT, SETTINGS. The reply means that the nodes have started; STATUS shows
//! their progress.

use cluster::control::OperatorRequest;
use cluster::map::LeaveWay;
use cluster::status::{SettingError, parse_duration, parse_setting, settings};
use placement::Hashmask;

use crate::context::Context;
use crate::error::repeated;
use crate::{Args, Error};

/// Makes the node leave permanently, or `FOR` a duration such as 5m. With `QUICK` it does not wait until others
/// have copies of all it holds.
pub(super) fn leave(context: &mut Context<'_>) -> Result<(), Error> {
    let args = context.args;
    let is = |index: usize, name: &str| word(args, index).eq_ignore_ascii_case(name);
    let is_quick = args.len() > 2 && is(args.len() - 1, "quick");
    let way = if is_quick { LeaveWay::Quick } else { LeaveWay::Safe };
    match args.len() - usize::from(is_quick) {
        2 => begin(context, OperatorRequest::Leave(way)),
        4 if is(2, "for") => {
            let text = word(args, 3);
            let absence = parse_duration(&text).ok_or_else(|| {
                Error::new(format!("ERR a time is written like 90s, 5m or 2h, not \"{text}\""))
            })?;
            begin(context, OperatorRequest::LeaveFor { absence, way })
        }
        _ => Err(Error::wrong_arity(context.spec.full_name)),
    }
}

pub(super) fn takeover(context: &mut Context<'_>) -> Result<(), Error> {
    begin(context, OperatorRequest::Takeover)
}

pub(super) fn split(context: &mut Context<'_>) -> Result<(), Error> {
    let bucket = match context.args.len() {
        2 => None,
        _ => Some(hashmask(context)?),
    };
    begin(context, OperatorRequest::Split(bucket))
}

/// Parses the name of an existing bucket.
fn hashmask(context: &Context<'_>) -> Result<Hashmask, Error> {
    let text = word(context.args, 2);
    let hashmask: Hashmask = text.parse().map_err(|error| Error::new(format!("ERR {error}")))?;
    match context.keys.env().cluster.map().bucket(hashmask) {
        Some(_) => Ok(hashmask),
        None => {
            Err(Error::new(format!("ERR there is no bucket {hashmask}; see CLUSTER HASHMASKS ALL")))
        }
    }
}

/// Returns all settings without arguments, or the named setting; changes it if a value is given.
pub(super) fn settings_command(context: &mut Context<'_>) -> Result<(), Error> {
    let all = settings(context.keys.env().cluster.map().settings());
    let args = context.args;
    match args.len() {
        2 => {
            context.reply.map(all.len());
            for (name, value) in &all {
                context.reply.bulk(name.as_bytes());
                context.reply.bulk(value.as_bytes());
            }
            Ok(())
        }
        3 => {
            let name = word(args, 2).to_ascii_lowercase();
            let value =
                all.get(&name).ok_or_else(|| wrong(&SettingError::Unknown(name.clone())))?;
            context.reply.bulk(value.as_bytes());
            Ok(())
        }
        4 => {
            let setting = parse_setting(&word(args, 2), &word(args, 3));
            begin(context, OperatorRequest::Set(setting.map_err(|error| wrong(&error))?))
        }
        _ => Err(Error::wrong_arity(context.spec.full_name)),
    }
}

fn wrong(error: &SettingError) -> Error {
    Error::new(format!("ERR {error}"))
}

fn word(args: Args<'_>, index: usize) -> String {
    repeated(args.at(index), 64)
}

fn begin(context: &mut Context<'_>, ask: OperatorRequest) -> Result<(), Error> {
    context.host.ask_cluster(ask).map_err(|why| Error::new(format!("ERR {why}")))?;
    context.reply.ok();
    Ok(())
}

//! Operator commands: LEAVE, TAKEOVER, SPLIT, SETTINGS. The reply means that the nodes have started; STATUS shows
//! their progress.

use std::collections::BTreeMap;

use cluster::control::OperatorRequest;
use cluster::map::LeaveWay;
use cluster::status::{parse_duration, parse_setting, settings as settings_of_map};
use placement::Hashmask;
use settings::{cluster_wide, find};

use crate::config;
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
    let all = all_settings(context);
    let args = context.args;
    if args.len() > 4 {
        return Err(Error::wrong_arity(context.spec.full_name));
    }
    if args.len() == 2 {
        context.reply.map(all.len());
        for (name, value) in &all {
            context.reply.bulk(name.as_bytes());
            context.reply.bulk(value.as_bytes());
        }
        return Ok(());
    }
    let name = word(args, 2).to_ascii_lowercase();
    let Some(known) = all.get(&name) else {
        let names: Vec<String> = all.into_keys().collect();
        let names = names.join(", ");
        let line = format!("ERR unknown cluster setting \"{name}\"; the settings are {names}");
        return Err(Error::new(line));
    };
    if args.len() == 4 {
        return change_setting(context, &name);
    }
    context.reply.bulk(known.as_bytes());
    Ok(())
}

/// Returns the settings of the map, and those that CONFIG changes for all nodes.
fn all_settings(context: &Context<'_>) -> BTreeMap<String, String> {
    let mut all = settings_of_map(context.keys.env().cluster.map().settings());
    let known = context.host.settings();
    for name in cluster_wide().map(|setting| setting.name) {
        all.extend(known.get(name).map(|value| (name.to_owned(), value)));
    }
    all
}

fn change_setting(context: &mut Context<'_>, name: &str) -> Result<(), Error> {
    let args = context.args;
    if find(name).is_some_and(|setting| setting.is_cluster_wide()) {
        let value = String::from_utf8_lossy(args.at(3));
        return config::change(context, &[(name, &value)]);
    }
    let setting = parse_setting(name, &word(args, 3));
    let setting = setting.map_err(|error| Error::new(format!("ERR {error}")))?;
    begin(context, OperatorRequest::Set(setting))
}

fn word(args: Args<'_>, index: usize) -> String {
    repeated(args.at(index), 64)
}

fn begin(context: &mut Context<'_>, ask: OperatorRequest) -> Result<(), Error> {
    context.host.ask_cluster(ask).map_err(|why| Error::new(format!("ERR {why}")))?;
    context.reply.ok();
    Ok(())
}

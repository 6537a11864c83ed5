//! CONFIG: reads and changes the settings while the node runs. The settings are the table in `settings/src/table.rs`.

use std::collections::BTreeSet;

use settings::TABLE;

use crate::context::Context;
use crate::glob::glob_matches;
use crate::help::help;
use crate::spec::{BLANK, Flag, Flags, Group, Spec};
use crate::{Block, Error, SettingsChange};

const ADMIN: Flags = Flags::of(&[Flag::Admin, Flag::NoScript, Flag::Loading, Flag::Stale]);
const SERVER: Spec = Spec { group: Group::Server, flags: ADMIN, ..BLANK };
const OF_PARAMETERS: &str = "O(N) when N is the number of configuration parameters provided";

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "config",
    full_name: "config",
    summary: "Shows and changes the settings of the node.",
    since: "2.0.0",
    complexity: "Depends on subcommand.",
    arity: -2,
    flags: Flags::NONE,
    subcommands: SUBCOMMANDS,
    ..SERVER
}];

const SUBCOMMANDS: &[Spec] = &[
    Spec {
        name: "get",
        full_name: "config|get",
        summary: "Returns the settings whose names match a pattern.",
        syntax: "parameter [parameter ...]",
        since: "2.0.0",
        complexity: OF_PARAMETERS,
        arity: -3,
        run: Some(get),
        ..SERVER
    },
    Spec {
        name: "help",
        full_name: "config|help",
        summary: "Shows this text.",
        since: "5.0.0",
        arity: 2,
        flags: Flags::of(&[Flag::Loading, Flag::Stale]),
        run: Some(help),
        ..SERVER
    },
    Spec {
        name: "resetstat",
        full_name: "config|resetstat",
        summary: "Resets the statistics of INFO.",
        since: "2.0.0",
        arity: 2,
        run: Some(reset_statistics),
        ..SERVER
    },
    Spec {
        name: "rewrite",
        full_name: "config|rewrite",
        summary: "Writes changed settings into the configuration file.",
        since: "2.8.0",
        arity: 2,
        run: Some(rewrite),
        ..SERVER
    },
    Spec {
        name: "set",
        full_name: "config|set",
        summary: "Changes settings, all of those given or none.",
        syntax: "parameter value [parameter value ...]",
        since: "2.0.0",
        complexity: OF_PARAMETERS,
        arity: -4,
        run: Some(set),
        ..SERVER
    },
];

fn get(context: &mut Context<'_>) -> Result<(), Error> {
    let settings = context.host.settings();
    let patterns: Vec<Vec<u8>> = context.args.from(2).map(<[u8]>::to_ascii_lowercase).collect();
    let fits = |name: &str| patterns.iter().any(|pattern| glob_matches(pattern, name.as_bytes()));
    let found: Vec<&str> =
        TABLE.iter().map(|setting| setting.name).filter(|name| fits(name)).collect();
    context.reply.map(found.len());
    for name in found {
        let value = settings.get(name).expect("a name of the table");
        context.reply.bulk(name.as_bytes());
        context.reply.bulk(value.as_bytes());
    }
    Ok(())
}

fn set(context: &mut Context<'_>) -> Result<(), Error> {
    let args = context.args;
    if !args.len().is_multiple_of(2) {
        return Err(Error::SYNTAX);
    }
    let texts: Vec<_> = args.from(2).map(String::from_utf8_lossy).collect();
    let changes: Vec<(&str, &str)> =
        texts.chunks_exact(2).map(|pair| (pair[0].as_ref(), pair[1].as_ref())).collect();
    let mut seen = BTreeSet::new();
    // Check all names first: an unknown name takes precedence over an invalid value before it.
    for (name, _) in &changes {
        if settings::find(name).is_none() {
            return Err(Error::new(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
            )));
        }
        if !seen.insert(name.to_ascii_lowercase()) {
            return Err(Error::new(format!(
                "ERR CONFIG SET failed (possibly related to argument '{name}') - duplicate parameter"
            )));
        }
    }
    change(context, &changes)
}

/// Changes settings. Those of the whole cluster are changed when all nodes have agreed; inside MULTI, EXEC does not
/// wait for that.
pub(crate) fn change(context: &mut Context<'_>, changes: &[(&str, &str)]) -> Result<(), Error> {
    let block = if context.session.in_exec { Block::Not } else { Block::ForEver };
    match context.host.change_settings(changes, block) {
        SettingsChange::Done => context.reply.ok(),
        SettingsChange::Waiting => {}
        SettingsChange::Refused(refused) => {
            let (name, _) = changes[refused.index];
            return Err(Error::new(refused.error.redis_error(name)));
        }
        SettingsChange::Failed(text) => {
            return Err(Error::new(format!("ERR CONFIG SET failed - {text}")));
        }
    }
    Ok(())
}

fn rewrite(context: &mut Context<'_>) -> Result<(), Error> {
    context.host.rewrite_settings().map_err(Error::new)?;
    context.reply.ok();
    Ok(())
}

fn reset_statistics(context: &mut Context<'_>) -> Result<(), Error> {
    context.host.reset_statistics();
    context.reply.ok();
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::{TestNode, check, check_on};

    #[test]
    fn settings_are_found_by_several_patterns_each_once() {
        check(
            r#"
            > CONFIG GET maxmemory-pol* MAXMEMORY-POLICY
            1) "maxmemory-policy"
            2) "noeviction"
            > CONFIG GET nosuch
            (empty array)
            > CONFIG GET
            (error) ERR wrong number of arguments for 'config|get' command
            "#,
        );
    }

    #[test]
    fn all_changes_are_made_or_none() {
        let mut node = TestNode::default();
        check_on(
            &mut node,
            r#"
            > CONFIG SET maxmemory 100mb maxmemory-policy allkeys-lru
            OK
            > CONFIG GET maxmemory*
            1) "maxmemory"
            2) "104857600"
            3) "maxmemory-policy"
            4) "allkeys-lru"
            5) "maxmemory-samples"
            6) "5"
            > CONFIG SET maxmemory 1gb maxmemory-policy strange
            (error) ERR CONFIG SET failed (possibly related to argument 'maxmemory-policy') - argument(s) must be one of the following: volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction
            > CONFIG GET maxmemory
            1) "maxmemory"
            2) "104857600"
            > CONFIG SET maxmemory 1 MAXMEMORY 2
            (error) ERR CONFIG SET failed (possibly related to argument 'MAXMEMORY') - duplicate parameter
            > CONFIG SET maxmemory 1 timeout
            (error) ERR syntax error
            > CONFIG SET nosuch 1
            (error) ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'
            > CONFIG SET maxmemory-policy strange nosuch 1
            (error) ERR Unknown option or number of arguments for CONFIG SET - 'nosuch'
            > CONFIG SET port 1
            (error) ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable config
            > CONFIG REWRITE
            (error) ERR The server is running without a config file
            > CONFIG RESETSTAT
            OK
            "#,
        );
        assert_eq!(node.host.statistics_reset, 1);
    }
}

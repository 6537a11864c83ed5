//! The command line. The flags of `serve` come from the table of settings; this file declares only flags that
//! are not settings. `main.rs` calls [`parse`] and then runs the command's own file.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::builder::{StyledStr, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Args, FromArgMatches, Parser, Subcommand};
use settings::{Mutability, SettingKind, SettingSpec, TABLE};

const AFTER_HELP: &str = "\
Every setting can also be given in a file (--config) or in the environment
(OPENCLUSTER_MAXMEMORY=1gb); flags override the environment, and the environment overrides the file.
See docs/configuration.md.";

/// OpenCluster keeps data in memory across machines and speaks the Redis protocol. Without a
/// subcommand it starts a node.
#[derive(Parser, Debug)]
#[command(name = "opencluster", version = version(), args_conflicts_with_subcommands = true)]
#[command(after_help = AFTER_HELP, styles = Styles::styled(), max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Start a node (the default without a subcommand)
    #[command(after_help = AFTER_HELP, max_term_width = 110)]
    Serve(ServeArgs),
    /// Show a cluster: members, buckets, moves in flight, last changes and their reasons
    Status(crate::status_cmd::StatusArgs),
    /// Watch a cluster live: members, buckets, moves, throughput, last changes
    Top(crate::top_cmd::TopArgs),
    /// Run a demo cluster on this machine, to watch and to break
    Demo(crate::demo_cmd::DemoArgs),
    /// Make a node hand over its data and leave the cluster
    Leave(crate::operate_cmd::LeaveArgs),
    /// Continue without permanently lost nodes when these include most voters
    Takeover(crate::operate_cmd::TakeoverArgs),
    /// Split a bucket, or all of the largest ones
    Split(crate::operate_cmd::SplitArgs),
    /// Show the settings of a cluster, or change one
    Settings(crate::operate_cmd::SettingsArgs),
    /// Simulate a cluster
    Sim(crate::sim_cmd::SimArgs),
    /// Run plain Redis servers as one fleet, and change their weights online
    Fleet(crate::fleet_cmd::FleetArgs),
}

#[derive(Args, Debug, Default)]
pub(crate) struct ServeArgs {
    /// A file with settings, in TOML
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Parent process; the kernel ends this node when that process ends
    #[arg(long, value_name = "PID", hide = true)]
    pub(crate) ends_with: Option<u32>,
    #[command(flatten)]
    pub(crate) settings: SettingFlags,
}

/// The settings given as flags, by name, in the order of the table.
#[derive(Debug, Default)]
pub(crate) struct SettingFlags(pub(crate) Vec<(&'static str, String)>);

/// Returns the version, with the commit if the build set `OPENCLUSTER_COMMIT`. Asking git during every build
/// would cost a build script, and a rebuild at every commit.
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| match option_env!("OPENCLUSTER_COMMIT") {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    });
    &VERSION
}

/// Output that replaces running a command: help, the version, or an error.
pub(crate) enum Answer {
    Help(StyledStr),
    BadInput(String),
}

impl Answer {
    pub(crate) fn give(self) -> ExitCode {
        match self {
            Answer::Help(text) => {
                anstream::print!("{}", text.ansi());
                ExitCode::SUCCESS
            }
            Answer::BadInput(line) => crate::Failure::BadInput(line).report(),
        }
    }
}

/// Reads the command line.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Command, Answer> {
    match Cli::try_parse_from(args) {
        Ok(Cli { command: Some(command), .. }) => Ok(command),
        Ok(Cli { command: None, serve }) => Ok(Command::Serve(serve)),
        Err(error) => Err(answer(&error)),
    }
}

fn answer(error: &clap::Error) -> Answer {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return Answer::Help(error.render());
    }
    Answer::BadInput(one_line(error))
}

/// Condenses clap's long error text to one line.
fn one_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.lines().next().unwrap_or_default();
    let mut line = first.strip_prefix("error: ").unwrap_or(first).to_owned();
    match suggestion(error) {
        Some(word) => line.push_str(&format!("; did you mean '{word}'?")),
        None => line.push_str("; see opencluster --help"),
    }
    line
}

fn suggestion(error: &clap::Error) -> Option<&str> {
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand];
    let value = kinds.into_iter().find_map(|kind| error.get(kind))?;
    if let ContextValue::String(word) = value {
        return Some(word);
    }
    let ContextValue::Strings(words) = value else { return None };
    words.first().map(String::as_str)
}

impl Args for SettingFlags {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(TABLE.iter().filter_map(flag))
    }
    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SettingFlags, clap::Error> {
        let given = |setting: &'static SettingSpec| {
            let text = matches.try_get_one::<String>(setting.name).ok()??;
            Some((setting.name, text.clone()))
        };
        Ok(SettingFlags(TABLE.iter().filter_map(given).collect()))
    }
    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Returns a setting as a flag; `None` for a fixed setting that exists only for Redis clients to read.
fn flag(setting: &'static SettingSpec) -> Option<Arg> {
    let arg = Arg::new(setting.name)
        .long(setting.name)
        .help_heading(setting.section.title())
        .allow_hyphen_values(true)
        .value_name(value_name(&setting.kind));
    // A secret is refused as a flag. It is declared only so that `config::settings` can answer where it
    // belongs.
    if setting.is_secret() {
        return Some(arg.hide(true));
    }
    if setting.kind == SettingKind::YesNo && setting.mutability() != Mutability::Never {
        return Some(
            arg.help(setting.help)
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("yes"),
        );
    }
    let default = setting.kind.friendly(&setting.default_text());
    let help = match default.as_str() {
        "" => setting.help.to_owned(),
        default => format!("{} [default: {default}]", setting.help),
    };
    (setting.mutability() != Mutability::Never).then(|| arg.help(help))
}

fn value_name(kind: &SettingKind) -> &'static str {
    match kind {
        SettingKind::YesNo => "YES|NO",
        SettingKind::Integer { .. } => "N",
        SettingKind::Bytes { .. } => "SIZE",
        SettingKind::Duration { .. } => "TIME",
        SettingKind::OneOf(_) => "WORD",
        SettingKind::Address => "IP",
        SettingKind::HostPort => "HOST[:PORT]",
        SettingKind::HostPorts => "HOST:PORT[,...]",
        SettingKind::SidePort { .. } | SettingKind::ExtraPort => "PORT",
        SettingKind::Name => "NAME",
        SettingKind::Path => "FILE",
        SettingKind::Secret => "SECRET",
        SettingKind::NotifyClasses => "LETTERS",
        SettingKind::OutputLimits => "LIMITS",
        SettingKind::Networks => "NETWORK[,...]",
        SettingKind::HostNames => "NAME[,...]",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, String> {
        let args = std::iter::once("opencluster").chain(line.split_whitespace());
        parse(args.map(OsString::from)).map_err(|answer| match answer {
            Answer::Help(text) => text.to_string(),
            Answer::BadInput(line) => line,
        })
    }

    fn flags(line: &str) -> Vec<(&'static str, String)> {
        match parsed(line) {
            Ok(Command::Serve(args)) => args.settings.0,
            Ok(other) => panic!("{line}: not serve but {other:?}"),
            Err(text) => panic!("{line}: {text}"),
        }
    }

    #[test]
    fn serve_is_what_happens_without_a_subcommand() {
        let expected = vec![("port", "7000".to_owned()), ("maxmemory", "1gb".to_owned())];
        assert_eq!(flags("--maxmemory 1gb --port 7000"), expected);
        assert_eq!(flags("serve --port=7000 --maxmemory=1gb"), expected);
        assert_eq!(flags(""), []);
    }

    #[test]
    fn a_yes_or_no_needs_no_value_and_a_number_may_be_negative() {
        assert_eq!(flags("--insecure"), [("insecure", "yes".to_owned())]);
        assert_eq!(flags("--insecure=no"), [("insecure", "no".to_owned())]);
        let off = [("slowlog-log-slower-than", "-1".to_owned())];
        assert_eq!(flags("--slowlog-log-slower-than -1"), off);
    }

    #[test]
    fn help_lists_every_setting_that_can_be_given_and_no_secret() {
        let help = parsed("--help").expect_err("help is an answer");
        for setting in TABLE {
            let listed = help.contains(&format!("--{} ", setting.name))
                || help.contains(&format!("--{}[", setting.name));
            let given = setting.mutability() != Mutability::Never && !setting.is_secret();
            assert_eq!(listed, given, "{}", setting.name);
        }
    }

    #[test]
    fn a_wrong_line_gets_one_line_back() {
        let cases = [
            ("--prot 1", "unexpected argument '--prot' found; did you mean '--port'?"),
            (
                "--port",
                "a value is required for '--port <N>' but none was supplied; see opencluster \
                 --help",
            ),
            ("srve", "unrecognized subcommand 'srve'; did you mean 'serve'?"),
            ("--qqq 2", "unexpected argument '--qqq' found; see opencluster --help"),
        ];
        for (line, expected) in cases {
            assert_eq!(parsed(line).expect_err("not a good line"), expected);
        }
    }

    #[test]
    fn the_version_is_that_of_the_workspace() {
        let text = parsed("--version").expect_err("the version is an answer");
        assert_eq!(text.trim(), format!("opencluster {}", version()));
    }
}

//! Settings from all sources: file < environment < flags; a later source overrides an earlier one. Called by
//! `serve.rs`, first [`layers`] and then [`settings`]; `settings/src` defines the settings
//! themselves. Every error names the place of the mistake and the values allowed there.

mod check; // Checks across settings: secrets, exposure, ports.

use std::path::{Path, PathBuf};

use settings::{SettingRefusal, Settings, find, parse_file};

use crate::Failure;
use crate::cli::ServeArgs;

pub(crate) use check::{fill_in, refuse_exposure, weak_secrets};

/// Settings as given, not yet parsed.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    pub(crate) file: Option<ConfigFile>,
    /// Variables whose name begins with [`ENV_PREFIX`].
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) flags: Vec<(&'static str, String)>,
}

#[derive(Debug)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

const ENV_PREFIX: &str = "OPENCLUSTER_";
/// The one variable that is not a setting: it names the configuration file.
const ENV_CONFIG: &str = "OPENCLUSTER_CONFIG";

/// Collects the given settings: reads the file, the environment and the flags.
pub(crate) fn layers(args: &ServeArgs) -> Result<Layers, Failure> {
    let path = args.config.clone().or_else(|| std::env::var_os(ENV_CONFIG).map(PathBuf::from));
    let file = path.map(|path| read_config(&path)).transpose()?;
    let mut environment = Vec::new();
    for (name, value) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with(ENV_PREFIX)) else {
            continue;
        };
        let value = value.into_string();
        let value = value.map_err(|_| Failure::BadInput(format!("{name}: must be UTF-8")))?;
        environment.push((name.to_owned(), value));
    }
    Ok(Layers { file, environment, flags: args.settings.0.clone() })
}

fn read_config(path: &Path) -> Result<ConfigFile, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(ConfigFile { path: path.to_owned(), text }),
        Err(error) => Err(Failure::BadInput(format!("cannot read {}: {error}", path.display()))),
    }
}

/// Merges the layers in order. No side effects.
pub(crate) fn settings(layers: &Layers) -> Result<Settings, Failure> {
    let mut settings = Settings::default();
    if let Some(file) = &layers.file {
        apply_file(&mut settings, file)?;
    }
    for (variable, text) in &layers.environment {
        apply_variable(&mut settings, variable, text)?;
    }
    for (name, text) in &layers.flags {
        apply_flag(&mut settings, name, text)?;
    }
    Ok(settings)
}

fn apply_file(settings: &mut Settings, file: &ConfigFile) -> Result<(), Failure> {
    let at = |line: usize| format!("{}:{line}", file.path.display());
    let bad = |line, reason: &str| Failure::BadInput(format!("{}: {reason}", at(line)));
    let entries = parse_file(&file.text).map_err(|error| bad(error.line, &error.reason))?;
    for entry in entries {
        settings
            .set(&entry.name, &entry.text)
            .map_err(|error| bad(entry.line, &error.to_string()))?;
    }
    Ok(())
}

fn apply_variable(settings: &mut Settings, variable: &str, text: &str) -> Result<(), Failure> {
    let name = variable[ENV_PREFIX.len()..].to_ascii_lowercase().replace('_', "-");
    if variable == ENV_CONFIG || is_kubernetes_link(variable, text) {
        return Ok(());
    }
    settings.set(&name, text).or_else(|error| match error {
        // Other software may use our prefix, so unknown names are ignored; a name close to a setting is a
        // typo.
        SettingRefusal::Unknown { suggestion: None, .. } => Ok(()),
        SettingRefusal::Unknown { suggestion: Some(near), .. } => {
            let near = find(near).expect("a suggestion is in the table").env_name();
            Err(bad_line(format!("{variable} is not a setting; did you mean {near}?")))
        }
        SettingRefusal::Invalid { value, allowed, .. } => {
            Err(bad_line(format!("{variable}='{value}': must be {allowed}")))
        }
        error @ (SettingRefusal::NeedsRestart { .. } | SettingRefusal::Fixed { .. }) => {
            Err(bad_line(format!("{variable}: {error}")))
        }
    })
}

/// Returns whether the variable comes from Kubernetes, which gives every container variables about the
/// services of its namespace. A service called `opencluster` is likely, and its
/// `OPENCLUSTER_PORT=tcp://10.0.0.5:6379` is not meant for us.
fn is_kubernetes_link(variable: &str, text: &str) -> bool {
    text.starts_with("tcp://")
        || text.starts_with("udp://")
        || variable.contains("_SERVICE_HOST")
        || variable.contains("_SERVICE_PORT")
        || variable.contains("_PORT_")
}

fn apply_flag(settings: &mut Settings, name: &str, text: &str) -> Result<(), Failure> {
    let setting = find(name).expect("flags are made from the table");
    if setting.is_secret() {
        return Err(bad_line(format!(
            "--{name}: everybody on this machine can read a secret given as an argument; put it \
             into a file and name that with --{name}-file, or into {}",
            setting.env_name()
        )));
    }
    settings.set(name, text).map_err(|error| match error {
        SettingRefusal::Invalid { value, allowed, .. } => {
            bad_line(format!("--{name} '{value}': must be {allowed}"))
        }
        error @ (SettingRefusal::Unknown { .. }
        | SettingRefusal::NeedsRestart { .. }
        | SettingRefusal::Fixed { .. }) => bad_line(format!("--{name}: {error}")),
    })
}

fn bad_line(line: String) -> Failure {
    Failure::BadInput(line)
}

#[cfg(test)]
mod tests;

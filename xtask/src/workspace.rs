//! Paths of the workspace, and running of commands in it. Used by every chore.
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the top of the workspace: the folder above this crate.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies inside the workspace")
}

/// Returns the directory where cargo builds.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Returns the folder for programs that the tests need and the machine lacks. `crates/e2e` uses the same.
pub(crate) fn tools_dir() -> PathBuf {
    std::env::var_os("OPENCLUSTER_TOOLS").map_or_else(|| target_dir().join("tools"), PathBuf::from)
}

/// Returns a command for the cargo that runs us, at the top of the workspace.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    command
}

/// Runs a command to its end, with its output going to ours.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = shown(command);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` ended with {status}")),
        Err(error) => Err(format!("`{shown}` could not be started: {error}")),
    }
}

/// Formats a command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned();
    command.get_args().fold(name, |line, arg| line + " " + &arg.to_string_lossy())
}

/// Returns whether a program of this name is on the PATH.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_holds_the_workspace_manifest() {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }

    #[test]
    fn a_failed_command_is_named_as_it_was_typed() {
        let why = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert!(why.starts_with("`sh -c exit 3` ended with"), "{why}");
    }

    #[test]
    fn only_what_is_on_the_path_is_found() {
        assert!(on_path("sh"));
        assert!(!on_path("no-such-program-anywhere"));
    }
}

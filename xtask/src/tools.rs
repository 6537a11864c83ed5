//! External programs that the tests need, and their installation: a Redis server to compare with,
//! its tools and Chromium (from the system's packages), clients for Python and Node and the browser's
//! driver (in target/tools).
//!
//! Called first by `check.rs`. None of it is needed to build or run a node.
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::workspace::{on_path, run, tools_dir};

/// Packages for Python, and the module that each provides.
const PYTHON_CLIENTS: [(&str, &str); 3] = [
    ("redis", "redis==8.1.0"),
    ("coredis", "coredis==6.9.0"),
    ("glide_sync", "valkey-glide-sync==2.5.3"),
];
const IOREDIS: &str = "ioredis@5.8.2";
const NODE_REDIS: &str = "redis@5.12.1";
const PLAYWRIGHT: &str = "playwright-core@1.65.0";

/// Installs everything that is missing. The error names what cannot be installed, with the command to type.
pub(crate) fn install() -> Result<(), String> {
    let node_clients = [node("ioredis", IOREDIS), node("redis", NODE_REDIS)];
    let wanted = [redis(), python_clients(), browser()].into_iter().chain(node_clients);
    let failures: Vec<String> = wanted.filter_map(Result::err).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

fn redis() -> Result<(), String> {
    packaged(&["redis-server", "redis-cli", "redis-benchmark"], &["redis-server", "redis-tools"])
}

fn python_clients() -> Result<(), String> {
    let venv = tools_dir().join("python");
    let python = venv.join("bin/python");
    let imports = PYTHON_CLIENTS.map(|(module, _)| format!("import {module}")).join("; ");
    if succeeds(Command::new(&python).args(["-c", &imports])) {
        return Ok(());
    }
    packaged(&["python3"], &["python3", "python3-venv"])?;
    let make = || run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
    if make().is_err() {
        // Debian's python3 lacks the part that creates environments.
        apt_install(&["python3-venv"])?;
        make()?;
    }
    let packages = PYTHON_CLIENTS.map(|(_, package)| package);
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages))
}

/// Installs valgrind, which counts instructions for `instructions.rs`; no test needs it.
pub(crate) fn valgrind() -> Result<(), String> {
    packaged(&["valgrind"], &["valgrind"])
}

/// Installs Chromium from the system's packages, and its driver.
fn browser() -> Result<(), String> {
    packaged(&["chromium"], &["chromium"])?;
    node("playwright-core", PLAYWRIGHT)
}

/// Installs a package for Node.
fn node(name: &str, package: &str) -> Result<(), String> {
    let dir = tools_dir().join("node");
    if dir.join("node_modules").join(name).join("package.json").is_file() {
        return packaged(&["node"], &["nodejs"]);
    }
    packaged(&["node", "npm"], &["nodejs", "npm"])?;
    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let quiet = ["--silent", "--no-audit", "--no-fund", "--no-package-lock"];
    run(Command::new("npm").args(["install", "--prefix"]).arg(&dir).args(quiet).arg(package))
}

/// Ensures that `programs` are on the PATH, through the system's `packages` if necessary.
fn packaged(programs: &[&str], packages: &[&str]) -> Result<(), String> {
    let missing = |program: &&&str| !on_path(program);
    if !programs.iter().any(|program| missing(&program)) {
        return Ok(());
    }
    apt_install(packages)?;
    match programs.iter().find(missing) {
        None => Ok(()),
        Some(program) => {
            Err(format!("installing {} did not provide {program}", packages.join(" ")))
        }
    }
}

fn apt_install(packages: &[&str]) -> Result<(), String> {
    let by_hand = format!("please install by hand: apt-get install {}", packages.join(" "));
    if !on_path("apt-get") {
        return Err(format!("there is no apt-get here; {by_hand}, or what your system calls them"));
    }
    if !is_root() {
        return Err(format!("only root may install packages; {by_hand}"));
    }
    let _quiet = NoServices::begin(Path::new("/usr/sbin/policy-rc.d"))?;
    let install = || {
        let mut command = Command::new("apt-get");
        command.args(["install", "--yes", "--quiet", "--no-install-recommends"]);
        run(command.args(packages).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    // A fresh machine has no package lists yet.
    install()
        .or_else(|_| {
            run(Command::new("apt-get").args(["update", "--quiet"])).and_then(|()| install())
        })
        .map_err(|why| format!("{why}; {by_hand}"))
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn succeeds(command: &mut Command) -> bool {
    let silent = command.stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}

/// A guard that keeps Debian's packages from starting their services while it lives: our tests start
/// their own servers, on their own ports. Dropping it restores the previous policy.
struct NoServices {
    policy: PathBuf,
    before: Option<PathBuf>,
}

impl NoServices {
    fn begin(policy: &Path) -> Result<NoServices, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", policy.display());
        let before = policy.exists().then(|| policy.with_extension("d.before-xtask"));
        if let Some(before) = &before {
            std::fs::rename(policy, before).map_err(failed)?;
        }
        // From here on, an early return restores the policy.
        let guard = NoServices { policy: policy.to_path_buf(), before };
        std::fs::write(policy, "#!/bin/sh\nexit 101\n").map_err(failed)?;
        run(Command::new("chmod").arg("755").arg(policy))?;
        Ok(guard)
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        let put_back = match &self.before {
            Some(before) => std::fs::rename(before, &self.policy),
            None => std::fs::remove_file(&self.policy),
        };
        if let Err(error) = put_back {
            eprintln!("cannot restore {}: {error}", self.policy.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty_dir(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("xtask-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn services_are_kept_from_starting_only_for_a_while() {
        let dir = empty_dir("policy-new");
        let policy = dir.join("policy-rc.d");
        let guard = NoServices::begin(&policy).unwrap();
        assert_eq!(Command::new(&policy).status().unwrap().code(), Some(101));
        drop(guard);
        assert!(!policy.exists());
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_policy_that_was_there_before_is_put_back() {
        let dir = empty_dir("policy-old");
        let policy = dir.join("policy-rc.d");
        std::fs::write(&policy, "theirs").unwrap();
        drop(NoServices::begin(&policy).unwrap());
        assert_eq!(std::fs::read_to_string(&policy).unwrap(), "theirs");
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn programs_that_are_there_need_no_package() {
        assert_eq!(packaged(&["sh"], &["no-such-package"]), Ok(()));
    }
}

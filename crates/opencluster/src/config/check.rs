//! Checks across settings, after each one is valid by itself, and values filled in from the machine: secrets
//! out of their files, the number of threads, the node's name.

use std::path::Path;
use std::thread::available_parallelism;

use settings::{Secret, Settings, SidePort};

use crate::Failure;

/// Maximum of the default. More threads gain little, and take cores from other processes.
const IO_THREADS_DEFAULT_MAX: u16 = 8;

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

/// Refuses a node that the network can reach without authentication. Returns the warning to log if the
/// settings allow it anyway (`insecure`).
pub(crate) fn refuse_exposure(settings: &Settings) -> Result<Option<String>, Failure> {
    let missing = match (settings.requirepass.is_empty(), settings.secret.is_empty()) {
        (false, false) => return Ok(None),
        (true, true) => {
            "no password for clients (requirepass-file) and no secret for nodes (secret-file)"
        }
        (true, false) => "no password for clients (requirepass-file)",
        (false, true) => "no secret for nodes (secret-file)",
    };
    let bind = settings.bind;
    if bind.is_loopback() {
        return Ok(None);
    }
    if settings.insecure {
        return Ok(Some(format!(
            "INSECURE: listening on {bind} with {missing}: whoever reaches this machine can read \
             and change everything"
        )));
    }
    Err(Failure::BadInput(format!(
        "bind = '{bind}': it is reachable from the network, but there is {missing}; set what is \
         missing, or start anyway with --insecure"
    )))
}

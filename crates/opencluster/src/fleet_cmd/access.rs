//! Arguments of every fleet command: the servers, and the access to them. Secrets come from files or from the
//! environment.

use std::path::{Path, PathBuf};

use clap::Args;
use fleet::Address;
use placement::ServerMap;
use proxy::{Access, Credentials, TlsFiles};

use crate::Failure;

const PASSWORD: &str = "OPENCLUSTER_FLEET_PASSWORD";

#[derive(Args, Debug)]
pub(super) struct AccessArgs {
    /// The fleet's servers, in the order of the map
    #[arg(long, value_name = "HOST:PORT,...")]
    servers: String,
    /// The user for AUTH at the servers
    #[arg(long, value_name = "NAME")]
    server_user: Option<String>,
    /// A file with the servers' password (or OPENCLUSTER_FLEET_PASSWORD in the environment)
    #[arg(long, value_name = "FILE")]
    server_password_file: Option<PathBuf>,
    /// Use TLS to the servers, and trust these certificate authorities (PEM)
    #[arg(long, value_name = "FILE")]
    tls_ca: Option<PathBuf>,
    /// The client certificate, if the servers require one (PEM)
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_key"])]
    tls_cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl AccessArgs {
    pub(super) fn servers(&self) -> Result<Vec<Address>, Failure> {
        addresses(&self.servers)
    }

    pub(super) fn access(&self) -> Result<Access, Failure> {
        let password = match &self.server_password_file {
            Some(file) => Some(secret(file)?),
            None => std::env::var(PASSWORD).ok(),
        };
        if self.server_user.is_some() && password.is_none() {
            let line = "--server-user needs a password: --server-password-file names its file";
            return Err(Failure::BadInput(line.to_owned()));
        }
        let user = self.server_user.clone();
        let credentials = password.map(|password| Credentials { user, password });
        let Some(authorities) = self.tls_ca.clone() else {
            return Ok(Access::new(credentials, None));
        };
        let identity = self.tls_cert.clone().zip(self.tls_key.clone());
        let loaded = TlsFiles { authorities, identity }.load();
        let tls = loaded.map_err(|error| Failure::Refused(error.to_string()))?;
        Ok(Access::new(credentials, Some(tls)))
    }
}

pub(super) fn addresses(text: &str) -> Result<Vec<Address>, Failure> {
    Address::list(text).map_err(|error| Failure::BadInput(error.to_string()))
}

pub(super) fn map(text: &str) -> Result<ServerMap, Failure> {
    text.parse().map_err(|error: placement::ServerMapError| Failure::BadInput(error.to_string()))
}

/// Returns the first line of a file.
pub(super) fn secret(file: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(file);
    let text = text.map_err(|error| Failure::Refused(format!("{}: {error}", file.display())))?;
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() {
        return Err(Failure::Refused(format!("{}: its first line is empty", file.display())));
    }
    Ok(line.to_owned())
}

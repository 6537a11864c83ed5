//! What the servers want to know of us before they talk: a password, and how TLS is done.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// The same for every server of a fleet.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub credentials: Option<Credentials>,
    /// With this, servers are talked to in TLS only.
    pub tls: Option<Arc<ClientConfig>>,
}

impl Access {
    /// The AUTH command to begin with, if there is one.
    pub fn auth_command(&self) -> Option<Vec<&[u8]>> {
        let credentials = self.credentials.as_ref()?;
        let mut command: Vec<&[u8]> = vec![b"AUTH"];
        command.extend(credentials.user.as_ref().map(String::as_bytes));
        command.push(credentials.password.as_bytes());
        Some(command)
    }
}

/// As `AUTH` takes them.
#[derive(Clone)]
pub struct Credentials {
    /// Left out for servers older than Redis 6, and for the default user.
    pub user: Option<String>,
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({:?}, ...)", self.user)
    }
}

/// The files TLS needs, all in PEM.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// Who is trusted to vouch for the servers.
    pub authorities: PathBuf,
    /// Our own certificate and its key, where servers ask for one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    pub fn load(&self) -> Result<Arc<ClientConfig>, AccessError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.authorities)? {
            roots.add(certificate).map_err(|error| unusable(&self.authorities, &error))?;
        }
        if roots.is_empty() {
            return Err(unusable(&self.authorities, &"it holds no certificate"));
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring knows the default versions")
            .with_root_certificates(roots);
        let config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let secret =
                    PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
                let built = builder.with_client_auth_cert(chain, secret);
                built.map_err(|error| unusable(certificate, &error))?
            }
        };
        Ok(Arc::new(config))
    }
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, AccessError> {
    let read = CertificateDer::pem_file_iter(file).map_err(|error| unusable(file, &error))?;
    read.collect::<Result<_, _>>().map_err(|error| unusable(file, &error))
}

fn unusable(file: &Path, why: &dyn fmt::Display) -> AccessError {
    AccessError { file: file.to_owned(), why: why.to_string() }
}

/// A file for TLS that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessError {
    pub file: PathBuf,
    pub why: String,
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.why)
    }
}

impl std::error::Error for AccessError {}

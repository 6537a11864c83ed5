//! Access to the servers: a password, and the TLS settings.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fleet::Address;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// Credentials and TLS settings, the same for every server of a fleet.
#[derive(Clone, Debug, Default)]
pub struct Access {
    pub credentials: Option<Credentials>,
    /// TLS configuration. If set, servers are contacted over TLS only.
    pub tls: Option<Arc<ClientConfig>>,
    /// Nodes that clusters have reported.
    pub(crate) learnt: Arc<Learnt>,
}

/// Nodes of clusters besides the named ones: a named node may be gone one day.
#[derive(Debug, Default)]
pub(crate) struct Learnt(Mutex<BTreeMap<Address, VecDeque<Address>>>);

impl Learnt {
    /// Returns a node of this cluster to start with.
    pub(crate) fn seed(&self, cluster: &Address) -> Address {
        let mut known = self.0.lock();
        let known = known.entry(cluster.clone()).or_insert_with(|| cluster.nodes().collect());
        known.front().cloned().expect("a cluster is named by a node")
    }

    /// Returns all known nodes of this cluster.
    pub(crate) fn nodes(&self, cluster: &Address) -> Vec<Address> {
        self.0.lock().get(cluster).map(|known| known.iter().cloned().collect()).unwrap_or_default()
    }

    /// Records the nodes that a node reports of its cluster; unreported ones are dropped, except the named ones.
    pub(crate) fn learn<'a>(&self, cluster: &Address, nodes: impl Iterator<Item = &'a Address>) {
        let mut known = self.0.lock();
        let known = known.entry(cluster.clone()).or_default();
        let nodes: Vec<&Address> = nodes.collect();
        known.retain(|node| nodes.contains(&node) || cluster.nodes().any(|named| named == *node));
        for node in nodes {
            if !known.contains(node) {
                known.push_back(node.clone());
            }
        }
    }

    /// Moves the node we started with to the end of the list, because it was unusable.
    pub(crate) fn pass_over(&self, cluster: &Address) {
        if let Some(known) = self.0.lock().get_mut(cluster) {
            known.rotate_left(1);
        }
    }
}

impl Access {
    pub fn new(credentials: Option<Credentials>, tls: Option<Arc<ClientConfig>>) -> Access {
        Access { credentials, tls, learnt: Arc::default() }
    }

    /// Returns the AUTH command to start with, if there is one.
    pub fn auth_command(&self) -> Option<Vec<&[u8]>> {
        let credentials = self.credentials.as_ref()?;
        let mut command: Vec<&[u8]> = vec![b"AUTH"];
        command.extend(credentials.user.as_ref().map(String::as_bytes));
        command.push(credentials.password.as_bytes());
        Some(command)
    }
}

/// Credentials as `AUTH` takes them.
#[derive(Clone)]
pub struct Credentials {
    /// User name. Absent for servers older than Redis 6, and for the default user.
    pub user: Option<String>,
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({:?}, ...)", self.user)
    }
}

/// Files for TLS, all in PEM format.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    /// Certificates of the authorities trusted to sign the servers' certificates.
    pub authorities: PathBuf,
    /// Our own certificate and its key, for servers that require one.
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

/// Error: a TLS file that cannot be used.
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

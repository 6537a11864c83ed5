//! Attempts of strangers to get in, and of anybody to exhaust a node: the exploits of the security review. None of
//! them may do harm.
mod exhaustion; // More connections than the system allows.
mod files; //      Secrets and data on disk.
mod ports; //      Web pages and strangers at the ports for clients.
mod timers; //     Timers as a way in, and as a way to fill the memory.

use std::path::PathBuf;

use e2e::Server;

/// A file with a secret, removed at the end.
pub struct SecretFile(PathBuf);

impl SecretFile {
    pub fn new(name: &str, text: &str) -> SecretFile {
        use std::io::Write;
        use std::os::unix::fs::OpenOptionsExt;
        let path =
            std::env::temp_dir().join(format!("opencluster-doors-{}-{name}", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(&path);
        let mut file = file.expect("the temporary directory can be written");
        file.write_all(text.as_bytes()).expect("a few bytes");
        SecretFile(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().expect("plain letters")
    }
}

impl Drop for SecretFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A directory, removed at the end.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let path =
            std::env::temp_dir().join(format!("opencluster-doors-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the temporary directory can be written");
        Scratch(path)
    }

    pub fn path(&self) -> &str {
        self.0.to_str().expect("plain letters")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub const PASSWORD: &str = "a password of some length";
const SECRET: &str = "a secret of the nodes of some length";

/// Starts a node with a password for clients and a secret for nodes.
pub fn node_with_password(name: &str, flags: &[&str]) -> Server {
    let password = SecretFile::new(&format!("{name}-password"), PASSWORD);
    let secret = SecretFile::new(&format!("{name}-secret"), SECRET);
    let secrets = ["--requirepass-file", password.path(), "--secret-file", secret.path()];
    Server::node_with(&[&secrets, flags].concat())
}

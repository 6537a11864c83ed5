//! Permissions of files and directories, and the password that `CONFIG REWRITE` keeps.
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use e2e::Server;
use resp::Value;

use crate::{Scratch, SecretFile};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

#[test]
fn nothing_in_the_data_directory_can_be_read_by_others() {
    let dir = Scratch::new("modes");
    let data = dir.0.join("data");
    let path = data.to_str().expect("plain letters");
    let node = Server::node_under("umask 022", &["--data-dir", path]);
    let mut client = node.client();
    client.run("SET k v");
    client.run("TIMER.SET * 600 PUBLISH c m");
    node.terminate();
    assert_eq!(mode(&data), 0o700);
    let files: Vec<_> = std::fs::read_dir(&data).expect("a directory").flatten().collect();
    let names: Vec<String> =
        files.iter().map(|file| file.file_name().to_string_lossy().into_owned()).collect();
    for name in ["node", "log", "items", "timers.snapshot"] {
        assert!(names.iter().any(|found| found == name), "{name} of {names:?}");
    }
    for file in files {
        assert_eq!(mode(&file.path()), 0o600, "{}", file.path().display());
    }
}

#[test]
fn a_password_changed_as_documented_is_there_after_the_next_start() {
    let dir = Scratch::new("rewrite");
    let password = SecretFile::new("rewrite-password", "the first password\n");
    let config = dir.0.join("node.toml");
    let text = format!("requirepass-file = {:?}\npeer-port = \"off\"\n", password.path());
    std::fs::write(&config, text).expect("our own directory");
    let flags = ["--config", config.to_str().expect("plain letters")];
    let ok = Value::Simple(b"OK".to_vec());
    let start = || Server::node_from_file(&flags);
    let node = start();
    let mut client = node.client();
    assert_eq!(client.call(&["AUTH", "the first password"]).value, ok);
    assert_eq!(client.call(&["CONFIG", "SET", "requirepass", "the second password"]).value, ok);
    assert_eq!(client.run("CONFIG REWRITE"), ok);
    node.terminate();
    let text = std::fs::read_to_string(&config).expect("it is there");
    assert!(!text.contains("second"), "{text}");
    assert_eq!(mode(Path::new(password.path())), 0o600);
    assert_eq!(start().client().call(&["AUTH", "the second password"]).value, ok);
}

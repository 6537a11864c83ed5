//! Tests of TLS to the servers.

use std::path::PathBuf;

use e2e::Server;
use proxy::{Proxy, TlsFiles};

use crate::support::{bulk, options};

/// A self-signed certificate for 127.0.0.1 and its key, as files.
struct Certificate {
    dir: PathBuf,
}

impl Certificate {
    fn new(name: &str) -> Certificate {
        let dir = std::env::temp_dir().join(format!("proxy-tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        std::fs::write(dir.join("cert.pem"), made.cert.pem()).unwrap();
        std::fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
        Certificate { dir }
    }

    fn file(&self, name: &str) -> String {
        self.dir.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

#[test]
fn servers_are_talked_to_in_tls_and_must_prove_who_they_are() {
    let (right, wrong) = (Certificate::new("right"), Certificate::new("wrong"));
    let [tls_port] = e2e::free_ports();
    let server = Server::redis_with(&[
        "--tls-port",
        &tls_port.to_string(),
        "--tls-cert-file",
        &right.file("cert.pem"),
        "--tls-key-file",
        &right.file("key.pem"),
        "--tls-auth-clients",
        "no",
    ]);
    let mut options = options(std::slice::from_ref(&server));
    options.servers[0].port = tls_port;
    let files =
        |of: &Certificate| TlsFiles { authorities: of.file("cert.pem").into(), identity: None };
    options.access.tls = Some(files(&wrong).load().unwrap());
    let error = Proxy::start(options.clone()).err().unwrap().to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");

    options.access.tls = Some(files(&right).load().unwrap());
    let proxy = Proxy::start(options).unwrap();
    let mut client = e2e::Client::try_connect(proxy.address().port()).unwrap();
    let large = "x".repeat(3_000_000);
    for number in 0..200 {
        client.send(&["SET", &format!("k:{number}"), &number.to_string()]).unwrap();
    }
    for _ in 0..200 {
        assert!(client.receive().unwrap().value.is_ok());
    }
    assert_eq!(client.run("GET k:77"), bulk("77"));
    assert!(client.call(&["SET", "large", &large]).value.is_ok());
    assert_eq!(client.call(&["GET", "large"]).value, bulk(&large));
    assert_eq!(server.client().run("GET k:199"), bulk("199"));
}

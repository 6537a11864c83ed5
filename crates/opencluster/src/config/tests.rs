//! Tests of the layers, and of every error message about a wrong one.

use std::io::Write;

use super::*;

fn layers(file: &str, environment: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Layers {
    let owned = |(name, text): &(&str, &str)| ((*name).to_owned(), (*text).to_owned());
    Layers {
        file: Some(ConfigFile { path: PathBuf::from("node.toml"), text: file.to_owned() }),
        environment: environment.iter().map(owned).collect(),
        flags: flags.iter().map(|(name, text)| (*name, (*text).to_owned())).collect(),
    }
}

/// Returns the error line for a bad input.
fn complaint(layers: &Layers) -> String {
    let settings = settings(layers).and_then(|mut settings| {
        fill_in(&mut settings)?;
        refuse_exposure(&settings)
    });
    match settings {
        Err(Failure::BadInput(line)) => line,
        other => panic!("{layers:?} gave {other:?}"),
    }
}

#[test]
fn flags_go_over_the_environment_and_the_environment_over_the_file() {
    let file = "port = 7001\nmaxclients = 1\ntimeout = \"1m\"\n";
    let environment = [("OPENCLUSTER_PORT", "7002"), ("OPENCLUSTER_MAXCLIENTS", "2")];
    let settings = settings(&layers(file, &environment, &[("port", "7003")])).expect("all good");
    assert_eq!(settings.port, 7003);
    assert_eq!(settings.maxclients, 2);
    assert_eq!(settings.timeout.as_secs(), 60);
    assert_eq!(settings.tcp_keepalive.as_secs(), 300);
}

#[test]
fn a_mistake_in_the_file_names_file_line_key_value_and_what_is_allowed() {
    let cases = [
        (
            "port = 7000\nprot = 1\n",
            "node.toml:2: there is no setting 'prot'; did you mean 'port'?",
        ),
        (
            "shards = 3\n",
            "node.toml:1: there is no setting 'shards'; docs/configuration.md lists them all",
        ),
        (
            "maxmemmory = 1\n",
            "node.toml:1: there is no setting 'maxmemmory'; did you mean 'maxmemory'?",
        ),
        ("\n\nport = 99999\n", "node.toml:3: port = '99999': must be a number from 0 to 65535"),
        ("cross-slot = true\n", "node.toml:1: cross-slot = 'yes': must be one of allowed, never"),
        (
            "maxmemory = 1.5\n",
            "node.toml:1: maxmemory = '1.5': must be a size such as 1048576, 100mb or 1gb",
        ),
        (
            "appendonly = true\n",
            "node.toml:1: appendonly is always 'no' here; it is there for Redis clients to read",
        ),
        ("port = [1]\n", "node.toml:1: port: must be one value, such as port = \"...\""),
        ("port = 1\nport = 2\n", "node.toml:2: duplicate key"),
        ("port 1\n", "node.toml:1: key with no value, expected `=`"),
    ];
    for (file, expected) in cases {
        assert_eq!(complaint(&layers(file, &[], &[])), expected);
    }
}

#[test]
fn a_mistake_in_the_environment_names_the_variable() {
    let cases = [
        ("OPENCLUSTER_PORT", "x", "OPENCLUSTER_PORT='x': must be a number from 0 to 65535"),
        (
            "OPENCLUSTER_MAXMEMROY",
            "1gb",
            "OPENCLUSTER_MAXMEMROY is not a setting; did you mean OPENCLUSTER_MAXMEMORY?",
        ),
        (
            "OPENCLUSTER_HZ",
            "100",
            "OPENCLUSTER_HZ: hz is always '10' here; it is there for Redis clients to read",
        ),
    ];
    for (variable, text, expected) in cases {
        assert_eq!(complaint(&layers("", &[(variable, text)], &[])), expected);
    }
}

#[test]
fn variables_that_are_not_ours_are_left_alone() {
    let foreign = [
        ("OPENCLUSTER_CONFIG", "node.toml"),
        ("OPENCLUSTER_PORT", "tcp://10.0.0.5:6379"),
        ("OPENCLUSTER_PORT_6379_TCP_ADDR", "10.0.0.5"),
        ("OPENCLUSTER_SERVICE_HOST", "10.0.0.5"),
        ("OPENCLUSTER_SERVICE_PORT", "6379"),
        ("OPENCLUSTER_CHART_RELEASE_NOTES", "?"),
    ];
    assert_eq!(settings(&layers("", &foreign, &[])), Ok(Settings::default()));
}

#[test]
fn a_mistake_in_a_flag_names_the_flag() {
    let cases = [
        ("io-threads", "many", "--io-threads 'many': must be a number from 0 to 128"),
        ("insecure", "perhaps", "--insecure 'perhaps': must be yes or no"),
        (
            "requirepass",
            "sesame",
            "--requirepass: everybody on this machine can read a secret given as an argument; put \
             it into a file and name that with --requirepass-file, or into OPENCLUSTER_REQUIREPASS",
        ),
    ];
    for (flag, text, expected) in cases {
        assert_eq!(complaint(&layers("", &[], &[(flag, text)])), expected);
    }
}

#[test]
fn settings_that_do_not_fit_together_are_refused() {
    let cases = [
        (
            "port = 65000\n",
            "port = 65000: http-port would be 66000, which is not a valid port; choose a port up \
             to 64535 or give --http-port",
        ),
        (
            "port = 60000\n",
            "port = 60000: peer-port would be 70000, which is not a valid port; choose a port up \
             to 55535 or give --peer-port",
        ),
        ("http-port = 6379\n", "http-port = 6379: that is the port for clients already"),
        (
            "bind = \"0.0.0.0\"\n",
            "bind = '0.0.0.0': it is reachable from the network, but there is no password for \
             clients (requirepass-file) and no secret for nodes (secret-file); set what is \
             missing, or start anyway with --insecure",
        ),
        (
            "bind = \"::\"\nrequirepass = \"x\"\n",
            "bind = '::': it is reachable from the network, but there is no secret for nodes \
             (secret-file); set what is missing, or start anyway with --insecure",
        ),
        (
            "http-bind = \"0.0.0.0\"\n",
            "http-bind = '0.0.0.0': it is reachable from the network, but there is no password for \
             clients (requirepass-file) and no secret for nodes (secret-file); set what is \
             missing, or start anyway with --insecure",
        ),
        (
            "requirepass = \"x\"\n",
            "clients need a password (requirepass), but there is no secret for nodes \
             (secret-file): every user of this machine can join and read everything; set \
             secret-file, or peer-port = off for a node that stays alone, or start anyway with \
             --insecure",
        ),
        (
            "requirepass = \"x\"\nrequirepass-file = \"y\"\n",
            "requirepass and requirepass-file are both given; keep one of them",
        ),
        (
            "requirepass-file = \"/nowhere/at/all\"\n",
            "requirepass-file = '/nowhere/at/all': No such file or directory (os error 2)",
        ),
    ];
    for (file, expected) in cases {
        assert_eq!(complaint(&layers(file, &[], &[])), expected);
    }
}

#[test]
fn an_insecure_node_is_loud_about_it_and_a_local_one_is_not() {
    let exposure = |file: &str| {
        refuse_exposure(&settings(&layers(file, &[], &[])).expect("all good")).expect("starts")
    };
    let warning = exposure("bind = \"0.0.0.0\"\ninsecure = true\n").expect("a warning");
    assert!(warning.starts_with("INSECURE: listening on 0.0.0.0"), "{warning}");
    assert_eq!(exposure("insecure = true\n"), None);
    assert_eq!(exposure("bind = \"127.0.0.9\"\n"), None);
    assert_eq!(exposure("requirepass = \"x\"\npeer-port = \"off\"\n"), None);
    let warning = exposure("requirepass = \"x\"\ninsecure = true\n").expect("a warning");
    assert!(warning.starts_with("INSECURE: clients need a password"), "{warning}");
}

/// A temporary file with `text`, removed at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("opencluster-{}-{name}", std::process::id()));
        std::fs::File::create(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .expect("the temporary folder takes a file");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn secrets_are_read_from_their_files_without_the_line_end() {
    let password = Scratch::new("password", "open sesame\n");
    let secret = Scratch::new("secret", "shared\r\n");
    let file = format!(
        "bind = \"0.0.0.0\"\nrequirepass-file = {:?}\nsecret-file = {:?}\n",
        password.0, secret.0
    );
    let mut settings = settings(&layers(&file, &[], &[])).expect("all good");
    fill_in(&mut settings).expect("both files are there");
    assert_eq!(settings.requirepass.expose(), "open sesame");
    assert_eq!(settings.secret.expose(), "shared");
    assert_eq!(refuse_exposure(&settings), Ok(None));
}

#[test]
fn a_secret_that_others_can_read_or_guess_is_worth_a_warning() {
    let warnings = |text: &str, mode: u32| {
        let scratch = Scratch::new(&format!("weak-{}-{mode:o}", text.len()), text);
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&scratch.0, permissions).expect("our own file");
        let file = format!("secret-file = {:?}\n", scratch.0);
        let mut settings = settings(&layers(&file, &[], &[])).expect("all good");
        fill_in(&mut settings).expect("the file is there");
        weak_secrets(&settings).join("\n")
    };
    assert_eq!(warnings(&"x".repeat(16), 0o600), "");
    assert!(warnings(&"x".repeat(16), 0o644).contains("(mode 644); run: chmod 600"));
    assert!(warnings("short", 0o600).contains("a secret of 5 bytes can be guessed"));
}

#[test]
fn a_secret_file_must_hold_one_line() {
    for (name, text, reason) in [
        ("empty", "\n", "the file is empty; it must hold the secret, on one line"),
        ("two", "a\nb\n", "the file has several lines; it must hold the secret, on one line"),
        ("long", &"x".repeat(513), "a secret has at most 512 bytes"),
    ] {
        let scratch = Scratch::new(name, text);
        let file = format!("secret-file = {:?}\n", scratch.0);
        let expected = format!("secret-file = '{}': {reason}", scratch.0.display());
        assert_eq!(complaint(&layers(&file, &[], &[])), expected);
    }
}

#[test]
fn the_machine_fills_in_threads_and_a_name() {
    let mut settings = Settings { port: 7123, ..Settings::default() };
    fill_in(&mut settings).expect("nothing to object to");
    assert!((1..=8).contains(&settings.io_threads));
    assert!(settings.name.ends_with(":7123"), "{}", settings.name);
    let name = settings.name.clone();
    settings.set("name", &name).expect("the default name is a name");
}

#[test]
fn docs_configuration_md_is_what_the_table_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = settings::document();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, &page).expect("docs/ can be written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == page, "run: UPDATE_DOCS=1 cargo test -p opencluster docs_configuration");
}

//! Tests of the guarantees of the table of settings.

use super::*;

fn after(name: &str, text: &str) -> Result<String, String> {
    let mut settings = Settings::default();
    match settings.set(name, text) {
        Ok(()) => Ok(settings.get(name).expect("a setting that was set can be read")),
        Err(error) => {
            assert_eq!(settings, Settings::default(), "an error changes nothing");
            Err(error.to_string())
        }
    }
}

#[test]
fn every_default_is_a_value_its_own_setting_takes() {
    for setting in TABLE {
        let text = setting.default_text();
        if setting.name == "name" {
            continue; // Empty only until the host's name is filled in.
        }
        assert_eq!(after(setting.name, &text), Ok(text), "{}", setting.name);
    }
}

#[test]
fn names_are_unique_and_sections_stand_together() {
    for (i, setting) in TABLE.iter().enumerate() {
        assert!(TABLE[..i].iter().all(|other| other.name != setting.name), "{}", setting.name);
        assert!(i == 0 || TABLE[i - 1].section <= setting.section, "{}", setting.name);
        assert!(!setting.help.ends_with('.'), "{}", setting.name);
    }
}

#[test]
fn texts_come_back_as_redis_writes_them() {
    let cases = [
        ("maxmemory", "100mb", "104857600"),
        ("maxmemory", "1GB", "1073741824"),
        ("maxmemory", "1g", "1000000000"),
        ("maxmemory", "18446744073709551615", "18446744073709551615"),
        ("MAXMEMORY-Policy", "AllKeys-LRU", "allkeys-lru"),
        ("timeout", "5m", "300"),
        ("timeout", "1500ms", "1"),
        ("slowlog-log-slower-than", "-1", "-1"),
        ("slowlog-log-slower-than", "2ms", "2000"),
        ("slowlog-log-slower-than", "9223372036854775807", "9223372036854775807"),
        ("latency-monitor-threshold", "9223372036854775807", "9223372036854775807"),
        ("notify-keyspace-events", "KEA", "AKE"),
        ("notify-keyspace-events", "mnAEK", "AKEm"),
        ("notify-keyspace-events", "dtexzhsl$gn", "A"),
        ("notify-keyspace-events", "nxKE", "xnKE"),
        ("notify-keyspace-events", "", ""),
        (
            "client-output-buffer-limit",
            "replica 1mb 2k 5",
            "normal 0 0 0 slave 1048576 2000 5 pubsub 33554432 8388608 60",
        ),
        ("join", "a:1,10.0.0.2:6379,[::1]:7", "a:1,10.0.0.2:6379,[::1]:7"),
        ("join", "", ""),
        ("replica-port", "auto", "auto"),
        ("replica-port", "8379", "8379"),
        ("any-port", "0", "0"),
        ("any-port", "off", "off"),
        ("zone", "", ""),
        ("zone", "rack-7", "rack-7"),
        ("buckets", "4096", "4096"),
        ("backups", "0", "0"),
        ("ack", "Primary", "primary"),
        ("http-port", "auto", "auto"),
        ("http-port", "9000", "9000"),
        ("http-bind", "", ""),
        ("http-bind", "::1", "::1"),
        ("http-allowed-hosts", "a.example, b.example", "a.example,b.example"),
        ("http-open", "Metrics", "metrics"),
        ("timers.allow-callbacks", "auto", "auto"),
        ("advertise", "[::1]:7000", "[::1]:7000"),
        ("advertise", "::1", "::1"),
        ("advertise", "db1.example:7000", "db1.example:7000"),
        ("bind", "localhost", "127.0.0.1"),
        ("insecure", "yes", "yes"),
        ("requirepass", "two words", "two words"),
        ("save", "", ""),
        ("appendonly", "NO", "no"),
    ];
    for (name, text, shown) in cases {
        assert_eq!(after(name, text), Ok(shown.to_owned()), "{name} {text}");
    }
}

#[test]
fn only_a_node_that_nobody_else_reaches_may_call_local_addresses_by_default() {
    let may_call = |changes: &[(&str, &str)]| {
        let mut settings = Settings::default();
        for (name, text) in changes {
            settings.set(name, text).expect("a value");
        }
        settings.callback_rules().check("127.0.0.1:80".parse().expect("an address")).is_ok()
    };
    assert!(may_call(&[]));
    assert!(!may_call(&[("bind", "0.0.0.0")]));
    assert!(!may_call(&[("http-bind", "0.0.0.0")]));
    assert!(may_call(&[("http-bind", "0.0.0.0"), ("http-port", "off")]));
    assert!(may_call(&[("bind", "0.0.0.0"), ("timers.allow-callbacks", "local")]));
    assert!(!may_call(&[("timers.allow-callbacks", "")]));
}

#[test]
fn a_node_that_others_reach_keeps_its_password() {
    let mut settings = Settings::default();
    settings.set("requirepass", "secret").expect("a password");
    assert!(settings.with_changes(&[("requirepass", "")]).is_ok(), "nobody else reaches it");
    settings.set("bind", "0.0.0.0").expect("an address");
    let refused = settings.with_changes(&[("maxclients", "5"), ("RequirePass", "")]);
    assert_eq!(refused.map_err(|refused| refused.index), Err(1));
    assert!(settings.with_changes(&[("requirepass", "other")]).is_ok());
    settings.set("insecure", "yes").expect("a word");
    assert!(settings.with_changes(&[("requirepass", "")]).is_ok());
}

#[test]
fn the_memory_of_timers_follows_that_of_data() {
    let max = |maxmemory: &str, timers: &str| {
        let mut settings = Settings::default();
        settings.set("maxmemory", maxmemory).expect("a size");
        settings.set("timers.maxmemory", timers).expect("a size");
        settings.timer_bytes_max()
    };
    assert_eq!(max("0", "0"), 1 << 30);
    assert_eq!(max("100mb", "0"), 10 << 20);
    assert_eq!(max("1mb", "0"), 1 << 20);
    assert_eq!(max("100mb", "5mb"), 5 << 20);
}

#[test]
fn a_wrong_value_is_told_what_is_allowed() {
    let policies = "volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, \
                    allkeys-lfu, allkeys-random, noeviction";
    let strings = "a size such as 1048576, 100mb or 1gb, at least 1mb, at most 512mb";
    let cases = [
        ("maxmemory", "1.5gb", "a size such as 1048576, 100mb or 1gb"),
        ("maxmemory", "99999999999gb", "a size such as 1048576, 100mb or 1gb"),
        ("proto-max-bulk-len", "5", strings),
        ("proto-max-bulk-len", "513mb", strings),
        ("maxmemory-policy", "lru", &format!("one of {policies}")),
        ("port", "65536", "a number from 0 to 65535"),
        ("port", "http", "a number from 0 to 65535"),
        ("maxclients", "0", "a number, 1 or more"),
        (
            "tcp-keepalive",
            "10h",
            "a number of seconds from 0 to 32767, or one with a unit such as 500ms, 30s or 5m",
        ),
        (
            "timeout",
            "soon",
            "a number of seconds, 0 or more, or one with a unit such as 500ms, 30s or 5m",
        ),
        ("insecure", "maybe", "yes or no"),
        ("bind", "example.com", "an IP address such as 127.0.0.1, 0.0.0.0 or ::1"),
        ("http-port", "70000", "a port from 0 to 65535, auto (port + 1000) or off"),
        ("peer-port", "x", "a port from 0 to 65535, auto (port + 10000) or off"),
        ("join", "a", "HOST:PORT, or several of them joined by commas"),
        ("join", "a:1,,b:2", "HOST:PORT, or several of them joined by commas"),
        ("buckets", "100", "one of 16, 256, 4096, 16384"),
        ("backups", "4", "a number from 0 to 3"),
        ("any-port", "auto", "a port from 0 to 65535, or off"),
        ("advertise", "db1:0", "HOST or HOST:PORT"),
        ("advertise", "a b", "HOST or HOST:PORT"),
        ("name", "", "1 to 64 letters, digits, dots, dashes, underscores or colons"),
        ("notify-keyspace-events", "KQ", "letters out of Ag$lshzxeKEtmdn, or empty for none"),
        (
            "client-output-buffer-limit",
            "normal 1",
            "CLASS HARD SOFT SECONDS, once or more, with CLASS normal, replica or pubsub (such as \
             'pubsub 32mb 8mb 60')",
        ),
    ];
    for (name, text, allowed) in cases {
        assert_eq!(after(name, text), Err(format!("{name} = '{text}': must be {allowed}")));
    }
}

#[test]
fn an_unknown_name_gets_a_suggestion() {
    assert_eq!(
        after("maxmemmory", "1gb").unwrap_err(),
        "there is no setting 'maxmemmory'; did you mean 'maxmemory'?"
    );
    assert_eq!(
        after("replicate-to-the-moon", "1").unwrap_err(),
        "there is no setting 'replicate-to-the-moon'; docs/configuration.md lists them all"
    );
}

#[test]
fn a_secret_is_never_repeated() {
    let long = "x".repeat(Secret::BYTES_MAX + 1);
    let error = after("requirepass", &long).unwrap_err();
    assert_eq!(error, "requirepass = '***': must be a text of at most 512 bytes");
    let mut settings = Settings::default();
    settings.set("requirepass", "sesame").expect("a password");
    assert!(!format!("{settings:?}").contains("sesame"));
}

#[test]
fn config_set_answers_a_mistake_as_redis_does() {
    let prefix = "ERR CONFIG SET failed (possibly related to argument";
    let cases = [
        ("maxmemory", "100x", "argument must be a memory value"),
        ("maxmemory-samples", "0", "argument must be between 1 and 2147483647 inclusive"),
        ("maxmemory-samples", "abc", "argument couldn't be parsed into an integer"),
        ("timeout", "-1", "argument must be between 0 and 2147483647 inclusive"),
        ("maxclients", "99999999999", "argument must be between 1 and 4294967295 inclusive"),
        (
            "slowlog-log-slower-than",
            "-2",
            "argument must be between -1 and 9223372036854775807 inclusive",
        ),
        (
            "client-query-buffer-limit",
            "5",
            "argument must be between 1048576 and 9223372036854775807 inclusive",
        ),
        (
            "maxmemory-policy",
            "lru",
            "argument(s) must be one of the following: volatile-lru, volatile-lfu, \
             volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, allkeys-random, noeviction",
        ),
        ("tcp-backlog", "5", "can't set immutable config"),
        ("appendonly", "yes", "only 'no' is supported here"),
        ("notify-keyspace-events", "KEq", "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."),
        (
            "client-output-buffer-limit",
            "foo 1mb 0 0",
            "Invalid client class specified in buffer limit configuration.",
        ),
        (
            "client-output-buffer-limit",
            "normal 1mb 0",
            "Wrong number of arguments in buffer limit configuration.",
        ),
        (
            "client-output-buffer-limit",
            "normal x 0 0",
            "Error in hard, soft or soft_seconds setting in buffer limit configuration.",
        ),
    ];
    for (name, text, reason) in cases {
        let error = Settings::default().change(name, text).expect_err(name);
        assert_eq!(error.redis_error(name), format!("{prefix} '{name}') - {reason}"));
    }
    let unknown = Settings::default().change("foo", "2").expect_err("foo");
    assert_eq!(
        unknown.redis_error("foo"),
        "ERR Unknown option or number of arguments for CONFIG SET - 'foo'"
    );
}

#[test]
fn side_ports_follow_the_client_port() {
    let ports = |port: &str, http: &str| {
        let mut settings = Settings::default();
        settings.set("port", port).expect("a port");
        settings.set("http-port", http).expect("a port");
        settings.effective_http_port()
    };
    assert_eq!(ports("6379", "auto"), Some(7379));
    assert_eq!(ports("0", "auto"), Some(0));
    assert_eq!(ports("65000", "auto"), None);
    assert_eq!(ports("6379", "off"), None);
    assert_eq!(ports("6379", "8080"), Some(8080));
}

#[test]
fn an_event_needs_its_class_and_a_channel() {
    let mut settings = Settings::default();
    let mut publishes = |letters| {
        settings.set("notify-keyspace-events", letters).expect("letters");
        settings.notify_keyspace_events.publishes(NotifyClasses::EXPIRED)
    };
    assert!(publishes("Ex"));
    assert!(publishes("KA"));
    assert!(!publishes("x"));
    assert!(!publishes("KE$"));
}

#[test]
fn a_file_is_read_with_its_line_numbers() {
    let text =
        "# a comment\nport = 7000\n\nmaxmemory = \"1gb\" # room\ninsecure = true\ntimeout = 1.5\n";
    let entries = parse_file(text).expect("a good file");
    let entries: Vec<_> = entries
        .iter()
        .map(|entry| (entry.line, entry.name.as_str(), entry.text.as_str()))
        .collect();
    assert_eq!(
        entries,
        [
            (2, "port", "7000"),
            (4, "maxmemory", "1gb"),
            (5, "insecure", "yes"),
            (6, "timeout", "1.5")
        ]
    );
}

#[test]
fn a_file_that_is_not_ours_names_the_line() {
    let cases = [
        ("port = 1\nport 7000\n", 2),
        ("port = 1\n\nport = 2\n", 3),
        ("[network]\nport = 1\n", 1),
        ("port = [1, 2]\n", 1),
    ];
    for (text, line) in cases {
        let error = parse_file(text).expect_err(text);
        assert_eq!(error.line, line, "{text:?}: {error}");
        assert!(!error.reason.is_empty() && !error.reason.contains('\n'), "{error}");
    }
}

#[test]
fn rewriting_a_file_changes_what_changed_and_nothing_else() {
    let text = "# ours\nport = 7000 # clients\n\nmaxmemory = \"1gb\" # room\n";
    let mut settings = Settings::default();
    settings.set("maxmemory", "2gb").expect("a size");
    settings.set("maxclients", "5").expect("a number");
    settings.set("maxmemory-policy", "allkeys-lfu").expect("a policy");
    settings.set("requirepass", "007").expect("a password");
    let changed = ["maxclients", "maxmemory", "requirepass"];
    assert_eq!(
        rewrite_file(text, &settings, changed).expect("a good file"),
        "# ours\nport = 7000 # clients\n\nmaxmemory = \"2gb\" # room\nmaxclients = 5\nrequirepass = \"007\"\n"
    );
}

#[test]
fn several_changes_are_made_together_or_not_at_all() {
    let settings = Settings::default();
    let changed = settings.with_changes(&[("timeout", "5"), ("maxclients", "7")]).expect("both");
    assert_eq!((changed.timeout.as_secs(), changed.maxclients), (5, 7));
    let refused = settings.with_changes(&[("timeout", "5"), ("port", "7")]).expect_err("one");
    assert_eq!((refused.index, refused.error), (1, SettingRefusal::NeedsRestart { name: "port" }));
}

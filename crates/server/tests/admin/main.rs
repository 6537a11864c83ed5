//! Connection and server commands on a node in this process, over real sockets.

mod support;

use std::time::{Duration, Instant};

use settings::{DebugClients, OutputLimit, OutputLimits, Secret, Settings};
use support::{Client, TestNode};

#[test]
fn clients_list_name_and_kill_each_other_over_threads() {
    let node = TestNode::start(Settings::default());
    let mut clients: Vec<Client> = (0..4).map(|_| node.connect()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.ask(&format!("CLIENT SETNAME c{number}")), "OK");
    }
    let list = clients[0].ask("CLIENT LIST");
    for number in 0..4 {
        assert!(list.contains(&format!(" name=c{number} ")), "{list}");
    }
    let id = clients[3].ask("CLIENT ID");
    let id = id.trim_start_matches("(integer) ");
    assert_eq!(clients[0].ask(&format!("CLIENT KILL ID {id}")), "(integer) 1");
    assert!(clients[3].is_closed_soon());
    assert_eq!(clients[0].ask(&format!("CLIENT KILL ID {id}")), "(integer) 0");
    assert_eq!(clients[1].ask("CLIENT KILL TYPE normal SKIPME yes"), "(integer) 2");
    assert!(clients[0].is_closed_soon());
    assert_eq!(clients[1].ask("PING"), "PONG");
}

#[test]
fn wait_in_a_transaction_looks_at_no_slot_that_the_transaction_holds() {
    let node = TestNode::start(Settings::default());
    let mut client = node.connect();
    for words in ["SET k 1", "MULTI", "SET k 2", "WAIT 0 0"] {
        client.ask(words);
    }
    assert_eq!(client.ask("EXEC"), "1) OK\n2) (integer) 0");
    // In one batch, whose locks are taken early.
    for words in ["MULTI", "WAIT 1 0", "EXEC", "SET k 3", "SET other 3"] {
        client.send(words);
    }
    let replies: Vec<String> = (0..5).map(|_| client.receive()).collect();
    assert_eq!(replies, ["OK", "QUEUED", "1) (integer) 0", "OK", "OK"]);
}

#[test]
fn paused_writes_wait_and_reads_do_not() {
    let node = TestNode::start(Settings::default());
    let (mut admin, mut reader, mut writer) = (node.connect(), node.connect(), node.connect());
    assert_eq!(admin.ask("CLIENT PAUSE 10000 WRITE"), "OK");
    writer.send("GET k");
    writer.send("SET k v");
    writer.send("GET k");
    assert_eq!(writer.receive(), "(nil)");
    assert_eq!(reader.ask("GET k"), "(nil)");
    assert!(writer.hears_nothing_for(Duration::from_millis(150)));
    assert_eq!(admin.ask("CLIENT UNPAUSE"), "OK");
    assert_eq!(writer.receive(), "OK");
    assert_eq!(writer.receive(), "\"v\"");
}

#[test]
fn what_a_pause_holds_back_is_run_as_it_was_sent() {
    let node = TestNode::start(Settings::default());
    let mut client = node.connect();
    // The pause begins with the last command of a batch; after it come one complete request and half of
    // another.
    let mut requests = b"PING\r\n".repeat(31);
    requests.extend_from_slice(b"CLIENT PAUSE 300 WRITE\r\n");
    requests.extend_from_slice(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$3\r\none\r\n");
    requests.extend_from_slice(b"*2\r\n$3\r\nGET\r\n$1");
    client.send_raw(&requests);
    for _ in 0..31 {
        assert_eq!(client.receive(), "PONG");
    }
    assert_eq!(client.receive(), "OK");
    client.send_raw(b"\r\na\r\n");
    assert_eq!(client.receive(), "OK");
    assert_eq!(client.receive(), "\"one\"");

    assert_eq!(client.ask("CLIENT PAUSE 300 WRITE"), "OK");
    client.send_raw(b"SET a \"two words\"\r\nGET a\r\n");
    assert_eq!(client.receive(), "OK");
    assert_eq!(client.receive(), "\"two words\"");
}

#[test]
fn quoted_lines_that_come_together_are_each_read_once() {
    let node = TestNode::start(Settings::default());
    let mut client = node.connect();
    client.send_raw(b"SET a \"two words\"\r\nGET a\r\n");
    assert_eq!(client.receive(), "OK");
    assert_eq!(client.receive(), "\"two words\"");
}

#[test]
fn info_inside_a_transaction_does_not_wait_for_its_own_keys() {
    let node = TestNode::start(Settings::default());
    let mut client = node.connect();
    assert_eq!(client.ask("SET k v EX 1000"), "OK");
    assert_eq!(client.ask("MULTI"), "OK");
    assert_eq!(client.ask("GET k"), "QUEUED");
    assert_eq!(client.ask("INFO keyspace"), "QUEUED");
    assert!(client.ask("EXEC").contains("keys=1"));
}

#[test]
fn a_pause_of_everything_ends_by_itself() {
    let node = TestNode::start(Settings::default());
    let (mut admin, mut client) = (node.connect(), node.connect());
    let begun = Instant::now();
    assert_eq!(admin.ask("CLIENT PAUSE 300"), "OK");
    assert_eq!(client.ask("PING"), "PONG");
    let waited = begun.elapsed();
    assert!(waited >= Duration::from_millis(290), "only {waited:?}");
    assert!(waited < Duration::from_millis(2_000), "as long as {waited:?}");
}

#[test]
fn silent_clients_are_parted_with_and_listeners_stay() {
    let node = TestNode::start(Settings { timeout: Duration::from_secs(1), ..Settings::default() });
    let (mut silent, mut listener) = (node.connect(), node.connect());
    assert_eq!(silent.ask("PING"), "PONG");
    listener.ask("SUBSCRIBE news");
    assert!(silent.is_closed_soon());
    assert_eq!(listener.ask("PING"), "1) \"pong\"\n2) \"\"");
}

#[test]
fn who_has_not_shown_who_it_is_can_ask_for_little() {
    let settings = Settings { requirepass: Secret::new("secret"), ..Settings::default() };
    let node = TestNode::start(settings);
    let mut client = node.connect();
    client.send_raw(b"*11\r\n");
    assert_eq!(client.receive(), "(error) ERR Protocol error: unauthenticated multibulk length");
    assert!(client.is_closed_soon());
    let mut client = node.connect();
    // Data after AUTH in the same packet is parsed with the limits that AUTH has changed.
    client.send_raw(b"AUTH secret\r\n*12\r\n$3\r\nDEL\r\n");
    client.send_raw(&b"$1\r\nk\r\n".repeat(11));
    assert_eq!(client.receive(), "OK");
    assert_eq!(client.receive(), "(integer) 0");
}

#[test]
fn a_client_that_does_not_read_is_parted_with_at_its_limit() {
    let normal = OutputLimit { hard_bytes: 1 << 20, ..OutputLimit::default() };
    let limits = OutputLimits { normal, ..OutputLimits::default() };
    let settings = Settings { client_output_buffer_limit: limits, ..Settings::default() };
    let node = TestNode::start(settings);
    let (mut greedy, mut other) = (node.connect(), node.connect());
    other.send_raw(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n");
    other.send_raw(&vec![b'x'; 1_000_000]);
    other.send_raw(b"\r\n");
    assert_eq!(other.receive(), "OK");
    greedy.send_raw(&b"GET k\r\n".repeat(100));
    let id = other.ask("CLIENT LIST");
    assert!(!id.is_empty());
    let begun = Instant::now();
    while other.ask("CLIENT LIST").matches("id=").count() > 1 {
        assert!(begun.elapsed() < Duration::from_secs(10), "it is still connected");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn monitors_see_commands_of_all_threads_but_no_passwords() {
    let settings = Settings { requirepass: Secret::new("secret"), ..Settings::default() };
    let node = TestNode::start(settings);
    let mut clients: Vec<Client> = (0..3).map(|_| node.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.ask("AUTH secret"), "OK");
    }
    assert_eq!(clients[0].ask("MONITOR"), "OK");
    assert_eq!(clients[1].ask("SET k \"a b\""), "OK");
    let line = clients[0].receive();
    assert!(line.ends_with(" \"SET\" \"k\" \"a b\""), "{line}");
    assert_eq!(clients[2].ask("AUTH secret"), "OK");
    let line = clients[0].receive();
    assert!(line.ends_with(" \"AUTH\" \"(redacted)\""), "{line}");
    assert_eq!(clients[2].ask("CONFIG GET port").lines().count(), 2);
    assert_eq!(clients[0].ask("RESET"), "RESET");
    assert_eq!(clients[1].ask("GET k"), "\"a b\"");
    assert!(clients[0].hears_nothing_for(Duration::from_millis(100)));
}

#[test]
fn commands_are_counted_by_how_they_ended() {
    let node = TestNode::start(Settings::default());
    let mut client = node.connect();
    for line in ["SET k v", "GET k", "GET k", "INCR k", "GET", "NOSUCH", "MULTI", "GET k", "EXEC"] {
        client.ask(line);
    }
    let stats = client.ask("INFO commandstats");
    let line = |name: &str| {
        let start = stats.find(&format!("cmdstat_{name}:")).unwrap_or_else(|| panic!("{stats}"));
        stats[start..].split("\\r\\n").next().unwrap().to_owned()
    };
    assert!(line("get").contains("calls=3,"), "{stats}");
    assert!(line("get").ends_with("rejected_calls=1,failed_calls=0"), "{stats}");
    assert!(line("incr").ends_with("rejected_calls=0,failed_calls=1"), "{stats}");
    assert!(line("exec").contains("calls=1,"), "{stats}");
    let errors = client.ask("INFO errorstats");
    assert!(errors.contains("errorstat_ERR:count=3"), "{errors}");
    assert!(client.ask("INFO latencystats").contains("latency_percentiles_usec_get:p50="));
    assert!(client.ask("LATENCY HISTOGRAM set").contains("\"histogram_usec\""));
    assert_eq!(client.ask("CONFIG RESETSTAT"), "OK");
    assert!(!client.ask("INFO commandstats").contains("cmdstat_get"));
    assert!(client.ask("INFO stats").contains("\\r\\ntotal_error_replies:0\\r\\n"));
}

#[test]
fn slow_commands_are_logged_with_who_sent_them() {
    let enable_debug_command = DebugClients::Local;
    let node = TestNode::start(Settings { enable_debug_command, ..Settings::default() });
    let mut client = node.connect();
    client.ask("CLIENT SETNAME me");
    assert_eq!(client.ask("CONFIG SET latency-monitor-threshold 10"), "OK");
    client.ask("DEBUG SLEEP 0.02");
    let log = client.ask("SLOWLOG GET");
    assert!(log.contains("\"SLEEP\"") && log.contains("\"me\""), "{log}");
    assert!(client.ask("LATENCY LATEST").contains("\"command\""));
    client.ask("SLOWLOG RESET");
    client.ask("CONFIG SET slowlog-log-slower-than 0");
    client.ask("GET k");
    assert!(client.ask("SLOWLOG GET 1").contains("\"GET\""));
}

#[test]
fn changed_settings_are_written_back_to_their_file() {
    let path = std::env::temp_dir().join(format!("opencluster-{}.toml", std::process::id()));
    std::fs::write(&path, "# ours\nmaxmemory = \"1gb\" # much\n").expect("a place for it");
    let node = TestNode::start_with(Settings::default(), Some(path.clone()));
    let mut client = node.connect();
    assert_eq!(client.ask("CONFIG SET maxmemory 2gb timeout 7"), "OK");
    assert_eq!(client.ask("CONFIG REWRITE"), "OK");
    let text = std::fs::read_to_string(&path).expect("it is still there");
    std::fs::remove_file(&path).expect("it is ours");
    assert_eq!(text, "# ours\nmaxmemory = \"2gb\" # much\ntimeout = 7\n");
}

#[test]
fn shutdown_ends_the_node() {
    let node = TestNode::start(Settings::default());
    let mut client = node.connect();
    client.send("SHUTDOWN NOSAVE");
    assert!(client.is_closed_soon());
    node.wait();
}
